"""The table of bad input: what is wrong with parameters and data, what is refused and by which error, what is not.

Nothing may be refused because of the number of rows, which is private, nor because a label or a category is missing.
"""

import os
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import BudgetAccountant, DPRandomizedSearchCV, ObjPertLogReg, Schema
from tests.estimators import EXPONENTIAL, FREE, LOCAL, ONE_EACH, SEARCHES

NAN, INF = float("nan"), float("inf")


class Hostile:
    """An object that fails whatever it is asked, and says what nobody may see."""

    def _fail(self, *args):
        raise RuntimeError("patient-7731")

    __repr__ = __float__ = __int__ = __index__ = __eq__ = __len__ = __iter__ = __getitem__ = _fail
    __hash__ = object.__hash__


def one_of_each(instances):
    """Return the first instance of each class."""
    return list({type(instance): instance for instance in reversed(instances)}.values())[::-1]


_RANDOM_SEARCH = DPRandomizedSearchCV(
    ObjPertLogReg(data_norm=30.0), {"fit_intercept": [True, False]}, n_iter=2, epsilon=2000.0, delta=1e-5
).set_params(strategy="holdout", random_state=5)

#: Everything that reads data and has parameters.
SUBJECTS = [*ONE_EACH, *one_of_each(FREE), *one_of_each(LOCAL), _RANDOM_SEARCH]

# --- parameters ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """What is wrong for a parameter: values of a wrong type with the error that they raise, and values out of range."""

    types: tuple
    values: tuple
    type_error: type = TypeError


# What is not a number, for whoever asks. NumPy would take some of it.
NO_NUMBERS = ("1", [1.0], {}, 1j, True, np.True_, np.array([1.0, 2.0]), Decimal("0.5"), pd.NA, np.ma.masked, Hostile())

# Beyond all doubles, and integers that Python does not write.
HUGE = (10**400, -(10**400), 10**5000, np.longdouble("1e4000"))


def real(*values, optional=False):
    """Numbers in a range. None is allowed where the parameter is optional."""
    nothing = () if optional else (None,)
    return Bad((*NO_NUMBERS, *nothing), (NAN, -INF, -1, -5e-324, *values, *HUGE))


def integer(*values, optional=False, least=1):
    """Integers in a range."""
    nothing = () if optional else (None,)
    return Bad((*NO_NUMBERS, *nothing, 1.0, 2.5, NAN, INF), (-1, -(10**400), least - 1, *values))


def choice(*values, optional=False):
    """Names. What is no name is as wrong as another name."""
    none = () if optional else (None,)
    return Bad((*none, 1, b"x", ["x"], Hostile(), 10**5000), ("x", "", "z" * 10**4, *values), ValueError)


BOOLEAN = Bad((None, "yes", 1, 0.0, [True], np.array([True]), Hostile(), 10**5000), ())

NO_PAIRS = ("1", b"12", ("a", "b"), ("1", "2"), {1: 2}, {1, 2}, iter((0.0, 1.0)), (False, True), (0, 1j), (None, 1))
NO_PAIRS += ((0, pd.NA), np.array(["2020", "2021"], dtype="M8[s]"), np.ma.array([0.0, 1.0], mask=[0, 1]), Hostile(), 3)

PAIR = Bad(
    NO_PAIRS,
    (
        *((1, 2, 3), (1,), (), (1, 1), (2, 1), (0, INF), (-INF, 0), (NAN, 1), (NAN, NAN), (-1e308, 1e308), (0, 5e-324)),
        *((0, 10**400), (0, Fraction(10**400)), ([[0, 0]], [[1, 1]])),
    ),
    ValueError,
)

COLUMN_PAIR = Bad(
    (None, *PAIR.types),
    (
        *PAIR.values,
        ([0] * 9, [1] * 9),
        ([0, 0, 5, 0, 0], [1, 1, 4, 1, 1]),
        ([0, 0, 0], [1, 1]),
        ([0] * 5, [1, 1, NAN, 1, 1]),
    ),
    ValueError,
)

CLASSES = Bad(
    (
        *(
            3,
            "ab",
            b"ab",
            {0, 1},
            {0: 1, 1: 2},
            iter([0, 1]),
            [0, "1"],
            ["a", None],
            [0, None],
            [None, None],
            [0, pd.NA],
        ),
        *([0, pd.NaT], [object(), Hostile()], [1j, 2], np.array(["2020", "2021"], dtype="M8[s]"), [(1, 2), (3, 4)]),
        *([[0, 1]], [[0], [1, 2]], np.ma.array([0, 1, 2], mask=[0, 0, 1]), pd.DataFrame([0, 1]), Hostile()),
    ),
    ([], [0], [0, 0, 1], ["a", "a"], [0.0, NAN], [0, INF], [0, 2**53], [0, 2**70], [0, 10**400]),
    ValueError,
)

FLAG_OR_PART = Bad(tuple(v for v in real().types if v is not True and v is not np.True_), (*real().values, 1.5, INF))

ACCOUNTANT = Bad(("me", 1.0, True, BudgetAccountant, {}, (1.0, 0.0), object(), Hostile()), ())

INNER = ("x", 3, LinearRegression, ["x"], object(), Hostile())

COLUMNS = Bad(
    (3, "a", b"a", 1j, {0, 1}, {0: 1}, [0.0], [None], [[0]], Hostile()), ([9], [-1], [0, 0], [True, False]), ValueError
)

VECTOR = ("x", {1.0}, {0: 1.0}, iter([1.0]), ["1"] * 5, [True] * 5, [1j] * 5, [None] * 5, Hostile())

COLUMN_CATEGORIES = Bad(
    ("ab", 3, [2, 2], {0, 1}, iter([0, 1]), {0: None}, {0: "ab"}, {0: {0, 1}}, {0: True}, {0: [0, "1"]}, Hostile()),
    (
        {0: 0},
        {0: 10**7},
        {0: 10**400},
        {0: []},
        {0: [0, 0]},
        {0: [0, NAN]},
        {9: 3},
        {-1: 3},
        {0.5: 3},
    ),
    (TypeError, ValueError),
)

#: By name, or by class and name where a class differs.
PARAMETERS = {
    "C": real(0, 5e-324, 1e-200, 1e300, INF),
    "accountant": ACCOUNTANT,
    "aggregator": choice("mode"),
    "alpha": real(INF, 1e300, optional=True),
    "DPNaiveBayes.alpha": real(0, INF, 5e-324, 1e300),
    "LocalDPNaiveBayes.alpha": real(0, INF, 5e-324, 1e300),
    "attributes": Bad(
        ("coef_", b"coef_", 3, {"coef_"}, iter(["coef_"]), [1], [["coef_"]], Hostile()), ([], ["coef_"] * 2), ValueError
    ),
    "average": real(1.5, INF),
    "DPSGDClassifier.average": FLAG_OR_PART,
    "DPSGDRegressor.average": FLAG_OR_PART,
    "batch_size": real(0, 0.0, 1.5, INF, 5e-324, 40, 2**62, optional=True),
    "bin_edges": Bad(
        ([1, 2], "x", 3, {1}, Hostile()),
        (
            {0: [1]},
            {0: [2, 1]},
            {0: [1, 1]},
            {0: [0, NAN]},
            {0: ["0", "1"]},
            {9: [0, 1]},
            {0: 3},
            {-1: [0, 1]},
            {0: [[0, 1]]},
        ),
    ),
    "PublicBinner.bin_edges": Bad(
        (3, "ab", {0: [1, 2]}, {1, 2}, iter([1, 2]), ["a", "b"], ["1", "2"], Hostile()),
        ([], [1], [2, 1], [1, 1], [0, NAN], [0, INF], [[0, 1]] * 9, [[[0, 1]]]),
        ValueError,
    ),
    "bounds": COLUMN_PAIR,
    "HistogramBase.bounds": PAIR,
    "bounds_y": Bad((None, *PAIR.types), PAIR.values, ValueError),
    "NoisyHistogram.bounds_y": PAIR,
    "calibration": choice("lasso"),
    "categorical_features": COLUMNS,
    "categories": Bad(
        (None, "ab", {0, 1}, {0: 1}, iter([0, 1]), True, 2.5, [0, None], [0, "1"], [1j, 2], object(), Hostile()),
        (0, 1, -1, 10**7, 10**400, [], [0], [0, 0], [0, NAN], [[0, 1]] * 9),
        (TypeError, ValueError),
    ),
    "DPAdditiveClassifier.categories": COLUMN_CATEGORIES,
    "DPAdditiveRegressor.categories": COLUMN_CATEGORIES,
    "center": Bad(
        (None, 3, *VECTOR), ("zero", [], [0.0] * 9, [NAN] * 5, [INF] * 5, [1e308] * 5, [[0.0] * 5]), ValueError
    ),
    "centered_norm": real(0, INF, 5e-324, 1e200, optional=True),
    "classes": CLASSES,
    "clip": real(0, INF, 5e-324, 1e200),
    "data_norm": real(0, INF, 5e-324, 1e-200, 1e200, 1e308),
    "FunctionalMechLinReg.data_norm": real(0, INF, 1e-200, 1e200, optional=True),
    "FunctionalMechLogReg.data_norm": real(0, INF, 1e-200, 1e200, optional=True),
    "delta": real(1, 1.0, 1.5, INF, 5e-324, 1e-310, 1 - 1e-17, Fraction(-1, 10**400)),
    "dependence": real(1.5, INF),
    "encode": choice("onehot-dense"),
    "epochs": real(0, INF, 1e300, 2e9, optional=True),
    "epsilon": real(0, 0.0, -0.0, 5e-324, 1e-7, 1e300, 2e9, Fraction(1, 10**400)),
    "estimator": Bad(INNER, ()),
    "SampleAggregate.estimator": Bad((None, *INNER), (KMeans(3), DBSCAN())),
    "SampleAggKMeans.estimator": Bad(INNER, (KMeans(7),)),
    "PrivateSearch.estimator": Bad((None, *INNER), (LogisticRegression(), KMeans(2))),
    "eta0": real(0, INF, 1e300, optional=True),
    "expected_n": real(0, 0.5, INF, 1e300, optional=True),
    "HistogramBase.expected_n": integer(optional=True),
    "DPRandomTree.expected_n": integer(10**400, optional=True),
    "DPRandomTreeRegressor.expected_n": integer(10**400, optional=True),
    "feature_range": Bad((None, *PAIR.types), PAIR.values, ValueError),
    "fit_intercept": BOOLEAN,
    "grid_size": integer(1, 2**40, 10**400, least=2),
    "hidden_layer_sizes": Bad(
        ("8", b"8", {8}, {8: 8}, iter([8]), 8.0, None, [8.0], [True], ["8"], [[8]], Hostile()),
        (0, -1, [0], [8] * 10**4, 10**9, 10**400),
    ),
    "huber_threshold": real(0, INF, 1e300, optional=True),
    "interactions": Bad(
        (
            3,
            "ab",
            {0: 1},
            {0, 1},
            iter([(0, 1)]),
            [0, 1],
            [(0,)],
            [(0, 1, 2)],
            [(0, 1.5)],
            [(True, 1)],
            ["ab"],
            Hostile(),
        ),
        ([(0, 0)], [(0, 1), (1, 0)], [(0, 9)], [(-1, 0)], [("a", "b")]),
        ValueError,
    ),
    "l1_ratio": real(1.5, INF),
    "class_weight": Bad(
        (3, "ab", b"ab", True, [1.0, 1.0], {0, 1}, Hostile()),
        ({"0": 1.0}, {5: 1.0}, {0: -1}, {0: NAN}, {0: INF}, {0: 10**400}, {0: 0.0, 1: 0.0, 2: 0.0}),
    ),
    "label_weights": Bad(
        (None, 3, "ab", [1.0, 1.0], {"0": 1.0, "1": 1.0}, Hostile()),
        ({}, {0: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0}),
        ValueError,
    ),
    "learning_rate": choice("adaptive"),
    "learning_rate_init": Bad((*NO_NUMBERS[1:], None), (0, -1, NAN, INF, 1e300, 10**400)),
    "loss": choice("hinge2"),
    "loss_bound": real(0, INF, 1e6),
    "max_depth": integer(10**6, 10**400, optional=True, least=0),
    "max_features": integer(10**5, 10**400, optional=True),
    "max_grad_norm": Bad((*NO_NUMBERS[1:], None), (0, -1, NAN, INF, 1e300, 10**400)),
    "max_iter": integer(),
    "max_queries": integer(optional=True),
    "max_score": real(0, INF, 1e300, optional=True),
    "mean_runs": real(0, 0.5, INF, 1e6, optional=True),
    "momentum": real(1.0, 1.5, INF),
    "most_cells": integer(63, 2**25, 10**400, least=64),
    "n_bins": integer(1, 10**7, 10**400, least=2),
    "HistogramBase.n_bins": integer(1, 10**7, 10**400, optional=True, least=2),
    "n_bins_y": integer(1, 10**9, 10**400, optional=True, least=2),
    "n_blocks": integer(2**31, 2**62, 10**400, optional=True),
    "n_categories": Bad((None, *NO_NUMBERS, 2.5, NAN), (0, -1, 10**7, 10**400, [2, 2], [0]), (TypeError, ValueError)),
    "n_clusters": integer(2**31, 2**62, 10**400),
    "n_components": integer(9, 10**400, 10**5000, optional=True),
    "n_estimators": integer(2**31, 10**400, optional=True),
    "n_iter": integer(2**62, 10**400),
    "n_jobs": Bad((*NO_NUMBERS, 1.0, NAN, INF), (0, 2**31, 10**400, -(10**400))),
    "n_reported": Bad(
        ("some", *NO_NUMBERS[1:], None, 1.5),
        (0, -1, 9, 10**400),
        (TypeError, ValueError),
    ),
    "n_steps": integer(2**31, 2**62, 10**400, 10**5000, optional=True),
    "n_teachers": integer(2**31, 2**62, 10**400, optional=True),
    "n_thresholds": integer(2**20, 10**400),
    "numeric": choice("kde"),
    "param_distributions": Bad((None, "ab", b"ab", 3, ["C"], [1], Hostile()), ([], {"C": []}), TypeError),
    "param_grid": Bad((None, "ab", b"ab", 3, ["C"], [1], {"C": 3}, Hostile()), ([], {"C": []}), TypeError),
    "penalty": Bad(tuple(v for v in choice().types if v is not None), choice("l3").values, ValueError),
    "priors": Bad((3, *VECTOR), ([], [1.0], [0.5, 0.6], [-0.5, 1.5], [NAN, 1.0], [INF, 0.0], [[0.5, 0.5]]), ValueError),
    "prune": BOOLEAN,
    "public_X": Bad(
        (None, 3, "x", [["a"] * 5], [[1j] * 5], object(), Hostile()),
        ([], [[0.0] * 9], [[NAN] * 5], [0.0] * 5),
        (TypeError, ValueError),
    ),
    "radius": real(0, INF, 5e-324, 1e200, optional=True),
    "random_state": Bad(
        (
            "abc",
            "1",
            b"1",
            0.5,
            1.5,
            1j,
            True,
            np.True_,
            [1],
            np.array(1),
            np.array([1]),
            object(),
            Hostile(),
            Decimal(1),
            np.random,
            np.random.PCG64(1),
        ),
        (-1, -(10**400), np.int64(-1), NAN, INF),
        ValueError,
    ),
    "reference": Bad((None, 3, "public", *VECTOR[1:]), ([], [[0.0] * 5], [[NAN] * 5] * 3, [[1e9] * 5] * 3), ValueError),
    "refit": Bad((None, "yes", 1, 0.0, [True], Hostile()), ()),
    "max_weight": real(0, INF, 5e-324, 1e200, optional=True),
    "rows_per_group": integer(10**9, 10**400, optional=True),
    "scale": choice("log"),
    "schema": Bad(
        ("census.toml", 3, b"x", True, ["age"], {"age"}, {0: (0, 1)}, {"age": "0"}, Schema, object(), Hostile()),
        ({}, {"age": (1, 0)}, {"age": []}, {"age": ["a", "a"]}),
    ),
    "scoring": choice("confusion_matrix", "r2", optional=True),
    "solver": choice("lbfgs"),
    "structure": choice("chain"),
    "strategy": choice("grid"),
    "structure_seed": integer(least=0),
    "student": Bad(INNER, (LinearRegression(), DBSCAN())),
    "teacher": Bad(INNER, (LinearRegression(), DBSCAN())),
    "thresholds": choice("median"),
    "tol": real(0, 1e-12, 1, INF),
    "unit": real(0, INF, 5e-324, 1e200),
    "validation_fraction": real(0, 1, INF),
    "var_smoothing": real(INF, 1e300),
    "variance_share": real(0.99, 1, INF),
    "verbose": integer(least=0),
    "weights": choice("uniform"),
    "whiten": BOOLEAN,
}

#: Parameters that have no range: what is of the right type is right.
WITHOUT_RANGE = {"accountant", "fit_intercept", "whiten", "prune", "refit", "estimator"}

# Where a parameter matters only besides others, or in another variant.
IN_USE = {
    "ExpMechERM.bounds_y": (EXPONENTIAL[2], {}),
    "epochs": (None, {"n_steps": None, "epochs": 4}),
    "DPSGDRegressor.huber_threshold": (None, {"loss": "huber"}),
    "PrivateSearch.bounds_y": (SEARCHES[2], {}),
    "PrivateSearch.label_weights": (None, {"scoring": "balanced_accuracy", "label_weights": {0: 1.0, 1: 1.0}}),
    "PrivateSearch.loss_bound": (None, {"scoring": "neg_log_loss"}),
    "PrivateSearch.n_bins": (None, {"scoring": "roc_auc"}),
    "PrivateSearch.mean_runs": (None, {"strategy": "repeat"}),
    "PublicBinner.bounds": (FREE[5], {}),
    "PublicBinner.n_bins": (FREE[5], {}),
    "PublicBinner.scale": (FREE[5], {}),
    "PublicBinner.unit": (FREE[5], {}),
    "SampleAggregate.radius": (None, {"bounds": None, "radius": 12.0}),
    "n_categories": (None, {"categorical_features": [0], "n_categories": 3}),
    "categorical_features": (None, {"n_categories": 3}),
}

#: What a plan does not look at: noise, the charge, weights, and what is fitted to public rows or to releases alone.
NOT_IN_PLANS = {"random_state", "accountant", "n_jobs", "teacher", "student", "class_weight", "max_weight"}
NOT_IN_PLANS |= {"verbose", "HistogramClassifier.estimator", "HistogramRegressor.estimator"}

# --- data ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Data that are wrong: how they come from right ones, what is raised, and what the message speaks of."""

    name: str
    make: object
    error: type | tuple
    says: str


def with_entry(X, entry):
    """Return rows as objects, with one entry exchanged."""
    X = X.astype(object)
    X[3, 1] = entry
    return X


def with_number(X, number):
    """Return rows with one number exchanged."""
    X = X.copy()
    X[3, 1] = number
    return X


def missing(frame):
    """Return a frame of nullable columns, with one entry missing."""
    frame.iloc[3, 1] = pd.NA
    return frame


def strange(X, y, entry):
    """Return labels one by one, with one exchanged."""
    return X, [*y[:-1].tolist(), entry]


def records(X):
    """Return rows as one structured array."""
    return np.array([tuple(row) for row in X], dtype=[(name, float) for name in "abcdefghijkl"[: X.shape[1]]])


class Odd:
    """An entry that tells a value when it is read or shown."""

    def __float__(self):
        raise RuntimeError("patient-7731")

    def __repr__(self):
        return "patient-7731"


_NO_NUMBER = "no numbers|as numbers|sequence|same length"
_SHAPE = "array|features|feature|rows|1d|2D|dim|shape"
_X = "X|data|features|rows"

#: X that no one reads, whatever the entries are.
BAD_SHAPES = [
    Data("sparse of one dimension", lambda X, y: (sparse.coo_array(X[:, 0]), y), ValueError, _SHAPE),
    Data("np.matrix", lambda X, y: (X.view(np.matrix), y), TypeError, "matrix"),
    Data("None", lambda X, y: (None, y), (ValueError, TypeError), _X),
    Data("number", lambda X, y: (7731.0, y), (ValueError, TypeError), _SHAPE),
    Data("no dimension", lambda X, y: (np.array(7731.0), y), (ValueError, TypeError), _SHAPE),
    Data("text", lambda X, y: ("patient-7731", y), (ValueError, TypeError), _X),
    Data("dict", lambda X, y: (dict(enumerate(X.T)), y), (ValueError, TypeError), _X),
    Data("set", lambda X, y: ({7731.0, 7732.0}, y), (ValueError, TypeError), _X),
    Data("generator", lambda X, y: ((row for row in X), y), (ValueError, TypeError), _X),
    Data("one dimension", lambda X, y: (X[:, 0], y), ValueError, _SHAPE),
    Data("list of numbers", lambda X, y: (X[:, 0].tolist(), y), ValueError, _SHAPE),
    Data("three dimensions", lambda X, y: (X[None], y), ValueError, _SHAPE),
    Data("four dimensions", lambda X, y: (X[None, None], y), ValueError, _SHAPE),
    Data(
        "ragged", lambda X, y: ([row[: len(row) - (i == 3)] for i, row in enumerate(X.tolist())], y), ValueError, "rows"
    ),
    Data("no columns", lambda X, y: (X[:, :0], y), ValueError, "feature"),
    Data("lists without entries", lambda X, y: ([[]] * len(X), y), ValueError, "feature"),
    Data("empty list", lambda X, y: ([], y[:0]), ValueError, _SHAPE),
    Data("structured", lambda X, y: (records(X), y), (ValueError, TypeError), _X),
    Data("mixed names", lambda X, y: (pd.DataFrame(X, columns=[0, *"abcdefg"[1 : X.shape[1]]]), y), TypeError, "names"),
]

_ENTRIES = {
    "None": (None, ValueError, "NaN"),
    "NA": (pd.NA, ValueError, "NaN"),
    "NaT": (pd.NaT, TypeError, _NO_NUMBER),
    "dict": ({"patient": 7731}, TypeError, _NO_NUMBER),
    "set": ({7731}, TypeError, _NO_NUMBER),
    "complex": (7731j, TypeError, _NO_NUMBER),
    "text": ("patient-7731", ValueError, "text"),
    "bytes": (b"patient-7731", ValueError, "text"),
    "point in time": (np.datetime64("2020-01-01"), TypeError, _NO_NUMBER),
    "duration": (np.timedelta64(7731, "s"), TypeError, _NO_NUMBER),
    "timestamp": (pd.Timestamp("2020-01-01"), TypeError, _NO_NUMBER),
    "decimal NaN": (Decimal("NaN"), ValueError, "NaN"),
    "integer beyond doubles": (10**400, ValueError, "too large"),
    "class": (int, TypeError, _NO_NUMBER),
    "function": (len, TypeError, _NO_NUMBER),
    "array": (np.array([7731.0, 1.0]), ValueError, _NO_NUMBER),
    "odd": (Odd(), ValueError, _NO_NUMBER),
}

_FORMS = {"": lambda X: X, " in lists": lambda X: X.tolist(), " in a frame": pd.DataFrame}

#: X with entries that are no finite numbers. Mechanisms of categories read them as unknown ones.
BAD_ENTRIES = [
    *[
        Data(
            f"{number}{form}",
            lambda X, y, number=number, make=make: (make(with_number(X, number)), y),
            ValueError,
            "NaN|infinity",
        )
        for number in (NAN, INF, -INF)
        for form, make in _FORMS.items()
    ],
    *[
        Data(
            f"{name}{form}",
            lambda X, y, entry=entry, make=make: (make(with_entry(X, entry)), y),
            error if name != "array" else (TypeError, ValueError),
            says,
        )
        for name, (entry, error, says) in _ENTRIES.items()
        for form, make in _FORMS.items()
    ],
    Data("float32 infinity", lambda X, y: (with_number(X, -INF).astype(np.float32), y), ValueError, "infinity"),
    Data("float16 infinity", lambda X, y: (with_number(X, INF).astype(np.float16), y), ValueError, "infinity"),
    Data(
        "longdouble beyond doubles",
        lambda X, y: (with_number(X.astype(np.longdouble), np.longdouble("1e4000")), y),
        ValueError,
        "infinity",
    ),
    Data("complex numbers", lambda X, y: (X + 7731j, y), ValueError, "Complex"),
    Data("complex without imaginary parts", lambda X, y: (X + 0j, y), ValueError, "Complex"),
    Data("points in time", lambda X, y: (X.astype("M8[s]"), y), TypeError, "datetime64"),
    Data("durations", lambda X, y: (X.astype("m8[s]"), y), TypeError, "timedelta64"),
    Data("points in time in lists", lambda X, y: (list(X.astype("M8[s]")), y), TypeError, "datetime64"),
    Data(
        "column of points in time",
        lambda X, y: (pd.DataFrame(X).rename(columns=str).assign(a=pd.Timestamp("2020-01-01")), y),
        TypeError,
        "datetime64",
    ),
    Data(
        "column of durations",
        lambda X, y: (pd.DataFrame(X).rename(columns=str).assign(a=pd.Timedelta(7731, "s")), y),
        TypeError,
        "timedelta64",
    ),
    Data(
        "points in time with a zone",
        lambda X, y: (
            pd.DataFrame({i: pd.to_datetime(["2020-01-01"] * len(X)).tz_localize("UTC") for i in range(X.shape[1])}),
            y,
        ),
        TypeError,
        "datetime64",
    ),
    Data(
        "categories of points in time",
        lambda X, y: (pd.DataFrame({i: pd.Categorical(X[:, i].astype("M8[s]")) for i in range(X.shape[1])}), y),
        TypeError,
        "datetime64",
    ),
    Data(
        "categories of text",
        lambda X, y: (pd.DataFrame(X).rename(columns=str).assign(a="patient-7731").astype({"a": "category"}), y),
        ValueError,
        "text",
    ),
    Data(
        "column of text",
        lambda X, y: (pd.DataFrame(X).rename(columns=str).assign(a="patient-7731"), y),
        ValueError,
        "text",
    ),
    Data("text", lambda X, y: (np.full(X.shape, "patient-7731"), y), ValueError, "text"),
    Data("text that is numbers, in lists", lambda X, y: (with_entry(X, "77.31").tolist(), y), ValueError, "text"),
    Data("missing Float64", lambda X, y: (missing(pd.DataFrame(X).astype("Float64")), y), ValueError, "NaN"),
    Data("missing Int64", lambda X, y: (missing(pd.DataFrame(np.round(X)).astype("Int64")), y), ValueError, "NaN"),
    Data("missing boolean", lambda X, y: (missing(pd.DataFrame(X > 0).astype("boolean")), y), ValueError, "NaN"),
    Data(
        "missing category", lambda X, y: (missing(pd.DataFrame(np.round(X)).astype("category")), y), ValueError, "NaN"
    ),
    Data("masked", lambda X, y: (np.ma.array(X, mask=X > 1), y), ValueError, "masked"),
]

#: Labels or targets of a wrong form. None is said to be no label at all, in the local model as well.
BAD_TARGET_SHAPES = [
    Data("y short", lambda X, y: (X, y[:-1]), ValueError, "y"),
    Data("y long", lambda X, y: (X, np.append(y, y[:1])), ValueError, "y"),
    Data("y None", lambda X, y: (X, None), ValueError, "y"),
    Data("y a number", lambda X, y: (X, 7731), ValueError, "y"),
    Data("y text", lambda X, y: (X, "patient-7731"), ValueError, "y|data"),
    Data("y without dimension", lambda X, y: (X, np.array(7731)), ValueError, "y"),
    Data("y of three dimensions", lambda X, y: (X, np.zeros((len(X), 2, 2))), ValueError, "y|dim"),
    Data("y without columns", lambda X, y: (X, np.zeros((len(X), 0))), ValueError, "y"),
    Data("y a dict", lambda X, y: (X, dict(enumerate(y))), (TypeError, ValueError), "y|data"),
    Data("y a set", lambda X, y: (X, set(y)), (TypeError, ValueError), "y|data"),
    Data("y a generator", lambda X, y: (X, (label for label in y)), (TypeError, ValueError), "y|data"),
    Data(
        "y sparse", lambda X, y: (X, sparse.csr_matrix(y[:, None].astype(float))), (TypeError, ValueError), "y|Sparse"
    ),
]

#: Labels that are refused. In the local model none is: that would tell about it.
BAD_LABELS = [
    Data("y of several columns", lambda X, y: (X, np.stack([y, y, y], axis=1)), ValueError, "y"),
    *[
        Data(f"label {entry}", lambda X, y, entry=entry: strange(X, y, entry), ValueError, "missing")
        for entry in (None, NAN, pd.NA, pd.NaT)
    ],
    Data("labels with NaN", lambda X, y: (X, np.where(np.arange(len(y)) == 3, NAN, y)), ValueError, "NaN"),
    Data("labels with infinity", lambda X, y: (X, np.where(np.arange(len(y)) == 3, INF, y)), ValueError, "infinity"),
    Data("labels masked", lambda X, y: (X, np.ma.array(y, mask=np.arange(len(y)) == 3)), ValueError, "missing"),
    Data(
        "labels missing Int64",
        lambda X, y: (X, missing(pd.DataFrame([y, y]).T.astype("Int64"))[1]),
        ValueError,
        "missing|NaN",
    ),
    Data(
        "labels missing category",
        lambda X, y: (X, missing(pd.DataFrame([y, y]).T.astype("category"))[1]),
        ValueError,
        "missing|NaN",
    ),
    Data("labels text", lambda X, y: (X, np.array(["patient-7731"] * len(y))), TypeError, "labels"),
    Data("labels bytes", lambda X, y: (X, np.array([b"7731"] * len(y))), TypeError, "labels"),
    Data("labels complex", lambda X, y: (X, y + 7731j), TypeError, "labels"),
    Data("labels points in time", lambda X, y: (X, np.zeros(len(y), dtype="M8[s]")), TypeError, "text|datetime"),
]

#: Targets that are refused.
BAD_TARGETS = [
    Data("targets with NaN", lambda X, y: (X, np.where(np.arange(len(y)) == 3, NAN, y)), ValueError, "NaN"),
    Data("targets with infinity", lambda X, y: (X, np.where(np.arange(len(y)) == 3, INF, y)), ValueError, "infinity"),
    Data("targets masked", lambda X, y: (X, np.ma.array(y, mask=np.arange(len(y)) == 3)), ValueError, "masked"),
    Data("targets missing", lambda X, y: (X, missing(pd.DataFrame([y, y]).T.astype("Float64"))[1]), ValueError, "NaN"),
    Data("targets text", lambda X, y: (X, np.array(["patient-7731"] * len(y))), ValueError, "text"),
    Data("targets text that is numbers, in lists", lambda X, y: strange(X, y, "77.31"), ValueError, "text"),
    Data("targets complex", lambda X, y: (X, y + 7731j), ValueError, "Complex"),
    Data("targets points in time", lambda X, y: (X, np.zeros(len(y), dtype="M8[s]")), TypeError, "datetime64"),
    Data("target beyond doubles", lambda X, y: strange(X, y, 10**400), ValueError, "too large"),
    Data("target NA", lambda X, y: strange(X, y, pd.NA), ValueError, "NaN"),
    Data("target odd", lambda X, y: strange(X, y, Odd()), ValueError, _NO_NUMBER),
]


def mapped(X):
    """Return rows in a file that is mapped, for reading only."""
    handle, path = tempfile.mkstemp()
    os.close(handle)
    X.tofile(path)
    rows = np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)
    os.remove(path)
    return rows


def read_only(array):
    """Return a copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


#: Forms of the same whole numbers: the release is the same. Text is read by itself where it is not among numbers.
SAME = {
    **{
        kind: lambda X, y, kind=kind: (X.astype(kind), y)
        for kind in ("i1", "i2", "i4", "i8", "f2", "f4", "g", ">f8", ">i4", "O")
    },
    "lists": lambda X, y: (X.tolist(), y.tolist()),
    "tuples": lambda X, y: (tuple(map(tuple, X)), tuple(y)),
    "lists of integers": lambda X, y: (X.astype(int).tolist(), y),
    "Fortran order": lambda X, y: (np.asfortranarray(X), y),
    "strides": lambda X, y: (np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3], np.repeat(y, 2)[::2]),
    "reversed": lambda X, y: (X[::-1].copy()[::-1], y[::-1].copy()[::-1]),
    "read only": lambda X, y: (read_only(X), read_only(y)),
    "mapped": lambda X, y: (mapped(X), mapped(y)),
    "nothing masked": lambda X, y: (np.ma.array(X), np.ma.array(y)),
    "frame": lambda X, y: (pd.DataFrame(X), pd.Series(y)),
    "frame of integers": lambda X, y: (pd.DataFrame(X.astype("i4")), y),
    "frame of several types": lambda X, y: (
        pd.DataFrame({i: X[:, i].astype(("i2", "f4", "f8")[i % 3]) for i in range(X.shape[1])}),
        y,
    ),
    "Int64": lambda X, y: (pd.DataFrame(X).astype("Int64"), y),
    "Float32": lambda X, y: (pd.DataFrame(X).astype("Float32"), y),
    "categories": lambda X, y: (pd.DataFrame(X).astype("category"), y),
    "repeated index": lambda X, y: (pd.DataFrame(X, index=[0] * len(X)), y),
    "read only frame": lambda X, y: (pd.DataFrame(read_only(X)), y),
    **{
        f"sparse {kind.__name__}": lambda X, y, kind=kind: (kind(X), y)
        for kind in (sparse.csr_matrix, sparse.coo_matrix, sparse.csc_array, sparse.csr_array, sparse.dok_array)
    },
    "sparse frame": lambda X, y: (pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)), y),
    "y a column": lambda X, y: (X, y[:, None]),
    "y objects": lambda X, y: (X, y.astype(object)),
    "y Series": lambda X, y: (X, pd.Series(y, index=np.arange(len(y))[::-1])),
}

#: What is read as numbers too, each by itself. Where entries are categories, it is another one.
READ_AS_NUMBERS = {
    "decimals": lambda X, y: (np.array([[Decimal(int(v)) for v in row] for row in X]), y),
    "fractions": lambda X, y: (np.array([[Fraction(int(v)) for v in row] for row in X]), y),
    "text that is numbers": lambda X, y: (X.astype(str), y),
    "objects that are text": lambda X, y: (X.astype(str).astype(object), y),
    "bytes that are numbers": lambda X, y: (X.astype("S"), y),
}

#: Numbers of any size, and any number of rows: fitted, and finite.
EXTREME = {
    "2**62": lambda X, y: (np.full(X.shape, 2**62), y),
    "-2**63": lambda X, y: (np.full(X.shape, -(2**63)), y),
    "2**64 - 1": lambda X, y: (np.full(X.shape, 2**64 - 1, dtype=np.uint64), y),
    "2**70": lambda X, y: (with_entry(X, 2**70).tolist(), y),
    "int8": lambda X, y: (np.full(X.shape, 100, dtype=np.int8), y),
    "-int8": lambda X, y: (np.full(X.shape, -128, dtype=np.int8), y),
    "uint8": lambda X, y: (np.full(X.shape, 255, dtype=np.uint8), y),
    "bool": lambda X, y: (X > 0, y),
    "largest": lambda X, y: (np.full(X.shape, np.finfo(float).max), y),
    "largest of both signs": lambda X, y: (np.sign(X) * np.finfo(float).max, y),
    "float32 largest": lambda X, y: (np.full(X.shape, np.finfo("f4").max, dtype="f4"), y),
    "float16 largest": lambda X, y: (np.full(X.shape, np.finfo("f2").max, dtype="f2"), y),
    "subnormal": lambda X, y: (X * 1e-310, y),
    "least": lambda X, y: (np.full(X.shape, 5e-324), y),
    "zeros": lambda X, y: (0 * X, y),
    "negative zeros": lambda X, y: (-0.0 * X, y),
    "one row many times": lambda X, y: (X[:1].repeat(len(X), axis=0), y[:1].repeat(len(X))),
    "no row": lambda X, y: (X[:0], y[:0]),
    "no row in a frame": lambda X, y: (pd.DataFrame(X[:0]), pd.Series(y[:0])),
    "one row": lambda X, y: (X[:1], y[:1]),
    "two rows": lambda X, y: (X[:2], y[:2]),
    "one label": lambda X, y: (X, y[:1].repeat(len(X))),
}

#: Labels that are no missing ones, and not declared: left out with their rows, whatever they are.
LEFT_OUT = [7, "x", "1", b"1", 0.5, INF, 2**63, 10**400, 1j, np.timedelta64(1, "ns"), np.datetime64(1, "ns"), {7731: 1}]
LEFT_OUT += [[7731], (0, 1), Odd()]

# --- the catalogue ------------------------------------------------------------------------------------------------

#: Lines of the catalogue of bad input that the library was built by: first and last number, what is put in, what is
#: right, with the reason where it differs from the catalogue, and the cases.
LINES = [
    (1, 1, "epsilon NaN", "ValueError", ["epsilon"]),
    (2, 2, "epsilon inf", "allowed, as the explicit setting without privacy", ["test_good_parameters"]),
    (3, 7, "epsilon -inf, 0, -1, subnormal", "ValueError", ["epsilon"]),
    (8, 11, "epsilon text, None, a list, True", "TypeError: True is no number here", ["epsilon"]),
    (12, 12, "epsilon of another numeric type", "accepted", ["test_good_parameters"]),
    (13, 13, "epsilon an array, complex", "TypeError", ["epsilon"]),
    (14, 17, "delta NaN, negative, 1, more", "ValueError", ["delta"]),
    (18, 18, "delta 0 where noise is Gaussian", "ValueError where there is no pure variant", ["test_delta_zero"]),
    (
        19,
        19,
        "delta of 1 / n or more",
        "accepted: n is private, and a warning would tell of it",
        ["test_good_parameters"],
    ),
    (20, 20, "delta text, None", "TypeError", ["delta"]),
    (21, 26, "data_norm not positive and finite, extreme, no number", "ValueError, TypeError", ["data_norm"]),
    (27, 27, "data_norm missing", "refused: it is never read from data", ["data_norm"]),
    (28, 33, "bounds missing, swapped, equal, not finite, of a wrong form or length", "ValueError", ["bounds"]),
    (34, 35, "bounds in other forms, and narrow ones", "accepted", ["test_good_parameters", "test_narrow_bounds"]),
    (36, 38, "bounds_y missing, swapped, equal, not finite", "ValueError", ["bounds_y"]),
    (39, 39, "classes of one label, empty, twice the same, NaN", "ValueError", ["classes"]),
    (
        *(40, 40, "a label outside classes"),
        "left out with its row: a refusal would tell that it occurs",
        ["test_a_label_that_is_not_declared_is_left_out_with_its_row"],
    ),
    (
        41,
        41,
        "classes None",
        "a warning that the labels are disclosed",
        ["test_undeclared_labels_warn_and_declared_ones_do_not"],
    ),
    (42, 43, "a class that does not occur, a single one that does", "accepted", ["one label", "no row"]),
    (
        44,
        44,
        "y of a wrong form",
        "ValueError, TypeError",
        ["y None", "y short", "y of three dimensions", "y of several columns"],
    ),
    (
        45,
        45,
        "y NaN, infinite",
        "ValueError; in the local model no label is refused",
        ["labels with NaN", "targets with infinity"],
    ),
    (46, 46, "y far outside bounds_y", "clipped", ["test_targets_beyond_their_bounds_are_clipped"]),
    (47, 47, "X NaN, infinite", "ValueError", ["nan", "inf", "-inf"]),
    (
        48,
        48,
        "X without rows or columns",
        "without rows fitted, as a neighbour of one row; without columns refused",
        ["no row", "no columns"],
    ),
    (49, 49, "X of another dimension", "ValueError", ["one dimension", "three dimensions"]),
    (
        50,
        50,
        "X text, mixed",
        "refused; numbers written as text are read where each is read by itself",
        ["text", "column of text", "text that is numbers"],
    ),
    (51, 51, "X complex", "ValueError", ["complex numbers"]),
    (52, 52, "X sparse", "the same release", ["sparse csr_matrix", "sparse frame"]),
    (53, 53, "X in other forms", "the same release", ["f4", "Fortran order", "read only", "lists"]),
    (54, 54, "X of large integers, int8", "clipped", ["2**62", "int8"]),
    (55, 56, "X huge, subnormal", "finite", ["largest", "subnormal"]),
    (57, 57, "fewer rows than clusters", "fitted: the number of rows is private", ["one row", "no row"]),
    (58, 58, "n_clusters not positive, no integer, huge", "refused; 10**4 is the most", ["n_clusters"]),
    (59, 59, "n_components", "refused", ["n_components"]),
    (60, 60, "max_depth", "refused; 0 is a tree of one leaf", ["max_depth"]),
    (61, 61, "clip", "here max_grad_norm, and clip of a scaler", ["clip", "max_grad_norm"]),
    (62, 62, "batch_size", "more than n is no error: n is private", ["batch_size"]),
    (63, 63, "epochs", "refused", ["epochs"]),
    (64, 64, "learning rates", "refused", ["eta0", "learning_rate_init", "learning_rate"]),
    (65, 65, "regularisation", "refused where a proof needs more than 0", ["C", "alpha"]),
    (66, 66, "random_state", "ValueError", ["random_state"]),
    (
        67,
        67,
        "no accountant, or one that cannot be charged",
        "TypeError, BudgetError, LedgerError",
        ["accountant", "test_accountants_that_cannot_be_charged"],
    ),
    (68, 68, "sample_weight", "TypeError, ValueError", ["test_sample_weight_is_refused_without_its_bound"]),
    (69, 69, "predict before fit, after a refused one", "NotFittedError", ["test_nothing_is_said_before_a_fit"]),
    (70, 70, "predict with other columns, NaN", "ValueError", ["test_predicting_with_other_columns"]),
    (
        71,
        71,
        "a budget that is too small",
        "BudgetError that says what remains",
        ["test_nothing_is_computed_when_the_budget_is_too_small"],
    ),
    (72, 72, "warm_start, partial_fit", "absent, or charged each time", ["test_there_is_no_way_around_fit"]),
]


def text_of(failure):
    """Return all that an error says: with its causes, contexts and notes."""
    parts, seen = [], set()
    while failure is not None and id(failure) not in seen:
        seen.add(id(failure))
        parts += [str(failure), repr(failure), *getattr(failure, "__notes__", [])]
        failure = failure.__cause__ or failure.__context__
    return "\n".join(parts)
