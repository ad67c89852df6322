"""The file in which a durable cluster lies: an append-only table of changes in SQLite, compacted from behind."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.apiserver.durable import Damaged, Record, restored
from muster.apiserver.storage import Store

FILE = "muster.db"
APPLICATION = 0x4D555354
"""SQLite's application_id of our files: MUST."""
VERSION = 1
"""Of the schema below; SQLite's user_version."""
_SCHEMA = (
    "CREATE TABLE changes (revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, "
    "name TEXT NOT NULL, supersedes INTEGER, body BLOB, owners BLOB)",
    "CREATE TABLE compaction (revision INTEGER NOT NULL)",
    "CREATE TABLE room (filler BLOB)",
    "INSERT INTO compaction VALUES (0)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_OURS = frozenset({FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", "lost+found"})
HISTORY = 50_000
"""Changes that are kept for watches that reconnect."""
STEP = 2_000
"""Changes that are forgotten in one go."""
ROOM = 1 << 20
"""Bytes that must fit before writing begins again."""
_PAGES_TO_CHECKPOINT = 4_000
_CACHE = 16_000
_LARGEST_WAL = 64 << 20


class Unusable(Exception):
    """The directory cannot be used; the message says why and what to do."""


class Unwritten(Exception):
    """A transaction failed and left nothing behind; the message says why."""


class Journal:
    """One open file. A transaction is `begin` and `commit`, which may be called on different threads, never at once.

    Raises:
        Unusable: the directory is not ours, of a newer version, in use, or cannot be written.
    """

    def __init__(self, directory: Path, history: int = HISTORY, step: int = STEP) -> None:
        self._path = directory / FILE
        self._step = step
        self._history = history
        _check(directory)
        try:
            self._file = self._open()
            found = self._file.execute("SELECT revision FROM compaction").fetchone()
        except sqlite3.Error as error:
            raise _unusable(directory, error) from None
        self.compacted: int = found[0]
        self._last = self.compacted

    def _open(self) -> sqlite3.Connection:
        file = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._know(file)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = FULL")
            file.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_TO_CHECKPOINT}")
            file.execute(f"PRAGMA journal_size_limit = {_LARGEST_WAL}")
            file.execute(f"PRAGMA cache_size = -{_CACHE}")
            # The lock is taken by the first write; a reader alone would let a second process in.
            file.execute("BEGIN IMMEDIATE")
            if not file.execute("PRAGMA user_version").fetchone()[0]:
                for statement in _SCHEMA:
                    file.execute(statement)
            file.execute("COMMIT")
        except BaseException:
            file.close()
            raise
        return file

    def _know(self, file: sqlite3.Connection) -> None:
        """Refuses what somebody else has made, before anything is changed in it."""
        application, version, tables = (
            file.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if application == 0 and version == 0 and tables == 0:
            return
        if application != APPLICATION:
            raise Unusable(f"{self._path} is a database of another program; name another directory")
        if version > VERSION:
            raise Unusable(
                f"{self._path} was written by a newer muster (version {version} of the file, this one knows "
                f"{VERSION}); use that muster, or another directory"
            )

    def load(self, history: int) -> Store:
        """The store as it was when the last commit ended. `history`: changes of each resource that it keeps.

        Raises:
            Unusable: what is in the file is damaged.
        """
        try:
            store = restored(self._records(), self.compacted, history)
        except (sqlite3.Error, Damaged, ValueError) as error:
            why = f"{self._path} is damaged: {error}; restore it from a copy, or name another directory"
            raise Unusable(why) from None
        self._last = store.revision
        return store

    def _records(self) -> Iterator[Record]:
        yield from map(Record._make, self._file.execute("SELECT * FROM changes ORDER BY revision"))

    def begin(self, records: Sequence[Record]) -> None:
        """
        Raises:
            Unwritten: and nothing is.
        """
        with self._all_or_nothing():
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", records)
        if records:
            self._last = records[-1].revision

    def commit(self, floor: int = 0) -> None:
        """Makes the transaction durable; forgets changes up to `floor`, and some of what is older than the history.

        Raises:
            Unwritten: and nothing is.
        """
        old = self.compacted
        due = min(old + self._step, self._last) if self._last - old >= self._history + self._step else old
        until = max(due, floor)
        with self._all_or_nothing():
            if until > old:
                self._compact(old, until)
            self._file.execute("COMMIT")
        self.compacted = until

    def _compact(self, old: int, until: int) -> None:
        window = (old, until)
        superseded = "SELECT supersedes FROM changes WHERE revision > ? AND revision <= ? AND supersedes IS NOT NULL"
        self._file.execute(f"DELETE FROM changes WHERE revision IN ({superseded})", window)
        self._file.execute("DELETE FROM changes WHERE revision > ? AND revision <= ? AND body IS NULL", window)
        self._file.execute("UPDATE compaction SET revision = ?", (until,))

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
            raise Unwritten(str(error)) from error

    def has_room(self) -> bool:
        """Whether writing works, with some room to spare; tries it."""
        try:
            for statement, values in (("INSERT INTO room VALUES (zeroblob(?))", (ROOM,)), ("DELETE FROM room", ())):
                with self._all_or_nothing():
                    self._file.execute("BEGIN IMMEDIATE")
                    self._file.execute(statement, values)
                    self._file.execute("COMMIT")
        except Unwritten:
            return False
        return True

    def close(self) -> None:
        self._file.close()


def _check(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = {entry.name for entry in directory.iterdir()}
    except FileNotFoundError:
        raise Unusable(f"there is no directory {directory.parent} to make {directory.name} in") from None
    except (FileExistsError, NotADirectoryError):
        raise Unusable(f"{directory} is a file; name a directory") from None
    except OSError as error:
        raise Unusable(f"{directory}: {error.strerror}; name a directory that can be written") from None
    if FILE not in found and found - _OURS:
        raise Unusable(f"{directory} has other files in it and no {FILE}; name an empty or a new directory")


def _unusable(directory: Path, error: sqlite3.Error) -> Unusable:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Unusable(f"{directory} is in use by another muster; end that one, or name another directory")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return Unusable(f"{directory / FILE} is no database of muster, or is damaged; name another directory")
    return Unusable(f"{directory / FILE} cannot be written: {error}; name a directory that can be, with room left")
