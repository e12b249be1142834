"""How often SQLite flushes: a VFS that hands everything on to the usual one, and counts its calls of `xSync`.

What a commit waits for depends on the journal mode, the settings of the connection and what the file system promises,
so it is counted, not looked up. A flush is one call of `xSync` (https://www.sqlite.org/c3ref/io_methods.html); what the
operating system and the disk make of it shows in how long it takes.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, Final

NAME: Final = b"hostler-counts-flushes"
_OK: Final = 0
_OPEN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_SYNC: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs` up to `xOpen`; what follows is copied as bytes (https://www.sqlite.org/c3ref/vfs.html)."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("path_bytes", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
    )


_CALLS_OF_VFS: Final = {1: 12, 2: 13, 3: 16}
"""How many functions a `sqlite3_vfs` of a version has."""
_CALLS_OF_FILE: Final = {1: 12, 2: 16, 3: 18}
"""How many functions the `sqlite3_io_methods` of a version have; its version stands before them."""
_SYNC_AT: Final = 1 + 4
"""Where `xSync` is among the words of `sqlite3_io_methods`, whose version takes the first."""
_WORD: Final = ctypes.sizeof(ctypes.c_void_p)


class SyncCount:
    """Counts flushes.

    Attributes:
        flushes: So far.

    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.flushes = 0
        self._library = library
        self._kept: list[Any] = []
        self._methods: dict[int, int] = {}
        self._usual = library.sqlite3_vfs_find(None)
        if not self._usual:
            raise OSError("SQLite has no VFS")
        head = _Vfs.from_address(self._usual)
        size = _Vfs.open.offset + _CALLS_OF_VFS[head.version] * _WORD
        self._bytes = ctypes.create_string_buffer(ctypes.string_at(self._usual, size), size)
        ours = _Vfs.from_buffer(self._bytes)
        ours.name = NAME
        ours.next = None
        self._open = _OPEN(head.open)
        opened = _OPEN(self._opened)
        ours.open = ctypes.cast(opened, ctypes.c_void_p)
        self._kept += [ours, opened]

    @property
    def place(self) -> int:
        """Where the VFS lies in memory."""
        return ctypes.addressof(self._bytes)

    def _opened(self, _vfs: int, name: int, file: int, flags: int, out: int) -> int:
        code: int = self._open(self._usual, name, file, flags, out)
        methods = ctypes.c_void_p.from_address(file)
        if code == _OK and methods.value:
            methods.value = self._counting(methods.value)
        return code

    def _counting(self, methods: int) -> int:
        """Return methods that count and hand on; as long as a file is open they must stay where they are."""
        if methods not in self._methods:
            number = 1 + _CALLS_OF_FILE[ctypes.c_int.from_address(methods).value]
            words = (ctypes.c_void_p * number).from_buffer_copy(ctypes.string_at(methods, number * _WORD))
            sync = _SYNC(words[_SYNC_AT] or 0)

            def counted(file: int, flags: int) -> int:
                self.flushes += 1
                code: int = sync(file, flags)
                return code

            ours = _SYNC(counted)
            words[_SYNC_AT] = ctypes.cast(ours, ctypes.c_void_p).value
            self._kept += [words, sync, ours]
            self._methods[methods] = ctypes.addressof(words)
        return self._methods[methods]


@contextlib.contextmanager
def counted_flushes() -> Iterator[SyncCount | None]:
    """Let every connection that is opened, used and closed in the block have its flushes counted.

    For a program with one thread: also a connection of another would be counted, and must not outlive the block.

    Yields:
        The count; None where SQLite cannot be asked, as when it is a part of Python itself.

    """
    try:
        import _sqlite3  # noqa: PLC0415  to find the very library that Python uses

        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        library.sqlite3_vfs_register.argtypes = (ctypes.c_void_p, ctypes.c_int)
        library.sqlite3_vfs_unregister.argtypes = (ctypes.c_void_p,)
        count = SyncCount(library)
    except (ImportError, AttributeError, OSError, KeyError):  # a part of Python itself, or a version to come
        yield None
        return
    library.sqlite3_vfs_register(count.place, 1)
    try:
        yield count
    finally:
        library.sqlite3_vfs_unregister(count.place)
