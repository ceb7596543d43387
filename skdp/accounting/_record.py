"""Records of charges, their text format with that of sums and rules, and the ledgers that keep them.

A ledger checks and records in one step that nothing can interrupt.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from ..exceptions import BudgetError, LedgerError
from ._budget import Budget, Relation
from ._composition import Composition, DeclaredPlan, Division, Exact, Rest, State, Sums
from ._compound import ParallelEvent, RepeatedSelectionEvent, SampledGaussianEvent
from ._events import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
)
from ._objective import ObjectiveCurve


@dataclass(frozen=True)
class RecordedRelease:
    """One release of a fit, as the ledger keeps it.

    Parameters
    ----------
    label : str
        Description of the release.
    mechanism : str
        Mechanism that drew the noise.
    norm : str
        Norm of the sensitivity.
    sensitivity : float
        Largest change by one record.
    scale : float
        Scale of the noise, in units of the query.
    """

    label: str
    mechanism: str
    norm: str
    sensitivity: float
    scale: float

    def __str__(self) -> str:
        return (
            f"{self.label}: {self.mechanism}, {self.norm} sensitivity {self.sensitivity:.6g}, "
            f"noise scale {self.scale:.6g}"
        )


@dataclass(frozen=True)
class Record:
    """One admitted charge.

    Parameters
    ----------
    label : str
        Description of the charge.
    cost : PrivacyCost
        Cost that was charged, with its events.
    estimator : str
        Class that was fitted. Empty for a manual charge.
    releases : tuple of RecordedRelease
        Releases that drew noise.
    time : datetime
        Time in UTC, by the clock of the machine. The order of records does not depend on it.
    division : int or None
        Number of the division of the records into parts. None for a charge on all records.
    part : str
        Part that was charged. Empty for all records.
    relation : Relation
        Neighbouring relation of the cost.

    Attributes
    ----------
    epsilon, delta : float
        Numbers of `cost`.
    """

    label: str
    cost: PrivacyCost
    estimator: str
    releases: tuple[RecordedRelease, ...]
    time: datetime
    division: int | None = None
    part: str = ""
    relation: Relation = Relation.ADD_OR_REMOVE_RECORD

    @property
    def epsilon(self) -> float:
        """Epsilon of `cost`."""
        return self.cost.epsilon

    @property
    def delta(self) -> float:
        """Delta of `cost`."""
        return self.cost.delta


_EVENTS: dict[str, type[PrivacyEvent]] = {
    "gaussian": GaussianEvent,
    "pure": PureEvent,
    "bounded range": BoundedRangeEvent,
    "approximate": ApproximateEvent,
    "objective": ObjectiveEvent,
    "sampled Gaussian": SampledGaussianEvent,
    "parallel": ParallelEvent,
    "repeated selection": RepeatedSelectionEvent,
}
_NAMES = {kind: name for name, kind in _EVENTS.items()}


def to_json(value: Any, indent: int | None = None) -> str:
    """Return one unique text for a value, which can be compared and digested. With an indent, it is for readers."""
    separators = (",", ":") if indent is None else None
    return json.dumps(_plain(value), sort_keys=indent is None, separators=separators, indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, numbers.Real) and not isinstance(value, bool | int):
        # JSON has no infinity, and no numbers of NumPy.
        return float(value) if math.isfinite(value) else "inf"
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def check_record(cost: PrivacyCost, text: str, releases: tuple[RecordedRelease, ...]) -> None:
    """Raise an error if a ledger could not keep the record, so that every kind of ledger refuses it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("label and estimator must be text that UTF-8 can encode") from None
    if not all(isinstance(release, RecordedRelease) for release in releases):
        raise TypeError("releases must be instances of RecordedRelease")
    _cost_to_data(cost)


def _event_to_data(event: PrivacyEvent) -> dict[str, Any]:
    if type(event) not in _NAMES:
        raise TypeError(f"a ledger cannot keep an event of class {type(event).__name__}")
    return {"kind": _NAMES[type(event)], **{name: _field_to_data(value) for name, value in vars(event).items()}}


def _field_to_data(value: Any) -> Any:
    if isinstance(value, PrivacyEvent):
        return _event_to_data(value)
    if isinstance(value, tuple):
        return [_field_to_data(item) for item in value]
    return asdict(value) if isinstance(value, ObjectiveCurve) else value


def _event_from_data(data: dict[str, Any]) -> PrivacyEvent:
    fields = {name: value for name, value in data.items() if name != "kind"}
    if data["kind"] == "objective":
        curve = dict(fields["curve"])
        curve["terms"] = tuple((float(weight), float(multiple)) for weight, multiple in curve["terms"])
        return ObjectiveEvent(ObjectiveCurve(**curve), float(fields["noise_mu"]))
    if data["kind"] == "parallel":
        return ParallelEvent(tuple(tuple(_event_from_data(event) for event in part) for part in fields["parts"]))
    if data["kind"] == "repeated selection":
        events = tuple(_event_from_data(event) for event in fields["events"])
        return RepeatedSelectionEvent(events, float(fields["mean"]), float(fields["shape"]))
    return _EVENTS[data["kind"]](**{name: float(value) for name, value in fields.items()})


def _cost_to_data(cost: PrivacyCost) -> dict[str, Any]:
    events = [_event_to_data(event) for event in cost.events]
    return {"epsilon": float(cost.epsilon), "delta": float(cost.delta), "events": events}


def _cost_from_data(data: dict[str, Any]) -> PrivacyCost:
    events = tuple(_event_from_data(event) for event in data["events"])
    return PrivacyCost(float(data["epsilon"]), float(data["delta"]), events)


def record_to_data(record: Record) -> dict[str, Any]:
    """Return a record as plain values, for readers."""
    return {
        "time": record.time.isoformat(),
        "estimator": record.estimator,
        "label": record.label,
        "division": record.division,
        "part": record.part,
        "relation": record.relation.value,
        **_cost_to_data(record.cost),
        "releases": [asdict(release) for release in record.releases],
    }


#: Columns of a record, in the order of `record_to_row`.
COLUMNS = ("time", "estimator", "label", "division", "part", "epsilon", "delta", "events", "releases")


def record_to_row(record: Record) -> tuple[Any, ...]:
    """Return a record as a row of text."""
    cost = _cost_to_data(record.cost)
    events = cost["events"]
    if record.relation is Relation.REPLACE_RECORD:
        # Other charges have the relation of the ledger's unit, and keep the format from before relations.
        events = {"relation": record.relation.value, "events": events}
    return (
        record.time.isoformat(),
        record.estimator,
        record.label,
        "" if record.division is None else str(record.division),
        record.part,
        repr(cost["epsilon"]),
        repr(cost["delta"]),
        to_json(events),
        to_json([asdict(release) for release in record.releases]),
    )


# A ledger of many fits has few different entries of this kind.
@lru_cache(maxsize=1024)
def _cost_from_text(epsilon: str, delta: str, text: str) -> tuple[PrivacyCost, Relation]:
    events, relation = json.loads(text), Relation.ADD_OR_REMOVE_RECORD
    if isinstance(events, dict):
        events, relation = events["events"], Relation(events["relation"])
    return _cost_from_data({"epsilon": epsilon, "delta": delta, "events": events}), relation


@lru_cache(maxsize=1024)
def _releases_from_text(text: str) -> tuple[RecordedRelease, ...]:
    numbers = ("sensitivity", "scale")
    return tuple(
        RecordedRelease(**{**release, **{name: float(release[name]) for name in numbers}})
        for release in json.loads(text)
    )


def record_from_row(row: tuple[Any, ...]) -> Record:
    """Return the record that `record_to_row` wrote."""
    time, estimator, label, division, part, epsilon, delta, events, releases = row
    cost, relation = _cost_from_text(epsilon, delta, events)
    return Record(
        label=label,
        cost=cost,
        estimator=estimator,
        releases=_releases_from_text(releases),
        time=datetime.fromisoformat(time),
        division=int(division) if division else None,
        part=part,
        relation=relation,
    )


def _sums_to_data(sums: Sums) -> list[str]:
    return [str(value) for value in (sums.epsilon, sums.delta, sums.mu_squared, *sums.rdp)]


def _sums_from_data(data: list[str]) -> Sums:
    epsilon, delta, mu_squared, *rdp = map(_exact, data)
    return Sums(epsilon, delta, mu_squared, tuple(rdp))


def _exact(text: str) -> Exact:
    return math.inf if text == "inf" else Fraction(text)


def state_to_json(state: State) -> str:
    """Return running sums as text."""
    return to_json(
        {
            "rule": state.rule,
            "whole": _sums_to_data(state.whole),
            "divisions": [
                {"parts": d.parts, "sums": [_sums_to_data(s) for s in d.sums], "closed": d.closed}
                | ({"public": True} if d.public else {})
                for d in state.divisions
            ],
            "done": state.done,
            **({} if state.rest is None else {"rest": {**vars(state.rest), "pure": str(state.rest.pure)}}),
        }
    )


def state_from_json(text: str) -> State:
    """Return the running sums that `state_to_json` wrote."""
    data = json.loads(text)
    divisions = tuple(
        Division(tuple(d["parts"]), tuple(_sums_from_data(s) for s in d["sums"]), d["closed"], d.get("public", False))
        for d in data["divisions"]
    )
    rest = data.get("rest")
    if rest is not None:
        # Earlier versions have a single order.
        orders, divergences = (rest.get(f"{name}s") or [rest[name]] for name in ("order", "divergence"))
        rest = Rest(_exact(rest["pure"]), float(rest["mu"]), tuple(map(float, orders)), tuple(map(float, divergences)))
    return State(data["rule"], _sums_from_data(data["whole"]), divisions, tuple(data["done"]), rest)


def rule_to_json(rule: Composition | DeclaredPlan) -> str:
    """Return a rule as text, with the numbers that follow from its ceiling."""
    # Another version of SciPy could find a slightly different order, and sums cannot be converted to it.
    data: dict[str, Any] = {"epsilon": rule.ceiling.epsilon, "delta": rule.ceiling.delta, "rule": rule.rule}
    if isinstance(rule, DeclaredPlan):
        data["entries"] = [_cost_to_data(entry) for entry in rule.entries]
        data["whole"] = rule.whole
    else:
        data.update(mu=rule.mu, order=rule.orders[0], divergence=rule.divergences[0])
    if rule.unit != "record":
        # Ledgers about records are written in the format from before there was a choice.
        data["unit"] = rule.unit
    return to_json(data)


def rule_from_json(text: str) -> Composition | DeclaredPlan:
    """Return the rule that `rule_to_json` wrote."""
    data = json.loads(text)
    ceiling = Budget(float(data["epsilon"]), float(data["delta"]))
    unit = data.get("unit", "record")
    if data["rule"] == DeclaredPlan.rule:
        whole = Budget(*(float(value) for value in data["whole"]))
        return DeclaredPlan(ceiling, tuple(_cost_from_data(entry) for entry in data["entries"]), whole, unit)
    mu, order, divergence = (float(data[name]) for name in ("mu", "order", "divergence"))
    return Composition(ceiling, data["rule"], mu, (order,), (divergence,), unit)


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

        def change_in_memory() -> None:
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

        uninterrupted(change_in_memory)
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
