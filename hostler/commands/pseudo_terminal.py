"""A command on a terminal of its own, which follows ours: for programs that behave otherwise without one.

It leads its own session. While it runs our terminal is raw, so that every key goes to its terminal and is dealt with
there, and whatever happens ours is put back as it was.
"""

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from hostler.commands.job import FORWARDED, Command, exit_code, spawn
from hostres.lease import Lease

PIECE: Final = 1 << 16
END_OF_INPUT: Final = b"\x04"
WATCHED: Final = FORWARDED | {signal.SIGCHLD, signal.SIGWINCH}


def run_on_terminal(lease: Lease, command: Command) -> int:
    """Run a command on a new terminal until it ends; see `run_job`.

    Args:
        lease: What it runs under.
        command: What to run.

    Raises:
        HostlerError: `unavailable`: it cannot be executed.

    """
    with _signals() as bell:
        master, slave = os.openpty()
        try:
            path = os.ttyname(slave)
            session = _Session(master, bell)
            session.resize()
            if session.raw_fd is not None:
                with contextlib.suppress(termios.error):  # it is gone; `serve` sees that
                    termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(session.raw_fd))
            session.pid = spawn(lease, command, (), terminal=path)
            os.close(slave)
            slave = -1
            with session.raw():
                return session.serve()
        finally:
            os.close(master)
            if slave >= 0:
                os.close(slave)


class _Session:
    """The command, its terminal and ours.

    Where ours is gone, the command is told as by a terminal of its own that is gone: by HUP.

    Attributes:
        pid: The command.
        raw_fd: Our terminal, if our input is one.

    """

    def __init__(self, master: int, bell: int) -> None:
        self.pid = 0
        self.raw_fd = 0 if os.isatty(0) else None
        self._sized = next((fd for fd in (0, 1, 2) if os.isatty(fd)), None)
        self._before: list[Any] = []
        self._master = master
        self._bell = bell
        self._typed = b""
        self._last = b"\n"
        self._ended: int | None = None
        self._shows_on_terminal = os.isatty(1)
        self._hung_up = False
        os.set_blocking(master, False)

    @contextlib.contextmanager
    def raw(self) -> Iterator[None]:
        """Have our terminal raw meanwhile."""
        if self.raw_fd is None:
            yield
            return
        self._make_raw()
        try:
            yield
        finally:
            self._put_back()

    def _make_raw(self) -> None:
        if self.raw_fd is not None:
            try:
                self._before = termios.tcgetattr(self.raw_fd)
                tty.setraw(self.raw_fd, termios.TCSADRAIN)
            except termios.error:
                self._hang_up()

    def _put_back(self) -> None:
        if self.raw_fd is not None and self._before:
            with contextlib.suppress(termios.error):  # it is gone, and nothing of it is left to put back
                termios.tcsetattr(self.raw_fd, termios.TCSADRAIN, self._before)

    def resize(self) -> None:
        """Give its terminal the size of ours."""
        if self._sized is None:
            return
        with contextlib.suppress(OSError):  # it is gone
            size = fcntl.ioctl(self._sized, termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def serve(self) -> int:
        """Carry bytes and signals to and fro until the command has ended; return its code."""
        reading = shown = True
        while self._ended is None:
            poll = select.poll()
            poll.register(self._bell, select.POLLIN)
            if shown:
                poll.register(self._master, select.POLLIN | (select.POLLOUT if self._typed else 0))
            if reading and len(self._typed) < PIECE:
                poll.register(0, select.POLLIN)
            events = dict(poll.poll())
            if self._bell in events:
                for number in os.read(self._bell, 4096):
                    self._heard(number)
            if events.get(self._master, 0) & (select.POLLIN | select.POLLHUP):
                shown = self._show()  # not, once nobody has its terminal open any more
            if events.get(self._master, 0) & select.POLLOUT:
                self._type()
            if 0 in events:
                reading = self._read()
        while self._show():
            pass
        return exit_code(self._ended)

    def _heard(self, number: int) -> None:
        if self._ended is not None:
            return
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._ended = status
        elif number == signal.SIGWINCH:
            self.resize()
        elif number == signal.SIGTSTP:
            self._stop()
        else:
            self._hung_up |= number == signal.SIGHUP
            os.kill(self.pid, number)

    def _hang_up(self) -> None:
        """Tell the command that the terminal is gone, unless it was told so already; who leads our session was."""
        if self._ended is None and not self._hung_up:
            self._hung_up = True
            os.kill(self.pid, signal.SIGHUP)

    def _stop(self) -> None:
        """Stop with all that belongs to the command, until somebody continues us."""
        os.killpg(self.pid, signal.SIGSTOP)
        self._put_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._make_raw()
        self.resize()
        os.killpg(self.pid, signal.SIGCONT)

    def _show(self) -> bool:
        """Show what the command has written; False if there is nothing more now or ever."""
        try:
            piece = os.read(self._master, PIECE)
        except BlockingIOError:
            return self._ended is None
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        while piece:
            piece = piece[self._write(piece) :]
        return True

    def _write(self, piece: bytes) -> int:
        """Write to our output; return how much of it is done with."""
        try:
            return os.write(sys.stdout.fileno(), piece)
        except BlockingIOError:  # whoever started us has left it so
            poll = select.poll()
            poll.register(sys.stdout.fileno(), select.POLLOUT)
            poll.poll()
            return 0
        except OSError as error:
            if error.errno != errno.EIO or not self._shows_on_terminal:
                raise
            self._hang_up()
            return len(piece)  # there is nobody to see it

    def _read(self) -> bool:
        try:
            piece = os.read(0, PIECE)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            piece = b""
        if not piece and self.raw_fd is not None and not os.isatty(self.raw_fd):
            self._hang_up()
        if piece:
            self._last = piece[-1:]
        else:  # a line that was begun is handed over by the first, the end said by the second
            self._typed += END_OF_INPUT * (1 if self._last == b"\n" else 2)
        self._typed += piece
        return bool(piece)

    def _type(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._typed = self._typed[os.write(self._master, self._typed) :]


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """Return a descriptor from which the numbers of the watched signals can be read."""
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    before = {number: signal.signal(number, _nothing) or signal.SIG_DFL for number in WATCHED}
    rung = signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    try:
        yield bell
    finally:
        signal.set_wakeup_fd(rung)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(bell)
        os.close(ring)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """The wake-up descriptor says it all."""
