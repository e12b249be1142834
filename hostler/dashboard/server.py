"""The server of the dashboard, on the loopback address alone."""

import hmac
import secrets
import socket
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, ClassVar, Final, Self

from hostler.dashboard.guard import ADDRESS, HEADERS, Entry, Knock, Refusal, judge
from hostler.dashboard.looking import Looking, Shown
from hostres.beginning import begin
from hostres.errors import unavailable

TOKEN_BYTES: Final = 24
AT_ONCE: Final = 16
"""Requests that are answered at a time; more are told to come back."""
PATIENCE_S: Final = 10.0
"""How long a connection may say nothing."""
HEARS_S: Final = 0.1
"""So soon it hears at the latest that it is to end."""
TEXT: Final = "text/plain; charset=utf-8"


class Dashboard:
    """Serves the pages from a thread of its own while entered.

    Attributes:
        port: Where it listens.
        url: The address of the first page, with the secret in it.

    """

    def __init__(self, folder: Path, *, port: int = 0) -> None:
        """Take the port.

        Args:
            folder: The state folder, which may be made only later.
            port: Where to listen; 0 is any free one.

        Raises:
            HostlerError: The port cannot be had (unavailable).

        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        try:
            self._server = _Server(port, token, folder)
        except OSError as error:
            raise unavailable(f"port {port} of {ADDRESS} cannot be listened on", error) from error
        self.port = self._server.server_port
        self.url = f"http://{ADDRESS}:{self.port}/{token}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(HEARS_S,), name="dashboard", daemon=True
        )

    def entry_url(self) -> str:
        """Return an address that leads to the first page once: others may see what a browser is started with."""
        return f"http://{ADDRESS}:{self.port}/open/{self._server.new_word()}"

    def __enter__(self) -> Self:
        begin(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, port: int, token: str, folder: Path) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.token = token
        self.root = f"/{token}/"
        self.looking = Looking(folder, self.root)
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._word: str | None = None
        self._lock = threading.Lock()

    def server_bind(self) -> None:
        """Take the port without asking the network for the name of this machine, as the base does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.socket.getsockname()[1]

    def new_word(self) -> str:
        """Return a word that opens the dashboard once, in place of any before."""
        with self._lock:
            self._word = secrets.token_urlsafe(TOKEN_BYTES)
            return self._word

    def use_word(self, word: str) -> bool:
        """Say whether that word opens the dashboard; it does not do so again."""
        with self._lock:
            known = self._word is not None and hmac.compare_digest(word.encode(), self._word.encode())
            if known:
                self._word = None
            return known

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base names them
        """Say nothing of a browser that has gone or keeps silent; the rest is a bug of ours."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "hostler"
    sys_version = ""
    timeout: ClassVar[float] = PATIENCE_S

    def do_GET(self) -> None:
        """Answer what may be looked at."""
        knock = Knock(
            method=self.command,
            target=self.path,
            host=tuple(self.headers.get_all("Host", [])),
            origin=self.headers.get("Origin"),
            site=self.headers.get("Sec-Fetch-Site"),
        )
        server = self.server
        match judge(knock, port=server.server_port, token=server.token):
            case Refusal(status=status, why=why):
                self._refuse(status, why)
            case Entry(word=word) if server.use_word(word):
                self._send(Shown(status=303, kind=TEXT, data=b""), Location=server.root)
            case Entry():
                self._refuse(403, "this address was good for one time")
            case page:
                try:
                    shown = server.looking.show(page)
                except Exception:
                    self._refuse(500, "this page has a bug; the terminal of `hostler ui` says which")
                    raise
                self._send(shown)

    def __getattr__(self, name: str) -> Any:
        """Let every method be judged, not only those that the base knows."""
        if name.startswith("do_"):
            return self.do_GET
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Refuse what is not HTTP as everything else is refused."""
        self._refuse(int(code), message or "that is not a request")

    def _refuse(self, status: int, why: str) -> None:
        more = {"Allow": "GET"} if status == 405 else {}
        self._send(Shown(status=status, kind=TEXT, data=f"{why}\n".encode()), **more)

    def _send(self, shown: Shown, **more: str) -> None:
        self.send_response(shown.status)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", shown.kind)
        self.send_header("Content-Length", str(len(shown.data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(shown.data)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log: addresses hold the secret."""

    def setup(self) -> None:
        """Answer small things at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
