"""JSON Schemas of what each command prints with `--json`, one file a command; written by `scripts/write-tables`.

They let further fields pass: a reader passes over what it does not know.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SUFFIX: Final = ".json"


def file_of(command: str) -> str:
    """Return the name of the file of a command, which may have an action behind a space."""
    return f"{command.replace(' ', '-')}{SUFFIX}"


def commands() -> list[str]:
    """Return the commands that have a schema, in the order of their names; an action stands behind a dash."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))
