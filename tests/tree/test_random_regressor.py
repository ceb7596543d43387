"""Random trees for numbers: exact sums, sensitivities by brute force, known answers, and tables without signal.

Every stochastic test has a fixed seed; laws of noise are tested with a false-alarm probability of 1e-9.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdp import DPRandomTree, DPRandomTreeRegressor
from skdp.accounting import gaussian_mu
from skdp.exceptions import SchemaMismatchWarning
from skdp.mechanisms import DiscreteLaplaceMechanism, NoiseSource, NoNoise
from skdp.solvers.regularised import Scaling
from skdp.tree import export_text
from skdp.tree._outcomes import Targets, leaf_shares_l1, leaf_shares_l2, spread_weight
from skdp.tree._structure import grow
from tests.difficult import difficult
from tests.tree.data import MIXED, columns_of, mixed

FALSE_ALARM = 1e-9
INF = math.inf
UNIT = Targets(Scaling.of_target((0, 1), True))


def numbers(n, seed=0):
    """Rows of two numbers and two columns of codes, and targets in [-3, 5] that follow two of them."""
    X, _ = mixed(n, seed=seed)
    rng = np.random.default_rng([1, seed])
    return X, np.clip(1 + 3 * (X[:, 0] - 0.5) + (X[:, 1] == 2) + 0.3 * rng.standard_normal(n), -3, 5)


def regressor(**parameters):
    return DPRandomTreeRegressor(**{**MIXED, "bounds_y": (-3, 5), "random_state": 0, **parameters})


def sums_of(n_trees, norm, X, y, depth=4):
    """The vector that is released, for a mechanism by this norm."""
    forest = grow(columns_of([0, 4, 0, 3]), [1 + t % 4 for t in range(n_trees)], depth, NoiseSource(0).stream("t"), {})
    mechanism = NoNoise(1.0) if norm == "L2" else DiscreteLaplaceMechanism(1e-3, 1.0, 1)
    assert mechanism.norm == norm
    return UNIT.sums(mechanism, forest, *UNIT.encoded(X, y)[:2])


# --- sums and sensitivity -----------------------------------------------------------------------------------------


def test_without_noise_sums_are_those_of_the_leaves():
    X, y = numbers(2000)
    model = regressor(epsilon=INF).fit(X, y)
    for t, leaves in enumerate(model.apply(X).T):
        counts = np.bincount(leaves, minlength=model.leaf_counts_.shape[1])
        sums = np.bincount(leaves, weights=y - 1, minlength=len(counts))
        np.testing.assert_array_equal(model.leaf_counts_[t], counts)
        # Each target is rounded to a multiple of 2**-20 of the width of its bounds.
        np.testing.assert_allclose(model.leaf_sums_[t], sums, atol=2000 * 8 * 2.0**-21)
    assert model.mean_ == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("n_trees", [1, 3, 8, 40])
@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_one_record_moves_sums_by_no_more_than_the_bound_and_attains_it(n_trees, norm):
    X, _ = mixed(30)
    y = np.random.default_rng(0).random(30)
    base = sums_of(n_trees, norm, X, y)
    bound = {"L1": leaf_shares_l1, "L2": leaf_shares_l2}[norm](n_trees)
    moved = []
    for row in [*mixed(10, seed=1)[0], np.array([0.5, 9.0, 0.5, 9.0])]:
        for target in (*np.linspace(0, 1, 33), 1 / 3, 1e-9, -7.0, 9.0):
            difference = sums_of(n_trees, norm, np.vstack([X, row]), np.append(y, target)) - base
            moved.append(np.abs(difference).sum() if norm == "L1" else np.linalg.norm(difference))
    assert max(moved) <= bound * (1 + 1e-12)
    assert max(moved) >= bound * (1 - 1e-12)


def test_the_sum_of_spreads_is_free_by_the_euclidean_norm_and_costs_a_little_otherwise():
    for n_trees in range(1, 300):
        assert 2 * n_trees < spread_weight(n_trees, "L2") ** 2 <= 8 * n_trees
        assert n_trees < leaf_shares_l1(n_trees) <= n_trees * 33 / 32


def test_order_of_the_rows_does_not_move_a_bit():
    X, y = numbers(20_000)
    order = np.random.default_rng(0).permutation(len(y))
    one, other = sums_of(5, "L2", X, y / 5), sums_of(5, "L2", X[order], y[order] / 5)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("delta", "law"),
    [
        (1e-5, stats.norm(scale=2 / gaussian_mu(0.5, 1e-5))),
        (0.0, stats.laplace(scale=(4 + 1 / 8) / 0.5)),
    ],
)
def test_noise_of_the_sums(delta, law):
    # One released number in each leaf is (count - sum) / 2, and the other is (count + sum) / 2.
    parameters = {"bounds": (0, 1), "bounds_y": (-1, 1), "n_estimators": 4, "weights": "equal"}
    model = DPRandomTreeRegressor(epsilon=0.5, delta=delta, **parameters)
    empty = np.empty((0, 4)), np.empty(0)
    found = []
    for seed in range(20):
        model.set_params(random_state=seed).fit(*empty)
        found += [(model.leaf_counts_ + side * model.leaf_sums_).ravel() / 2 for side in (1, -1)]
    noise = np.concatenate(found)
    assert stats.kstest(noise, law.cdf).pvalue > FALSE_ALARM, "false alarm 1e-9"
    assert stats.kstest(2 * noise, law.cdf).pvalue < FALSE_ALARM


# --- known answers ------------------------------------------------------------------------------------------------


def test_a_tree_without_splits_predicts_the_mean():
    X, y = numbers(3000)
    for epsilon in (3.0, INF):
        model = regressor(epsilon=epsilon, delta=1e-5, max_depth=0).fit(X, y)
        assert np.ptp(model.predict(X)) == 0
        assert model.predict(X)[0] == pytest.approx(y.mean(), abs=0.05)


def test_targets_at_the_ends_of_their_bounds_are_labels():
    # What is released, and the step, are those of two classes.
    X, y = mixed(4000)
    parameters = {**MIXED, "epsilon": INF, "n_estimators": 6, "max_depth": 3, "weights": "equal"}
    labels = DPRandomTree(classes=[0, 1], **parameters).fit(X, y)
    targets = DPRandomTreeRegressor(bounds_y=(0, 1), **parameters).fit(X, y.astype(float))
    np.testing.assert_array_equal(targets.leaf_counts_, labels.leaf_counts_.sum(axis=2))
    np.testing.assert_allclose(targets.predict(X), labels.predict_proba(X)[:, 1], atol=0.01)


@pytest.mark.parametrize(("epsilon", "delta", "least"), [(1.0, 1e-5, 0.75), (1.0, 0.0, 0.5), (INF, 0.0, 0.8)])
def test_signal_is_found(epsilon, delta, least):
    X, y = numbers(8000)
    X_test, y_test = numbers(2000, seed=1)
    model = regressor(epsilon=epsilon, delta=delta).fit(X, y)
    assert model.score(X_test, y_test) > least
    predictions = model.predict(X_test)
    assert predictions.min() > -3
    assert predictions.max() < 5


def test_units_of_targets_do_not_matter():
    X, y = numbers(500)
    one = regressor().fit(X, y).predict(X)
    other = regressor(bounds_y=(-3.0 * 128, 5.0 * 128)).fit(X, 128 * y).predict(X)
    np.testing.assert_allclose(other, 128 * one, rtol=1e-6)


def test_rows_with_unknown_categories_take_the_mean_of_their_node():
    X, y = numbers(2000)
    model = regressor(epsilon=INF, n_estimators=4, max_features=1, weights="equal", max_depth=2).fit(X, y)
    unknown = np.array([[0.5, 7.0, 0.5, -1.0]])
    nodes = model.apply(unknown)[0]
    categorical = np.isin(model.structure_.features[:, 0], [1, 3])
    np.testing.assert_array_equal(nodes >= model.leaf_counts_.shape[1], categorical)
    # They add nothing then: a tree of numbers alone gives the same.
    model.tree_weights_[categorical] = 100.0
    other = model.predict(unknown)
    model.tree_weights_[categorical] = 0.0
    np.testing.assert_allclose(model.predict(unknown), other)
    assert model.inner_means_[0, 0] == pytest.approx(model.mean_)


def test_declared_codes_that_do_not_occur_are_noticed():
    X, y = numbers(3000)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = regressor(epsilon=3.0, delta=1e-5, max_features=1)
    with pytest.warns(SchemaMismatchWarning, match="the column 'b'"):
        model.fit(frame.assign(b=9.0), y)


# --- chance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", ["no_signal", "equal_rows", "all_constant"])
def test_columns_that_say_nothing_give_the_mean(kind, delta):
    table = difficult(kind, 3000)
    for epsilon in (3.0, INF):
        model = DPRandomTreeRegressor(
            epsilon=epsilon, delta=delta, bounds=table.bounds, bounds_y=table.target_bounds, random_state=0
        )
        y = np.clip(table.target, *table.target_bounds)
        assert model.fit(table.X, y).score(table.X, y) > -0.02


def test_leaves_of_weak_signals_are_not_fitted_to_chance():
    # Leaves that were shrunk one by one made an R2 of -.05 of a signal of .03.
    X, y = numbers(3000)
    rng = np.random.default_rng(2)
    targets = [np.clip(1 + 0.2 * y + rng.standard_normal(3000), -3, 5) for _ in range(2)]
    model = regressor(epsilon=INF).fit(X, targets[0])
    assert model.score(X, targets[1]) > 0.01


def test_a_step_that_does_harm_is_not_taken(monkeypatch):
    X, y = numbers(8000)
    monkeypatch.setattr("skdp.tree._forest.newton_step", lambda step, *rest: np.full(step.n_weights, 100.0))
    model = regressor(epsilon=INF).fit(X, y)
    assert np.ptp(model.tree_weights_) == 0
    assert model.intercept_ == 0


# --- text ---------------------------------------------------------------------------------------------------------


def test_text_of_a_tree():
    X, y = numbers(500)
    model = regressor(epsilon=INF, n_estimators=1, max_depth=1).fit(X, y)
    lines = export_text(model).splitlines()
    assert len(lines) == 4
    assert lines[1] == f"|   |--- mean: {model.leaf_means_[0, 0]:.2f}, count {model.leaf_counts_[0, 0]:.2f}"
