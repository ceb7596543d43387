r"""The candidates of a search, its cost as a whole, and the division of its budget, from public parameters only.

A search is a sequence of costs. Its *parts* (disjoint parts of the records, or alternatives) are sequences of their
own, and its *repetitions* are the best of a random number of runs. Each cost has a portion of the whole. With
``delta=0``, portions are of epsilon. Otherwise, portions are of the square of the Gaussian-DP parameter, and are scaled
down until the whole is proved to be within the budget, by Gaussian DP or by Rényi divergences for each part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline

from ..accounting import (
    GROUP_SUPPORT_HINT,
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
from ..checks.params import check_classes
from ..mechanisms import BitStream, DiscreteLaplaceMechanism, GroupChoices, Mechanism, NoNoise, l2_mechanism
from ..release.mixin import DPEstimatorMixin
from ..release.units import ONE_RECORD, Unit
from ._allocation import SEARCH_HALVINGS, largest_admitted, nine_digits, parts_of_budget
from ._stateless import check_steps, without_records
from ._steps import UNIT, counted_steps, declared, is_private, is_shared, join, private_steps

_BUDGET = frozenset({"epsilon", "delta", "accountant", "random_state"})


@dataclass(frozen=True)
class PrivateStep:
    """A private step of a candidate, the number of its fits in one fit of the candidate, and their part of a budget."""

    name: str  # As in `get_params`. Empty for the estimator itself.
    estimator: Any
    n_fits: int
    part: Fraction

    def cost(self, budget: Budget) -> PrivacyCost:
        """Return the cost of one fit with this budget, as a bare pair if the events depend on the shape of the data."""
        if budget.epsilon == float("inf"):
            return PrivacyCost(budget.epsilon, budget.delta, (PureEvent(budget.epsilon),))
        known = None
        if hasattr(self.estimator, "_fixed_cost"):
            known = copy(self.estimator).set_params(epsilon=budget.epsilon, delta=budget.delta)._fixed_cost()
        return known or PrivacyCost.of_pair(*budget)


@dataclass(frozen=True)
class Candidate:
    """One setting: its parameters, an estimator that is never fitted, and its private steps."""

    parameters: dict[str, Any]
    estimator: Any
    steps: tuple[PrivateStep, ...]

    def prepared(self, budgets: tuple[Budget, ...], seeds: Iterable[int | None]) -> Any:
        """Return an unfitted copy by `without_records`, with these budgets, its own noise and no accountant."""
        model = clone(self.estimator)
        for step, budget, seed in zip(self.steps, budgets, seeds, strict=True):
            values = {"epsilon": budget.epsilon, "delta": budget.delta}
            if "random_state" in step.estimator.get_params(deep=False):
                values["random_state"] = seed  # type: ignore[assignment]
            model.set_params(**{join(step.name, name): value for name, value in values.items()})
        return without_records(model)


def make_candidates(
    estimator: Any, settings: Iterable[Mapping[str, Any]], classes: NDArray | None, unit: Unit = ONE_RECORD
) -> tuple[Candidate, ...]:
    """Return the candidates, or raise an error that names the step that is not private."""
    # `classes` is the label set for steps without one. Each private step must count the unit of the search.
    candidates = []
    for setting in settings:
        for name in setting:
            if name.split("__")[-1] in _BUDGET:
                raise ValueError(f"a search cannot set {name!r}, because it divides the budget and the noise itself")
        model = clone(estimator).set_params(**clone(dict(setting), safe=False))
        weights = getattr(model, "weights", None) if is_shared(model) else None
        check_steps(model)
        if is_shared(model):
            # A search divides the budget itself.
            _check_no_accountant(model, type(model).__name__)
            model = Pipeline(model.steps)
        # All other steps learn nothing.
        private, _ = private_steps(model)
        for step in private:
            kind = type(step.estimator).__name__
            if not isinstance(step.estimator, DPEstimatorMixin) or isinstance(step.estimator, MetaEstimatorMixin):
                raise ValueError(
                    f"a search cannot take {kind}, which is no private estimator of skdp, or divides a budget itself. "
                    "Search the estimator inside"
                )
            if step.estimator._local:
                raise ValueError(
                    f"a search cannot take {kind}, which protects the contents of each record and not the number of "
                    "records. A search protects both"
                )
        for step in private:
            _check_no_accountant(step.estimator, f"step {step.title!r}")
            _check_unit(step.estimator, unit)
            takes_classes = is_classifier(step.estimator) and "classes" in step.estimator.get_params(deep=False)
            if classes is not None and takes_classes and declared(step.estimator, "classes") is None:
                step.estimator.set_params(classes=classes)
        n_fits = sum(step.n_fits for step in private)
        parts = parts_of_budget(private, weights) if weights else [Fraction(s.n_fits, n_fits) for s in private]
        steps = tuple(
            PrivateStep(step.name, step.estimator, step.n_fits, part) for step, part in zip(private, parts, strict=True)
        )
        candidates.append(Candidate(dict(setting), model, steps))
    if not candidates:
        raise ValueError("there is no candidate to try")
    return tuple(candidates)


def _check_no_accountant(estimator: Any, title: str) -> None:
    if estimator.accountant is not None:
        raise ValueError(f"{title} has an accountant; pass it to the search, which charges it once for everything")


def _check_unit(step: Any, unit: Unit) -> None:
    """Refuse a step whose guarantee is about another unit than that of the search."""
    kind = type(step).__name__
    by_group = declared(step, UNIT) is not None
    if by_group and unit.rows_per_group is None:
        raise ValueError(
            f"{kind} counts groups, and the search around it counts records. Set rows_per_group of the search "
            "as well, which is the number of rows of a group in a score, and pass groups to it"
        )
    if unit.rows_per_group is None or by_group:
        return
    if UNIT in step.get_params(deep=False):
        raise ValueError(
            f"rows_per_group is set, and must be set for {kind} as well, which would count records otherwise"
        )
    raise ValueError(
        f"rows_per_group is set, and {kind}, which counts records, has no such parameter. {GROUP_SUPPORT_HINT}"
    )


def declared_classes(estimator: Any) -> NDArray | None:
    """Return the label set that the classifier among the private steps declares, or None."""
    check_steps(estimator)
    plain = Pipeline(estimator.steps) if is_shared(estimator) else estimator
    for step in counted_steps(clone(plain)):
        if is_private(step.estimator) and is_classifier(step.estimator):
            return check_classes(declared(step.estimator, "classes"))
    return None


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
