"""The exact running totals of a budget, for events on all records and for events on disjoint parts of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import zip_longest

from ..exceptions import BudgetError

Exact = Fraction | float

#: A part is identified by the number of its division and by its position in it.
PartKey = tuple[int, int]


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
    """Return a portion of a budget, rounded down, so that portions that add up to 1 do not exceed the whole.

    Parameters
    ----------
    whole : float
        Budget to divide, as the decimal number that was typed.
    portion : Fraction
        In (0, 1].

    Returns
    -------
    share : float
        Infinite if the whole is infinite.
    """
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
        number, place = part
        division = self.divisions[number]
        if division.closed:
            raise BudgetError("the division that this part belongs to is closed")
        changed = (*division.sums[:place], division.sums[place] + sums, *division.sums[place + 1 :])
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
