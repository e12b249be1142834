"""People get a run that has failed to its end: with another input, from the command line."""

import json
from pathlib import Path

from tests.end_to_end.support import command, finished, graph, hostler, refused, shown, told

FAILS = command("make", "sh", "-c", 'test "$WANTED" = right && echo made')


def after(key: str, *dependencies: str) -> dict:
    return {**command(key, "echo", key), "after": list(dependencies)}


def test_a_failed_command_is_corrected_and_what_was_skipped_for_it_follows(tmp_path: Path) -> None:
    """G21: the corrected node completes with the same dependents; the plan of the run stays; verify finds nothing."""
    assert finished("run", graph(tmp_path, FAILS, after("use", "make"))).returncode == 1
    before = shown("-")
    assert [node["status"] for node in before["nodes"]] == ["failed", "skipped"]
    correction = tmp_path / "new.json"
    correction.write_text(json.dumps({"env": {"WANTED": "right"}}))
    hostler("correct", "-", "make", "--input", str(correction), "--reason", "it was the wrong word")
    assert hostler("resume", "-").rstrip().endswith("completed")
    after_it = told("show", "-")
    assert after_it["plan_sha256"] == before["plan_sha256"]
    make, use = after_it["nodes"]
    assert (make["status"], make["attempt"], make["revision"], use["status"]) == ("completed", 2, 1, "completed")
    (corrected,) = make["corrections"]
    assert corrected["replaced_plan_sha256"] == before["nodes"][0]["plan_sha256"] != make["plan_sha256"]
    assert corrected["input"]["argv"][0] == "sh", "what the file leaves out stays as it was"
    assert (corrected["reason"], corrected["after_attempt"]) == ("it was the wrong word", 1)
    assert "make: revision 1 of its input, after attempt 1" in hostler("show", "-")
    assert "is completed; there is nothing to correct" in refused(
        "correct", "-", "make", "--input", str(correction), code=5
    )
    hostler("verify", "-")


def test_an_input_that_cannot_be_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    """The one line says what is wrong with it."""
    finished("run", graph(tmp_path, FAILS))
    new = tmp_path / "new.json"
    for text, why in (
        ("{", "not JSON"),
        ('["true"]', "the input of a command is an object"),
        ('{"argv": []}', "its argv is no list of words"),
        ('{"env": {"HOSTLER_RUN": "x"}}', "cannot be set in its environment"),
        ('{"value": {"$ref": {"node": "other", "path": []}}}', "which make does not depend on"),
    ):
        new.write_text(text)
        assert why in refused("correct", "-", "make", "--input", str(new), code=2)
    assert "revision" not in shown("-")["nodes"][0]
    new.write_text('{"argv": ["true"]}')
    assert "agent:coder may not correct" in refused(
        "correct", "-", "make", "--input", str(new), code=5, HOSTLER_PRINCIPAL="coder"
    )
