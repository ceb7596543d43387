"""Counts and moments, released at once: naive Bayes, and histograms."""

import contextlib
from functools import partial
from unittest.mock import patch

import numpy as np

from skdp import DPNaiveBayes, HistogramClassifier, HistogramRegressor, NoisyHistogram
from skdp.naive_bayes import _naive_bayes
from skdp.schema.columns import Encoder
from skdp.synthetic import _base
from skdp.synthetic._base import Axes
from tests.trust.preprocessing import class_sums
from tests.trust.subjects import RUNS_AT_3, Subject, replaced

# --- naive Bayes ----------------------------------------------------------------------------------------------------


def bayes(epsilon, delta, **parameters):
    """Three classes, and a column of categories before those of numbers."""
    parameters = {"categorical_features": [0], "n_categories": 3, "bounds": (-1, 1)} | parameters
    return DPNaiveBayes(epsilon=epsilon, delta=delta, classes=[0, 1, 2], **parameters)


def at_bounds(model, n_columns=3, size=1.0):
    """Two records, and one more, with all numbers at a bound."""
    X = np.full((3, n_columns), size)
    X[:, 0] = [0, 1, 1]
    y = np.array([0, 1, 1])
    return (X[:-1], y[:-1]), (X, y)


def one_number(model):
    X = np.ones((1, 1))
    return (X[:0], np.zeros(0, dtype=int)), (X, np.ones(1, dtype=int))


def unclipped(original):
    def scaled(encoder, X, largest=1.0):
        return X[:, encoder.columns.numeric] * largest

    return scaled


one_table = class_sums(lambda n_counts, n_moments, weight: (1, n_moments, weight))
one_moment = class_sums(lambda n_counts, n_moments, weight: (n_counts, 1, weight))
counts_are_public = class_sums(lambda n_counts, n_moments, weight: (0, n_moments, weight))
no_squares = class_sums(lambda n_counts, n_moments, weight: (n_counts, n_moments, 0.0))


def added_to_all_classes(original):
    """Counts of a record's cells in every class, as for odds of one against the others."""

    def sums(X, codes, layout, mechanism):
        total = original(X, codes, layout, mechanism)
        return total + total.sum(axis=0) - total

    return sums


def all_classes():
    return replaced(_naive_bayes, "sums_by_class", added_to_all_classes)


BAYES = [
    Subject(
        "DPNaiveBayes-binned",
        partial(bayes, numeric="binned", n_bins=4),
        at_bounds,
        fits=60,
        runs={},
        mutants={"noise for one table": one_table, "a record counts in all classes": all_classes},
    ),
    Subject(
        "DPNaiveBayes-gaussian",
        partial(bayes, numeric="gaussian"),
        at_bounds,
        fits=100,
        runs={},
        mutants={
            "noise for one moment": one_moment,
            "counts are public": counts_are_public,
            "no noise for squares": no_squares,
            "no clip": (lambda: replaced(Encoder, "scaled", unclipped), {"pair": partial(at_bounds, size=4.0)}),
            "a record counts in all classes": all_classes,
        },
    ),
    Subject(
        "DPNaiveBayes-categories",
        partial(bayes, categorical_features=[0], n_categories=2),
        one_number,
        fits=100,
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.3},
        mutants={"a record counts in all classes": all_classes},
    ),
]

# --- histograms -----------------------------------------------------------------------------------------------------

BINS = {"bounds": (-1, 1), "n_bins": 8}


def cell(model, with_target):
    X, y = np.ones((1, 2)), np.ones(1, dtype=int)
    if not with_target:
        return (X[:0],), (X,)
    return (X[:0], y[:0]), (X, y)


def corner_count(model):
    return model.counts_.ravel()[-1]


def counted_in_margins(original):
    """A record counts in its cell, and in the first one of its row."""

    def counts(grid, X, y):
        whole = original(grid, X, y).reshape(grid.shape)
        whole[..., 0] += whole.sum(axis=-1)
        return whole.ravel()

    return counts


@contextlib.contextmanager
def noise_of_a_half():
    """The mechanism is made for half a count."""
    made = _base.class_sums_mechanism

    def mechanism(epsilon, *rest):
        return made(2 * epsilon, *rest)[0], made(epsilon, *rest)[1]

    with patch.object(_base, "class_sums_mechanism", mechanism):
        yield


def histogram(kind, with_target, **parameters):
    return Subject(
        kind.__name__,
        lambda epsilon, delta: kind(epsilon=epsilon, delta=delta, **BINS, **parameters),
        partial(cell, with_target=with_target),
        fits=16,
        statistic=corner_count,
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.4},
        mutants={
            "noise of half a count": noise_of_a_half,
            "margins besides": lambda: replaced(Axes, "counts", counted_in_margins),
        },
    )


HISTOGRAMS = [
    histogram(NoisyHistogram, False),
    histogram(HistogramClassifier, True, classes=[0, 1]),
    histogram(HistogramRegressor, True, bounds_y=(-1, 1), n_bins_y=4),
]

SUBJECTS = [*BAYES, *HISTOGRAMS]
