"""A stored document is changed in one place, then everything that reads runs is asked about it.

Whatever was done to it, the answer is the one it was before or an error with a stable code, in one line; never
another answer, a traceback or silence. A cell that a digest covers must besides be named by somebody. Where the
digest was made to fit the change, as a bug or a bad program would, answers may differ, and still nothing may break.
"""

import argparse
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostres.errors import Code, HostlerError
from scripts.fuzzing.damage import Change, Damage
from scripts.fuzzing.promises import FuzzError, patience
from scripts.fuzzing.questions import ask
from scripts.fuzzing.template import build

SHM: Final = Path("/dev/shm")


class Fuzzer:
    """Damages one copy of a store after another, all from one seed, and judges what it answers."""

    def __init__(self, template: Path, seed: int) -> None:
        self.damage = Damage(random.Random(seed))
        self.template = template
        self.truth = ask(self._copied(template.with_name("truth")))
        self.outcomes: Counter[str] = Counter()

    def _copied(self, place: Path) -> Path:
        shutil.copytree(self.template, place)
        return place

    def case(self, number: int) -> None:
        """Change the store in one place and ask everything.

        Raises:
            FuzzError: A promise was not kept.

        """
        place = self._copied(self.template.with_name(f"case-{number}"))
        change = Change("nothing yet", found=False, same=False)
        try:
            change = self.damage.change(place)
            with patience():
                answers = ask(place)
            self._judge(change, answers)
        except Exception as error:
            raise FuzzError(f"case {number}: {change.what}") from error
        finally:
            shutil.rmtree(place)

    def _judge(self, change: Change, answers: dict[str, Any]) -> None:
        errors = {
            name: answer
            for name, answer in answers.items()
            if isinstance(answer, HostlerError) and not isinstance(self.truth.get(name), HostlerError)
        }
        self.outcomes["refused" if errors else "unchanged"] += 1
        if change.same:
            for name, answer in answers.items():
                if not isinstance(answer, HostlerError) and answer != self.truth[name]:
                    raise FuzzError(f"{name} gave another answer: {answer!r:.500}, not {self.truth[name]!r:.500}")
        if change.found and not any(error.code in (Code.INVALID_DATA, Code.UNSAFE_STATE) for error in errors.values()):
            raise FuzzError(
                f"nobody noticed; {', '.join(f'{name}: {error}' for name, error in errors.items()) or 'no error'}"
            )


def fuzz(cases: int, seed: int) -> Counter[str]:
    """Do so many cases.

    Returns:
        How many of them were refused somewhere, and how many changed nothing that anybody reads.

    Raises:
        FuzzError: A promise was not kept, naming the case.

    """
    with tempfile.TemporaryDirectory(prefix="hostler-fuzz-", dir=SHM if SHM.is_dir() else None) as folder:
        template = Path(folder, "template")
        build(template)
        fuzzer = Fuzzer(template, seed)
        for number in range(cases):
            fuzzer.case(number)
        return fuzzer.outcomes


def main() -> int:
    """Fuzz, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many changes to try")
    parser.add_argument("--seed", type=int, default=1, help="decides which")
    args = parser.parse_args()
    if args.cases < 1:
        parser.error("--cases must be at least 1")
    try:
        outcomes = fuzz(args.cases, args.seed)
    except FuzzError as error:
        traceback.print_exception(error)
        print(f"again with: scripts/fuzz-store --cases {args.cases} --seed {args.seed}")
        return 1
    print(f"{args.cases} cases: {outcomes['refused']} refused, {outcomes['unchanged']} changed nothing that is read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
