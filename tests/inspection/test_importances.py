"""Importances are functions of released quantities, and find the columns that matter."""

from unittest.mock import patch

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
    DPRandomTree,
    DPRandomTreeRegressor,
    LocalDPNaiveBayes,
    Number,
    Schema,
)
from skdp.tree import _smoothing
from skdp.tree._smoothing import impurity_decreases

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
    DPRandomTree(bounds=(0, 1), classes=[0, 1]),
    DPRandomTreeRegressor(bounds=(0, 1), bounds_y=(0, 1)),
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
    if isinstance(model, DPRandomTreeRegressor):
        schema = Schema(dict(schema), target=Number(0, 1))
    model = clone(model).set_params(schema=schema, epsilon=20.0, random_state=0)
    model.set_params(**{name: None for name in ("bounds", "bounds_y", "classes") if hasattr(model, name)})
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
    model = DPAdditiveRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins=2, interactions=None, delta=1e-6, random_state=0)
    model.fit(X, X[:, 2])
    model.terms_ = [np.zeros_like(values) for values in model.terms_]
    model.terms_[0][:2] = 1.0, -3.0
    model.cell_counts_[0][:] = 0.0
    model.cell_counts_[0][:2] = 30.0, -5.0
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


# --- forests ---------------------------------------------------------------------------------------------------------

FORESTS = [
    (DPRandomTree, {"classes": [0, 1]}, 1e-5),
    (DPRandomTree, {"classes": [0, 1]}, 0.0),
    (DPRandomTreeRegressor, {"bounds_y": (-1, 1)}, 1e-5),
]


@pytest.mark.parametrize(("kind", "known", "delta"), FORESTS)
@pytest.mark.parametrize("seed", range(3))
def test_two_of_ten_columns_are_found_at_epsilon_1(kind, known, delta, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (5000, 10))
    signal = 4 * (X[:, 3] - 0.5) + 3 * (X[:, 7] - 0.5)
    y = np.clip(signal / 4 + 0.3 * rng.normal(size=5000), -1, 1)
    if kind is DPRandomTree:
        y = (signal + rng.logistic(size=5000) > 0).astype(int)
    model = kind(epsilon=1.0, delta=delta, bounds=(0, 1), random_state=seed, structure_seed=seed, **known)
    found = model.fit(X, y).feature_importances_
    others = np.delete(found, [3, 7])
    assert set(np.argsort(found)[-2:]) == {3, 7}
    assert others.mean() < 0.03
    assert np.median(others) == 0


def by_hand(forest, counts, n_features):
    """The decreases of the impurity of exact counts, split by split."""
    found, seen = np.zeros(n_features), np.zeros(n_features)

    def impurity(leaves):
        nodes = leaves.sum(axis=0)
        return nodes.sum() - (nodes**2).sum() / nodes.sum()

    for t in range(forest.n_trees):
        seen[np.unique(forest.features[t, : forest.n_seen[t]])] += 1
        for level in range(forest.depth):
            for node, leaves in enumerate(np.split(counts[t], 2**level)):
                halves = np.split(leaves, 2)
                if all(half.sum() > 0 for half in halves):
                    slot = forest.level(forest.slots, level)[t, node]
                    decrease = impurity(leaves) - sum(map(impurity, halves))
                    found[forest.features[t, slot]] += decrease
    return found / seen


def test_decreases_without_noise_are_those_of_impurity():
    model = DPRandomTree(
        bounds=(0, 1), classes=[0, 1], epsilon=np.inf, n_estimators=5, max_depth=4, max_features=2, expected_n=N
    ).fit(X, Y)
    forest, counts = model.structure_, model.leaf_counts_
    found = impurity_decreases(forest, counts, forest.reachable(), 0.0, 4, dispersion=0.0)
    np.testing.assert_allclose(found, by_hand(forest, counts, 4))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_chance_alone_has_no_importance(n_classes):
    # Labels that have nothing to do with the columns, with noise: of the sums over levels, few pass, and those that do
    # are small. The mean of what is compared with chance is 0, by 300 draws.
    rng = np.random.default_rng(1)
    structure = (
        DPRandomTree(bounds=(0, 1), classes=range(n_classes), epsilon=np.inf, n_estimators=4, max_depth=3)
        .fit(X, rng.integers(n_classes, size=N))
        .structure_
    )
    reachable = structure.reachable()
    found = []
    with patch.object(_smoothing, "SPLIT_EVIDENCE", -1e300):
        for _ in range(300):
            counts = rng.multinomial(N, np.full(8 * n_classes, 1 / (8 * n_classes)), size=4).reshape(4, 8, n_classes)
            noisy = counts + rng.normal(scale=30.0, size=counts.shape)
            found.append(impurity_decreases(structure, noisy, reachable, 30.0, 4))
            # Without the correction, all would be positive.
            assert np.all(impurity_decreases(structure, noisy, reachable, 0.0, 4, dispersion=0.0) > 0)
    error = np.std(found, axis=0) / np.sqrt(300)
    assert np.all(np.abs(np.mean(found, axis=0)) < 7 * error)


def test_a_forest_without_signal_has_few_importances():
    rng = np.random.default_rng(2)
    model = DPRandomTree(bounds=(0, 1), classes=[0, 1], epsilon=1.0, delta=1e-5, random_state=0)
    found = [model.fit(rng.uniform(0, 1, (2000, 8)), rng.integers(2, size=2000))._decreases for _ in range(10)]
    # A normal sum exceeds three deviations rarely; a square of a normal number does in 22 of 1,000 cases.
    assert np.mean(np.array(found) > 0) < 0.3
