"""Requests: unfenced, first writer wins, the owner is woken."""

import select
import threading
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.contracts import Request, RequestKind
from store.home import Home
from store.reader import Reader
from store.requests import cancel_id, is_cancel_id, post
from tests.store.support import CLOCK, Setting, assert_refused, request_of, run_id


def test_a_request_is_stored_and_wakes_the_living_owner(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    request = request_of(run, RequestKind.CANCEL, request_id=cancel_id(run), reason="enough", data={"x": [1]})
    assert select.select([setting.identity.fd], [], [], 0)[0] == []
    assert post(setting.home, request, clock=CLOCK)
    assert select.select([setting.identity.fd], [], [], 5)[0] == [setting.identity.fd]
    (stored,) = setting.store.requests([run, run_id()])
    assert stored.model_copy(update={"at": request.at}) == request
    with Reader.open(setting.home) as reader:
        assert reader.requests(run) == (stored,)
        assert reader.run(run).cancel_waits


def test_a_request_of_a_run_that_nobody_owns_waits_for_its_next_owner(setting: Setting) -> None:
    run = setting.created()
    assert post(setting.home, request_of(run, RequestKind.APPROVE, node="a"), clock=CLOCK)
    assert [one.kind for one in setting.store.claim(run, setting.identity).requests] == [RequestKind.APPROVE]


def test_of_racing_cancel_requests_the_first_stands_and_all_see_it(setting: Setting) -> None:
    run = setting.created()
    barrier = threading.Barrier(6)
    first: list[str] = []
    seen: list[tuple[Request, ...]] = []

    def cancel(name: str) -> None:
        request = request_of(run, RequestKind.CANCEL, request_id=cancel_id(run), principal=f"human:{name}")
        barrier.wait(timeout=60)
        if post(setting.home, request, clock=CLOCK):
            first.append(request.principal)
        with Reader.open(setting.home) as reader:
            seen.append(reader.requests(run))

    threads = [threading.Thread(target=cancel, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(first) == 1
    assert len(seen) == 6
    assert {found[0].principal for found in seen} == set(first)
    assert all(len(found) == 1 for found in seen)


def test_a_run_and_each_of_its_nodes_can_have_one_cancel_waiting() -> None:
    run = run_id()
    ids = {cancel_id(run), cancel_id(run, "a"), cancel_id(run, "a/b"), cancel_id(run_id()), cancel_id(run, answered=1)}
    assert len(ids) == 5
    assert cancel_id(run) == f"cancel:{run}:*"


def test_what_was_cancelled_before_can_be_cancelled_again(setting: Setting) -> None:
    """A run that was cancelled is reopened by a retry, and a cancel may have been refused."""
    claimed = setting.claimed()
    run = claimed.fence.run_id
    for node in (None, "a", None, "a"):
        with Reader.open(setting.home) as reader:
            named = reader.next_cancel_id(run, node)
            assert not reader.run(run).cancel_waits
        request = request_of(run, RequestKind.CANCEL, request_id=named, node=node)
        assert post(setting.home, request, clock=CLOCK)
        assert not post(setting.home, request, clock=CLOCK)
        with Reader.open(setting.home) as reader:
            assert reader.next_cancel_id(run, node) == named
            assert reader.run(run).cancel_waits is (node is None)
        setting.accept(claimed, consumed=(named,))


@pytest.mark.parametrize(
    ("name", "node", "whether"),
    [("{}:*", None, True), ("{}:*:1", None, True), ("{}:a:12", "a", True), ("{}:a", "a", True), ("{}:*", "a", False),
     ("{}:a", None, False), ("{}:*:0", None, False), ("{}:*:", None, False), ("{}:ab", "a", False), ("", None, False)],
)  # fmt: skip
def test_a_cancel_has_its_own_name_or_one_with_how_many_were_answered(
    name: str, node: str | None, whether: bool
) -> None:
    run = run_id()
    assert is_cancel_id(name.format(f"cancel:{run}"), run, node) is whether


def test_cancelling_a_node_does_not_cancel_its_run(setting: Setting) -> None:
    run = setting.created()
    post(setting.home, request_of(run, RequestKind.CANCEL, request_id=cancel_id(run, "a"), node="a"), clock=CLOCK)
    with Reader.open(setting.home) as reader:
        assert not reader.run(run).cancel_waits


def test_a_request_for_an_unknown_run_is_refused(setting: Setting) -> None:
    with pytest.raises(HostlerError) as caught:
        post(setting.home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK)
    assert_refused(caught.value, Code.NOT_FOUND, "there is no run")


def test_a_request_where_there_is_no_store_is_refused_and_makes_none(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home", create=False)
    with pytest.raises(HostlerError) as caught:
        post(home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK)
    assert_refused(caught.value, Code.NOT_FOUND, "runs.db")
    assert not (tmp_path / "home").exists()
