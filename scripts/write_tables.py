"""Writes what the package ships of its own command line: a JSON Schema for each output, the words of completion."""

import json
from pathlib import Path

from hostler.completing.vocabulary import PLACE as WORDS
from hostler.output_schemas import FOLDER, file_of
from scripts.command_words import vocabulary
from scripts.output_shapes import SHAPES, schema_of


def files() -> dict[Path, str]:
    """Return the text of each file by its place."""
    found = {FOLDER / file_of(command): _text(schema_of(command)) for command in SHAPES}
    return {**found, WORDS: _text(vocabulary())}


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all; take away what no command has."""
    wanted = files()
    for path in FOLDER.glob("*.json"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
