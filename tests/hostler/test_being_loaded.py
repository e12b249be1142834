"""A program that opens its host while its file is loaded: it would start itself anew wherever the file is loaded."""

import subprocess
import sys

import pytest

from hostler import Host, load
from hostres.errors import HostlerError
from tests.hostler.host_support import reader

PROGRAM = """
from pydantic import BaseModel
from hostler import Host, NodeChanged, Policy, compute, operation, workflow
class Number(BaseModel):
    n: int
@operation("unguarded.inc", policy=Policy(isolation="process"))
def inc(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)
@workflow("unguarded")
def unguarded(build):
    return build.call(inc, key="inc", input={"n": 1})
with Host() as host:
    run = host.submit(unguarded)
    run.subscribe(lambda heard: isinstance(heard, NodeChanged) and heard.record.failure and print(heard.record.failure))
    print(run.wait(timeout=60).status)
"""
SAYS = 'program.py line 12: a host is opened while the file is loaded, which belongs under if __name__ == "__main__"'


def test_a_program_without_a_guard_fails_where_it_would_start_itself_again_without_end(tmp_path):
    """Each worker process opened a host, which began a run, which began a worker process."""
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.endswith("failed\n")
    assert SAYS in ended.stdout
    with reader() as store:
        assert len(store.runs()) == 1


def test_a_file_that_opens_a_host_cannot_be_loaded_and_one_that_does_so_later_can(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with pytest.raises(HostlerError, match="line 12: a host is opened while the file is loaded"):
        load("program.py", folder=tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM.replace("with Host()", 'if __name__ == "__main__":\n  with Host()'))
    with Host() as host:
        run = host.submit(load("program.py", folder=tmp_path))
        assert run.wait(timeout=60).outputs == {"n": 2}
