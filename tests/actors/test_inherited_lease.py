"""The lease that a worker process was started with."""

import dataclasses
import os
from pathlib import Path

from actors.inherited_lease import InheritedLease, lease_at
from hostres.coordinator import Coordinator


def test_what_a_worker_forks_keeps_the_capacity_but_not_the_lease(tmp_path: Path) -> None:
    with Coordinator(tmp_path / "machine", explicit={"x": 1}) as machine, machine.lease({"x": 1}) as lease:
        inherited = InheritedLease.at(dataclasses.replace(lease_at(lease), fd=os.dup(lease.fd)))
        fd = inherited.fd
        inherited.assert_owned()
        pid = os.fork()
        if pid == 0:
            try:
                os.fstat(fd)
                os._exit(0 if inherited.fd == -1 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        inherited.release()
