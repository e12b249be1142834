"""Clocks, limits and variables: what is told of them, and when."""

import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler.diagnosis.surroundings import Groups, groups_of, look_at_surroundings, told_clock

NONE = Groups()
MIB = 1 << 20


def notes(groups: Groups = NONE, **environ: str) -> list[tuple[str, str]]:
    found = look_at_surroundings({"cpu": 4, "memory-mb": 1000}, environ, groups)
    return [(one.said, one.todo) for one in found if one.todo]


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_clock_that_cannot_be_right_is_noted() -> None:
    """As of a machine whose battery is empty."""
    assert "set-ntp" in told_clock(datetime(1970, 1, 2, tzinfo=UTC)).todo
    assert not told_clock(datetime(2030, 1, 1, tzinfo=UTC)).todo


@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        (resource.RLIMIT_NOFILE, (64, 4096), "ulimit -n 4096"),
        (resource.RLIMIT_NOFILE, (64, 256), "ulimit -n 256"),
        (resource.RLIMIT_NOFILE, (64, 64), "hard limit (`LimitNOFILE="),
        (resource.RLIMIT_NPROC, (50, -1), "ulimit -u unlimited"),
        (resource.RLIMIT_NPROC, (50, 50), "hard limit (`LimitNPROC="),
        (resource.RLIMIT_FSIZE, (1_000_000, -1), "ulimit -f unlimited"),
        (resource.RLIMIT_FSIZE, (1_000_000, 1_000_000), "hard limit (`LimitFSIZE="),
    ],
)
def test_a_limit_that_work_would_meet_is_noted_with_its_mend(
    monkeypatch: pytest.MonkeyPatch, limit: int, value: tuple[int, int], says: str
) -> None:
    """Field case 45: before "too many open files" comes from whatever happens next."""
    monkeypatch.setattr("resource.getrlimit", lambda which: value if which == limit else (-1, -1))
    ((_, todo),) = notes()
    assert says in todo


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (Groups(memory_bytes=500 * MIB), "`hostler machine set memory-mb=400`"),
        (Groups(cpus=1.5), "`hostler machine set cpu=1`"),
        (Groups(processes=30), "pids.max"),
    ],
)
def test_a_capacity_beyond_what_the_control_group_allows_is_noted(groups: Groups, says: str) -> None:
    """Field case 44: the kernel would kill what was promised its memory."""
    ((_, todo),) = notes(groups)
    assert says in todo


def test_what_the_control_groups_allow_is_enough_or_not_said() -> None:
    """Then there is nothing to note."""
    assert notes(Groups(memory_bytes=2000 * MIB, cpus=4.0, processes=5000)) == notes(NONE) == []


def test_limits_of_version_two_are_the_least_on_the_way_up(tmp_path: Path) -> None:
    """See cgroups(7); "max" is none."""
    root = lay(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user/app\n",
            "sys/fs/cgroup/user/app/memory.max": "max\n",
            "sys/fs/cgroup/user/app/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user/memory.max": f"{300 * MIB}\n",
            "sys/fs/cgroup/user/pids.max": "99\n",
            "sys/fs/cgroup/memory.max": f"{900 * MIB}\n",
        },
    )
    assert groups_of(root) == Groups(memory_bytes=300 * MIB, cpus=1.5, processes=99)


def test_limits_of_version_one_are_read_also_where_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    """There the path of the group is not there; a limit near the largest number is none."""
    root = lay(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/x\n3:cpu:/docker/x\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{200 * MIB}\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert groups_of(root) == Groups(memory_bytes=200 * MIB)
    lay(root, {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert groups_of(root) == groups_of(tmp_path / "nowhere") == NONE


def test_a_variable_that_nothing_reads_is_noted_with_the_one_that_was_meant() -> None:
    """A misspelt one would be without effect, silently."""
    assert notes(HOSTLER_HOEM="x") == [("nothing of Hostler's reads HOSTLER_HOEM", "did you mean HOSTLER_HOME?")]
    assert notes(HOSTLER_HOME="/x", HOSTLER_RUN="run_x", PATH="/bin", HOSTLER_SECRETS="A") == []
