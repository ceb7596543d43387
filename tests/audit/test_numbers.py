"""What a fit leaves behind is looked at, in whatever it is kept."""

import threading
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skdp import stats
from skdp.audit import audit_epsilon
from skdp.audit._numbers import MOST_NUMBERS, numbers_of
from skdp.tree import DPGreedyTree, DPRandomTree

X, Y = make_classification(n_samples=60, n_features=4, random_state=0)


@dataclass
class Pair:
    first: float
    second: str


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Plain:
    def __init__(self, value):
        self.hidden = value


def closure(value):
    return lambda: value


class Keeps(BaseEstimator):
    """Keeps the sum of the data in some kind of object."""

    def __init__(self, keep=None, name="kept_"):
        self.keep = keep
        self.name = name

    def fit(self, X, y=None):
        setattr(self, self.name, self.keep(float(np.sum(X))))


KINDS = {
    "text": str,
    "array of text": lambda v: np.array([str(v), "b"]),
    "array of objects": lambda v: np.array([None, str(v)], dtype=object),
    "structured": lambda v: np.array([(v, 1)], dtype=[("a", float), ("b", int)]),
    "masked": lambda v: np.ma.masked_array([v, 1.0], [v > 0, False]),
    "days": lambda v: np.array([int(v)], dtype="M8[D]"),
    "complex": lambda v: 1j * v,
    "bytes": lambda v: str(v).encode(),
    "large": lambda v: 10 ** (400 + int(v)),
    "dict": lambda v: {"a": [v]},
    "keys": lambda v: {str(v): 1},
    "set": lambda v: {str(v), "b"},
    "range": lambda v: range(int(v)),
    "dataclass": lambda v: (Pair(v, "a"), Pair(1.0, str(v))),
    "slots": Slots,
    "plain": Plain,
    "closure": closure,
    "sparse": lambda v: csr_array(np.array([[0.0, v]])),
    "frame": lambda v: pd.DataFrame({str(v): [1.0]}),
    "series": lambda v: pd.Series([1.0], index=[v]),
    "day": lambda v: date(2000, 1, 1 + int(v)),
    "estimator": lambda v: StandardScaler().fit([[v], [0.0]]),
    "parameter": lambda v: SVC(C=1 + v),
    "kernel": lambda v: RBF(1 + v),
    "type": lambda v: float if v else int,
    "long": lambda v: np.append(np.zeros(3 * MOST_NUMBERS + 7), v),
}


@pytest.mark.parametrize("name", ["kept_", "_kept"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_kinds_of_attributes(kind, name):
    model = Keeps(KINDS[kind], name)
    models = [clone(model) for _ in range(3)]
    for each, total in zip(models, (0.0, 1.0, 1.0), strict=True):
        each.fit(np.array([[total]]))
    (first, none), (second, _), (third, _) = map(numbers_of, models)
    assert not none
    assert first.shape != second.shape or (first != second).any()
    np.testing.assert_array_equal(second, third)


MODELS = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(3, random_state=0),
    KNeighborsClassifier(),
    KernelDensity(),
    SVC(),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    make_pipeline(make_union(StandardScaler()), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    DPGreedyTree(bounds=(-9.0, 9.0), classes=[0, 1], max_depth=2, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=[str(k) + type(m).__name__ for k, m in enumerate(MODELS)])
def test_models(model):
    """Each shows one record; only times differ between fits to the same data."""
    one, two = clone(model).fit(X, Y), clone(model).fit(X[1:], Y[1:])
    (first, none), (second, _) = numbers_of(one), numbers_of(two)
    assert not none
    assert first.shape != second.shape or (first != second).any()
    if not isinstance(model, GridSearchCV):
        np.testing.assert_array_equal(first, numbers_of(clone(model).fit(X, Y))[0])


def test_structures_of_trees():
    for kind in (DPGreedyTree, DPRandomTree):
        model = kind(bounds=(-9.0, 9.0), classes=[0, 1], max_depth=2, random_state=0).fit(X, Y)
        assert set(numbers_of(model)[0]) >= set(model.structure_.thresholds.ravel())


def test_parameters_are_public():
    numbers, _ = numbers_of(LogisticRegression(C=7.0))
    assert len(numbers) == 0


def test_objects_within_each_other_end():
    one, two = Plain(None), Plain(None)
    one.hidden, two.hidden = two, [one, 3.0]
    assert 3.0 in numbers_of(one)[0]


def test_labels_that_are_text():
    D, claim = np.array(["a"] * 50 + ["b"]), {"claim": 1.0, "delta": 0.1, "n_runs": 100}
    assert audit_epsilon(lambda y: np.unique(y).tolist(), D, D[:-1], **claim).violated
    found = audit_epsilon(lambda y: stats.value_counts(y, epsilon=1.0, delta=0.1).names, D, D[:-1], **claim)
    assert "VIOLATED" not in repr(found)


def test_what_cannot_be_read_is_named():
    rng = np.random.default_rng(0)
    model = Keeps(lambda total: [total + rng.laplace(), threading.Lock()], "locked_")
    found = audit_epsilon(model, np.zeros((0, 1)), np.ones((1, 1)), n_runs=60, claim=3.0)
    assert found.remarks == ("not compared: something in locked_",)
    assert "stands" not in repr(found)


def test_a_model_whose_fit_returns_none():
    found = audit_epsilon(Keeps(float), np.zeros((1, 1)), np.ones((1, 1)), n_runs=60, claim=1.0)
    assert found.violated
