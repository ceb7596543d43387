"""Sparse rows, weights of records, and missing cells: what one record adds, however it is written."""

import contextlib
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy import sparse

from skdp import DPNaiveBayes, DPStandardScaler, Number, Schema
from skdp.checks import data
from skdp.release import counts, units
from skdp.release import estimator as life_cycle
from skdp.schema import encoding
from tests.trust.choices import choices, half_noise
from tests.trust.subjects import Subject, replaced


def gaussian(epsilon, delta, kind=DPNaiveBayes, **parameters):
    parameters = {"numeric": "gaussian", "bounds": (-1, 1)} | parameters
    return kind(epsilon=epsilon, delta=delta, classes=[0, 1], **parameters)


# --- sparse rows ----------------------------------------------------------------------------------------------------


def in_parts(model, n_parts):
    """One more record, whose entries are at a bound, and are written in parts."""
    own = np.array([0, 1])
    indices = np.concatenate([own, np.repeat(own, n_parts)])
    entries = np.concatenate([[1.0, -1.0], np.full(2 * n_parts, 1.0)])
    X = sparse.csr_array((entries, indices, [0, 2, 2 + 2 * n_parts]), shape=(2, 2))
    y = np.array([0, 1])
    return (X[:1], y[:1]), (X, y)


def parts_as_they_are(original):
    def canonical(X):
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)

    return canonical


# --- weights --------------------------------------------------------------------------------------------------------


class Weighted(DPNaiveBayes):
    """The last column holds weights."""

    def fit(self, X, y):
        return super().fit(X[:, :-1], y, sample_weight=X[:, -1])


def heavy(model, weight):
    X = np.column_stack([np.ones((3, 2)), [1.0, 1.0, weight]])
    y = np.array([0, 1, 1])
    return (X[:-1], y[:-1]), (X, y)


@contextlib.contextmanager
def weights_multiply():
    """Count a record as often as its weight says, without a limit."""

    def unlimited(sample_weight, max_weight):
        return np.asarray(sample_weight, dtype=float) / max_weight

    def repeated(probabilities, stream):
        return np.repeat(np.arange(len(probabilities)), np.ceil(probabilities).astype(int))

    with patch.object(life_cycle, "relative_weights", unlimited), patch.object(units, "kept", repeated):
        yield


# --- missing cells --------------------------------------------------------------------------------------------------


def lacking(model):
    """Records without a value, and one more at a bound."""
    X = np.array([[np.nan, 0.0]] * 12 + [[1.0, 1.0]])
    y = np.ones(13, dtype=int)
    return (X[:-1], y[:-1]), (X, y)


def filled_by_mean(original):
    def filled(column, entries, *args, **options):
        values, missing = original(column, entries, *args, **options)
        mean = values[~missing].mean() if not missing.all() else 0.0
        return np.where(missing, mean, values), np.zeros_like(missing)

    return filled


@contextlib.contextmanager
def imputed():
    names = ("read_numbers", "scaled_numbers")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(replaced(encoding, name, filled_by_mean))
        yield


SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1)})


# --- entries outside of their declaration ---------------------------------------------------------------------------


def scaler(epsilon, delta):
    number = Number(-1, 1, missing="error")
    return DPStandardScaler(epsilon=epsilon, delta=delta, schema=Schema({"a": number, "b": number}))


def outside(model):
    """Records with an entry outside in one column, and one more of them."""
    X = np.array([[9.0, 0.5]] * 3)
    return (X[:-1],), (X,)


def closely(model):
    """So many of them that choices tell how sharply they are made."""
    return (np.array([[9.0, 0.5]] * max(1, round(4 / model.epsilon))),)


def with_most_of_the_budget(subject, epsilon, delta):
    with patch.object(units, "ENTRIES_SHARE", 0.98):
        return choices(subject, epsilon, delta, telling=closely)


def half_the_sensitivity():
    return replaced(counts, "l1_mechanism", lambda true: lambda epsilon, moved, size: true(epsilon, moved / 2, size))


def numbers_only_rise():
    return replaced(counts, "choice_mechanism", lambda true: lambda *args: true(*args[:-1], encoding.OUTSIDE))


def share_not_divided():
    """The choice costs its part, and is made with all of the share."""

    def undivided(true):
        def choice(epsilon, delta, share, moved):
            return true(epsilon, delta, share / counts._NAME_PART, moved)[0], true(epsilon, delta, share, moved)[1]

        return choice

    return replaced(counts, "choice_mechanism", undivided)


SUBJECTS = [
    Subject(
        "entries outside",
        scaler,
        outside,
        claims=((0.1, 0.0), (1.0, 0.0), (3.0, 0.0)),
        reading=with_most_of_the_budget,
        floor=0.8,
        fits=400,
        runs={},
        mutants={
            "half the noise": half_noise,
            "half the sensitivity": half_the_sensitivity,
            "numbers only rise": numbers_only_rise,
            "share not divided": share_not_divided,
        },
    ),
    Subject(
        "DPNaiveBayes-sparse",
        gaussian,
        partial(in_parts, n_parts=1),
        fits=60,
        runs={},
        mutants={
            "no clip of sums of stored entries": (
                lambda: replaced(data, "canonical_rows", parts_as_they_are),
                {"pair": partial(in_parts, n_parts=8)},
            ),
        },
    ),
    Subject(
        "DPNaiveBayes-weights",
        partial(gaussian, kind=Weighted, max_weight=1.0),
        partial(heavy, weight=1.0),
        fits=60,
        runs={},
        mutants={"no clip of weights": (weights_multiply, {"pair": partial(heavy, weight=8.0)})},
    ),
    Subject(
        "DPNaiveBayes-missing",
        partial(gaussian, schema=SCHEMA, bounds=None),
        lacking,
        fits=60,
        runs={},
        mutants={"missing cells are filled from the data": imputed},
    ),
]
