"""A budget for a list of fits that is declared before the first of them.

When the list is fixed, its exact composition is the right price: no allowance for choices that depend on outputs is
needed. Each entry may be carried out once, in any order, or left out, and nothing else may.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from ..exceptions import BudgetError
from ._budget import Budget, check_same_unit
from ._events import GaussianEvent, PrivacyCost, PrivacyEvent, compose_events, rounding_allowance
from ._gaussian import gaussian_epsilon
from ._state import PartKey, State, decimal

_INTERVAL = 1e-4

#: A distribution over more would be too long.
_MOST_EPSILON = 100.0


@dataclass(frozen=True)
class DeclaredPlan:
    """A rule that admits the entries of a list, each once.

    Attributes
    ----------
    ceiling : Budget
        What the whole list is not to exceed.
    entries : tuple of PrivacyCost
        The list.
    whole : Budget
        What the whole list is proved to cost.
    unit : {"record", "group"}
        Whose presence the ceiling is about.
    """

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
        for number, entry in enumerate(self.entries):
            if entry == cost and number not in state.done:
                return replace(state, done=(*state.done, number))
        planned = "was carried out already" if cost in self.entries else "is not in it"
        raise BudgetError(
            f"this budget is for a declared plan of {len(self.entries)} entries, and a charge of "
            f"(epsilon={cost.epsilon:g}, delta={cost.delta:g}) with these events {planned}"
        )

    def left(self, state: State) -> tuple[PrivacyCost, ...]:
        """The entries that were not carried out."""
        return tuple(entry for number, entry in enumerate(self.entries) if number not in state.done)

    def total(self, state: State, part: PartKey | None = None) -> Budget:
        """The whole list's guarantee, as soon as one entry was carried out: the list is what the proof is about."""
        return self.whole if state.done else Budget(0.0, 0.0)

    def remaining(self, state: State, k: int = 1, part: PartKey | None = None) -> Budget:
        """Nothing: what fits are the entries of the list."""
        return Budget(0.0, 0.0)


def as_costs(plan: Any, unit: str = "record") -> tuple[PrivacyCost, ...]:
    """Return what a user declared as costs: plans of estimators, their guarantees, or costs."""
    costs = []
    for entry in plan:
        cost = getattr(entry, "cost", entry)
        check_same_unit(getattr(entry, "unit", unit), unit)
        if not isinstance(cost, PrivacyCost):
            raise TypeError(
                f"the entries of a plan must be what privacy_plan() returns, or PrivacyCost, got {type(entry).__name__}"
            )
        costs.append(cost)
    if not costs:
        raise ValueError("a plan must have at least one entry")
    return tuple(costs)


def _guarantee(entries: tuple[PrivacyCost, ...], ceiling: Budget) -> Budget:
    """The least epsilon, at the ceiling's delta, that one of three proofs gives for the list."""
    epsilon = sum((decimal(entry.epsilon) for entry in entries), start=decimal(0.0))
    delta = sum((decimal(entry.delta) for entry in entries), start=decimal(0.0))
    basic = Budget(float(epsilon), float(delta))
    # Two sums that are equal as decimal numbers may differ in the last digit of a double.
    if epsilon <= decimal(ceiling.epsilon):
        basic = Budget(min(basic.epsilon, ceiling.epsilon), basic.delta)
    if delta == 0 or ceiling.delta == 0 or basic.epsilon == math.inf:
        return basic
    found = [basic.epsilon] if delta <= decimal(ceiling.delta) else []
    mu = math.sqrt(math.fsum(entry.mu() ** 2 for entry in entries)) * (1 + 1e-12)
    if math.isfinite(mu):
        found.append(gaussian_epsilon(mu, ceiling.delta))
    events = Counter(event for entry in entries for event in entry.events)
    numerical = _numerical(events, ceiling)
    if numerical is not None:
        found.append(numerical)
    if not found:
        return basic
    return Budget(float(min(found)), ceiling.delta)


def _numerical(events: Counter[PrivacyEvent], ceiling: Budget) -> float | None:
    """The epsilon that dp_accounting finds, with an allowance for its rounding; None where that is no use."""
    allowance = rounding_allowance(events)
    if allowance > ceiling.delta / 2 or ceiling.epsilon > _MOST_EPSILON:
        return None
    if all(isinstance(event, GaussianEvent) for event in events):
        # The sum of squares is exact.
        return None
    try:
        distribution = compose_events(events, _INTERVAL)
    except OverflowError:
        return None
    return float(distribution.get_epsilon_for_delta(ceiling.delta - allowance)) * (1 + 1e-9)
