"""A budget for a list of fits that is declared before the first fit.

The exact composition of a fixed list is a valid cost, because no choice depends on outputs. Each entry may be carried
out once, in any order, or left out. Other charges are refused.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..checks.values import shown
from ..exceptions import BudgetError
from ._budget import Budget, check_same_unit
from ._composition import Composition
from ._events import ApproximateEvent, GaussianEvent, PrivacyCost, PrivacyEvent, compose_events
from ._gaussian import gaussian_epsilon
from ._nested import renyi_epsilon
from ._state import PartKey, State, decimal

_INTERVAL = 1e-4

#: Largest number of entries of a plan. A distribution of more would be too long.
_MOST_EPSILON = 100.0

_MOST_ENTRIES = 1_000_000


@dataclass(frozen=True)
class DeclaredPlan:
    """Admit each entry of a list once. `whole` is the proved cost of the list, at most `ceiling`."""

    ceiling: Budget
    entries: tuple[PrivacyCost, ...]
    whole: Budget
    unit: str = "record"

    rule = "plan"

    @classmethod
    def of(cls, epsilon: float, delta: float, entries: tuple[PrivacyCost, ...]) -> DeclaredPlan:
        """Compose the list, or raise BudgetError if it exceeds the ceiling."""
        ceiling = Budget(epsilon, delta)
        whole = _guarantee(entries, ceiling)
        if decimal(whole.epsilon) > decimal(epsilon) or decimal(whole.delta) > decimal(delta):
            raise BudgetError(
                f"the plan costs (epsilon={whole.epsilon:.6g}, delta={whole.delta:g}) and does not fit into the budget "
                f"(epsilon={epsilon:g}, delta={delta:g})"
            )
        return cls(ceiling, entries, whole)

    def start(self) -> State:
        return State(rule=self.rule)

    def admit(self, state: State, cost: PrivacyCost, part: PartKey | None = None) -> State:
        """Return the state with an entry of this cost carried out, or raise BudgetError if none is left."""
        places, done = self._places.get(cost.events, ()), set(state.done)
        for number in places:
            if number not in done:
                return replace(state, done=(*state.done, number))
        planned = "was carried out already" if places else "is not in it"
        raise BudgetError(
            f"this budget is for a declared plan of {len(self.entries)} entries, and a charge of "
            f"(epsilon={cost.epsilon:g}, delta={cost.delta:g}) with these events {planned}"
        )

    @cached_property
    def _places(self) -> dict[tuple[PrivacyEvent, ...], list[int]]:
        """Return the positions of entries in the list by their events, which are composed."""
        places: dict[tuple[PrivacyEvent, ...], list[int]] = {}
        for number, entry in enumerate(self.entries):
            places.setdefault(entry.events, []).append(number)
        return places

    def left(self, state: State) -> tuple[PrivacyCost, ...]:
        """Return the entries that were not carried out."""
        done = set(state.done)
        return tuple(entry for number, entry in enumerate(self.entries) if number not in done)

    def total(self, state: State, part: PartKey | None = None) -> Budget:
        """Return the guarantee of the whole list, once an entry was carried out. The proof is about the list."""
        return self.whole if state.done else Budget(0.0, 0.0)

    def remaining(self, state: State, k: int = 1, part: PartKey | None = None) -> Budget:
        """Return an empty budget, because only the entries of the list are admitted."""
        return Budget(0.0, 0.0)


def as_costs(plan: Any, unit: str = "record", delta: float = 0.0) -> tuple[PrivacyCost, ...]:
    """Return the costs of a declared list of plans of estimators, costs, or pairs of one of these and a number."""
    costs: list[PrivacyCost] = []
    for entry in plan:
        if isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry, PrivacyCost):
            like, count = entry
            if isinstance(count, bool) or not hasattr(count, "__index__") or not 1 <= count <= _MOST_ENTRIES:
                raise ValueError(
                    f"the number in an entry (like, number) of a plan must be an integer from 1 to {_MOST_ENTRIES}, "
                    f"got {shown(count)}"
                )
            costs += [_cost_like(like, unit, delta)] * int(count)
        else:
            costs.append(_cost_like(entry, unit, delta))
        if len(costs) > _MOST_ENTRIES:
            raise ValueError(f"a plan can have at most {_MOST_ENTRIES} entries")
    if not costs:
        raise ValueError("a plan must have at least one entry")
    return tuple(costs)


def _cost_like(entry: Any, unit: str, delta: float) -> PrivacyCost:
    """Return the cost of one declared entry."""
    if isinstance(entry, PrivacyEvent):
        return _cost_of_event(entry, delta)
    if hasattr(entry, "_fixed_cost"):
        name = type(entry).__name__
        check_same_unit("record" if getattr(entry, "rows_per_group", None) is None else "group", unit, name)
        cost = entry._fixed_cost()
        if cost is None:
            raise ValueError(
                f"the cost of {name} is not known without the shape of the data. Pass the result of its "
                "privacy_plan(...) for the number of columns and classes of your data"
            )
    else:
        cost = getattr(entry, "cost", entry)
        check_same_unit(getattr(entry, "unit", unit), unit)
    if not isinstance(cost, PrivacyCost):
        raise TypeError(
            "the entries of a plan must be results of privacy_plan(), estimators of skdp, PrivacyCost, "
            f"events, or pairs of one of these and a number, got {type(entry).__name__}"
        )
    return cost


def _cost_of_event(event: PrivacyEvent, delta: float) -> PrivacyCost:
    """Return the cost of one event, with a pair that is proved for it."""
    if math.isfinite(event.pure_epsilon()) or delta == 0:
        return PrivacyCost(event.pure_epsilon(), 0.0, (event,))
    if isinstance(event, ApproximateEvent):
        return PrivacyCost(event.epsilon, event.delta, (event,))
    return PrivacyCost(min(gaussian_epsilon(event.mu(), delta), renyi_epsilon((event,), delta)), delta, (event,))


def _guarantee(entries: tuple[PrivacyCost, ...], ceiling: Budget) -> Budget:
    """Return the smallest epsilon, at the ceiling's delta, that one of several proofs gives for the list."""
    epsilon = sum((decimal(entry.epsilon) for entry in entries), start=decimal(0.0))
    delta = sum((decimal(entry.delta) for entry in entries), start=decimal(0.0))
    basic = Budget(float(epsilon), float(delta))
    # Two sums that are equal as decimal numbers may differ in the last digit of a double.
    if epsilon <= decimal(ceiling.epsilon):
        basic = Budget(min(basic.epsilon, ceiling.epsilon), basic.delta)
    if ceiling.delta == 0 or basic.epsilon == math.inf or (delta == 0 and basic <= ceiling):
        return basic
    found = [basic.epsilon] if delta <= decimal(ceiling.delta) else []
    mu = math.sqrt(math.fsum(entry.mu() ** 2 for entry in entries)) * (1 + 1e-12)
    if math.isfinite(mu):
        found.append(gaussian_epsilon(mu, ceiling.delta))
    events = Counter(event for entry in entries for event in entry.events)
    found.append(renyi_epsilon(tuple(events.elements()), ceiling.delta))
    found += _by_filters(entries, ceiling)
    numerical = _numerical(events, ceiling)
    if numerical is not None:
        found.append(numerical)
    if not found:
        return basic
    return Budget(float(min(found)), ceiling.delta)


def _by_filters(entries: tuple[PrivacyCost, ...], ceiling: Budget) -> list[float]:
    """Return the epsilons that filters prove for the list, with pure entries first."""
    pure, others = (tuple(e for e in entries if e.pure is first) for first in (True, False))
    summed = float(sum((decimal(entry.epsilon) for entry in pure), start=decimal(0.0))) * (1 + 2.0**-40)
    mu = math.sqrt(math.fsum(entry.mu() ** 2 for entry in others)) * (1 + 1e-12)
    counts = sorted(Counter(entries).items(), key=lambda item: (not item[0].pure, -item[0].epsilon))
    found = [summed + gaussian_epsilon(mu, ceiling.delta)]
    found.append(summed + renyi_epsilon(tuple(event for e in others for event in e.events), ceiling.delta))
    for name in ("rdp", "auto") if math.isfinite(ceiling.epsilon) else ():
        rule = Composition.of(*ceiling, name)
        after = rule.after(rule.start(), counts)
        if after is not None:
            found.append(rule.total(after).epsilon)
    return found


def _numerical(events: Counter[PrivacyEvent], ceiling: Budget) -> float | None:
    """Return the epsilon of the composed distributions, or None if it is of no use."""
    if ceiling.epsilon > _MOST_EPSILON:
        return None
    if all(isinstance(event, GaussianEvent) for event in events):
        # The sum of squares is exact.
        return None
    try:
        distribution = compose_events(events, _INTERVAL)
    except OverflowError:
        return None
    return float(distribution.get_epsilon_for_delta(ceiling.delta))
