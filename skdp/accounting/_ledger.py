"""Where an accountant keeps its records. A ledger checks and records in one step that nothing can come between."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ..exceptions import BudgetError
from ._composition import Spent
from ._events import PrivacyCost


@dataclass(frozen=True)
class Record:
    """One admitted event.

    Parameters
    ----------
    label : str
        What it was for.
    cost : PrivacyCost
        What it was charged.
    estimator : str
        Class that was fitted; empty for a charge made by hand.
    mechanisms : tuple of str
        What drew noise, with its parameters.
    time : datetime
        When, in UTC.
    """

    label: str
    cost: PrivacyCost
    estimator: str
    mechanisms: tuple[str, ...]
    time: datetime


class Ledger(Protocol):
    """Storage of records and running sums."""

    def append(self, record: Record, admit: Callable[[Spent], Spent]) -> None:
        """Replace the sums by ``admit(sums)`` and keep `record`, atomically; keep both if `admit` raises."""
        ...

    def spent(self) -> Spent: ...

    def records(self) -> tuple[Record, ...]: ...


class MemoryLedger:
    """A ledger that lives as long as the process, and does not record in a fork of it: nobody would see it there."""

    def __init__(self, start: Spent) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._spent = start
        self._records: list[Record] = []

    def append(self, record: Record, admit: Callable[[Spent], Spent]) -> None:
        if os.getpid() != self._process:
            raise BudgetError(
                "this accountant lives in the memory of the process that made it, and cannot be charged in another"
            )
        with self._lock:
            after = admit(self._spent)
            self._records.append(record)
            self._spent = after

    def spent(self) -> Spent:
        with self._lock:
            return self._spent

    def records(self) -> tuple[Record, ...]:
        with self._lock:
            return tuple(self._records)
