"""Searches and private scores: everything that they release, as one.

The reading repeats a search on a data set with one record more: others keep their parts, and what was released comes
out again. What the record moves in each fit, in the scores and in the choice is exact. Noise is seen by asking the
planned mechanisms for much of it; of a choice, how often it takes the worse of two; of runs, how many there are. All
that is composed as the theorems of the user guide do. The part of the record and its run count as known, so that a
violation is one of the theorem's conditions.
"""

import contextlib
import itertools
import math
from dataclasses import dataclass, field, replace
from functools import partial
from unittest.mock import patch

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from skdp import DPGridSearchCV, DPRandomizedSearchCV
from skdp.accounting import GaussianEvent, RepeatedSelectionEvent, renyi_epsilon
from skdp.mechanisms import (
    BestOfRuns,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    GroupChoices,
    NoiseSource,
    NoNoise,
)
from skdp.model_selection import (
    _evaluation,
    _scoring,
    _search,
    _stateless,
    _strategies,
    private_cross_val_score,
    private_score,
)
from skdp.model_selection._search import PrivateSearch
from skdp.model_selection._strategies import SearchContext
from tests.auditing import clopper_pearson
from tests.model_selection.stubs import MarkedCount
from tests.trust.groups import MOST, all_rows_count, one_row_more
from tests.trust.measured import GAUSSIAN, HOPELESS, epsilon_of, loss_of
from tests.trust.subjects import (
    COMMON_MUTANTS,
    ERROR,
    FIRST_SEED,
    PURE,
    Reading,
    Subject,
    measure,
    no_clipping,
    recorded_epsilon,
    replaced,
    run,
)
from tests.trust.transcripts import transcript

NOISES = 20_000
CHOICES = 1_000
RUNS = 3_000

#: Searches that are repeated. The record is in each part in some of them.
REPEATED = 6


@contextlib.contextmanager
def quickly():
    """Without what takes the time of a search with quick candidates, and does nothing to what it releases."""
    plan, known = PrivateSearch._planned, {}

    def once(search, whole, candidates, score):
        # It depends on public parameters only.
        key = str([candidate.parameters for candidate in candidates])
        if key not in known:
            known[key] = plan(search, whole, candidates, score)
        return known[key]

    with contextlib.ExitStack() as stack:
        for module in (_strategies, _scoring, _stateless):
            stack.enter_context(patch.object(module, "silence", contextlib.nullcontext))
        stack.enter_context(patch.object(PrivateSearch, "_planned", once))
        yield


@contextlib.contextmanager
def parts_kept():
    """Without the first record, others draw the parts that they have with it."""
    stream = NoiseSource.stream

    def later(source, label):
        words = stream(source, label)
        if label == "membership":
            words.words(1)
        return words

    with patch.object(NoiseSource, "stream", later):
        yield


# --- what a choice gives away ---------------------------------------------------------------------------------------


def law(scores, rate, bounded_range):
    """Probabilities of the choices of the exponential mechanism, or of permute-and-flip."""
    heads = np.exp(rate * (scores - scores.max()))
    if bounded_range:
        return heads / heads.sum()
    found = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for position in order:
            found[position] += left * heads[position]
            left *= 1 - heads[position]
    return found


def choice_rates(mechanism, stream, error, n):
    """Return an estimate, and a lower limit, of how fast the worse of two is less likely, from n choices."""
    rates = []
    # The nearer, if the worse one hardly ever comes.
    gaps = mechanism.scale / np.array([1, 4, 16])
    for gap in gaps:
        worse = int((mechanism.release(np.tile([0.0, gap], (n, 1)), stream) == 0).sum())
        shares = np.array([max(worse, 1) / n, clopper_pearson(worse, n, error / len(gaps))[1]])
        rates.append((np.log(1 / shares - 1) if mechanism.bounded_range else -np.log(2 * shares)) / gap)
    return rates[0][0], max(limit for _, limit in rates)


@dataclass
class Seen:
    """Mechanisms, each asked for noise once."""

    delta: float
    subject: Subject
    error: float = ERROR / 10
    noises: dict = field(default_factory=dict)

    def stream(self, mechanism):
        return NoiseSource(FIRST_SEED).stream(f"audit of {mechanism}")

    def losses(self, mechanism, move):
        """Return estimate and lower limit for added noise."""
        if not np.any(move):
            return 0.0, 0.0
        if isinstance(mechanism, NoNoise):
            return HOPELESS, HOPELESS
        if mechanism not in self.noises:
            zeros = np.zeros(self.subject.taken(NOISES))
            self.noises[mechanism] = mechanism.release(zeros, self.stream(mechanism))
        return loss_of(mechanism, self.noises[mechanism], move, self.error)

    def laws(self, mechanism, scores, other):
        """Return, for estimate and lower limit, probabilities of the choices by scores and by others."""
        if mechanism not in self.noises:
            self.noises[mechanism] = choice_rates(
                mechanism, self.stream(mechanism), self.error, self.subject.taken(CHOICES)
            )
        return [[law(s, r, mechanism.bounded_range) for s in (scores, other)] for r in self.noises[mechanism]]


def composed(gaussian, pure, pairs, delta):
    """Return the epsilon of Gaussian releases, pure ones, and choices given by two laws each."""
    gaussian = math.hypot(*gaussian)
    if delta == 0 or not gaussian or gaussian > 50:
        # Either data set may be the likelier one.
        ratios = [np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300)) for p, q in pairs]
        choices = max(sum(float(np.max(sign * ratio)) for ratio in ratios) for sign in (1, -1))
        return epsilon_of(gaussian, [*pure, choices], delta) if not gaussian or gaussian > 50 else HOPELESS
    if not pairs:
        return epsilon_of(gaussian, pure, delta)
    assert not pure
    found = []
    for order in (1, -1):
        # Rounded to the side of less loss: it is to be a lower limit.
        rounded = {"pessimistic_estimate": False, "value_discretization_interval": 1e-3}
        whole = pld.from_gaussian_mechanism(1 / gaussian, use_connect_dots=False, **rounded)
        for pair in pairs:
            masses = [dict(enumerate(np.log(np.maximum(side, 1e-300)))) for side in pair[::order]]
            whole = whole.compose(pld.from_two_probability_mass_functions(*masses, **rounded))
        found.append(whole.get_epsilon_for_delta(delta))
    return max(found)


def all_at_once(found, other, seen):
    """Return estimate and lower limit where releases follow each other."""
    results = []
    for which in range(2):
        gaussian, pure, pairs = [0.0], [], []
        for place, release in found.items():
            mechanism = release.mechanism
            if isinstance(mechanism, GroupChoices):
                scores = [np.ravel(each[place].value) for each in (found, other)]
                if np.ptp(scores[1] - scores[0]):
                    pairs.append(seen.laws(mechanism, *scores)[which])
                continue
            loss = seen.losses(mechanism, other[place].value - release.value)[which]
            if isinstance(mechanism, GAUSSIAN):
                gaussian.append(loss)
            elif loss:
                pure.append(loss)
        results.append(composed(gaussian, pure, pairs, seen.delta))
    return results


def is_repeated(found):
    """Whether noise occurs twice, so that its difference tells all. Whole numbers of it do so by chance."""
    noises = [np.ravel(each.out - each.value) for each in found.values() if isinstance(each.mechanism, GAUSSIAN)]
    return any(
        a.shape == b.shape and np.allclose(a, b, rtol=0.0, atol=1e-12) for a, b in itertools.combinations(noises, 2)
    )


def best_of_runs(found, other, seen):
    """Return estimate and lower limit where one of the runs is released, and nobody knows how many there were."""
    (place,) = [place for place, release in found.items() if isinstance(release.mechanism, BestOfRuns)]
    mechanism = found[place].mechanism
    score_moves = other[place].value - found[place].value
    fits = [p for p in found if p != place][-len(score_moves) :]
    gaussian = isinstance(mechanism.noise, GAUSSIAN)
    runs = []
    for fit, moved in zip(fits, score_moves, strict=True):
        assert isinstance(found[fit].mechanism, GAUSSIAN) == gaussian
        steps = [(found[fit].mechanism, other[fit].value - found[fit].value), (mechanism.noise, moved)]
        losses = np.array([seen.losses(*step) for step in steps])
        runs.append(np.hypot(*losses) if gaussian else losses.sum(axis=0))
    estimate, limit = np.max(runs, axis=0)
    by_theorem = [repeated(mechanism, worst, gaussian, seen.delta) for worst in (estimate, limit)]
    # The theorem takes for granted that the number of runs is random.
    return by_theorem[0], max(by_theorem[1], all_runs_alike(mechanism, limit, gaussian, seen))


def repeated(mechanism, loss, gaussian, delta):
    """Return the epsilon of the best of runs, from what one run gives away."""
    if loss == 0 or loss > 50:
        return HOPELESS if loss else 0.0
    if not gaussian:
        return (2 + mechanism.shape) * loss
    return renyi_epsilon((RepeatedSelectionEvent((GaussianEvent(loss),), mechanism.mean, mechanism.shape),), delta)


def all_runs_alike(mechanism, loss, gaussian, seen):
    """Return a lower limit from the event that not one run is of a kind that the record makes more likely."""
    if not loss:
        return 0.0
    n = seen.subject.taken(RUNS)
    if "runs" not in seen.noises:
        stream = seen.stream("the number of runs")
        draws = [_strategies.number_of_runs(mechanism.mean, mechanism.shape, stream) for _ in range(n)]
        seen.noises["runs"] = np.array(draws)
    pilot, counts = np.split(seen.noises["runs"], [n // 3])
    cdf = (stats.norm if gaussian else stats.laplace).cdf

    def limit(counts, place, deviations):
        """By the central limit theorem; the kind is all that is below a place."""
        more, less = (cdf(place + shift) ** counts for shift in (loss, 0.0))
        off = [deviations * powers.std() / math.sqrt(len(powers)) for powers in (more, less)]
        return math.log(max(more.mean() - off[0] - seen.delta, 1e-300)) - math.log(max(less.mean() + off[1], 1e-300))

    best = max(np.linspace(-4, 8, 49), key=lambda place: limit(pilot, place, 3.0))
    return limit(counts, best, stats.norm.isf(seen.error / 2))


def searched(subject, epsilon, delta):
    """Return the reading of all that a search releases."""
    estimator = subject.make(epsilon, delta)
    without, larger = subject.pair(estimator)
    # The record comes first, so that others are not where they were.
    larger = tuple(np.roll(part, 1, axis=0) for part in larger)
    seen = Seen(delta, subject)
    estimates, limits = [], []
    with quickly():
        recorded = recorded_epsilon(estimator, without, delta)
        for k in range(subject.taken(REPEATED, least=1)):
            estimator.set_params(random_state=FIRST_SEED + k)
            with parts_kept():
                found = transcript(estimator, without)
            other = transcript(estimator, larger, found)
            assert other.keys() == found.keys()
            runs = any(isinstance(release.mechanism, BestOfRuns) for release in found.values())
            estimate, limit = (best_of_runs if runs else all_at_once)(found, other, seen)
            estimates.append(estimate)
            limits.append(HOPELESS if is_repeated(found) else limit)
    return Reading(max(limits), max(estimates), recorded)


def outcomes(subject, epsilon, delta):
    """Return what runs of whole searches tell, by whatever can be seen of them."""
    with quickly():
        return run(replace(subject, runs={(epsilon, delta): 120}), epsilon, delta)


# --- mutants --------------------------------------------------------------------------------------------------------


def spent(factor):
    """Fits spend so many times of what is booked; a plan that books too much is refused."""

    def make(fit):
        def more(self, tasks):
            tasks = [t if t.train is None else replace(t, portion=t.portion * factor) for t in tasks]
            return fit(self, tasks)

        return more

    return replaced(SearchContext, "fit", make)


@contextlib.contextmanager
def half_of_all_noise():
    def half(release):
        return lambda self, value, stream: value + (release(self, value, stream) - value) / 2

    with (
        replaced(DiscreteLaplaceMechanism, "release", half),
        replaced(GaussianMechanism, "release", half),
        choices_at(2),
    ):
        yield


def choices_at(factor):
    """Choices that are so many times as sure of themselves."""

    def make(release):
        def eager(self, value, stream):
            return release(
                GroupChoices(factor * self.epsilon, self.sensitivity, self.monotone, self.bounded_range), value, stream
            )

        return eager

    return replaced(GroupChoices, "release", make)


def parts_by_position(module=_strategies):
    return replaced(module, "draw_parts", lambda _: lambda probabilities, n, stream: np.arange(n) % len(probabilities))


def one_part():
    """Candidates are compared on the records that they are trained on."""
    return replaced(
        SearchContext, "divide", lambda _: lambda self, probabilities: [np.arange(len(self.y)) for _ in probabilities]
    )


def one_seed():
    """For the noise of all fits."""
    return replaced(SearchContext, "_seed", lambda _: lambda self: 1)


def half_the_sensitivity():
    """Of scores."""
    return replaced(_search, "Prices", lambda kind: lambda some, whole, most, size: kind(some, whole, most / 2, size))


def half_of_the_table():
    def make(mechanism):
        return lambda whole, share, sensitivity, size: mechanism(whole, share, sensitivity / 2, size)

    return replaced(_evaluation, "_table_mechanism", make)


def fixed_number():
    return replaced(_strategies, "number_of_runs", lambda _: lambda mean, shape, stream: round(mean))


def score_told():
    """The exact score of the chosen candidate is kept."""

    def make(fit):
        def telling(self, X, y):
            fit(self, X, y)
            self.told_score_ = float(np.mean(self.predict(X) == y))
            return self

        return telling

    return replaced(PrivateSearch, "fit", make)


# --- subjects -------------------------------------------------------------------------------------------------------


def records(search, every=2):
    """Some are marked. The further record is marked as well, and has a label that is rare."""
    X = (np.arange(6 * every + 1) % every == 0).astype(float)[:, None]
    y = np.ones(len(X), dtype=int)
    y[-1] = 0
    return (X[:-1], y[:-1]), (X, y)


def grid(strategy, epsilon, delta, n_candidates=2, **parameters):
    return DPGridSearchCV(
        MarkedCount(),
        {"label": [1, 0, 1][:n_candidates]},
        epsilon=epsilon,
        delta=delta,
        strategy=strategy,
        validation_fraction=0.5,
        **parameters,
    )


def drawn(strategy, epsilon, delta, **parameters):
    return DPRandomizedSearchCV(
        MarkedCount(),
        {"label": [1, 0]},
        n_iter=2,
        epsilon=epsilon,
        delta=delta,
        strategy=strategy,
        validation_fraction=0.5,
        **parameters,
    )


class Validated(BaseEstimator):
    """Cross-validates where others fit."""

    def __init__(self, cv=3, *, epsilon=1.0, delta=0.0, accountant=None, random_state=None):
        self.cv = cv
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        private_cross_val_score(MarkedCount(1), X, y, **self.get_params())


class Judged(BaseEstimator):
    """Judges a fitted model where others fit."""

    def __init__(
        self, model, metric, *, baseline=None, bounds_y=None, epsilon=1.0, delta=0.0, accountant=None,
        random_state=None,
    ):  # fmt: skip
        self.model = model
        self.metric = metric
        self.baseline = baseline
        self.bounds_y = bounds_y
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        parameters = self.get_params(deep=False)
        private_score(parameters.pop("model"), X, y, **parameters)


class JudgedByGroup(Judged):
    """The same, with groups in the first column."""

    def __init__(self, model, metric, *, rows_per_group=MOST, bounds_y=None, epsilon=1.0, delta=0.0, accountant=None,
                 random_state=None):  # fmt: skip
        super().__init__(
            model, metric, bounds_y=bounds_y, epsilon=epsilon, delta=delta, accountant=accountant,
            random_state=random_state,
        )  # fmt: skip
        self.rows_per_group = rows_per_group

    def fit(self, X, y):
        parameters = self.get_params(deep=False)
        private_score(parameters.pop("model"), X[:, 1:], y, groups=X[:, 0], **parameters)


class Echo(ClassifierMixin, BaseEstimator):
    """Its feature is the label, or the probability of the second one."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


class EchoedNumber(RegressorMixin, BaseEstimator):
    def predict(self, X):
        return X[:, 0]


def judged(model, metric, epsilon, delta, **parameters):
    return Judged(model, metric, epsilon=epsilon, delta=delta, **parameters)


def judged_records(subject, last=0):
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    y = np.array([0, 1, 1, last])
    return (X[:-1], y[:-1]), (X, y)


def judged_groups(subject):
    """A group with more rows than count, and others with few."""
    X = np.column_stack([np.repeat([0, 1, 9], [1, MOST, 5 * MOST]), np.ones(1 + 6 * MOST)])
    y = np.ones(len(X), dtype=int)
    before = 1 + MOST
    return (X[:before], y[:before]), (X, y)


def judged_by_group(model, metric, epsilon, delta, **parameters):
    return JudgedByGroup(model, metric, epsilon=epsilon, delta=delta, **parameters)


BY_GROUP = {
    "all rows count": all_rows_count,
    "one row more counts": one_row_more,
    "noise for one row": lambda: replaced(_evaluation, "group_sensitivity", lambda original: lambda s, rows: s),
}


def judge(subject, epsilon, delta):
    with quickly():
        return measure(subject, epsilon, delta)


search = partial(Subject, pair=records, reading=searched, floor=0.9, runs={})
score = partial(Subject, pair=judged_records, reading=judge, floor=0.8, runs={})

everywhere = {
    "half the noise": half_of_all_noise,
    "parts by position": parts_by_position,
}
compared = {
    "choice not paid": partial(choices_at, 20),
    "half the sensitivity of the score": half_the_sensitivity,
    "compared on the records that train": one_part,
}

# What the others show at more of them.
FEW = ((1.0, 0.0), (1.0, 1e-5))

SLACK = "beside Gaussian noise, a choice is charged for more than twice of what it gives away"
WHOLE = "whole numbers of noise are equal by chance as well"

SUBJECTS = [
    search(
        "DPGridSearchCV, holdout",
        partial(grid, "holdout", refit=False),
        mutants={
            **everywhere,
            **compared,
            "budget not divided among candidates": partial(spent, 2),
        },
        survives={("half the sensitivity of the score", (1.0, 1e-5)): SLACK},
    ),
    search(
        "DPGridSearchCV, holdout and refit",
        partial(grid, "holdout", refit=True),
        claims=FEW,
        mutants={"half the noise": half_of_all_noise, "refit not paid": partial(spent, 2)},
    ),
    search(
        "DPGridSearchCV, outcomes",
        partial(grid, "holdout", refit=False),
        claims=((1.0, 0.0),),
        reading=outcomes,
        floor=0.0,
        mutants={"score told": score_told},
        survives=dict.fromkeys(COMMON_MUTANTS, "few runs, which see what leaves a search past its releases"),
    ),
    search(
        "DPGridSearchCV, log loss",
        partial(grid, "holdout", refit=False, scoring="neg_log_loss"),
        claims=FEW,
        mutants={"half the noise": half_of_all_noise, "no clip": partial(no_clipping, _scoring)},
    ),
    search(
        "DPGridSearchCV, refit",
        partial(grid, "holdout", n_candidates=3, refit=True),
        pair=partial(records, every=4),
        mutants={**everywhere, "refit not paid": partial(spent, 2)},
    ),
    search(
        "DPGridSearchCV, repeat",
        partial(grid, "repeat", mean_runs=6),
        mutants={
            **everywhere,
            "number of runs fixed": fixed_number,
            "half the sensitivity of the score": half_the_sensitivity,
            "one run paid": partial(spent, 2),
        },
    ),
    search(
        "DPGridSearchCV, single",
        partial(grid, "auto", n_candidates=1),
        mutants={"half the noise": half_of_all_noise},
    ),
    search(
        "DPGridSearchCV, auto",
        partial(grid, "auto", n_candidates=3),
        mutants={"half the noise": half_of_all_noise},
    ),
    search(
        "DPRandomizedSearchCV",
        partial(drawn, "holdout", refit=False),
        pair=partial(records, every=3),
        mutants={
            **everywhere,
            **compared,
            # Every second record is marked, so that the parts exchange all marked records.
            "parts by position": (parts_by_position, {"pair": records}),
            "compared on the records that train": (one_part, {"pair": records}),
        },
        survives={("half the sensitivity of the score", (1.0, 1e-5)): SLACK},
    ),
    search(
        "private_cross_val_score",
        lambda epsilon, delta: Validated(epsilon=epsilon, delta=delta),
        pair=partial(records, every=3),
        mutants={
            "half the noise": half_of_all_noise,
            "half the sensitivity of the score": half_of_the_table,
            "parts by position": parts_by_position,
            "budget not divided among folds": partial(spent, 2),
            "folds share their noise": one_seed,
        },
        survives={("folds share their noise", claim): WHOLE for claim in PURE},
    ),
    score("private_score, accuracy", partial(judged, Echo(), "accuracy"), fits=800, mutants={}),
    score(
        "private_score, confusion matrix",
        partial(judged, Echo(), "confusion_matrix"),
        mutants={"half the sensitivity": half_of_the_table},
    ),
    score(
        "private_score, accuracy, by group",
        partial(judged_by_group, Echo(), "accuracy"),
        pair=judged_groups,
        fits=800,
        mutants=BY_GROUP,
    ),
    score(
        "private_score, confusion matrix, by group",
        partial(judged_by_group, Echo(), "confusion_matrix"),
        pair=judged_groups,
        fits=400,
        mutants=BY_GROUP,
    ),
    score(
        "private_score, accuracy above a baseline",
        partial(judged, Echo(), "accuracy", baseline=0),
        fits=800,
        mutants={"half the sensitivity": half_of_the_table},
    ),
    score("private_score, histogram", partial(judged, Echo(), "histogram"), mutants={}),
    score(
        "private_score, log loss",
        partial(judged, Echo(), "neg_log_loss"),
        mutants={"half the sensitivity": half_of_the_table, "no clip": partial(no_clipping, _scoring)},
    ),
    score(
        "private_score, absolute error",
        partial(judged, EchoedNumber(), "neg_mean_absolute_error", bounds_y=(0.0, 1.0)),
        mutants={
            "half the sensitivity": half_of_the_table,
            "no clip": (partial(no_clipping, _scoring), {"pair": partial(judged_records, last=9)}),
        },
    ),
]
