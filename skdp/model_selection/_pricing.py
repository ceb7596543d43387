r"""The cost of a search as a whole, and the division of its budget, from public parameters only.

A search is a sequence of costs. Its *parts* (disjoint parts of the records, or alternatives) are sequences of their
own, and its *repetitions* are the best of a random number of runs. Each cost has a portion of the whole. With
``delta=0``, portions are of epsilon. Otherwise, portions are of the square of the Gaussian-DP parameter, and are scaled
down until the whole is proved to be within the budget, by Gaussian DP or by Rényi divergences for each part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import (
    BoundedRangeEvent,
    Budget,
    ParallelEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
    RepeatedSelectionEvent,
    bounded_range_epsilon,
    check_epsilon,
    gaussian_epsilon,
    gaussian_mu,
    largest_share,
    renyi_epsilon,
)
from ..mechanisms import BitStream, DiscreteLaplaceMechanism, GroupChoices, Mechanism, NoNoise, l2_mechanism
from ._allocation import SEARCH_HALVINGS, largest_admitted, nine_digits
from ._candidates import Candidate


@dataclass(frozen=True)
class Parts:
    """Alternative sequences of costs. Each record is exposed to one of them."""

    sequences: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Repetition:
    """The best of a random number of runs, whose law has the parameters `mean` and `shape`."""

    run: tuple[Any, ...]
    mean: float
    shape: float


Item = PrivacyCost | Parts | Repetition
Sequence_ = tuple[Item, ...]


def events_of(sequence: Sequence[Item]) -> tuple[PrivacyEvent, ...]:
    """Return the events of a sequence."""
    events: list[PrivacyEvent] = []
    for item in sequence:
        if isinstance(item, PrivacyCost):
            events += item.events
        elif isinstance(item, Parts):
            lists = tuple(dict.fromkeys(events_of(alternative) for alternative in item.sequences))
            events += lists[0] if len(lists) == 1 else (ParallelEvent(lists),)
        else:
            events.append(RepeatedSelectionEvent(events_of(item.run), item.mean, item.shape))
    return tuple(events)


def _pair(item: Item) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta by basic composition."""
    if isinstance(item, PrivacyCost):
        return _exact(item.epsilon), _exact(item.delta)
    if isinstance(item, Parts):
        pairs = [_sum(sequence) for sequence in item.sequences]
        return max(e for e, _ in pairs), max(d for _, d in pairs)
    epsilon, delta = _sum(item.run)
    return (2 + Fraction(item.shape)) * epsilon, Fraction(0) if delta == 0 else Fraction(1)


def _sum(sequence: Sequence[Item]) -> tuple[Fraction, Fraction]:
    pairs = [_pair(item) for item in sequence]
    return sum((e for e, _ in pairs), Fraction(0)), sum((d for _, d in pairs), Fraction(0))


def _exact(value: float) -> Fraction:
    return Fraction(repr(float(value))) if math.isfinite(value) else Fraction(10**300)


def _part(epsilon: float, portion: Fraction) -> float:
    """Return a part that does not exceed the portion as a rational number, and not only in its printed digits."""
    share = largest_share(epsilon, portion)
    return share if Fraction(share) <= portion * Fraction(epsilon) else math.nextafter(share, 0.0)


def within(sequence: Sequence[Item], whole: Budget) -> bool:
    """Tell whether a sequence is proved to be (epsilon, delta)-DP with the epsilon and delta of `whole`."""
    if whole.epsilon == math.inf or not sequence:
        return True
    epsilon, delta = _sum(sequence)
    if epsilon <= _exact(whole.epsilon) and delta <= _exact(whole.delta):
        return True
    if whole.delta == 0:
        return False
    if len(sequence) == 1 and isinstance(sequence[0], Parts):
        return all(within(alternative, whole) for alternative in sequence[0].sequences)
    events = events_of(sequence)
    # The proof that takes less time comes first.
    if renyi_epsilon(events, whole.delta) <= whole.epsilon:
        return True
    squares = math.fsum(event.mu() ** 2 for event in events)
    return math.sqrt(squares) * (1 + 2.0**-40) <= gaussian_mu(*whole)


@dataclass
class Prices:
    """Costs of portions of the budget `whole`."""

    candidates: tuple[Candidate, ...]
    whole: Budget
    most: float  # Largest change of a score by one record, or by the counted rows of one group.
    size: int = 0  # Number of cells in the tables of all candidates, or 0 if sums are compared.
    scale: float = 1.0  # Factor of Gaussian-DP parameters, or 0 for basic composition.
    _known: dict[Any, tuple[PrivacyCost, ...]] = field(default_factory=dict)

    @property
    def private(self) -> bool:
        """Tell whether there is a guarantee."""
        return self.whole.epsilon < math.inf

    def _share(self, portion: Fraction) -> Budget:
        whole = self.whole
        if not self.private or (portion == 1 and self.scale in (0.0, 1.0)):
            return whole
        if whole.delta == 0 or self.scale == 0:
            budget = Budget(_part(whole.epsilon, portion), largest_share(whole.delta, portion))
        else:
            budget = Budget(nine_digits(gaussian_epsilon(self.mu(portion), whole.delta)), whole.delta)
        try:
            check_epsilon(budget.epsilon)
        except ValueError as error:
            raise ValueError(f"the budget leaves too little for each fit: {error}") from None
        return budget

    def mu(self, portion: Fraction) -> float:
        """Return the Gaussian-DP parameter of a portion, which is a part of its square."""
        return self.scale * gaussian_mu(*self.whole) * math.sqrt(portion) * (1 - 2.0**-45)

    def budgets(self, candidate: int, portion: Fraction) -> tuple[Budget, ...]:
        """Return the budget of each step in one fit of a candidate that may cost the portion."""
        chosen = self.candidates[candidate]
        return tuple(self._share(portion * step.part / step.n_fits) for step in chosen.steps)

    def fit(self, candidate: int, portion: Fraction) -> Sequence_:
        """Return the costs of one fit of a candidate that may cost the portion."""
        budgets = self.budgets(candidate, portion)
        key = candidate, budgets
        if key not in self._known:
            steps = self.candidates[candidate].steps
            self._known[key] = tuple(
                cost for step, b in zip(steps, budgets, strict=True) for cost in (step.cost(b),) * step.n_fits
            )
        return self._known[key]

    def any_fit(self, portion: Fraction) -> Sequence_:
        """Return the cost of one fit of a candidate that is chosen later."""
        every = tuple(dict.fromkeys(self.fit(m, portion) for m in range(len(self.candidates))))
        return every[0] if len(every) == 1 else (Parts(every),)

    def choice(self, portion: Fraction) -> tuple[Mechanism, PrivacyCost]:
        """Return the mechanism that chooses a candidate by its score, or releases all tables, and its cost."""
        if self.size:
            return self.noise(portion)
        # The mechanism is monotone. Therefore a record must change all scores in one direction.
        if not self.private:
            return Best(float(self.most)), PrivacyCost(*self.whole, (PureEvent(math.inf),))
        if self.whole.delta == 0 or self.scale == 0:
            epsilon = _part(self.whole.epsilon, portion)
            mechanism = GroupChoices(epsilon, float(self.most), monotone=True)
            return mechanism, PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))
        epsilon = bounded_range_epsilon(self.mu(portion))
        mechanism = GroupChoices(epsilon, float(self.most), monotone=True, bounded_range=True)
        return mechanism, PrivacyCost(epsilon, 0.0, (BoundedRangeEvent(epsilon),))

    def noise(self, portion: Fraction) -> tuple[Mechanism, PrivacyCost]:
        """Return the mechanism that adds noise to one score, or to the tables of all candidates, and its cost."""
        # A record may change one cell in the table of each candidate.
        n_tables, size = (len(self.candidates), self.size) if self.size else (1, 1)
        l1 = float(self.most) * n_tables
        if not self.private:
            return NoNoise(l1), PrivacyCost(*self.whole, (PureEvent(math.inf),))
        if self.whole.delta == 0 or self.scale == 0:
            epsilon = _part(self.whole.epsilon, portion)
            return DiscreteLaplaceMechanism(epsilon, l1, size), PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))
        share = self.scale**2 * float(portion) * (1 - 2.0**-40)
        l2 = float(self.most) * (1.0 if n_tables == 1 else math.sqrt(n_tables) * (1 + 2.0**-50))
        mechanism, event = l2_mechanism(*self.whole, share, l2, size)
        pair = gaussian_epsilon(event.mu(), self.whole.delta), self.whole.delta
        return mechanism, PrivacyCost(*pair, (event,))


class Best(NoNoise):
    """The best candidate, without a guarantee."""

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the position of the largest score in each row."""
        return np.asarray(value, dtype=np.float64).argmax(axis=1).astype(np.float64)


def settle(prices: Prices, sequence_of: Callable[[Prices], Sequence_]) -> Prices:
    """Return prices with the largest scale at which a sequence is within its budget."""

    def at(scale: float) -> Prices:
        return Prices(prices.candidates, prices.whole, prices.most, prices.size, scale)

    def admitted(scale: float) -> bool:
        try:
            return within(sequence_of(at(scale)), prices.whole)
        except ValueError:
            # The budget is too small for a fit.
            return False

    if prices.whole.delta == 0 or not prices.private or admitted(1.0):
        return at(1.0)
    # If costs depend on the shape of the data, only basic composition is possible.
    return at(largest_admitted(admitted, SEARCH_HALVINGS))
