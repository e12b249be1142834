"""A program pays at its start for what it uses, not for what others may."""

import os
import subprocess
import sys

STEP = """
import sys
from pydantic import BaseModel
from hostler import Host, operation, workflow

class Nothing(BaseModel):
    pass

@operation("test.nothing", version=1)
def nothing(ctx, input: Nothing) -> Nothing:
    return Nothing()

@workflow("one", version=1)
def one(build):
    return {"it": build.call(nothing, key="it", input={})}

with Host() as host:
    assert host.submit(one).wait(60).status == "completed"
print(*sorted({"actors.worker", "actors.conversation", "psutil", "rich", "yaml"} & set(sys.modules)))
"""


def test_a_first_step_in_the_program_itself_loads_nothing_of_worker_processes_or_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEP], check=True, capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert done.stdout == "\n"
