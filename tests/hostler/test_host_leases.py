"""Leases that a host, or an operation that it runs, asks for."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from hostler import Host, Policy, operation, workflow
from hostler.config import Config
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.top import snapshot
from tests.hostler.host_support import Number
from tests.support import until


def test_a_lease_needs_no_workflow():
    with Host() as host, host.lease({"whisper": 1}, wait=5, name="by hand") as lease:
        assert lease.run(["true"]).code == 0
        with pytest.raises(HostlerError) as caught:
            host.lease({"whisper": 1, "ffmpeg": 1})
        assert caught.value.code is Code.INVALID_CLAIMS
        host.lease({"whisper": 1}, wait=0).release()  # a part of it
        with ThreadPoolExecutor() as threads, pytest.raises(HostlerError) as caught:
            threads.submit(host.lease, {"whisper": 1}, wait=0).result()
        assert caught.value.code is Code.WAIT_TIMEOUT


def test_closing_a_host_aborts_the_waits_for_leases_and_it_gives_out_no_more():
    with Coordinator(Config.load().machine_folder) as elsewhere, ThreadPoolExecutor() as threads:
        holder = elsewhere.lease({"whisper": 1})
        with Host() as host:
            waits = threads.submit(host.lease, {"whisper": 1})
            until(lambda: [row for row in snapshot(Config.load().machine_folder).tickets if row.state == "waiting"])
        with pytest.raises(HostlerError) as caught:
            waits.result(60)
        assert caught.value.code is Code.WAIT_ABORTED
        holder.release()
        with pytest.raises(HostlerError, match="this host is closed") as caught:
            host.lease({"whisper": 1}, wait=0)
        assert caught.value.code is Code.CONFLICT


@operation("test.asks", version=1, policy=Policy(effect="local-read", claims={"cpu": 2}))
def asks(ctx, input: Number) -> Number:
    with machine().lease({"cpu": 1}, wait=5) as part:
        assert part.claims == {"cpu": 1}
    try:
        machine().lease({"whisper": 1}, wait=5)
    except HostlerError as error:
        return Number(n=1 if error.code is Code.INVALID_CLAIMS else 2)
    return Number(n=3)


def machine() -> Coordinator:
    return Coordinator(Config.load().machine_folder)


@workflow("asking", version=1)
def asking(build):
    return {"n": build.call(asks, key="ask", input={})["n"]}


def test_what_an_operation_asks_of_the_machine_is_a_part_of_what_its_node_holds(tmp_path):
    (tmp_path / "config.toml").write_text("[machine.capacity]\ncpu = 2\n")
    with Host() as host:
        assert host.submit(asking).wait(timeout=60).outputs == {"n": 1}
