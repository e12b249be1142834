"""Room that is kept on the disk: nothing begins without it, how things end is recorded with it, and it comes back."""

from pathlib import Path

from tests.store.test_faults import on_small_disk

FILLING = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store.room import RESERVE_BYTES, shortage
from tests.store.support import *
from tests.store.test_faults import finishing
root = Path(sys.argv[1])
def fill():
    with (root / "blocker").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
def told(error):
    return error and [error.code, error.what]
"""

ENDS = (
    FILLING
    + """
setting = Setting(root / "home")
claimed = setting.claimed(plan_of({"a": [], "b": []}))
answers = {"whole": setting.home.reserve.stat().st_blocks * 512 >= RESERVE_BYTES, "room": told(shortage(setting.home))}
steps = [finishing(claimed, "x" * 600_000, place) for place in (0, 1)]
setting.accept(claimed, nodes=tuple(running for running, _, _ in steps))
def end(place):
    _, done, output = steps[place]
    return setting.write(claimed, nodes=(done,), outputs=(output,))
fill()
answers["full"] = told(shortage(setting.home))
try:
    setting.created()
except HostlerError as error:
    answers["created"] = told(error)
answers["first"] = told(end(0))
answers["reserve"] = setting.home.reserve.exists()
answers["still"] = told(shortage(setting.home))
answers["second"] = told(end(1))
setting.store.tidy()
answers["not yet"] = setting.home.reserve.exists()
(root / "blocker").unlink()
answers["room again"] = told(shortage(setting.home))
setting.store.tidy()
answers["back"] = setting.home.reserve.stat().st_size
answers["second again"] = told(end(1))
print(json.dumps(answers))
setting.close()
"""
)

FULL = "the disk is full: what is left for {home}/runs.db is kept for the end of what runs already"


def test_on_a_full_disk_nothing_begins_and_an_end_is_recorded_with_what_was_kept(tmp_path: Path) -> None:
    """Field case 48."""
    answers = on_small_disk(tmp_path / "disk", "4m", ENDS)
    full = ["unavailable", FULL.format(home=tmp_path / "disk" / "home")]
    refused = answers.pop("second")
    assert answers == {
        "whole": True,
        "room": None,
        "full": full,
        "created": full,
        "first": None,
        "reserve": False,
        "still": full,
        "not yet": False,
        "room again": None,
        "back": 1 << 20,
        "second again": None,
    }
    assert isinstance(refused, list)
    assert refused[0] == "unavailable"


def test_a_disk_that_is_too_small_for_what_is_kept_says_so_before_anything_begins(tmp_path: Path) -> None:
    answers = on_small_disk(
        tmp_path / "disk",
        "1800k",
        FILLING
        + """
setting = Setting(root / "home")
print(json.dumps({"there": setting.home.reserve.exists(), "said": told(shortage(setting.home))}))
setting.close()
""",
    )
    assert answers == {"there": False, "said": ["unavailable", FULL.format(home=tmp_path / "disk" / "home")]}
