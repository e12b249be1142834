"""Check an installed copy: all modules import from there, the data is inside, and a run completes."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("hostres", "store", "actors", "hostler")
GRAPH = """\
[workflow]
id = "smoke"
version = 1

[[nodes]]
key = "hello"
input = {}
[nodes.executor.command]
argv = ["echo", "hello"]
"""


def main() -> None:
    """Run the checks; the first argument is the folder that holds `site/`."""
    out = Path(sys.argv[1]).resolve()
    for name in PACKAGES:
        package = importlib.import_module(name)
        assert Path(package.__file__ or "").is_relative_to(out / "site"), f"{name} is not the installed one"
        assert (out / "site" / name / "py.typed").is_file(), f"{name} ships no py.typed"
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in ("style.css", "live.js"):
        assert (out / "site" / "hostler" / "dashboard" / name).is_file(), f"the dashboard ships no {name}"
    graph = out / "smoke.toml"
    graph.write_text(GRAPH, encoding="utf-8")
    places = {"HOSTLER_HOME": str(out / "home"), "HOSTLER_MACHINE_DIR": str(out / "machine")}
    places["HOSTLER_CONFIG"] = str(out / "config.toml")
    for words in (["run", str(graph)], ["schema", "show"], ["completion", "zsh"], ["complete", "zsh", "show", ""]):
        done = subprocess.run(
            [sys.executable, "-m", "hostler", *words],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, **places},
            timeout=60,
        )
        assert done.stdout, f"hostler {' '.join(words)} prints nothing"


if __name__ == "__main__":
    main()
