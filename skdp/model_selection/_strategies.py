r"""Strategies of a search: ways to train candidates on some records and to compare them on others, and their costs.

A search is a sequence of costs. Its *parts* (disjoint parts of the records, or alternatives) are sequences of their
own, and its *repetitions* are the best of a random number of runs. Each cost has a portion of the whole. With
``delta=0``, portions are of epsilon. Otherwise, portions are of the square of the Gaussian-DP parameter, and are scaled
down until the whole is proved to be within the budget, by Gaussian DP or by Rényi divergences for each part.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from ..accounting import (
    BoundedRangeEvent,
    Budget,
    GaussianEvent,
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
    runs_parameter,
)
from ..checks.params import Checked, refusals
from ..checks.silence import silence
from ..exceptions import CertificateError, NotEnoughDataError, SchemaMismatchWarning
from ..mechanisms import (
    BestChoices,
    BestOfRuns,
    DiscreteLaplaceMechanism,
    GroupChoices,
    Mechanism,
    NoiseSource,
    NoNoise,
    draw_parts,
    l2_mechanism,
    number_of_runs,
)
from ..parts.arrays import CHARGES, charge
from ..release.blocks import results_of
from ..release.session import Phases, Release, ReleaseSession, Theorem
from ..release.units import ONE_RECORD, Unit
from ._allocation import SEARCH_HALVINGS, Candidate, largest_admitted, nine_digits
from ._scoring import Table
from ._stateless import check_rows, restore_steps, with_groups
from ._steps import take


@dataclass(frozen=True)
class Parts:
    """Alternative sequences of costs. Each record is exposed to one of them."""

    sequences: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Repetition:
    """The best of a logarithmic number of runs with this mean."""

    run: tuple[Any, ...]
    mean: float


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
            events.append(RepeatedSelectionEvent(events_of(item.run), item.mean, 0.0))
    return tuple(events)


def _pair(item: Item) -> tuple[Fraction, Fraction]:
    """Return epsilon and delta by basic composition."""
    if isinstance(item, PrivacyCost):
        return _exact(item.epsilon), _exact(item.delta)
    if isinstance(item, Parts):
        pairs = [_sum(sequence) for sequence in item.sequences]
        return max(e for e, _ in pairs), max(d for _, d in pairs)
    epsilon, delta = _sum(item.run)
    return 2 * epsilon, Fraction(0) if delta == 0 else Fraction(1)


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
    # The factor is more than the rounding of the squares and the root.
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
        if self.by_epsilon:
            budget = Budget(_part(whole.epsilon, portion), largest_share(whole.delta, portion))
        else:
            budget = Budget(nine_digits(gaussian_epsilon(self.mu(portion), whole.delta)), whole.delta)
        try:
            check_epsilon(budget.epsilon)
        except ValueError as error:
            raise ValueError(f"the budget leaves too little for each fit: {error}") from None
        return budget

    @property
    def by_epsilon(self) -> bool:
        """Tell whether portions are of epsilon."""
        return self.whole.delta == 0 or self.scale == 0

    def mu(self, portion: Fraction) -> float:
        """Return the Gaussian-DP parameter of a portion, which is a part of its square."""
        return self.scale * gaussian_mu(*self.whole) * math.sqrt(portion) * (1 - 2.0**-45)

    def budgets(self, candidate: int, portion: Fraction) -> tuple[Budget, ...]:
        """Return the budget of each step in one fit of a candidate that may cost the portion."""
        chosen = self.candidates[candidate]
        return tuple(self._share(portion * step.part) for step in chosen.steps)

    def fit(self, candidate: int, portion: Fraction) -> Sequence_:
        """Return the costs of one fit of a candidate that may cost the portion."""
        budgets = self.budgets(candidate, portion)
        key = candidate, budgets
        if key not in self._known:
            steps = self.candidates[candidate].steps
            self._known[key] = tuple(step.cost(b) for step, b in zip(steps, budgets, strict=True))
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
            return BestChoices(float(self.most)), PrivacyCost(*self.whole, (PureEvent(math.inf),))
        if self.by_epsilon:
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
        if self.by_epsilon:
            epsilon = _part(self.whole.epsilon, portion)
            return DiscreteLaplaceMechanism(epsilon, l1, size), PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))
        share = self.scale**2 * float(portion) * (1 - 2.0**-40)
        l2 = float(self.most) * (1.0 if n_tables == 1 else math.sqrt(n_tables) * (1 + 2.0**-50))
        mechanism, event = l2_mechanism(*self.whole, share, l2, size)
        pair = gaussian_epsilon(event.mu(), self.whole.delta), self.whole.delta
        return mechanism, PrivacyCost(*pair, (event,))


def settle(prices: Prices, sequence_of: Callable[[Prices], Sequence_]) -> Prices | None:
    """Return prices with the largest scale at which a sequence is within its budget, or None if there is no scale."""

    def at(scale: float) -> Prices:
        return replace(prices, scale=scale, _known={})

    def admitted(scale: float) -> bool:
        try:
            return within(sequence_of(at(scale)), prices.whole)
        except ValueError:
            # The budget is too small for a fit.
            return False

    scale = 1.0
    if prices.whole.delta > 0 and prices.private and not admitted(1.0):
        # If costs depend on the shape of the data, only basic composition is possible.
        scale = largest_admitted(admitted, SEARCH_HALVINGS)
    settled = at(scale)
    return settled if within(sequence_of(settled), prices.whole) else None


_SELECTION = "selection"


@dataclass(frozen=True)
class Task:
    """One fit, and the rows that score it."""

    candidate: int
    portion: Fraction
    train: NDArray[np.intp] | None
    test: NDArray[np.intp] | None


@dataclass(frozen=True)
class Fit:
    """A fitted model, or None if the fit released too little, with its score, and its warnings of wrong declarations.

    The warnings follow from released counts, and are as public as the model.
    """

    model: Any
    score: Any
    mismatches: tuple[str, ...]


@dataclass(eq=False)
class SearchContext:
    """The data, settled prices, score, charged session and randomness that a strategy works with."""

    X: Any
    y: NDArray  # Read by scores.
    targets: NDArray  # Estimators are fitted to these.
    prices: Prices
    score: Any
    session: ReleaseSession
    source: NoiseSource
    n_jobs: int | None
    unit: Unit = ONE_RECORD
    members: NDArray[np.intp] | None = None  # Group of each row, if groups count.
    _fits: int = 0
    _may_score: NDArray[np.bool_] | None = None

    def divide(self, probabilities: tuple[float, ...]) -> list[NDArray[np.intp]]:
        """Assign each record, or each group with all of its records, to a part. Return the rows of each part."""
        stream = self.source.stream("membership")
        if self.members is None:
            parts = draw_parts(probabilities, len(self.y), stream)
        else:
            parts = draw_parts(probabilities, 1 + int(self.members.max(initial=-1)), stream)[self.members]
        return [np.flatnonzero(parts == part) for part in range(len(probabilities))]

    def scored(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the rows that count in scores: all, or a few of each group. They are the same in every score."""
        if self.members is None or self.score is None:
            return rows
        if self._may_score is None:
            counted, _ = self.unit.counted(self.source, self.members, np.arange(len(self.y)))
            self._may_score = np.zeros(len(self.y), dtype=bool)
            self._may_score[counted] = True
        return rows[self._may_score[rows]]

    def fit(self, tasks: Iterable[Task]) -> list[Fit]:
        """Carry out the fits of a phase. If a fit releases too little, its score is 0."""
        charged = CHARGES.get()

        def call(task: Task) -> Any:
            budgets = self.prices.budgets(task.candidate, task.portion)
            model = self.prices.candidates[task.candidate].prepared(budgets, [self._seed() for _ in budgets])
            records = self.X, self.targets, self.members
            train = [data if task.train is None or data is None else take(data, task.train) for data in records]
            test = None if task.test is None else tuple(take(data, self.scored(task.test)) for data in (self.X, self.y))
            return delayed(_fit_and_count)(charged, model, *train, test, self.score)

        return list(self.session.progress.phase(results_of(map(call, tasks), self.n_jobs)))

    def _seed(self) -> int | None:
        """Return the seed of the next fit, by that of the search and a counter. None is for secure noise."""
        self._fits += 1
        if not self.source.seeded:
            return None
        return int(self.source.stream(f"fit {self._fits}").words(1)[0] >> np.uint64(32))

    def select(self, fits: list[Fit]) -> int:
        """Return the position of the best fit, by the planned mechanism. Its scores are sums, or tables."""
        fitted = np.array([position for position, fit in enumerate(fits) if fit.model is not None], dtype=np.intp)
        scores = np.array([fit.score for fit in fits], dtype=np.float64)
        if len(fitted) == 0:
            raise NotEnoughDataError(f"no candidate could be fitted from its noisy statistics. {charge()}")
        if isinstance(self.score, Table):
            noisy = self.session.release(_SELECTION, scores)
            # If no noisy count is positive, the score is not defined. Such a candidate is the worst.
            values = np.nan_to_num([self.score.value(table) for table in noisy[fitted]], nan=-np.inf)
            return int(fitted[values.argmax()])
        sums = scores[fitted]
        of_runs = isinstance(self.session.mechanism(_SELECTION), BestOfRuns)
        chosen = self.session.release(_SELECTION, sums if of_runs else sums[None, :])
        return int(fitted[int(np.ravel(chosen)[0])])

    def refit(self, candidate: int, portion: Fraction) -> Fit:
        """Fit a candidate to all records."""
        (fit,) = self.fit([Task(candidate, portion, None, None)])
        if fit.model is None:
            raise NotEnoughDataError(f"the chosen candidate could not be fitted from its noisy statistics. {charge()}")
        return fit


def _fit_and_count(charged: bool, model: Any, X: Any, y: Any, groups: NDArray | None, test: Any, score: Any) -> Fit:
    """Fit on one part, and count gains, or rows in cells, on another. Other warnings are private and suppressed."""
    with silence(), np.errstate(all="ignore"), refusals(charged or None, "The budget was charged"):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", SchemaMismatchWarning)
            model = fitted_or_none(model, X, y, groups)
        counted: Any = 0
        if test is not None and score is not None:
            counted = score.cells(model, *test) if isinstance(score, Table) else score.gains(model, *test).sum()
    return Fit(model, counted, tuple(str(warning.message) for warning in heard))


def fitted_or_none(model: Any, X: Any, y: Any, groups: NDArray[np.intp] | None = None) -> Any:
    """Fit, and return the model, or None if its mechanisms released too little."""
    # This outcome was charged, and may decide which candidates are compared. If every error led to None, a record on
    # which a candidate fails would exclude that candidate with certainty. Therefore other errors end the search.
    try:
        return restore_steps(with_groups(model, groups).fit(X, y))
    except NotEnoughDataError:
        return None
    except CertificateError as error:
        failure: Exception = CertificateError(*error.args)
    except Exception as error:
        kind = type(error).__name__
        failure = RuntimeError(
            f"a fit of the search failed with {kind}, which the guarantee does not cover. {charge()}"
        )
    # It is raised outside the handler, because the original message may be about records.
    try:
        raise failure
    finally:
        # An error in its own traceback would keep the records in memory.
        del failure


def try_on_nothing(
    prices: Prices, portions: Iterable[Fraction], X: Any, targets: NDArray, members: NDArray[np.intp] | None = None
) -> None:
    """Fit each candidate to no records with the budgets of the search, to find errors before any charge."""
    # The public steps must accept the rows X. Only the type of `targets` is read, and of `members` only whether it is
    # None.
    nothing = take(X, np.arange(0))
    for portion in dict.fromkeys(portions):
        for position, candidate in enumerate(prices.candidates):
            budgets = prices.budgets(position, portion)
            model = candidate.prepared(budgets, [None] * len(budgets))
            with silence(), np.errstate(all="ignore"), suppress(NotEnoughDataError):
                with_groups(model, None if members is None else members[:0]).fit(nothing, targets[:0])
    for candidate in prices.candidates:
        check_rows(candidate.estimator, X)


@dataclass(frozen=True)
class Strategy(ABC):
    """A way to search. With `refit`, the chosen candidate is fitted to all records at the end."""

    n_candidates: int
    refit: bool

    name = ""

    @abstractmethod
    def sequence(self, prices: Prices) -> Sequence_:
        """Return the costs of all releases."""

    @abstractmethod
    def releases(self, prices: Prices) -> tuple[Release, ...]:
        """Return the releases of the search itself, at settled prices."""

    def fit_portions(self, prices: Prices) -> tuple[Fraction, ...]:
        """Return the portions of the budget for fits."""
        return tuple(portion for _, portion in self.portions())

    def fits(self) -> tuple[str, ...]:
        """Describe the fits, with one line for each kind."""
        (fraction, portion), (_, last) = self.portions()
        records = f"a fraction {fraction:.3g} of the records, which the selection does not use"
        lines = [f"{self.n_candidates} fits, one of each candidate, to {records}: share {float(portion):.3g} each"]
        if self.refit:
            lines.append(f"a last fit of the choice to all records: share {float(last):.3g}")
        return tuple(lines)

    #: Whether the number of fits is private. The time of a phase would disclose it.
    hides_fits: ClassVar[bool] = False

    def phases(self) -> Phases:
        """Return the phases in order, with public numbers of fits."""
        phases = [("fits", self.n_candidates), (_SELECTION, 0)]
        return [*phases, ("refit", 0)] if self.refit else phases

    @abstractmethod
    def run(self, context: SearchContext) -> tuple[int, Fit]:
        """Search, and return the position of the chosen candidate, and its fit."""

    @abstractmethod
    def portions(self) -> tuple[tuple[float, Fraction], tuple[float, Fraction]]:
        """Return the fraction of records and portion of the budget of a trained candidate, and of the final model."""

    def signal(self, whole: Budget) -> float:
        """Return the signal, in (0, 1], of a candidate and the final model, compared with one fit to all records."""
        # The noise of a fit is inversely proportional to the number of records and to the Gaussian-DP parameter, or to
        # epsilon. The comparison and the final model have equal weights in the mean.
        power = 1.0 if whole.delta == 0 else 0.5
        strengths = [
            fraction * (float(portion) ** power if whole.epsilon < math.inf else 1.0)
            for fraction, portion in self.portions()
        ]
        return math.sqrt(math.prod(strengths))


@dataclass(frozen=True)
class Single(Strategy):
    """A single candidate, without a choice."""

    name = "single"

    def sequence(self, prices: Prices) -> Sequence_:
        return prices.fit(0, Fraction(1))

    def releases(self, prices: Prices) -> tuple[Release, ...]:
        return ()

    def portions(self) -> tuple[tuple[float, Fraction], tuple[float, Fraction]]:
        return (1.0, Fraction(1)), (1.0, Fraction(1))

    def fits(self) -> tuple[str, ...]:
        return ("the one candidate is fitted to all records: share 1",)

    def phases(self) -> Phases:
        return [("fit", 0)]

    def run(self, context: SearchContext) -> tuple[int, Fit]:
        return 0, context.refit(0, Fraction(1))


@dataclass(frozen=True)
class Holdout(Strategy):
    """All candidates are trained on one part of the records and compared on the other part."""

    validation: float  # Probability that a record is used to compare, and not to train.

    name = "holdout"

    @property
    def _rest(self) -> Fraction:
        return 1 - REFIT_PORTION if self.refit else Fraction(1)

    @property
    def _training(self) -> Fraction:
        return self._rest / self.n_candidates

    def sequence(self, prices: Prices) -> Sequence_:
        trained = tuple(cost for m in range(self.n_candidates) for cost in prices.fit(m, self._training))
        last = prices.any_fit(REFIT_PORTION) if self.refit else ()
        return (Parts((trained, (prices.choice(self._rest)[1],))), *last)

    def releases(self, prices: Prices) -> tuple[Release, ...]:
        # Theorem 1 covers sums, and theorem 6 covers tables.
        theorem = Theorem("Model selection", 6 if prices.size else 1)
        return (Release(_SELECTION, prices.choice(self._rest)[0], float(self._rest), theorem),)

    def portions(self) -> tuple[tuple[float, Fraction], tuple[float, Fraction]]:
        trained = 1 - self.validation, self._training
        return trained, ((1.0, REFIT_PORTION) if self.refit else trained)

    def run(self, context: SearchContext) -> tuple[int, Fit]:
        training, validation = context.divide((1 - self.validation, self.validation))
        fits = context.fit(Task(m, self._training, training, validation) for m in range(self.n_candidates))
        best = context.select(fits)
        return best, context.refit(best, REFIT_PORTION) if self.refit else fits[best]


@dataclass(frozen=True)
class Repeat(Strategy):
    """The best of a random number of runs, each of a random candidate."""

    validation: float  # Probability that a record is used to compare, and not to train.
    mean: float  # Mean number of runs, whose law is logarithmic.

    name = "repeat"

    def fit_portions(self, prices: Prices) -> tuple[Fraction, ...]:
        return (self._portion(prices),)

    def _portion(self, prices: Prices) -> Fraction:
        return Fraction(1, 2) if prices.whole.delta == 0 else Fraction(1)

    def sequence(self, prices: Prices) -> Sequence_:
        portion = self._portion(prices)
        run = Parts((prices.any_fit(portion), (prices.noise(portion)[1],)))
        return (Repetition((run,), self.mean),)

    def releases(self, prices: Prices) -> tuple[Release, ...]:
        noise = prices.noise(self._portion(prices))[0]
        mechanism = BestOfRuns(noise, self.mean, 0.0)
        return (Release(_SELECTION, mechanism, 1.0, Theorem("Model selection", 2)),)

    def portions(self) -> tuple[tuple[float, Fraction], tuple[float, Fraction]]:
        one = 1 - self.validation, Fraction(1)
        return one, one

    def fits(self) -> tuple[str, ...]:
        number = f"a random number of fits of random candidates, {self.mean:.3g} in the mean"
        return (f"{number}, to a fraction {1 - self.validation:.3g} of the records",)

    hides_fits = True

    def phases(self) -> Phases:
        # The number of runs is random and must stay hidden. Therefore no step is reported.
        return [("runs", 0), (_SELECTION, 0)]

    def signal(self, whole: Budget) -> float:
        if whole.epsilon == math.inf:
            strength = 1.0
        elif whole.delta == 0:
            strength = 0.5
        else:
            strength = _gaussian_runs(whole, self.mean)
        # A candidate that is never drawn is not compared.
        return (1 - self.validation) * strength * math.sqrt(1 - missed(self.n_candidates, self.mean))

    def run(self, context: SearchContext) -> tuple[int, Fit]:
        runs = number_of_runs(self.mean, 0.0, context.source.stream("number of runs"))
        training, validation = context.divide((1 - self.validation, self.validation))
        equal = (1 / self.n_candidates,) * self.n_candidates
        drawn = draw_parts(equal, runs, context.source.stream("candidates of runs"))
        portion = self._portion(context.prices)
        fits = context.fit(Task(int(m), portion, training, validation) for m in drawn)
        best = context.select(fits)
        return int(drawn[best]), fits[best]


def missed(n_candidates: int, mean: float) -> float:
    """Return the probability that a given candidate is in no run."""
    log_gamma = math.log(runs_parameter(mean, 0.0))
    other = 1 - 1 / n_candidates
    return other if log_gamma == 0 else math.log1p(math.expm1(log_gamma) * other) / log_gamma


@lru_cache(maxsize=256)
def _gaussian_runs(whole: Budget, mean: float) -> float:
    """Return the Gaussian-DP parameter of the runs, as a part of that of the whole."""
    mu = gaussian_mu(*whole)

    def admitted(scale: float) -> bool:
        event = RepeatedSelectionEvent((GaussianEvent(scale * mu),), mean, 0.0)
        return renyi_epsilon((event,), whole.delta) <= whole.epsilon

    return largest_admitted(admitted, 10)


def make_strategy(parameters: Checked, prices: Prices) -> tuple[Strategy, Prices]:
    """Return the strategy of a search, or for "auto" the one with the most signal, and its settled prices."""
    name, refit, validation = parameters.strategy, parameters.refit, parameters.validation_fraction
    n_candidates = len(prices.candidates)
    if n_candidates == 1:
        strategies: list[Strategy] = [Single(1, True)]
    else:
        refits = (False, True) if refit == "auto" else (bool(refit),)
        strategies = [Holdout(n_candidates, again, validation) for again in refits]
        # A run is its own model.
        if not prices.size and (name == "repeat" or refit is not True):
            mean = _RUNS_A_CANDIDATE * n_candidates if parameters.mean_runs is None else parameters.mean_runs
            strategies.append(Repeat(n_candidates, False, validation, mean))
        strategies = [strategy for strategy in strategies if name in ("auto", strategy.name)]
        strategies.sort(key=lambda strategy: -strategy.signal(prices.whole))
    for strategy in strategies:
        settled = settle(prices, strategy.sequence)
        if settled is not None:
            return strategy, settled
    raise ValueError(
        f"strategy={name!r} cannot be proved to keep within (epsilon={prices.whole.epsilon:g}, "
        f"delta={prices.whole.delta:g}) for these estimators"
    )


#: Mean number of runs for each candidate, under "repeat".
_RUNS_A_CANDIDATE = 3.0

#: Portion of the budget for the last fit to all records.
REFIT_PORTION = Fraction(1, 2)

STRATEGIES = ("auto", "holdout", "repeat")
