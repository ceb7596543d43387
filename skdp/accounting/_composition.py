r"""Composition of events that may be chosen after earlier outputs were seen, within a budget.

Running totals are exact, for events on all records and for events on disjoint parts of them. The user guide
(*Accounting: theorems and proofs*) proves that these rules are valid for adaptively chosen events.

The page *Accounting* says what each rule admits. "mixed" keeps several rules side by side, each with a part of delta.
"auto" adds up the epsilons of pure events, until it settles, once, on the rule of which an event uses the least.

A list of fits may be declared before the first fit. The exact composition of a fixed list is a valid cost, because no
choice depends on outputs. Each entry may be carried out once, in any order, or left out. Other charges are refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any

from ..checks.params import check_integer, shown
from ..exceptions import BudgetError
from ._budget import Budget, check_same_unit, gaussian_epsilon, gaussian_mu, renyi_budget, renyi_limit
from ._compound import PROFILE_INTERVAL, renyi_epsilon
from ._events import ApproximateEvent, GaussianEvent, PrivacyCost, PrivacyEvent, compose_events

Exact = Fraction | float

#: A part is identified by the number of its division and by its position in it.
PartKey = tuple[int, int]

RULES = ("auto", "basic", "gdp", "rdp", "mixed")

#: The part of delta that the first rule of "mixed" gets. Rényi divergences of higher orders share the rest.
_MOST_OF_DELTA = 0.9

#: Higher orders, less 1, relative to the order at which most Gaussian noise fits.
_HIGHER_ORDERS = (2.0, 5.0, 15.0)

#: A warning is raised if a charge uses more than this part of the budget, and so many times its share of epsilon.
_NOTICED, _MUCH_MORE = 0.1, 2.0

#: If so much of the budget is used, the rule for the rest does not matter.
_LITTLE_LEFT = 0.9

#: Factors of sums in doubles, which are more than their rounding: of an exact sum, and of a sum over the entries of a
#: plan.
_EXACT_UP, _SUM_UP = 1 + 1e-15, 1 + 1e-12

#: Above this ceiling, the composed distribution of a plan would be too long.
_MOST_COMPOSED_EPSILON = 100.0

#: Largest number of entries of a plan, so that a wrong number is refused at once.
_MOST_ENTRIES = 1_000_000


def decimal(value: float) -> Exact:
    """Return the decimal number that a user typed, so that ten charges of 0.1 make 1."""
    return Fraction(repr(float(value))) if math.isfinite(value) else value


def floor_decimal(exact: Exact) -> float:
    """Return the largest double that, as a decimal number, is not above `exact`."""
    value = float(exact)
    while value > 0 and decimal(value) > exact:
        value = math.nextafter(value, 0.0)
    return value


def largest_share(whole: float, portion: Fraction) -> float:
    """Return a portion of a budget, rounded down, so that portions that add up to 1 do not exceed the whole."""
    return floor_decimal(decimal(whole) * portion) if math.isfinite(whole) else whole


def dyadic(value: float) -> Exact:
    """Return the exact value of a computed number."""
    return Fraction(value) if math.isfinite(value) else value


@dataclass(frozen=True)
class Sums:
    """Sum the privacy parameters of events exactly. A sum with an infinite term is a float."""

    # Epsilons and deltas are added up as decimal numbers, and Rényi divergences at each order in use.
    epsilon: Exact = Fraction(0)
    delta: Exact = Fraction(0)
    mu_squared: Exact = Fraction(0)
    rdp: tuple[Exact, ...] = ()

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.mu_squared + other.mu_squared,
            tuple(a + b for a, b in zip_longest(self.rdp, other.rdp, fillvalue=Fraction(0))),
        )

    def times(self, count: int) -> Sums:
        """Return the sums over `count` equal events."""
        if count == 0:
            return Sums()
        rdp = tuple(divergence * count for divergence in self.rdp)
        return Sums(self.epsilon * count, self.delta * count, self.mu_squared * count, rdp)


@dataclass(frozen=True)
class Division:
    """Divide the records into disjoint parts with public names, and keep the sums of each part."""

    # After `closed`, the sums count for all records, and neither names nor sums are kept. `public` tells whether the
    # assignment of records to parts is public.
    parts: tuple[str, ...]
    sums: tuple[Sums, ...]
    closed: bool = False
    public: bool = False

    def largest(self) -> Sums:
        """Bound the exposure of any one record, which is in one part only."""
        if self.closed:
            return Sums()
        return Sums(
            max(s.epsilon for s in self.sums),
            max(s.delta for s in self.sums),
            max(s.mu_squared for s in self.sums),
            tuple(map(max, zip_longest(*(s.rdp for s in self.sums), fillvalue=Fraction(0)))),
        )


@dataclass(frozen=True)
class Rest:
    """Hold the limits of a rule that was chosen after events without delta."""

    # `pure` is the sum of the epsilons before, the largest over all parts. The others describe the ceiling less `pure`.
    pure: Exact
    mu: float
    orders: tuple[float, ...]
    divergences: tuple[float, ...]


@dataclass(frozen=True)
class State:
    """Hold everything that determines whether the next charge is admitted."""

    # `rule` is None while it is open under "auto". `whole` sums the events on all records, and `done` lists the entries
    # of a declared list that were carried out. With `rest`, squared GDP parameters and Rényi divergences are summed
    # over the events since the rule was chosen.
    rule: str | None = None
    whole: Sums = field(default_factory=Sums)
    divisions: tuple[Division, ...] = ()
    done: tuple[int, ...] = ()
    rest: Rest | None = None

    def seen(self, part: PartKey | None = None) -> Sums:
        """Bound the exposure of a record of `part`, or of any record."""
        total = self.whole
        for number, division in enumerate(self.divisions):
            inside = part is not None and part[0] == number and not division.closed
            total = total + (division.sums[part[1]] if inside and part else division.largest())
        return total

    def add(self, sums: Sums, part: PartKey | None = None) -> State:
        """Return the state with an event on all records, or on one part, added."""
        if part is None:
            return replace(self, whole=self.whole + sums)
        number, position = part
        division = self.divisions[number]
        if division.closed:
            raise BudgetError("the division that this part belongs to is closed")
        after = division.sums[position] + sums
        changed = (*division.sums[:position], after, *division.sums[position + 1 :])
        return self._with(number, replace(division, sums=changed))

    def divide(self, parts: tuple[str, ...], public: bool = False) -> State:
        """Return the state with a further division."""
        return replace(self, divisions=(*self.divisions, Division(parts, (Sums(),) * len(parts), public=public)))

    def settle(self, rule: str, rest: Rest) -> State:
        """Return the state with a rule that counts events from now on, with the remaining budget `rest`."""

        def from_now_on(sums: Sums) -> Sums:
            return replace(sums, mu_squared=Fraction(0), rdp=())

        divisions = tuple(replace(d, sums=tuple(from_now_on(sums) for sums in d.sums)) for d in self.divisions)
        return replace(self, rule=rule, whole=from_now_on(self.whole), divisions=divisions, rest=rest)

    def close(self, number: int) -> State:
        """Return the state with a division closed."""
        largest = self.divisions[number].largest()
        return replace(self._with(number, Division((), (), closed=True)), whole=self.whole + largest)

    def _with(self, number: int, division: Division) -> State:
        return replace(self, divisions=(*self.divisions[:number], division, *self.divisions[number + 1 :]))


@dataclass(frozen=True)
class Composition:
    """Add up adaptively chosen events by a rule, and refuse events that would exceed the ceiling."""

    # `rule` is one of RULES. `mu` is the GDP parameter of the ceiling, and `divergences` the Rényi divergences that it
    # admits at `orders`.
    ceiling: Budget
    rule: str
    mu: float = 0.0
    orders: tuple[float, ...] = (2.0,)
    divergences: tuple[float, ...] = (0.0,)
    unit: str = "record"

    @classmethod
    def of(cls, epsilon: float, delta: float, rule: str) -> Composition:
        """Make a filter. With ``delta = 0``, or without a ceiling, its rule is always "basic"."""
        ceiling = Budget(epsilon, delta)
        if delta == 0 or not math.isfinite(epsilon):
            return cls(ceiling, "basic")
        return cls(ceiling, rule, *_parameters(epsilon, delta))

    def start(self) -> State:
        return State() if self.rule == "auto" else self.settle(State(), self.rule)

    def admit(self, state: State, cost: PrivacyCost, part: PartKey | None = None) -> State:
        """Return the state with `cost` added, or raise BudgetError if that would exceed the ceiling."""
        state = self._settled(state, cost, part)
        after = self._add(state, cost, 1, part)
        if not self._admitted(after, part):
            raise BudgetError(self._refusal(state, cost, part))
        return after

    def _settled(self, state: State, cost: PrivacyCost, part: PartKey | None) -> State:
        """Return the state with the rule that an event settles, before this event."""
        rule = self._chosen(state, cost) if state.rule is None else None
        if rule is None:
            return state
        if rule != "basic":
            mixed = self.settle(state, "mixed", rule)
            if self._admitted(self._add(mixed, cost, 1, part), part):
                return mixed
        return self.settle(state, rule)

    def _chosen(self, state: State, cost: PrivacyCost) -> str | None:
        """Return the rule of which an event uses the smallest part, or None if the event leaves the rule open."""
        if cost.pure:
            # The remaining budget has no effect here, so that equal events are always treated alike.
            rule = min(RULES[1:4], key=lambda rule: self._used_part(self._sums(cost), rule))
            return None if rule == "basic" else rule

        def used_part(rule: str) -> float:
            inner = self.in_force(self.settle(state, rule))
            return inner._used_part(inner._sums(cost), rule)

        return min(RULES[1:4], key=used_part)

    def in_force(self, state: State) -> Composition:
        """Return the filter of the rule in force, for the ceiling minus earlier pure events."""
        rest = state.rest
        if rest is None:
            return self
        left = Budget(floor_decimal(decimal(self.ceiling.epsilon) - rest.pure), self.ceiling.delta)
        return replace(self, ceiling=left, mu=rest.mu, orders=rest.orders, divergences=rest.divergences)

    def _add(self, state: State, cost: PrivacyCost, count: int, part: PartKey | None) -> State:
        return state.add(self.in_force(state)._sums(cost).times(count), part)

    def after(
        self, state: State, costs: Sequence[tuple[PrivacyCost, int]], part: PartKey | None = None
    ) -> State | None:
        """Return the state after these costs, each as often as its number says, or None if one is refused."""
        with suppress(BudgetError):
            for cost, count in costs:
                if state.rule is None and not self._admitted(state, part):
                    return None
                if count:
                    state = self._add(self._settled(state, cost, part), cost, count, part)
            if self._admitted(state, part):
                return state
        return None

    def settle(self, state: State, rule: str, first: str = "gdp") -> State:
        """Return the state with a settled rule. All events so far are pure, and are counted by their sum."""
        # With "mixed", `first` is the rule that gets most of delta.
        if state.rule not in (None, rule):
            raise BudgetError(f"the accountant has settled on {state.rule!r} composition")
        pure = state.seen().epsilon
        if state.rule is not None or rule == "basic" or (pure == 0 and rule != "mixed"):
            # The rule "basic" adds up these events with the later ones.
            return replace(state, rule=rule)
        left = floor_decimal(max(decimal(self.ceiling.epsilon) - pure, Fraction(0)))
        limits = _parameters(left, self.ceiling.delta, first if rule == "mixed" else "")
        return state.settle(rule, Rest(pure, *limits))

    def _admitted(self, state: State, part: PartKey | None) -> bool:
        sums = state.seen(part)
        inside = self.in_force(state)._within(sums, state.rule or "basic")
        return inside or (sums.delta == 0 and self._within(sums, "basic"))

    def _sums(self, cost: PrivacyCost) -> Sums:
        return Sums(
            epsilon=decimal(cost.epsilon),
            delta=decimal(cost.delta),
            mu_squared=dyadic(cost.mu()) ** 2,
            rdp=tuple(dyadic(cost.rdp(order)) for order in self.orders),
        )

    def _alternatives(self, sums: Sums, rule: str) -> list[list[tuple[Exact, Exact]]]:
        """Return the sums and limits of a rule. All of one of the lists must be within their limits."""
        ceiling = self.ceiling
        if rule == "basic":
            limits = [(sums.epsilon, decimal(ceiling.epsilon)), (sums.delta, decimal(ceiling.delta))]
            return [limits if ceiling.epsilon < math.inf else []]
        gdp = [[(sums.mu_squared, dyadic(self.mu) ** 2)]]
        divergences = zip_longest(sums.rdp, map(dyadic, self.divergences), fillvalue=Fraction(0))
        rdp = [[pair] for pair in divergences]
        return {"gdp": gdp, "rdp": rdp, "mixed": gdp + rdp}[rule]

    def _within(self, sums: Sums, rule: str) -> bool:
        return any(all(total <= limit for total, limit in limits) for limits in self._alternatives(sums, rule))

    def _used_part(self, sums: Sums, rule: str) -> float:
        """Return the part of the budget that is used according to `rule`."""
        return min(
            max(float(total / limit) if limit > 0 else math.inf for total, limit in limits)
            for limits in self._alternatives(sums, rule)
        )

    def _refusal(self, state: State, cost: PrivacyCost, part: PartKey | None) -> str:
        rule, ceiling = state.rule or "basic", self.ceiling
        if cost.delta > ceiling.delta:
            other = (
                f"another of at most {ceiling.delta:g}"
                if ceiling.delta
                else (f"open another budget with delta={cost.delta:g} or more")
            )
            return (
                f"the delta of the charge (epsilon={cost.epsilon:g}, delta={cost.delta:g}) exceeds the delta of the "
                f"budget (epsilon={ceiling.epsilon:g}, delta={ceiling.delta:g}), which does not admit the charge. Pass "
                f"delta={ceiling.delta / 10:.3g} to the estimator, or {other}. Nothing was charged"
            )
        message = (
            f"the budget (epsilon={ceiling.epsilon:g}, delta={ceiling.delta:g}) does not admit a "
            f"further (epsilon={cost.epsilon:g}, delta={cost.delta:g}) under {rule!r} composition; "
            f"{self._left_for(cost, state, part)}"
        )
        if rule != "basic" and math.isfinite(cost.epsilon) and not math.isfinite(cost.rdp(self.orders[0])):
            message += (
                ". An (epsilon, delta) charge with delta > 0 and without events cannot be composed under "
                f"{rule!r}. Use a charge with delta=0, or a budget with composition='basic'"
            )
        return message

    def _left_for(self, cost: PrivacyCost, state: State, part: PartKey | None) -> str:
        """Describe what remains for charges of the kind of `cost`."""
        if state.rule not in (None, "basic") and cost.delta == 0:
            return f"epsilon={self.remaining_pure(state, part):.6g} remains for a charge without delta"
        left = self.remaining(state, 1, part)
        # Other releases may cost more than a Gaussian release with the same epsilon and delta.
        of = "" if state.rule in (None, "basic") else " for a Gaussian release"
        return f"(epsilon={left.epsilon:.6g}, delta={left.delta:.6g}) remains{of}"

    def used(self, state: State, part: PartKey | None = None) -> float:
        """Return the used part of the budget of the rule in force."""
        return self.in_force(state)._used_part(state.seen(part), state.rule or "basic")

    def caution(self, before: State, after: State, cost: PrivacyCost, part: PartKey | None = None) -> str | None:
        """Return a warning about a charge that used much more of the budget than its epsilon suggests, or None."""
        if self.ceiling.delta == 0 or not 0 < self.ceiling.epsilon < math.inf or self.rule == "basic":
            return None
        used = self.used(after, part)
        if before.rule is None and after.rule == "basic" and used < _LITTLE_LEFT:
            return (
                f"A charge of (epsilon={cost.epsilon:g}, delta={cost.delta:g}) settles this budget on 'basic' "
                "composition: from then on, epsilons and deltas are added up, and releases with delta > 0 use more "
                "of the budget than they have to. The charge is made, unless this warning is an error. To avoid "
                'this, pass composition="gdp" or "rdp" to the budget, or a plan, and charge the events of a release '
                "instead of a bare pair"
            )
        if after.rule not in ("gdp", "rdp", "mixed"):
            return None
        if cost.delta > self.ceiling.delta:
            earlier, total = self.total(before, part), self.total(after, part)
            return (
                f"A charge of (epsilon={cost.epsilon:g}, delta={cost.delta:g}) is made to a budget with a smaller "
                f"delta, at which its epsilon is larger: the total rises from epsilon={earlier.epsilon:.3g} to "
                f"epsilon={total.epsilon:.3g} at delta={self.ceiling.delta:g}. The charge is made, unless this warning "
                "is an error. Set delta of the estimator to that of the budget or less"
            )
        used = min(used, 1.0) - (0.0 if before.rule is None else self.used(before, part))
        share = cost.epsilon / self.ceiling.epsilon
        if used <= max(_NOTICED, _MUCH_MORE * share):
            return None
        advice = (
            "This charge uses no delta, even if delta was passed to the function. Charge such releases first: until "
            "the first release with delta > 0, only their epsilons are added up"
            if cost.pure and self.rule == "auto"
            else 'Another composition, or a declared plan, may count such releases for less: see composition="rdp"'
        )
        return (
            f"A charge of (epsilon={cost.epsilon:g}, delta={cost.delta:g}) uses {used:.0%} of this budget under "
            f"{after.rule!r} composition, though its epsilon is {share:.0%} of the ceiling. The charge is made, unless "
            f"this warning is an error. {advice}"
        )

    def total(self, state: State, part: PartKey | None = None) -> Budget:
        """Return the smallest proved pair for all admitted events."""
        sums = state.seen(part)
        basic = Budget(float(sums.epsilon), min(float(sums.delta), 1.0))
        if state.rule in (None, "basic"):
            return basic
        delta, inner = self.ceiling.delta, self.in_force(state)
        # Each proof is about these charges, with the whole delta.
        epsilon = math.inf
        if state.rule != "rdp":
            epsilon = gaussian_epsilon(math.sqrt(float(sums.mu_squared)) * _EXACT_UP, delta)
        if state.rule != "gdp":
            left = inner.ceiling.epsilon
            for ((used, limit),), order in zip(inner._alternatives(sums, "rdp"), inner.orders, strict=True):
                most = renyi_limit(order, left, delta) if state.rule == "mixed" else float(limit)
                epsilon = min(epsilon, max(0.0, left - (most - float(used) * _EXACT_UP))) if most > 0 else epsilon
        if state.rest is not None:
            epsilon = (epsilon + float(state.rest.pure)) * _EXACT_UP
        # Sums that are bounded one by one, over several parts, may exceed the charges of any single record.
        epsilon = min(epsilon, self.ceiling.epsilon)
        if sums.delta <= decimal(delta) and basic.epsilon <= epsilon:
            return Budget(basic.epsilon, 0.0 if sums.delta == 0 else delta)
        return Budget(epsilon, delta)

    def remaining(self, state: State, k: int = 1, part: PartKey | None = None) -> Budget:
        """Return the largest event that is admitted `k` more times. Unless the rule is "basic", it is Gaussian."""
        # A pure event is also admitted up to the pure sum, if all earlier events were pure.
        if not math.isfinite(self.ceiling.epsilon):
            return self.ceiling
        sums = state.seen(part)
        if state.rule in (None, "basic"):
            return Budget(
                floor_decimal(max(decimal(self.ceiling.epsilon) - sums.epsilon, Fraction(0)) / k),
                floor_decimal(max(decimal(self.ceiling.delta) - sums.delta, Fraction(0)) / k),
            )
        inner = self.in_force(state)
        # The squared parameter that a unit of each sum admits.
        by_order = [2 / order for order in inner.orders]
        squares = {"gdp": [1.0], "rdp": by_order, "mixed": [1.0, *by_order]}[state.rule]
        mu = 0.0
        for ((used, limit),), square in zip(inner._alternatives(sums, state.rule), squares, strict=True):
            left = float(max(limit - used, Fraction(0)) / k) * (1 - 1e-15)
            mu = max(mu, math.sqrt(left * square))
        return Budget(gaussian_epsilon(mu, self.ceiling.delta) if mu > 0 else 0.0, self.ceiling.delta)

    def remaining_pure(self, state: State, part: PartKey | None = None) -> float:
        """Return about the largest epsilon of an event without delta that is still admitted."""
        low, high = 0.0, self.ceiling.epsilon
        if not math.isfinite(high):
            return high
        for _ in range(40):
            middle = (low + high) / 2
            after = self._add(state, PrivacyCost.of_pair(middle, 0.0), 1, part)
            low, high = (middle, high) if self._admitted(after, part) else (low, middle)
        return low


@lru_cache(maxsize=1024)
def _parameters(epsilon: float, delta: float, first: str = "") -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Return the GDP parameter, the Rényi orders and the divergences of a ceiling, or those of "mixed"."""
    order, divergence = renyi_budget(epsilon, delta)
    if not first:
        return gaussian_mu(epsilon, delta), (order,), (divergence,)
    most, higher = _MOST_OF_DELTA * delta, tuple(1 + factor * (order - 1) for factor in _HIGHER_ORDERS)
    share = (delta - most) * (1 - 2.0**-40) / len(higher)
    limits = tuple(renyi_limit(order, epsilon, share) for order in higher)
    if first == "gdp":
        return gaussian_mu(epsilon, most), higher, limits
    return 0.0, (order, *higher), (renyi_limit(order, epsilon, most), *limits)


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
        numbers, done = self._numbers.get(cost.events, ()), set(state.done)
        for number in numbers:
            if number not in done:
                return replace(state, done=(*state.done, number))
        planned = "was carried out already" if numbers else "is not in it"
        raise BudgetError(
            f"this budget is for a declared plan of {len(self.entries)} entries, and a charge of "
            f"(epsilon={cost.epsilon:g}, delta={cost.delta:g}) with these events {planned}"
        )

    @cached_property
    def _numbers(self) -> dict[tuple[PrivacyEvent, ...], list[int]]:
        """Return the positions of entries in the list by their events, which are composed."""
        numbers: dict[tuple[PrivacyEvent, ...], list[int]] = {}
        for number, entry in enumerate(self.entries):
            numbers.setdefault(entry.events, []).append(number)
        return numbers

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
    if not isinstance(plan, Iterable):
        # A pipeline can be indexed, and its steps are not what it charges.
        raise TypeError(f"plan must be a list of entries, got {shown(plan)}")
    costs: list[PrivacyCost] = []
    for entry in plan:
        # A Budget is a tuple of two numbers, and no event.
        is_pair = isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry, Budget)
        like, count = entry if is_pair else (entry, 1)
        count = check_integer(count, "the number in an entry (like, number) of a plan", least=1, most=_MOST_ENTRIES)
        costs += [_cost_like(like, unit, delta)] * count
        if len(costs) > _MOST_ENTRIES:
            raise ValueError(f"a plan can have at most {_MOST_ENTRIES} entries")
    if not costs:
        raise ValueError("a plan must have at least one entry")
    return tuple(costs)


def _cost_like(entry: Any, unit: str, delta: float) -> PrivacyCost:
    """Return the cost of one declared entry."""
    if isinstance(entry, PrivacyEvent):
        # The pair is proved for this event.
        pure = entry.pure_epsilon()
        if math.isfinite(pure) or delta == 0:
            return PrivacyCost(pure, 0.0, (entry,))
        if isinstance(entry, ApproximateEvent):
            return PrivacyCost(entry.epsilon, entry.delta, (entry,))
        epsilon = min(gaussian_epsilon(entry.mu(), delta), renyi_epsilon((entry,), delta))
        return PrivacyCost(epsilon, delta, (entry,))
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
    epsilons = [basic.epsilon] if delta <= decimal(ceiling.delta) else []
    mu = math.sqrt(math.fsum(entry.mu() ** 2 for entry in entries)) * _SUM_UP
    if math.isfinite(mu):
        epsilons.append(gaussian_epsilon(mu, ceiling.delta))
    events = Counter(event for entry in entries for event in entry.events)
    epsilons.append(renyi_epsilon(tuple(events.elements()), ceiling.delta))
    epsilons += _by_filters(entries, ceiling)
    # The sum of squares of Gaussian events is exact.
    if ceiling.epsilon <= _MOST_COMPOSED_EPSILON and not all(isinstance(event, GaussianEvent) for event in events):
        with suppress(OverflowError):
            distribution = compose_events(events, PROFILE_INTERVAL)
            epsilons.append(distribution.get_epsilon_for_delta(ceiling.delta))
    return Budget(float(min(epsilons)), ceiling.delta)


def _by_filters(entries: tuple[PrivacyCost, ...], ceiling: Budget) -> list[float]:
    """Return the epsilons that filters prove for the list, with pure entries first."""
    pure, others = (tuple(e for e in entries if e.pure is first) for first in (True, False))
    summed = float(sum((decimal(entry.epsilon) for entry in pure), start=decimal(0.0))) * (1 + 2.0**-40)
    mu = math.sqrt(math.fsum(entry.mu() ** 2 for entry in others)) * _SUM_UP
    counts = sorted(Counter(entries).items(), key=lambda item: (not item[0].pure, -item[0].epsilon))
    epsilons = [summed + gaussian_epsilon(mu, ceiling.delta)]
    epsilons.append(summed + renyi_epsilon(tuple(event for e in others for event in e.events), ceiling.delta))
    for name in ("rdp", "auto") if math.isfinite(ceiling.epsilon) else ():
        rule = Composition.of(*ceiling, name)
        after = rule.after(rule.start(), counts)
        if after is not None:
            epsilons.append(rule.total(after).epsilon)
    return epsilons
