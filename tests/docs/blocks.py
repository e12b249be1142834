"""The blocks of code in a page, and what is said of them: in their first line, or in a comment on the line before.

```console             commands after `$ `, what they print below them; `...` stands for anything, a last `[3]` for the
                       exit code, which is 0 otherwise; a question that is followed by an answer is answered so
```python              a program, run as it stands
```LANG title="NAME"   a file of that name, for the commands that follow
<!-- not run: WHY -->  it is not run, and why it cannot be
<!-- until: COMMAND --> it is run once that command succeeds, as a reader would wait to see something
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
)

FENCED: Final = re.compile(
    r"(?P<before>[^\n]*)\n^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
TITLE: Final = re.compile(r'(?: title="([^"]*)")?')
SAID: Final = re.compile(r"<!-- (until|not run): (.*) -->")


@dataclass(frozen=True)
class Block:
    """A block of code in a page.

    Attributes:
        line: Of its first line of code, from 1.
        title: The name of the file that it is; "" for none.
        not_run: Why it is not run; "" for what is.
        until: A command that succeeds once what the reader waits for has happened; "" for what needs no wait.

    """

    page: str
    line: int
    language: str
    code: str
    title: str = ""
    not_run: str = ""
    until: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Typed:
    """A command of a console block, and what is shown of its output.

    Attributes:
        shown: The lines below it; empty says nothing about the output.
        code: The exit code.

    """

    line: int
    command: str
    shown: list[str] = field(default_factory=list)
    code: int = 0


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page, from top to bottom.

    Raises:
        ValueError: The first line of one says what nobody knows.

    """
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in FENCED.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        title = TITLE.fullmatch(found["info"])
        if title is None:
            raise ValueError(f"{page}:{line - 1}: unknown words in{found['info']}")
        said = SAID.fullmatch(found["before"])
        what, words = said.groups() if said else ("", "")
        yield Block(
            page,
            line,
            found["language"],
            found["code"],
            title=title[1] or "",
            not_run=words if what == "not run" else "",
            until=words if what == "until" else "",
        )


def text_between_blocks(page: str) -> str:
    """Return what a page says beside its blocks."""
    return FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))


def typed_in(block: Block) -> list[Typed]:
    """Return the commands of a console block.

    Raises:
        ValueError: It does not begin with one.

    """
    typed: list[Typed] = []
    goes_on = False
    for number, line in enumerate(block.code.splitlines(), block.line):
        if line.startswith("$ "):
            typed.append(Typed(number, line[2:]))
        elif not typed:
            raise ValueError(f"{block.page}:{number}: no command above this")
        elif goes_on:
            last = typed[-1]
            typed[-1] = Typed(last.line, f"{last.command}\n{line}")
        elif code := re.fullmatch(r"\[(\d+)\]", line):
            last = typed[-1]
            typed[-1] = Typed(last.line, last.command, last.shown, int(code[1]))
        else:
            typed[-1].shown.append(line)
        goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
    return typed
