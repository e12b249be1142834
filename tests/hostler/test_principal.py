"""Who is asking."""

import os
import pwd
import subprocess
import sys

import pytest

from hostler.principal import is_human, principal
from hostres.errors import HostlerError

USER = pwd.getpwuid(os.getuid()).pw_name
ASK = "from hostler.principal import principal as who; print(who())"


def test_a_caller_is_the_os_user() -> None:
    assert principal({}, []) == f"human:{USER}"
    assert is_human(principal({}, []))


def test_a_process_of_a_node_is_that_nodes_agent() -> None:
    assert principal({"HOSTLER_NODE": "media/cut"}, []) == "agent:media/cut"


def test_any_ancestor_makes_it_an_agent() -> None:
    assert principal({}, [{}, {"HOSTLER_NODE": "cut"}, {}]) == "agent:cut"


def test_an_empty_name_still_makes_it_an_agent() -> None:
    assert not is_human(principal({"HOSTLER_NODE": ""}, []))


@pytest.mark.parametrize("claimed", ["bot", "agent:bot", "human:bot", "service:bot", "human:agent:bot"])
def test_who_names_itself_is_an_agent_whatever_it_says(claimed: str) -> None:
    assert principal({"HOSTLER_PRINCIPAL": claimed}, []) == "agent:bot"


def test_a_node_cannot_pass_for_another_agent() -> None:
    assert principal({"HOSTLER_PRINCIPAL": "other", "HOSTLER_NODE": "cut"}, []) == "agent:cut"


@pytest.mark.parametrize("text", ["", "human:", "two words", "line\nbreak", "x" * 256, "a\udcff"])
def test_an_unusable_name_is_refused(text: str) -> None:
    with pytest.raises(HostlerError) as caught:
        principal({"HOSTLER_PRINCIPAL": text}, [])
    assert caught.value.code == "invalid-data"


def test_unsetting_the_name_in_a_child_does_not_make_it_human() -> None:
    """A shell with the name starts a child without it; the real process table tells."""
    unset = {key: value for key, value in os.environ.items() if not key.startswith("HOSTLER_")}
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASK!r}], env={{}}, check=True)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**unset, "HOSTLER_NODE": "cut"},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "agent:cut\n"
