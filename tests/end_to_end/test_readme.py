"""What the README lets a reader type works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.support import hostler, shown, told

ROOT = Path(__file__).parent.parent.parent


def test_the_five_minutes_of_the_readme_work() -> None:
    run_id = hostler("run", str(ROOT / "examples/greeting.toml"), "-i", "name=Ann", code=3).split()[0]
    (waits,) = told("approve", "-", code=3)["waiting_on"]
    assert Path(waits["plan"]["input"]["letter"]).read_text(encoding="utf-8") == "Hello Ann\n"
    assert waits["plan"]["input"]["letter"] in hostler("approve", "-", code=3), "there is something to look at"
    hostler(*shown(run_id)["waiting_on"][0]["command"].split()[1:])
    hostler("resume", "-")
    assert hostler("logs", "-", "send") == "Hello Ann\n"


def test_the_python_of_the_readme_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    (tmp_path / "README.md").write_text("twelve bytes", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "completed {'bytes': 12}\n"
