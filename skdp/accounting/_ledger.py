"""Ledgers keep the records of an accountant. A ledger checks and records in one step that nothing can interrupt."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Protocol

from ..exceptions import BudgetError, LedgerError
from ._record import Record
from ._state import State

#: This lock is held while a ledger is in use, and while the process forks. Therefore a child never inherits a ledger in
#: the middle of a change, or SQLite's memory of the locks of its parent.
gate = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=gate.acquire, after_in_parent=gate.release, after_in_child=gate.release)


_changing = False


def uninterrupted(change: Callable[[], None]) -> None:
    """Run a change of a ledger without interruption, not even by a charge in a signal handler of this thread."""
    global _changing
    with gate:
        if _changing:
            raise LedgerError("nothing can be charged in the middle of another charge, as by a signal handler")
        try:
            _changing = True
            change()
        finally:
            _changing = False


class Ledger(Protocol):
    """Storage of records and running sums."""

    def change(self, step: Callable[[State], State], record: Record | None = None) -> None:
        """Replace the state by ``step(state)`` and append `record`, atomically. If `step` raises, change nothing."""
        ...

    def state(self) -> State: ...

    def records(self) -> tuple[Record, ...]: ...

    def __len__(self) -> int: ...


class MemoryLedger:
    """Keep a ledger in the memory of one process, until it is moved to a ledger that other processes can use."""

    # A fork of the process cannot record in it, because the parent would not see the record.
    def __init__(self, start: State) -> None:
        self._process = os.getpid()
        self._records: list[Record] = []
        # The state and the records are assigned together, so that an interrupt comes before or after both.
        self._content = start, 0
        self._successor: Ledger | None = None

    def move(self, make: Callable[[State, tuple[Record, ...]], Ledger]) -> Ledger:
        """Return the ledger that has taken over. The first time, `make` makes it."""

        def hand_over() -> None:
            if self._successor is None:
                self._assert_home()
                self._successor = make(self.state(), self.records())

        if self._successor is None:
            uninterrupted(hand_over)
        assert self._successor is not None
        return self._successor

    def change(self, step: Callable[[State], State], record: Record | None = None) -> None:
        changed = False

        def here() -> None:
            nonlocal changed
            if self._successor is None:
                self._assert_home()
                state, number = self._content
                after = step(state)
                if record is not None:
                    self._records[number:] = [record]
                    number += 1
                self._content = after, number
                changed = True

        uninterrupted(here)
        if not changed and self._successor is not None:
            self._successor.change(step, record)

    def state(self) -> State:
        return self._content[0] if self._successor is None else self._successor.state()

    def records(self) -> tuple[Record, ...]:
        with gate:
            if self._successor is not None:
                return self._successor.records()
            return tuple(self._records[: self._content[1]])

    def __len__(self) -> int:
        return self._content[1] if self._successor is None else len(self._successor)

    def _assert_home(self) -> None:
        if os.getpid() != self._process:
            raise BudgetError(
                "this accountant keeps its records in the memory of another process, and cannot be charged in a "
                'fork of it. Use BudgetAccountant(..., ledger="budget.db"), which processes can share'
            )
