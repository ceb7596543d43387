"""Importances are functions of released quantities, and find the columns that matter."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel

from skdp import (
    Category,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGreedyTree,
    DPNaiveBayes,
    LocalDPNaiveBayes,
    Number,
    Schema,
)

RNG = np.random.default_rng(0)
N = 4000
X = RNG.uniform(0, 1, (N, 4))
Y = (X[:, 2] + 0.1 * X[:, 0] + 0.1 * RNG.normal(size=N) > 0.55).astype(int)

MODELS = [
    DPAdditiveClassifier(bounds=(0, 1), n_bins=4, classes=[0, 1], delta=1e-6),
    DPGreedyTree(bounds=(0, 1), classes=[0, 1], max_depth=3),
    DPNaiveBayes(bounds=(0, 1), classes=[0, 1]),
    DPNaiveBayes(bounds=(0, 1), classes=[0, 1], numeric="binned"),
    LocalDPNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=4),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def with_noise(model):
    return clone(model).set_params(epsilon=20.0, random_state=0)


@every_model
def test_the_column_that_matters_has_the_largest_share(model):
    found = with_noise(model).fit(X, Y).feature_importances_
    assert found.shape == (4,)
    assert found.argmax() == 2
    assert found[2] > 0.5
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(1)


@every_model
def test_selectors_of_scikit_learn_take_them(model):
    selected = SelectFromModel(with_noise(model), max_features=1, threshold=-np.inf).fit(X, Y)
    assert selected.get_support().tolist() == [False, False, True, False]
    assert RFE(with_noise(model), n_features_to_select=2).fit(X, Y).get_support()[2]


@every_model
def test_importances_are_of_the_columns_of_a_table(model):
    schema = Schema(
        {"a": Number(0, 1), "size": Category(["s", "m"], ordered=True), "c": Number(0, 1), "d": (0, 1)}, target=[0, 1]
    )
    columns = {"a": X[:, 0], "size": np.where(X[:, 1] > 0.5, "s", "m"), "c": X[:, 2], "d": X[:, 3]}
    model = clone(model).set_params(bounds=None, classes=None, schema=schema, epsilon=20.0, random_state=0)
    found = model.fit(columns, Y).feature_importances_
    assert found.shape == (model.n_features_in_,) == (4,)
    assert found.argmax() == 2


def test_a_pair_counts_half_for_each_column():
    model = DPAdditiveRegressor(
        bounds=(0, 1), bounds_y=(0, 1), n_bins=4, interactions=[(0, 1)], delta=1e-6, epsilon=50.0, random_state=0
    ).fit(X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5))
    terms = model.term_importances_
    assert terms.shape == (5,)
    assert terms.argmax() == 4
    expected = np.array([terms[0] + terms[4] / 2, terms[1] + terms[4] / 2, terms[2], terms[3]])
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum())


def test_terms_are_weighed_by_released_counts():
    model = DPAdditiveRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins=2, delta=1e-6, random_state=0).fit(X, X[:, 2])
    model.terms_ = [np.array([1.0, -3.0])] + [np.zeros(2)] * 3
    model.cell_counts_[0] = np.array([30.0, -5.0])
    assert model.term_importances_.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_splits_of_a_tree_lessen_impurity():
    from types import SimpleNamespace

    from skdp.tree._greedy_tree import gini_decreases

    counts = np.array([[8.0, 0.0], [0.0, 4.0], [2.0, 2.0], [2.0, 2.0]])
    splits = SimpleNamespace(features=np.array([1, 0, 0]), merged=np.array([False, False, True]))
    whole = 20 - (12**2 + 8**2) / 20
    left, right = 12 - (8**2 + 4**2) / 12, 8 - (4**2 + 4**2) / 8
    np.testing.assert_allclose(gini_decreases(splits, counts, 3), [left, whole - left - right, 0.0])
    # What noise made of empty leaves is no record.
    assert np.all(np.isfinite(gini_decreases(splits, -counts, 3)))


def test_no_signal_and_no_noise():
    model = DPGreedyTree(bounds=(0, 1), classes=[0, 1], epsilon=np.inf).fit(np.zeros((50, 2)), [0, 1] * 25)
    assert model.feature_importances_.tolist() == [0.0, 0.0]
