"""A ledger in an SQLite file, which survives crashes and which any number of processes can charge.

A charge is one transaction under SQLite's write lock. The state is read, the charge is admitted or refused, the record
and the new state are written, and the commit is on disk before the caller draws noise.

The guide (*Ledgers*) says why the file has a rollback journal and ``synchronous=EXTRA``, why each use also holds a
``flock`` on the directory, why records and the state have digests, which detect damage and not forgery, and why a file
with two names or in another place is refused.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ..checks.params import shown
from ..exceptions import LedgerError
from ._composition import State
from ._record import (
    COLUMNS,
    Record,
    gate,
    record_from_row,
    record_to_row,
    state_from_json,
    state_to_json,
    uninterrupted,
)

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

Result = TypeVar("Result")
Seen = tuple[int, str, int, str]

#: "skdp", in the header of the file.
APPLICATION_ID = 0x736B6470
#: The first two kinds have no place. The second kind is about groups, which code for the first kind does not know. The
#: third kind has a place. The fourth kind has Rényi divergences of several orders. The first charge converts the others
#: into it.
SCHEMA_VERSIONS = (1, 2, 3, 4)

_SCHEMA = {
    "budget": "CREATE TABLE budget "
    "(id INTEGER PRIMARY KEY CHECK (id = 1), identity TEXT NOT NULL, created TEXT NOT NULL, "
    "rule TEXT NOT NULL, revision INTEGER NOT NULL, n_records INTEGER NOT NULL, last TEXT NOT NULL, "
    "state TEXT NOT NULL, digest TEXT NOT NULL)",
    "record": "CREATE TABLE record (number INTEGER PRIMARY KEY, time TEXT NOT NULL, estimator TEXT NOT NULL, "
    "label TEXT NOT NULL, division TEXT NOT NULL, part TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, "
    "events TEXT NOT NULL, releases TEXT NOT NULL, digest TEXT NOT NULL)",
    "home": "CREATE TABLE home (id INTEGER PRIMARY KEY CHECK (id = 1), place TEXT NOT NULL)",
}
_BUDGET = ("identity", "created", "rule", "revision", "n_records", "last", "state", "digest")
_INSERT = f"INSERT INTO record VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"
_SELECT = f"SELECT number, {', '.join(COLUMNS)}, digest FROM record"

#: Start and end of the name of a ledger while it is being made.
_DRAFT = (".ledger.", ".new")

#: Seconds to wait for another process's transaction, and seconds between two attempts.
_PATIENCE, _PAUSE = 60.0, 0.002

#: Directories that the thread that holds the gate has locked. A signal handler may read a ledger during a charge.
_locked: dict[str, bool] = {}

#: Ledgers that existed earlier in this process. If such a file is missing, it is not made again.
_known: set[Path] = set()


@dataclass(frozen=True)
class _Header:
    """The single row of the table ``budget``."""

    identity: str
    created: str
    rule: str
    revision: int
    n_records: int
    last: str
    state: str

    def digest(self) -> str:
        return _digest(*vars(self).values())

    def row(self) -> tuple[Any, ...]:
        return (*vars(self).values(), self.digest())


def _digest(*fields: Any) -> str:
    whole = hashlib.sha256()
    for field in fields:
        text = str(field).encode("utf-8", "surrogatepass")
        whole.update(b"%d:" % len(text) + text)
    return whole.hexdigest()


@dataclass(frozen=True)
class _Home:
    """Locate the file of a ledger, and with it the journal that SQLite keeps in the same directory."""

    # A directory keeps its inode number when it is renamed or mounted at two places.
    path: str
    directory: int

    @classmethod
    def of(cls, path: Path) -> _Home:
        return cls(str(path), os.stat(path.parent).st_ino)

    @classmethod
    def from_text(cls, text: str) -> _Home:
        path, directory = json.loads(text)
        return cls(path, directory)

    def text(self) -> str:
        return json.dumps([self.path, self.directory])

    def is_at(self, path: Path) -> bool:
        """Tell whether the journal of the file at `path` is at this place."""
        asked, stored = os.path.normcase(path), os.path.normcase(self.path)
        if asked == stored:
            return True
        if os.path.basename(asked) != os.path.basename(stored):
            return False
        if os.path.isdir(os.path.dirname(self.path)):
            # Directories of two file systems can have the same number.
            return os.path.samefile(os.path.dirname(self.path), path.parent)
        return self.directory == os.stat(path.parent).st_ino != 0


def _journal(path: str | Path) -> Path:
    return Path(f"{path}-journal")


class SQLiteLedger:
    """Keep a ledger in a file at an absolute path. If `temporary`, the file is removed when its process ends."""

    # A file with another `identity` is refused. `seen` holds the last revision and its digest, and the number and
    # digest of the last record. A file that does not continue from them is an old copy, and is refused.
    def __init__(self, path: Path, identity: str, seen: Seen = (0, "", 0, ""), temporary: bool = False) -> None:
        self.path = path
        self.identity = identity
        self.temporary = temporary
        self.seen = seen

    @classmethod
    def create(
        cls, path: Path, rule: str, state: State, records: Iterable[Record] = (), temporary: bool = False
    ) -> SQLiteLedger | None:
        """Make a complete file, or none at all. Return None if the file exists already."""
        ledger = cls(path, uuid.uuid4().hex, temporary=temporary)
        draft = None
        try:
            # Only its owner can read it, and it gets its real name when it is complete.
            handle, draft = tempfile.mkstemp(prefix=_DRAFT[0], suffix=_DRAFT[1], dir=path.parent)
            os.close(handle)
            ledger._use(lambda connection: ledger._write_new(connection, rule, state, records), Path(draft))
            # For a moment, the file has two names. A process that opens it in this moment recognises the draft.
            os.link(draft, path)
        except FileExistsError:
            return None
        except OSError as error:
            if isinstance(error, LedgerError):
                raise
            raise LedgerError(f"the ledger {path} cannot be made: {error.strerror or error}") from error
        finally:
            if draft is not None:
                Path(draft).unlink(missing_ok=True)
        _sync_directory(path.parent)
        _known.add(path)
        return ledger

    @classmethod
    def open(cls, path: Path) -> tuple[SQLiteLedger, str]:
        """Return the ledger in an existing file, and its rule. Every record is verified."""
        ledger = cls(path, "")

        def verify(connection: sqlite3.Connection) -> _Header:
            for (report,) in connection.execute("PRAGMA quick_check(1)"):
                if report != "ok":
                    raise ledger._damaged(report)
            # A single transaction ensures that the header and the records belong together.
            connection.execute("BEGIN")
            header = ledger._read(connection)
            for _ in ledger._verified(connection, header):
                pass
            return header

        header = ledger._use(verify)
        ledger.identity = header.identity
        return ledger, header.rule

    def assert_writable(self) -> None:
        """Raise LedgerError if a charge could not be recorded."""

        def touch(connection: sqlite3.Connection) -> None:
            # This makes the journal, or fails. Nothing is committed.
            connection.execute("BEGIN IMMEDIATE")
            self._read(connection)
            self._assert_at_home(connection)
            connection.execute("UPDATE budget SET id = id")

        self._use(touch)

    def elsewhere(self) -> str | None:
        """Return the path that the ledger belongs to, if the file was moved or copied."""
        home = self._use(self._home)
        return None if home is None or home.is_at(self.path) else home.path

    def settle_here(self) -> None:
        """Make this path the one that the ledger belongs to, after the file was moved."""
        before = self.elsewhere()
        if before is None:
            return
        if os.path.lexists(_journal(before)):
            raise LedgerError(
                f"the ledger {self.path} was moved from {before}, where the journal of an interrupted charge "
                f"remains: {_journal(before)}. Move the ledger back, open it there once, and then move it again"
            )
        if os.path.exists(before) and self._is_copied_from(Path(before)):
            raise LedgerError(
                f"the ledger {self.path} is a copy of {before}, which still exists. Charges of one file would be "
                "missing in the other. Charge the original, or delete it first"
            )

        def settle(connection: sqlite3.Connection) -> None:
            # One page changes. A journal of an earlier kill would look like a journal of an earlier state of the file.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN IMMEDIATE")
            self._read(connection)
            connection.execute("UPDATE home SET place = ?", (_Home.of(self.path).text(),))
            connection.execute("COMMIT")

        self._use(settle)

    def _is_copied_from(self, path: Path) -> bool:
        other = SQLiteLedger(path, "")
        try:
            return other._use(other._read).identity == self._use(self._read).identity
        except LedgerError:
            return False

    def change(self, step: Callable[[State], State], record: Record | None = None) -> None:
        row = None if record is None else record_to_row(record)

        def transaction(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            header = self._read(connection)
            self._assert_at_home(connection)
            after = step(state_from_json(header.state))
            n_records, last = header.n_records, header.last
            if row is not None:
                n_records += 1
                last = _digest(last, n_records, *row)
                connection.execute(_INSERT, (n_records, *row, last))
            new = replace(
                header, revision=header.revision + 1, n_records=n_records, last=last, state=state_to_json(after)
            )
            assignments = ", ".join(f"{name} = ?" for name in _BUDGET)
            connection.execute(f"UPDATE budget SET {assignments}", new.row())
            connection.execute("COMMIT")
            self._remember(new)

        uninterrupted(lambda: self._use(transaction))

    def state(self) -> State:
        return state_from_json(self._use(self._read).state)

    def records(self) -> tuple[Record, ...]:
        def rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            connection.execute("BEGIN")
            return list(self._verified(connection, self._read(connection)))

        return tuple(record_from_row(row) for row in self._use(rows))

    def __len__(self) -> int:
        return self._use(self._read).n_records

    def _use(self, work: Callable[[sqlite3.Connection], Result], path: Path | None = None) -> Result:
        """Return ``work(connection)``, with a connection for this call only, and undo all that was not committed."""
        # No connection is carried across forks or threads. This is not a context manager, because an interrupt could
        # then leave the gate closed.
        path = path or self.path
        directory = os.path.dirname(path)
        handle, locked = None, False
        with gate:
            try:
                if fcntl is not None and directory not in _locked:
                    try:
                        handle = os.open(directory, os.O_RDONLY)
                    except OSError as error:
                        self._assert_there(path)
                        raise _unusable(path, error) from error
                    self._lock(handle)
                    _locked[directory] = locked = True
                return self._use_locked(work, path)
            finally:
                # An interrupt comes after a call, and the first call gives the lock back.
                if locked:
                    del _locked[directory]
                if handle is not None:
                    fcntl.flock(handle, fcntl.LOCK_UN)
                    os.close(handle)

    def _lock(self, handle: int) -> None:
        """Lock the directory, which is not a lock that the process loses by closing a file."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy() from None
            except OSError as error:
                raise LedgerError(
                    f"the directory of the ledger {self.path} cannot be locked by flock ({error.strerror or error}), "
                    "and charges could be lost. Nothing was charged. Move the ledger to a local disk"
                ) from error
            time.sleep(_PAUSE)

    def _use_locked(self, work: Callable[[sqlite3.Connection], Result], path: Path) -> Result:
        self._assert_there(path)
        self._assert_one_name(path)
        self._assert_own_journal(path)
        connection = None
        try:
            connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA synchronous = " + ("OFF" if self.temporary else "EXTRA"))
            result = work(connection)
            _known.add(path)
            return result
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except UnicodeDecodeError as error:
            # The error may hold text of the file, or a message of SQLite that quotes it.
            raise self._damaged("its text cannot be read") from error
        finally:
            if connection is not None:
                connection.close()

    def _assert_there(self, path: Path) -> None:
        if is_there(path):
            return
        if self.temporary:
            raise LedgerError(
                "the temporary ledger of this accountant was removed with the process that made it, and cannot "
                'be charged any more. Use BudgetAccountant(..., ledger="budget.db") for a permanent ledger'
            )
        raise LedgerError(f"the ledger {path} does not exist, or exists no longer")

    def _assert_one_name(self, path: Path) -> None:
        """Refuse a file with two names, because its journal has only one of them."""
        if os.stat(path).st_nlink < 2:
            return
        # The process that makes the file is about to remove its draft name, or was killed at this point.
        for draft in path.parent.glob("*".join(_DRAFT)):
            with contextlib.suppress(OSError):
                if os.path.samefile(draft, path):
                    draft.unlink()
        if os.stat(path).st_nlink > 1:
            raise LedgerError(
                f"the ledger {path} has a second name (a hard link), and a crash under one name could undo "
                "charges under the other. Nothing was charged. Delete one of the names"
            )

    def _assert_own_journal(self, path: Path) -> None:
        """Refuse a journal next to a file that was charged elsewhere later, because SQLite would undo those charges."""
        if not os.path.lexists(_journal(path)):
            return
        try:
            # The file is read without its journal. SQLite repairs a file that cannot be read like this.
            connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
            try:
                home = self._home(connection)
            finally:
                connection.close()
        except (sqlite3.Error, ValueError):
            return
        if home is not None and not home.is_at(path):
            raise LedgerError(
                f"the ledger {path} belongs to {home.path}. An interrupted charge left the journal "
                f"{_journal(path)}, which could undo later charges. Nothing was charged. If both files were moved "
                "together, move both back, open the ledger there once, and move it again. Else delete the journal"
            )

    def _home(self, connection: sqlite3.Connection) -> _Home | None:
        """Return the place that the ledger belongs to, or None for a ledger from before places existed."""
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'home'").fetchone() is None:
            return None
        rows = connection.execute("SELECT place FROM home").fetchall()
        try:
            ((text,),) = rows
            return _Home.from_text(text)
        except (TypeError, ValueError):
            raise self._damaged("its place cannot be read") from None

    def _assert_at_home(self, connection: sqlite3.Connection) -> None:
        """Refuse to charge a ledger at another place than its own. A ledger without a place gets one."""
        home = self._home(connection)
        if home is None:
            connection.execute(_SCHEMA["home"])
            connection.execute("INSERT INTO home VALUES (1, ?)", (_Home.of(self.path).text(),))
        elif not home.is_at(self.path):
            raise LedgerError(
                f"the ledger {self.path} belongs to {home.path}: the file was moved, copied or mounted by itself, and "
                "under two names it could lose charges. Nothing was charged. If it was moved, and no process uses the "
                f'old name, say so once: python -m skdp ledger "{self.path}" --moved, or '
                "BudgetAccountant.from_ledger(..., moved=True)"
            )
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSIONS[-1]}")

    def _write_new(self, connection: sqlite3.Connection, rule: str, state: State, records: Iterable[Record]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSIONS[-1]}")
        for statement in _SCHEMA.values():
            connection.execute(statement)
        number, last = 0, ""
        for number, record in enumerate(records, start=1):
            row = record_to_row(record)
            last = _digest(last, number, *row)
            connection.execute(_INSERT, (number, *row, last))
        header = _Header(self.identity, datetime.now(UTC).isoformat(), rule, 1, number, last, state_to_json(state))
        connection.execute(
            f"INSERT INTO budget (id, {', '.join(_BUDGET)}) VALUES (1, {', '.join('?' * len(_BUDGET))})", header.row()
        )
        connection.execute("INSERT INTO home VALUES (1, ?)", (_Home.of(self.path).text(),))
        connection.execute("COMMIT")
        self._remember(header)

    def _read(self, connection: sqlite3.Connection) -> _Header:
        """Return the header, or raise an error that explains the problem of the file."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of skdp, or is damaged")
        if version not in SCHEMA_VERSIONS:
            raise LedgerError(
                f"the ledger {self.path} has schema version {version}, and this skdp reads {SCHEMA_VERSIONS[0]} to "
                f"{SCHEMA_VERSIONS[-1]}; open it with the version of skdp that wrote it, or a newer one"
            )
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()
        tables = [("table", name, name, sql) for name, sql in _SCHEMA.items()]
        if schema != (tables if version >= 3 else tables[:-1]):
            raise self._damaged("its tables are not those of a ledger")
        rows = connection.execute(f"SELECT {', '.join(_BUDGET)} FROM budget").fetchall()
        if len(rows) != 1:
            raise self._damaged("it does not hold one budget")
        *fields, digest = rows[0]
        header = _Header(*fields)
        if header.digest() != digest:
            raise self._damaged("its budget does not match its digest")
        self._compare(connection, header)
        return header

    def _compare(self, connection: sqlite3.Connection, header: _Header) -> None:
        """Refuse another file than the one that was seen before, and a state that does not continue from that one."""
        if self.identity and header.identity != self.identity:
            raise LedgerError(f"{self.path} is another ledger than the one that this accountant opened")
        revision, digest, number, last = self.seen
        goes_on = header.revision > revision or header.digest() == digest
        if number and goes_on:
            stored = connection.execute("SELECT digest FROM record WHERE number = ?", (number,)).fetchone()
            goes_on = stored == (last,)
        if revision and not goes_on:
            raise LedgerError(
                f"the ledger {self.path} is an older copy of the one that this accountant has seen; charges are missing"
            )
        self._remember(header)

    def _remember(self, header: _Header) -> None:
        # Another thread may have seen a later state.
        self.seen = max(self.seen, (header.revision, header.digest(), header.n_records, header.last))

    def _verified(self, connection: sqlite3.Connection, header: _Header) -> Iterator[tuple[Any, ...]]:
        """Yield all records, or raise an error if one was changed."""
        number, last = 0, ""
        for number, (stored, *row, digest) in enumerate(connection.execute(f"{_SELECT} ORDER BY number"), start=1):
            last = _digest(last, number, *row)
            if stored != number or digest != last:
                raise self._damaged(f"record {number} does not match its digest")
            yield tuple(row)
        if (number, last) != (header.n_records, header.last):
            raise self._damaged(f"it holds {number} of {header.n_records} records")

    def _damaged(self, how: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} is damaged: {how}. Nothing can be charged to it. Restore the newest "
            "intact copy, and charge again with spend what was charged after it"
        )

    def _busy(self) -> LedgerError:
        return LedgerError(f"the ledger {self.path} has been in use by another process for {_PATIENCE:g} seconds")

    def _explained(self, error: sqlite3.Error) -> LedgerError:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return self._busy()
        if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            return _unusable(self.path, error)
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")):
            return _unusable(self.path, error, ", or its disk is full")
        if name == "SQLITE_TOOBIG":
            return LedgerError(f"the ledger {self.path} cannot store a label of this length")
        return self._damaged(str(error))


def _unusable(path: Path, error: Exception, why: str = "") -> LedgerError:
    """Return an error, with the permissions of a file that several users charge if they are lacking."""
    effective, advice = os.access in os.supports_effective_ids, ""
    if not all(os.access(each, os.R_OK | os.W_OK, effective_ids=effective) for each in (path, path.parent)):
        why = ", because this user may not read and write the file and its directory"
        advice = (
            ". For a team, give both to a group (chgrp), with mode 660 for the file and 2770 for the directory (chmod)"
        )
    return LedgerError(f"the ledger {path} cannot be used{why}: {getattr(error, 'strerror', '') or error}{advice}")


def resolve(ledger: str | os.PathLike[str]) -> Path:
    """Return the absolute path, with links resolved, of a path or an ``sqlite:///`` URL."""
    text = os.fspath(ledger)
    if not isinstance(text, str) or not text:
        raise TypeError(f"ledger must be a path or an sqlite:/// URL, got {shown(ledger)}")
    if text.startswith("sqlite:"):
        if not text.startswith("sqlite:///") or len(text) == len("sqlite:///"):
            raise ValueError(f"ledger must be a path or an URL such as sqlite:///budget.db, got {shown(ledger)}")
        text = text.removeprefix("sqlite:///")
    if text == ":memory:":
        raise ValueError("ledger=None keeps an accountant in memory")
    return Path(os.path.realpath(text))


def is_there(path: Path) -> bool:
    """Tell whether the file exists. If it cannot be a ledger, raise an error."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError(f"the ledger {path} is not a file")
    return True


def open_or_create(path: Path, rule: str, start: State) -> tuple[SQLiteLedger, str]:
    """Return the ledger at `path` with its rule. If there was never one, make it with `rule` and `start`."""
    if not is_there(path):
        if path in _known:
            raise LedgerError(f"the ledger {path} existed earlier in this process, and exists no longer")
        made = SQLiteLedger.create(path, rule, start)
        if made is not None:
            return made, rule
    return SQLiteLedger.open(path)


def temporary(rule: str, state: State, records: tuple[Record, ...]) -> SQLiteLedger:
    """Move the records in memory to a file that is removed with this process."""
    directory = tempfile.mkdtemp(prefix="skdp-")
    atexit.register(_remove, directory, os.getpid())
    ledger = SQLiteLedger.create(Path(os.path.realpath(directory), "budget.db"), rule, state, records, temporary=True)
    if ledger is None:
        raise LedgerError(f"{directory} was to be empty")
    return ledger


def _remove(directory: str, owner: int) -> None:
    # A forked child inherits this, but is not the owner.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _sync_directory(directory: Path) -> None:
    """Make the name of the file durable, if directories can be synchronised."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
