"""Preprocessing: moments by noise, quantiles and bounds by choices, and sets of labels."""

import math
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator

from skdp import DPQuantileBinner, DPStandardScaler, stats
from skdp.mechanisms import StabilityCounts, discrete
from skdp.preprocessing import _quantiles, _scaling, private_bounds
from skdp.release import counts as _counts
from tests.trust.choices import choices, half_noise, less_noise
from tests.trust.groups import MOST, all_rows_count
from tests.trust.subjects import ERROR, FIRST_SEED, PURE, RUNS_AT_3, Reading, Subject, recorded_epsilon, replaced

# --- means and variances --------------------------------------------------------------------------------------------


def scaler(epsilon, delta):
    return DPStandardScaler(epsilon=epsilon, delta=delta, bounds=(-1, 1))


def corner(model, n_features=2, size=1.0):
    """Nobody, and a record with all values at a bound."""
    X = np.full((1, n_features), size)
    return (X[:0],), (X,)


def unclipped(original):
    return lambda values, centre, half, largest=1.0: (values - centre) * largest / half


def with_arguments(change):
    """Make a function that maps the arguments of another one first."""
    return lambda original: lambda *args: original(*change(*args))


def class_sums(change):
    """Both sensitivities of counts and moments, of other numbers of them."""

    def breakage():
        broken = with_arguments(change)
        return patch.multiple(
            _counts,
            class_sums_l1=broken(_counts.class_sums_l1),
            class_sums_l2=broken(_counts.class_sums_l2),
        )

    return breakage


one_column = class_sums(lambda n_counts, n_moments, weight: (n_counts, 1, weight))
number_is_public = class_sums(lambda n_counts, n_moments, weight: (0, n_moments, weight))
first_moments_only = class_sums(lambda n_counts, n_moments, weight: (n_counts, n_moments, 0.0))

SCALER = Subject(
    "DPStandardScaler",
    scaler,
    corner,
    fits=300,
    runs={},
    mutants={
        "no clip": (lambda: replaced(_scaling, "scaled", unclipped), {"pair": partial(corner, size=3.0)}),
        "noise for one column": one_column,
        "number of records is public": number_is_public,
        "no noise for squares": first_moments_only,
    },
)

# --- quantiles ------------------------------------------------------------------------------------------------------


class Function(BaseEstimator):
    """A function, as an estimator."""

    def __init__(self, epsilon=1.0, delta=0.0, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state


class Bounds(Function):
    """Bounds of columns."""

    def fit(self, X):
        self.values_ = private_bounds(X, exponents=(0, 2), **self.get_params())
        return self


class BoundsByGroup(Bounds):
    """The same, with groups in the first column."""

    def __init__(self, epsilon=1.0, delta=0.0, rows_per_group=3, accountant=None, random_state=None):
        super().__init__(epsilon, delta, accountant, random_state)
        self.rows_per_group = rows_per_group

    def fit(self, X):
        self.values_ = private_bounds(X[:, 1:], exponents=(0, 2), groups=X[:, 0], **self.get_params())
        return self


class Labels(Function):
    """Labels of a private list."""

    def fit(self, y):
        self.classes_ = np.array(stats.value_counts(y, **self.get_params()).names)
        return self


def binner(epsilon, delta, n_bins=4, scale="linear"):
    return DPQuantileBinner(n_bins, epsilon=epsilon, delta=delta, bounds=(0, 1), grid_size=8, scale=scale)


def medians(model, n_columns):
    """A record that moves the median as much as it can: without it, the lower side has one more.

    Edges are between the two sides, or they are not: hardly ever, or with a positive delta now and then.
    """
    n, low, high = (math.ceil(20 * n_columns / model.epsilon), 0.05, 0.95) if model.delta == 0 else (1, 0.05, 0.8)
    x = np.concatenate([np.full(n + 1, low), np.full(n + 1, high)])
    X = np.tile(x[:, None], n_columns)
    return (X[:-1],), (X,)


def evenly(model, n_columns):
    """Records that are spread evenly, and so few that cuts are."""
    plan = planned(model, n_columns)
    n = math.ceil(12 / plan.releases[0].mechanism.epsilon)
    return (np.tile((np.arange(n)[:, None] + 0.5) / n, n_columns),)


def two_places(model):
    """Half of the records in the first cell, and half in the last one, without one of them or with it."""
    n = math.ceil(2 / model.epsilon)
    X = np.repeat([0.1, 0.9], n)[:, None]
    return (X[:-1],), (X,)


def far_out_by_group(model, n_columns, size):
    """The rows of a group are above all others, which are by themselves."""
    n = math.ceil(60 * size * n_columns / model.epsilon)
    x = np.append(np.full(99 + n, 0.5), np.full(size, 3.0))
    of_groups = np.minimum(np.arange(len(x)), len(x) - size)
    X = np.column_stack([of_groups, np.tile(x[:, None], n_columns)])
    return (X[:-size],), (X,)


def one_a_group(model, n_columns):
    (X,) = evenly(model, n_columns)
    return (np.column_stack([np.arange(len(X)), X]),)


def for_one_row(original):
    """As if one row of a group counted."""
    return lambda *args: original(*args[:-1], 1)


def planned(model, n_columns):
    """Return the plan, of functions also."""
    if hasattr(model, "privacy_plan"):
        return model.privacy_plan(n_features=n_columns)
    return _quantiles.quantile_plan("", model.epsilon, model.delta, (100, 9900), 10_000, n_columns)


def other_cuts(change):
    """A plan for other numbers of quantiles or columns; what is recorded stays."""

    def broken(original):
        def mechanism(epsilon, delta, share, levels, whole, n_columns, weights=(), rows=1):
            made, event = original(epsilon, delta, share, levels, whole, n_columns, weights, rows)
            n_levels, n_columns = change(len(levels), n_columns)
            cut = original(epsilon, delta, share, tuple(range(1, n_levels + 1)), whole, n_columns)[0].epsilon
            return replace(made, epsilon=cut), event

        return mechanism

    return lambda: replaced(_quantiles, "quantile_mechanism", broken)


CUTS = {
    "half the noise": half_noise,
    "one column": other_cuts(lambda n_levels, n_columns: (n_levels, 1)),
    "one cut": other_cuts(lambda n_levels, n_columns: (1, n_columns)),
    "half of the sensitivity": lambda: replaced(_quantiles, "quantile_mechanism", half_of_a_cut),
}


def half_of_a_cut(original):
    """As if a record moved the difference of both sides by one, and not by two."""

    def mechanism(*args):
        made, event = original(*args)
        return replace(made, epsilon=2 * made.epsilon), event

    return mechanism


def quantiles(name, make, n_columns=3, **changes):
    parameters = {
        "pair": partial(medians, n_columns=n_columns),
        "reading": partial(
            choices, telling=partial(evenly, n_columns=n_columns), pick=np.argmin, most=3, copies=n_columns
        ),
        # With a positive delta: for three columns, Gaussian composition allows for more than choices give away.
        "floor": 0.7,
        "fits": 60,
        "runs": {},
        "mutants": CUTS,
        "survives": {("one cut", (1.0, 1e-5)): "sqrt(2) of it, of which the pair shows three quarters"},
    }
    return Subject(name, make, **(parameters | changes))


QUANTILES = [
    # A record is spread over its cell, so that no pair moves all scores by as much as is allowed for.
    quantiles("DPQuantileBinner", binner, floor=0.6),
    quantiles(
        "DPQuantileBinner-median",
        partial(binner, n_bins=2),
        n_columns=1,
        claims=PURE,
        pair=two_places,
        # The edge is within one of the two cells that hold records, and not between these cells.
        statistic=lambda model: abs(model.bin_edges_[0, 1] - 0.5) > 0.375,
        floor=0.65,
        runs={(3.0, 0.0): 1200},
        run_floor={(3.0, 0.0): 0.1},
        mutants={"half the noise": half_noise},
        survives={},
    ),
    quantiles(
        "DPQuantileBinner-all scales",
        # With cells at all orders of magnitude, over which records are spread.
        partial(binner, scale="auto"),
        floor=0.5,
        survives={
            ("one cut", (1.0, 1e-5)): "sqrt(2) of it, of which the pair shows six tenths",
            ("one column", (1.0, 1e-5)): "sqrt(3) of it, of which the pair shows six tenths",
        },
    ),
]


# --- bounds ---------------------------------------------------------------------------------------------------------


def far_out(model, n_columns):
    """One record above all others, which are so many that it makes room for one of them below the upper bound."""
    x = np.append(np.full(99 + math.ceil(60 * n_columns / model.epsilon), 0.5), 3.0)
    X = np.tile(x[:, None], n_columns)
    return (X[:-1],), (X,)


# --- labels ---------------------------------------------------------------------------------------------------------


def one_label(model):
    """A label around the threshold, one record more or less; another one is there in any case."""
    threshold = StabilityCounts(model.epsilon, model.delta).threshold + 1
    y = np.array(["b"] * (3 * threshold) + ["a"] * threshold)
    return (y[:-1],), (y,)


def first_record(model):
    """A label that nobody else has."""
    return (np.array(["b"] * 1000),), (np.array(["b"] * 1000 + ["a"]),)


def told(counts, threshold, scale):
    """Return the probabilities that labels are released, by truncated Laplace noise on the integers."""
    noise = np.arange(-threshold, threshold + 1)
    weights = np.exp(-np.abs(noise) / scale)
    return np.array([weights[noise > threshold - count].sum() for count in counts]) / weights.sum()


def labels_told(subject, epsilon, delta):
    """Return a reading of which labels are released.

    How wide the noise is follows from which labels are released that occur about as often as the threshold says; what
    one record changes, from that and from the threshold.
    """
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    recorded = recorded_epsilon(model, pair[0], delta)
    mechanism = StabilityCounts(epsilon, delta)
    k, stated = mechanism.threshold, mechanism.scale
    counts = np.append(np.rint(k + np.linspace(-3, 3, 81) * stated).astype(int).clip(1, 2 * k), 4 * k)
    names = np.array([f"{i:03d}" for i in range(len(counts))])
    y = np.repeat(names, counts)
    hits = np.zeros(len(counts))
    n_fits = subject.taken(subject.fits)
    for seed in range(FIRST_SEED, FIRST_SEED + n_fits):
        hits += np.isin(names, model.set_params(random_state=seed).fit(y).classes_)

    def log_likelihood(width):
        p = told(counts, k, width * stated).clip(1e-300, 1.0)
        return float(hits @ np.log(p) + (n_fits - hits) @ np.log((1 - p).clip(1e-300)))

    both = [(rows[0] == "a").sum() for rows in pair]

    def given_away(width):
        p = told(both, k, width * stated)
        of_told = (p[1] - delta) / p[0] if p[0] > 0 else (np.inf if p[1] > delta else 0.0)
        return min(1e6, math.log(max(1.0, of_told, (1 - p[0] - delta) / (1 - p[1]))))

    best, possible = widths(log_likelihood, ERROR)
    return Reading(min(map(given_away, possible)), given_away(best), recorded)


def widths(log_likelihood, error):
    """Return an estimate of a factor on the width of the noise, and those that a mean of likelihood ratios allows."""
    tried = np.geomspace(0.3, 2.0, 60)
    values = np.array([log_likelihood(width) for width in tried])
    least = special.logsumexp(values) - math.log(len(tried)) - math.log(1 / error)
    # And what is next to them.
    allowed = np.convolve(values >= least, np.ones(3), mode="same") > 0
    return tried[values.argmax()], tried[allowed]


def narrower():
    """The noise that is drawn is half as wide as stated."""

    def half(original):
        return lambda scale, size, stream: original(scale / 2, size, stream)

    return replaced(discrete, "discrete_laplace", half)


def delta_forgotten(original):
    """As if the largest noise might have a thousand times the probability."""
    return property(lambda self: original.fget(replace(self, delta=1000 * self.delta)))


LABELS = [
    Subject(
        "value_counts-private labels",
        Labels,
        one_label,
        claims=((0.1, 1e-5), (1.0, 1e-5), (3.0, 1e-5)),
        reading=labels_told,
        fits=40,
        statistic=lambda model: float("a" in model.classes_),
        runs={(3.0, 1e-5): RUNS_AT_3},
        run_floor={(3.0, 1e-5): 0.3},
        mutants={
            "half the noise": narrower,
            "threshold too low": (
                lambda: replaced(StabilityCounts, "threshold", delta_forgotten),
                {"pair": first_record},
            ),
        },
    ),
]

SUBJECTS = [
    SCALER,
    *QUANTILES,
    quantiles(
        "private_bounds",
        lambda epsilon, delta: Bounds(epsilon, delta),
        pair=partial(far_out, n_columns=3),
        # It moves one of a column's two cuts: nothing lies at both ends. Positive deltas are as for DPQuantileBinner.
        claims=PURE,
        floor=0.45,
        mutants={
            "half the noise": half_noise,
            "a fifth of the noise": partial(less_noise, 0.2),
            "one column": CUTS["one column"],
        },
        survives={"half the noise": "the pair shows half of the claim"},
    ),
    quantiles(
        "private_bounds-by group",
        lambda epsilon, delta: BoundsByGroup(epsilon, delta, MOST),
        claims=((0.1, 0.0), (1.0, 0.0)),
        pair=partial(far_out_by_group, n_columns=3, size=MOST),
        reading=partial(choices, telling=partial(one_a_group, n_columns=3), pick=np.argmin, most=3, copies=3),
        floor=0.45,
        mutants={
            "half the noise": half_noise,
            "a fifth of the noise": partial(less_noise, 0.2),
            "all rows count": (all_rows_count, {"pair": partial(far_out_by_group, n_columns=3, size=5 * MOST)}),
            "noise for one row": lambda: replaced(_quantiles, "quantile_mechanism", for_one_row),
        },
        survives={"half the noise": "the pair shows half of the claim"},
    ),
    *LABELS,
]
