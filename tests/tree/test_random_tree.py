"""Random trees: structure from public numbers alone, exact counts, sensitivities by brute force, the Newton step.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed.
"""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPGreedyTree, DPRandomTree
from skdp.accounting import GaussianEvent, PureEvent, gaussian_mu
from skdp.exceptions import ReleaseError, SchemaMismatchWarning
from skdp.mechanisms import NoiseSource
from skdp.release.session import ReleaseSession
from skdp.sensitivity import exact_sum
from skdp.tree import _plans, export_text
from skdp.tree._forest import leaf_scores, node_scores
from skdp.tree._outcomes import Labels, leaf_counts, leaf_counts_l1, leaf_counts_l2
from skdp.tree._plans import Shares, depth_of_trees, features_of_trees, make_plan, number_of_trees, plan_trees
from skdp.tree._smoothing import (
    LARGEST_LOG_ODDS,
    Line,
    Step,
    _majorant,
    brier_losses,
    class_distributions,
    class_prior,
    decision,
    line_scores,
    log_odds,
    newton_step,
    newton_sums,
    only_chance,
    probabilities,
    record_terms,
    scores,
    totals_of,
)
from skdp.tree._structure import Routes, grow
from tests.tree.data import MIXED, columns_of, mixed

FALSE_ALARM = 1e-6
INF = math.inf
COLUMNS = columns_of([0, 4, 0, 3])


def leaves_and_prior(counts, reachable, noise, few_trees=False):
    prior = class_prior(*totals_of(counts, reachable, noise))
    levels = class_distributions(counts, reachable, noise, few_trees, prior)
    assert [level.shape[1] for level in levels] == [2**i for i in range(len(levels))]
    return levels[-1], levels[0][0, 0]


def forest_of(n_seen=(1, 2, 3, 4, 2), depth=4, seed=0, warps=None):
    return grow(COLUMNS, list(n_seen), depth, NoiseSource(seed).stream("test"), warps or {})


def noiseless(**parameters):
    return DPRandomTree(**{**MIXED, "epsilon": INF, "classes": [0, 1], **parameters})


# --- structure ----------------------------------------------------------------------------------------------------


def naive_leaf(forest, tree, row):
    """Walk one row down one tree."""
    node = 0
    for level in range(forest.depth):
        i = 2**level - 1 + node
        feature = forest.features[tree, forest.slots[tree, i]]
        value = row[feature]
        if feature in forest.places:
            n = COLUMNS.n_categories[feature]
            known = value == int(value) and 0 <= value < n
            if not known and np.isfinite(forest.thresholds[tree, i]):
                return forest.n_leaves + i
            value = forest.places[feature][tree, int(value)] if known else 0.0
        node = 2 * node + (value > forest.thresholds[tree, i])
    return node


def test_routing_is_what_a_walk_down_the_tree_gives():
    X, _ = mixed(300)
    X[:5, 1] = [-1, 4, 1.5, 1e300, -1e300]
    X[5:9, 0] = [-1, 2, 1e300, -1e300]
    forest = forest_of()
    expected = [[naive_leaf(forest, t, row) for row in X] for t in range(forest.n_trees)]
    np.testing.assert_array_equal(forest.leaves_of(X).T, expected)
    assert np.all(forest.reachable()[np.arange(5)[:, None], forest.leaves_of(X[5:]).T])


@pytest.mark.parametrize("depth", [0, 1, 3, 5, 9])
def test_looking_leaves_up_gives_what_walking_gives(depth):
    X, _ = mixed(3000)
    X[:5, 1] = [-1, 4, 1.5, 1e30, -1e30]
    X[5:9, 0] = [-1, 2, 1e30, -1e30]
    for n_seen in ([1, 1, 1, 1, 1, 1], [2] * 6, [1, 3, 2, 4]):
        forest = forest_of(n_seen=n_seen, depth=depth)
        routes = Routes(forest, tables=True)
        # Values that thresholds themselves have go left.
        numeric = np.isfinite(forest.thresholds)
        for t, node in np.argwhere(numeric).tolist():
            X[10 + node % 2000, forest.features[t, forest.slots[t, node]]] = forest.thresholds[t, node]
        for rows in (X, X[:1], X[:0], X.astype(np.float32)):
            walked = np.stack(list(Routes(forest, tables=False)(rows)))
            np.testing.assert_array_equal(np.stack(list(routes(rows))), walked)
        if depth:
            assert routes._tables


@pytest.mark.parametrize("kind", [DPRandomTree, DPGreedyTree])
def test_what_is_kept_does_not_tell_how_many_records_there_were(kind):
    X, _ = mixed(3000)
    kept = []
    for n in (0, 10, 3000):
        model = kind(epsilon=1e-4, bounds=(0, 3), classes=[0, 1], random_state=0).fit(X[:n], np.arange(n) % 2)
        kept.append((sorted(vars(model)), sorted(vars(model.structure_))))
    assert kept[0] == kept[1] == kept[2]


def test_every_reachable_leaf_is_reached():
    X, _ = mixed(100_000)
    forest = forest_of(n_seen=[1, 1, 1, 1, 2, 3], depth=3)
    reached = np.zeros_like(forest.reachable())
    leaves = forest.leaves_of(X).T
    for t in range(forest.n_trees):
        reached[t, leaves[t]] = True
    np.testing.assert_array_equal(reached, forest.reachable())
    assert not np.all(forest.reachable()), "a tree of three categories has fewer than eight leaves"


def test_splits_lie_within_cells_and_divide_categories():
    forest = forest_of(n_seen=[4] * 50, depth=6)
    numeric = np.isin(forest.features[np.arange(50)[:, None], forest.slots], [0, 2]) & np.isfinite(forest.thresholds)
    assert np.all((forest.thresholds[numeric] > 0) & (forest.thresholds[numeric] < 1))
    for feature, places in forest.places.items():
        n = COLUMNS.n_categories[feature]
        np.testing.assert_array_equal(np.sort(places[:, :n], axis=1), np.tile(np.arange(n), (50, 1)))
        assert np.all(np.isnan(places[:, n]))


def test_all_features_are_seen_before_any_is_seen_again():
    forest = forest_of(n_seen=[1] * 4)
    assert sorted(forest.features[:, 0].tolist()) == [0, 1, 2, 3]
    wide = forest_of(n_seen=[2] * 6)
    assert np.bincount(wide.features.ravel()).tolist() == [3, 3, 3, 3]
    assert np.all(wide.features[:, 0] != wide.features[:, 1])


def test_structure_does_not_depend_on_the_data_or_on_the_noise():
    first, second = mixed(500), mixed(3, seed=9)
    fits = [
        DPRandomTree(**MIXED, classes=[0, 1], delta=delta, random_state=seed, n_estimators=6).fit(*data).structure_
        for data, seed, delta in ((first, 0, 1e-5), (second, 1, 1e-5), (first, None, 0.0))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].thresholds, other.thresholds)
        np.testing.assert_array_equal(fits[0].features, other.features)
        np.testing.assert_array_equal(fits[0].slots, other.slots)
        for feature, places in fits[0].places.items():
            np.testing.assert_array_equal(places, other.places[feature])
    another = DPRandomTree(**MIXED, classes=[0, 1], structure_seed=1, n_estimators=6).fit(*first).structure_
    assert not np.array_equal(another.thresholds, fits[0].thresholds)


def test_cut_points_are_all_that_the_structure_takes_from_the_data():
    data = mixed(500)
    fits = [
        DPRandomTree(**MIXED, classes=[0, 1], thresholds="quantile", random_state=seed).fit(*data).structure_
        for seed in (0, 1)
    ]
    assert not np.array_equal(fits[0].thresholds, fits[1].thresholds)
    np.testing.assert_array_equal(fits[0].slots, fits[1].slots)
    np.testing.assert_array_equal(fits[0].features, fits[1].features)


def test_thresholds_follow_cut_points():
    warp = np.concatenate([np.linspace(0, 0.01, 8), [1.0]])
    forest = forest_of(n_seen=[1] * 40, depth=3, warps={0: warp})
    of_first = forest.features[:, 0] == 0
    assert np.mean(forest.thresholds[of_first] < 0.01) > 0.8
    others = forest.features[:, 0] == 2
    assert np.mean(forest.thresholds[others] < 0.01) == 0


# --- counts -------------------------------------------------------------------------------------------------------


def test_infinite_epsilon_gives_exact_counts():
    X, y = mixed(3000, n_classes=3)
    model = noiseless(classes=[0, 1, 2]).fit(X, y)
    leaves = model.apply(X)
    expected = np.zeros_like(model.leaf_counts_)
    for t in range(leaves.shape[1]):
        np.add.at(expected[t], (leaves[:, t], y), 1)
    np.testing.assert_array_equal(model.leaf_counts_, expected)
    assert np.all(model.leaf_counts_.sum(axis=(1, 2)) == 3000)


@pytest.mark.parametrize("n_trees", [1, 5, 40])
def test_counts_move_by_exactly_what_the_noise_is_made_for(n_trees):
    rng = np.random.default_rng(0)
    X, y = mixed(60)
    forest = forest_of(n_seen=rng.integers(1, 5, size=n_trees).tolist(), depth=5)
    base = leaf_counts(forest, X, y, 2)
    corners = [[a, b, c, d] for a in (-9, 0, 1, 9) for b in (-1, 0, 3, 4) for c in (0, 1) for d in (0, 2)]
    moved = []
    for row in [*mixed(40, seed=1)[0], *np.array(corners, dtype=float)]:
        for label in (0, 1):
            difference = leaf_counts(forest, np.vstack([X, row]), np.append(y, label), 2) - base
            moved.append((np.abs(difference).sum(), np.linalg.norm(difference)))
    for i in range(len(X)):
        difference = leaf_counts(forest, np.delete(X, i, axis=0), np.delete(y, i), 2) - base
        moved.append((np.abs(difference).sum(), np.linalg.norm(difference)))
    l1, l2 = np.array(moved).T
    assert l1.max() == leaf_counts_l1(n_trees)
    assert l2.max() == pytest.approx(leaf_counts_l2(n_trees))
    # A record of known categories moves all trees.
    np.testing.assert_array_equal(l1[:80], n_trees)


def empty_counts(delta, epsilon=0.5):
    """Released counts of no data: noise."""
    model = DPRandomTree(bounds=(0, 1), n_estimators=4, epsilon=epsilon, delta=delta, classes=[0, 1], weights="equal")
    out = [
        model.set_params(random_state=seed).fit(np.empty((0, 4)), np.empty(0)).leaf_counts_.ravel()
        for seed in range(20)
    ]
    return np.concatenate(out)


def test_gaussian_noise_of_the_counts():
    scale = 2 / gaussian_mu(0.5, 1e-5)
    noise = empty_counts(1e-5)
    assert stats.kstest(noise, stats.norm(scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(noise, stats.norm(scale=0.5 * scale).cdf).pvalue < FALSE_ALARM


def test_laplace_noise_of_the_counts():
    noise = empty_counts(0.0)
    assert np.all(noise == np.rint(noise))
    law = stats.dlaplace(0.5 / 4)
    # Uniform within steps makes the discrete law continuous.
    smooth = law.cdf(noise - 1) + np.random.default_rng(0).uniform(size=len(noise)) * law.pmf(noise)
    assert stats.kstest(smooth, "uniform").pvalue > FALSE_ALARM, "false alarm 1e-6"
    wrong = stats.dlaplace(0.5 / 2)
    smooth = wrong.cdf(noise - 1) + np.random.default_rng(0).uniform(size=len(noise)) * wrong.pmf(noise)
    assert stats.kstest(smooth, "uniform").pvalue < FALSE_ALARM


# --- smoothing ----------------------------------------------------------------------------------------------------


def test_without_noise_distributions_are_frequencies_but_for_two_records():
    counts = 1e6 * np.random.default_rng(0).uniform(0.1, 1, size=(3, 8, 4))
    counts[1:] *= counts[0].sum(axis=0) / counts[1:].sum(axis=1, keepdims=True)
    distributions, prior = leaves_and_prior(counts, np.ones((3, 8), dtype=bool), 0.0)
    np.testing.assert_allclose(distributions, counts / counts.sum(axis=2, keepdims=True), atol=1e-4)
    np.testing.assert_allclose(prior, counts[0].sum(axis=0) / counts[0].sum(), atol=1e-4)


def test_pure_noise_is_mostly_smoothed_away():
    rng = np.random.default_rng(0)
    reachable = np.ones((20, 32), dtype=bool)
    flat, _ = leaves_and_prior(rng.normal(scale=50, size=(20, 32, 2)), reachable, 50.0)
    trusting, _ = leaves_and_prior(rng.normal(scale=50, size=(20, 32, 2)), reachable, 0.0)
    assert np.mean(np.abs(flat - 0.5)) < 0.5 * np.mean(np.abs(trusting - 0.5))
    assert np.all((flat > 0) & (flat < 1))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scores_are_bounded_whatever_is_released(n_classes):
    rng = np.random.default_rng(0)
    counts = rng.normal(scale=10.0 ** rng.integers(0, 9, size=(30, 16, 1)), size=(30, 16, n_classes))
    distributions, prior = leaves_and_prior(counts, np.ones((30, 16), dtype=bool), 1.0)
    table = scores(distributions, prior)
    np.testing.assert_allclose(distributions.sum(axis=2), 1)
    if n_classes == 2:
        assert np.abs(table).max() <= LARGEST_LOG_ODDS
    else:
        assert np.ptp(table, axis=2).max() <= 2 * LARGEST_LOG_ODDS * (1 + 1e-12)


# --- the Newton step ----------------------------------------------------------------------------------------------


def problem(n_classes, n_rows=200, n_trees=6, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    step = Step(n_trees, n_classes)
    logs = np.log(rng.dirichlet(np.ones(n_classes) / spread + 1e-3, size=(n_rows, n_trees)) + 1e-6)
    table = scores(np.exp(logs), np.full(n_classes, 1 / n_classes)).transpose(1, 2, 0)
    base = log_odds(np.log(rng.dirichlet(np.ones(n_classes))))
    return step, np.ascontiguousarray(table), base, step.first_weights(1.0), rng.integers(n_classes, size=n_rows)


def sums_of(step, table, base, start, codes):
    rows = np.arange(table.shape[2])
    return newton_sums(step, lambda part: record_terms(step, table[:, :, part], base, start, codes[part]), rows)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradient_is_that_of_the_log_likelihood_and_curvature_bounds_it(n_classes, monkeypatch):
    monkeypatch.setattr("skdp.tree._smoothing.CURVATURE", 1e3)
    monkeypatch.setattr("skdp.tree._smoothing.GRADIENT", 1e3)
    step, table, base, start, codes = problem(n_classes)
    curvature, gradient = step.unpack(sums_of(step, table, base, start, codes))

    def likelihood(weights):
        p = probabilities(decision(base, table, weights))
        return np.log(p[codes, np.arange(len(codes))]).sum()

    h = 1e-4
    eye = h * np.eye(step.n_weights)
    numeric = [(likelihood(start + e) - likelihood(start - e)) / (2 * h) for e in eye]
    np.testing.assert_allclose(gradient, numeric, atol=2e-3)
    # The bound lies below, near and far, and touches where the step starts.
    rng = np.random.default_rng(1)
    here = likelihood(start)
    gains = []
    for size in (1e-2, 0.1, 1.0, 10.0):
        for change in size * rng.normal(size=(50, step.n_weights)):
            gains.append(likelihood(start + change) - here - gradient @ change)
            assert gains[-1] >= -0.5 * change @ curvature @ change - 1e-2
    # ... and does so by no more than it takes: with half of it, some do not.
    assert min(gains) < -1


def test_bound_is_attained_where_log_odds_are_reflected(monkeypatch):
    monkeypatch.setattr("skdp.tree._smoothing.CURVATURE", 1e3)
    monkeypatch.setattr("skdp.tree._smoothing.GRADIENT", 1e3)
    step, table, base, start = Step(1, 2), np.full((1, 1, 1), 3.0), np.zeros(1), np.array([1.0, 0.0])
    curvature, gradient = step.unpack(sums_of(step, table, base, start, np.array([1])))
    change = np.array([0.0, -6.0])
    bound = gradient @ change - 0.5 * change @ curvature @ change
    assert np.log(1 / (1 + math.exp(3)) / (1 / (1 + math.exp(-3)))) == pytest.approx(bound, abs=1e-3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_steps_up_to_twice_the_bounds_own_never_lower_the_likelihood(n_classes, monkeypatch):
    # Trees that are one tree: the Newton step of this data leads to a likelihood that is many times lower.
    monkeypatch.setattr("skdp.tree._smoothing.CURVATURE", 1e6)
    monkeypatch.setattr("skdp.tree._smoothing.GRADIENT", 1e6)
    step, table, base, _, codes = problem(n_classes, n_rows=300, n_trees=12, spread=4.0)
    table = np.repeat(table[:1], 12, axis=0)
    for size in (0.0, 0.1, 0.5, 2.0):
        start = np.r_[np.full(12, size), np.zeros(step.n_scores)]
        change = newton_step(step, sums_of(step, table, base, start, codes), 0.0, 0.0)
        found = []
        for length in (0.0, 0.5, 1.0, 1.5, 2.0):
            p = probabilities(decision(base, table, start + length * change))
            found.append(np.log(p[codes, np.arange(len(codes))]).sum())
        assert min(found[1:]) >= found[0] - 1e-2


def brier_scores(line, base, table, codes, unit=0.0):
    rows = np.arange(len(codes))
    return line_scores(line, unit, base, lambda part: table[:, :, part], brier_losses, rows, codes)[0]


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_scores_of_weights_move_by_one_at_most_and_in_one_direction(n_classes):
    step, table, base, start, codes = problem(n_classes, n_rows=40, spread=4.0)
    line = Line(start, 50 * np.random.default_rng(0).normal(size=step.n_weights), (0.0, 1.0, -1.0), (0.8, 0.1, 0.1))
    whole = brier_scores(line, base, table, codes)
    moved = []
    for i in range(len(codes)):
        for label in range(n_classes):
            less = brier_scores(line, base, np.delete(table, i, axis=2), np.delete(codes, i))
            changed = brier_scores(line, base, table, np.where(np.arange(len(codes)) == i, label, codes))
            moved += [*(less - changed)]
    assert min(moved) >= 0
    assert 0.9 < max(moved) <= 1
    # A naive route; what the odds add is public.
    for k, length in enumerate(line.lengths):
        p = probabilities(decision(base, table, line.start + length * line.direction))
        loss = ((p - np.eye(n_classes)[codes].T) ** 2).sum() / 2
        assert whole[k] == pytest.approx(-loss, abs=1e-4)
    tilted = brier_scores(line, base, table, codes, 7.0)
    np.testing.assert_allclose(tilted - whole, 7 * np.log(line.odds), rtol=0, atol=2.0**-21)
    # On the same lattice as the losses, so that scores move by 1 at most to the last bit.
    np.testing.assert_array_equal(tilted * 2**20, np.rint(tilted * 2**20))


def test_repeated_steps_lead_to_logistic_regression(monkeypatch):
    monkeypatch.setattr("skdp.tree._smoothing.CURVATURE", 1e3)
    monkeypatch.setattr("skdp.tree._smoothing.GRADIENT", 1e3)
    step, table, _, start, codes = problem(2, n_rows=2000)
    codes = (table[0, 0] + np.random.default_rng(1).logistic(size=2000) > 0).astype(int)
    weights, base = start, np.zeros(1)
    for _ in range(40):
        weights = weights + 1.5 * newton_step(step, sums_of(step, table, base, weights, codes), 0.0, 0.0)
    theirs = LogisticRegression(C=1e6, tol=1e-10, max_iter=1000).fit(table[:, 0].T, codes)
    np.testing.assert_allclose(weights, np.append(theirs.coef_[0], theirs.intercept_[0]), atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("n_trees", [1, 4, 30])
def test_newton_sums_move_by_no_more_than_the_noise_is_made_for(n_classes, n_trees):
    step, table, base, start, codes = problem(n_classes, n_rows=50, n_trees=n_trees)
    fixed = sums_of(step, table, base, start, codes)
    rng = np.random.default_rng(2)
    most = np.full((n_trees, step.n_scores), LARGEST_LOG_ODDS)
    if step.n_scores > 1:
        most *= np.where(np.arange(n_classes) == 0, 1, -1)
        most -= most.mean(axis=1, keepdims=True)
    records = [sign * size * most for sign in (-1, 1) for size in (0, 0.01, 0.1, 0.3, 0.5, 0.7, 1)]
    records += list(problem(n_classes, 40, n_trees, seed=3, spread=4.0)[1].transpose(2, 0, 1))
    moved = []
    for record in records:
        for label in range(n_classes):
            for weights in (start, rng.normal(size=step.n_weights), 0 * start):
                other = np.concatenate([table, record[:, :, None]], axis=2)
                base_sums = fixed if weights is start else sums_of(step, table, base, weights, codes)
                difference = sums_of(step, other, base, weights, np.append(codes, label)) - base_sums
                moved.append(np.linalg.norm(difference))
    assert max(moved) <= step.sensitivity
    # Beyond two classes, the trace is scaled down, which is larger than the norm.
    assert max(moved) >= (0.99 if n_classes == 2 else 0.9) * step.sensitivity
    assert step.sensitivity < 1.001


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_record_adds_the_same_bits_wherever_it_stands(n_classes):
    step, table, base, start, codes = problem(n_classes, n_rows=100, n_trees=9)
    whole = record_terms(step, table, base, start, codes)
    for part in (slice(7, 8), slice(3, 50), slice(99, 100)):
        alone = record_terms(step, table[:, :, part], base, start, codes[part])
        for one, other in zip(whole, alone, strict=True):
            np.testing.assert_array_equal(one[..., part], other)


def test_size_of_the_blocks_does_not_matter(monkeypatch):
    step, table, base, start, codes = problem(4, n_rows=100)
    whole = sums_of(step, table, base, start, codes)
    monkeypatch.setattr("skdp.tree._smoothing._ENTRIES", 1)
    np.testing.assert_array_equal(sums_of(step, table, base, start, codes), whole)


def test_many_classes_are_read_in_smaller_blocks():
    X, y = mixed(3000, n_classes=100)
    model = DPRandomTree(**MIXED, classes=range(100), delta=1e-5, n_estimators=40, random_state=0)
    tracemalloc.start()
    model.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e8


def test_without_data_weights_stay_where_they_start():
    model = noiseless(n_estimators=4, max_features=1).fit(np.empty((0, 4)), np.empty(0))
    np.testing.assert_allclose(model.tree_weights_, 0.5)
    np.testing.assert_allclose(model.intercept_, 0.0)
    np.testing.assert_allclose(model.predict_proba(np.zeros((2, 4))), 0.5)


def test_noise_holds_weights_to_where_they_start():
    X, y = mixed(2000)
    distances = []
    for epsilon in (0.001, 1e4):
        model = DPRandomTree(**MIXED, epsilon=epsilon, delta=1e-5, classes=[0, 1], n_estimators=4, random_state=0)
        model.set_params(max_features=1).fit(X, y)
        distances.append(np.abs(model.tree_weights_ - 0.5).max())
    assert distances[0] < 0.4 < distances[1]


def test_step_does_not_overshoot_for_few_records_and_trees_that_say_the_same():
    X, y = load_breast_cancer(return_X_y=True)
    bounds = np.minimum(0.9 * X.min(axis=0), 0), 1.1 * X.max(axis=0)
    for seed in range(3):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = DPRandomTree(epsilon=math.inf, delta=1e-5, bounds=bounds, classes=[0, 1])
        assert model.fit(X_train, y_train).score(X_test, y_test) > 0.9


def test_equal_weights_spend_nothing_on_them():
    plan = DPRandomTree(**MIXED, classes=[0, 1], weights="equal", expected_n=5000).privacy_plan(n_features=4)
    assert [release.label for release in plan.releases] == ["leaf counts"]
    assert plan.releases[0].share == 1


def test_predictions_are_those_of_the_released_numbers():
    X, y = mixed(500, n_classes=3)
    model = DPRandomTree(**MIXED, epsilon=2.0, delta=1e-5, classes=[0, 1, 2], random_state=0).fit(X, y)
    table, leaves = scores(model.leaf_proba_, model.class_prior_), model.apply(X)
    total = log_odds(np.log(model.class_prior_)) + model.intercept_
    total = total + sum(w * table[t][leaves[:, t]] for t, w in enumerate(model.tree_weights_))
    expected = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))
    looked_up = list(leaf_scores(model.structure_.router(len(X)), table, X))
    np.testing.assert_array_equal(looked_up[1].T, table[1][leaves[:, 1]])


@pytest.mark.parametrize("most_numbers", [0, 2**14])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_added_tree_by_tree_with_the_same_bits(n_classes, most_numbers, monkeypatch):
    monkeypatch.setattr("skdp.tree._structure._MOST_NUMBERS", most_numbers)
    X, y = mixed(3000, n_classes=n_classes)
    X[:5, 1] = [-1, 4, 1.5, 1e30, -1e30]
    public = {**MIXED, "epsilon": 2.0, "delta": 1e-5, "classes": range(n_classes), "random_state": 0}
    for seen in (None, 3):
        model = DPRandomTree(**public, max_features=seen, n_estimators=7).fit(X, y)
        table = node_scores(model.leaf_proba_, model.inner_proba_, model.class_prior_)
        leaves, weights = model.apply(X), np.append(model.tree_weights_, model.intercept_)
        looked_up = [table[t][leaves[:, t]].T for t in range(7)]
        expected = probabilities(decision(log_odds(np.log(model.class_prior_)), looked_up, weights)).T
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        np.testing.assert_array_equal(model.predict_proba(X[:50]), expected[:50])


# --- defaults -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "n_features", "expected"),
    [(1e-5, 13, 26), (1e-5, 50, 64), (1e-5, 104, 104), (1e-5, 1000, 256), (0.0, 13, 26), (0.0, 1000, 256)],
)
def test_number_of_trees(delta, n_features, expected):
    parameters = DPRandomTree(bounds=(0, 1), delta=delta)._check_parameters()
    assert number_of_trees(parameters, n_features, 2, 1.0, lambda n_trees: 0.0) == expected
    seen = features_of_trees(parameters, expected, n_features)
    assert sum(seen) >= n_features
    assert max(seen) <= n_features


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_trees_are_fewer_where_noise_is_large_for_few_records(delta):
    def n_trees(**parameters):
        model = DPRandomTree(bounds=(0, 1), delta=delta, classes=list(range(10)), **parameters)
        return make_plan(model._check_parameters(), 64, Labels(10), 64).trees.n_trees

    numbers = [n_trees(epsilon=epsilon, expected_n=1437) for epsilon in (0.01, 0.5, 1.0, 100.0, np.inf)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 4
    assert numbers[1] < 16
    assert numbers[-2:] == [64, 64]
    assert n_trees(epsilon=0.5, expected_n=5000) > numbers[1]
    assert n_trees(epsilon=0.5, n_estimators=40, expected_n=1437) == 40


def test_few_trees_learn_digits_without_delta():
    # With 64 trees, which is as many as there are columns, the accuracy is that of guessing.
    X, y = load_digits(return_X_y=True)
    parameters = {"bounds": (0, 16), "classes": list(range(10)), "epsilon": 1.0, "random_state": 0}
    few = DPRandomTree(expected_n=1500, **parameters).fit(X, y)
    assert len(few.leaf_proba_) < 20
    assert few.score(X, y) > 0.5
    assert DPRandomTree(n_estimators=64, **parameters).fit(X, y).score(X, y) < 0.3


def test_depth_follows_the_number_of_records_and_the_noise():
    def depth(**parameters):
        model = DPRandomTree(bounds=(0, 1), classes=[0, 1], delta=1e-5, n_estimators=3, **parameters)
        return model.fit(np.empty((0, 2)), np.empty(0)).structure_.depth

    assert depth() == 5
    assert depth(max_depth=3) == 3
    depths = [depth(expected_n=n) for n in (1, 1000, 30_000, 10**9)]
    assert depths == sorted(depths)
    assert (depths[0], depths[-1]) == (1, 8)
    assert depth(expected_n=30_000, epsilon=0.1) < depth(expected_n=30_000)


def test_trees_that_see_many_features_are_deeper():
    parameters = DPRandomTree(bounds=(0, 1), expected_n=1000)._check_parameters()
    assert [depth_of_trees(parameters, 50.0, n_features, 2, 4, 1000) for n_features in (2, 4, 8, 16, 1000)] == [
        2,
        2,
        3,
        4,
        4,
    ]


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_no_step_where_noise_leaves_fewer_trees_than_features(delta):
    def plan(epsilon, **parameters):
        model = DPRandomTree(
            bounds=(0, 1), classes=list(range(10)), delta=delta, epsilon=epsilon, expected_n=1000, **parameters
        )
        assert model.privacy_plan(n_features=64) == make_plan(model._check_parameters(), 64, Labels(10), 64).guarantee
        return make_plan(model._check_parameters(), 64, Labels(10), 64)

    few, many = plan(0.5), plan(100.0)
    assert few.trees.few
    assert not many.trees.few
    of_weights = ["scale of the weights", "Newton step", "length of the step"]
    assert [r.label for r in few.guarantee.releases] == ["leaf counts", "scale of the weights"]
    assert [r.label for r in many.guarantee.releases] == ["leaf counts", *of_weights]
    assert few.guarantee.releases[0].share == pytest.approx(0.98)
    # Of trees that somebody asked for, there are enough.
    asked = plan(0.5, n_estimators=4)
    assert not asked.trees.few
    assert len(asked.guarantee.releases) == 4
    # What a fit costs is not known before the number of features is; but if class counts say how many trees there are.
    assert DPRandomTree(bounds=(0, 1), delta=delta, expected_n=1000)._fixed_cost() is None
    assert DPRandomTree(bounds=(0, 1), delta=delta)._fixed_cost() is not None
    assert DPRandomTree(bounds=(0, 1), delta=delta, n_estimators=4)._fixed_cost() is not None


def test_few_trees_keep_small_deviations():
    # A deviation of half of what noise comes to: left out of many trees, kept by a third of few.
    counts = np.array([[[60.0, 40.0], [40.0, 60.0]]])
    noise, reachable = 20.0, np.ones((1, 2), dtype=bool)
    many, _ = leaves_and_prior(counts, reachable, noise)
    few, _ = leaves_and_prior(counts, reachable, noise, few_trees=True)
    np.testing.assert_allclose(many, 0.5)
    # d is (10, -10), of square 200, and noise comes to 400: a third is kept. Each class has 21 records more.
    np.testing.assert_allclose(few[0, 0, 0], (50 + 10 / 3 + 21) / 142)
    # Without noise, few keep everything, and many what is more than sampling, of 50, may come to; of nothing, nothing.
    for few_trees, kept in ((False, 7.5), (True, 10)):
        sharp, _ = leaves_and_prior(counts, reachable, 0.0, few_trees)
        np.testing.assert_allclose(sharp[0, 0, 0], (50 + kept + 1) / 102)
        empty, _ = leaves_and_prior(0 * counts, reachable, 0.0, few_trees)
        np.testing.assert_allclose(empty, 0.5)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.7, 0.2, 0.1]])
def test_leaves_that_differ_by_chance_are_told_from_others(prior):
    rng, prior, reachable = np.random.default_rng(0), np.array(prior), np.ones((6, 16), dtype=bool)
    alarms = 0
    for _ in range(200):
        counts = rng.multinomial(100, prior, size=(6, 16)).astype(float)
        for noise in (0.0, 8.0):
            alarms += not only_chance(counts + noise * rng.normal(size=counts.shape), reachable, noise, prior)
            half = counts + noise * rng.normal(size=counts.shape)
            half[:, :8] += np.r_[10, -10, np.zeros(len(prior) - 2)]
            assert not only_chance(half, reachable, noise, prior), "a small difference of half of the leaves is enough"
        one = counts.copy()
        one[3, 5] = np.r_[np.zeros(len(prior) - 1), 100]
        assert not only_chance(one, reachable, 0.0, prior), "one leaf in 96 with a single class is enough"
        # The share of sampling in the variance is below a sixth: the question is not asked.
        assert not only_chance(counts, reachable, 30.0, prior)
    assert alarms < 0.1 * 400


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_digits_are_told_apart_at_a_tenth(delta):
    # A single tree that keeps nothing of what could be noise has an AUC of a half, most of the time.
    X, y = load_digits(return_X_y=True)
    parameters = {"bounds": (0, 16), "classes": list(range(10)), "epsilon": 0.1, "delta": delta, "expected_n": 1500}
    areas = [
        roc_auc_score(y, model.fit(X, y).predict_proba(X), multi_class="ovr")
        for model in (DPRandomTree(random_state=seed, structure_seed=seed, **parameters) for seed in range(10))
    ]
    assert np.mean(areas) > 0.65


def test_quantile_thresholds_help_with_wide_bounds():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(20_000, 2))
    y = (X[:, 0] > 0.7).astype(int)
    reached = {}
    for thresholds in ("uniform", "quantile"):
        model = DPRandomTree(
            bounds=(0, 1000), classes=[0, 1], delta=1e-5, thresholds=thresholds, random_state=0, max_depth=4
        )
        reached[thresholds] = model.fit(X, y).score(X, y)
    assert reached["quantile"] > reached["uniform"] + 0.1


# --- text ---------------------------------------------------------------------------------------------------------


def test_text_of_a_tree():
    X, y = mixed(500)
    model = noiseless(max_depth=2, n_estimators=4).fit(X, y)
    of_numbers = int(np.flatnonzero(model.structure_.features[:, 0] == 0)[0])
    first = export_text(model, ["age", "job", "hours", "region"], tree=of_numbers).splitlines()
    assert len(first) == 6 + 4 - 4 + 4
    threshold = model.structure_.thresholds[of_numbers, 0]
    assert first[0] == f"|--- age <= {threshold:.2f}"
    counts = model.leaf_counts_[of_numbers, 0]
    assert first[2].startswith("|   |   |--- class: ")
    assert f"counts [{counts[0]:.2f}, {counts[1]:.2f}]" in first[2]
    of_categories = int(np.flatnonzero(model.structure_.features[:, 0] == 3)[0])
    text = export_text(model, tree=of_categories)
    assert "feature_3 in {" in text
    assert text.count("class:") == 3, "one leaf for each of three categories"
    with pytest.raises(ValueError, match="tree"):
        export_text(model, tree=4)
    with pytest.raises(ValueError, match="feature_names"):
        export_text(model, ["a"])


def test_text_shows_released_numbers_only(monkeypatch):
    X, y = mixed(500)
    monkeypatch.setattr(_plans, "_DEPTH", 1)
    model = DPRandomTree(**MIXED, classes=[0, 1], random_state=0).fit(X, y)
    shown = export_text(model, decimals=6)
    for leaf in model.leaf_counts_[0]:
        assert f"[{leaf[0]:.6f}, {leaf[1]:.6f}]" in shown


# --- values that are no category ----------------------------------------------------------------------------------


def test_unknown_categories_say_nothing_and_are_not_those_of_a_category():
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(size=4000), rng.integers(4, size=4000)]
    y = (X[:, 1] == rng.integers(4)).astype(int)
    public = {"bounds": (0, 1), "categorical_features": [1], "n_categories": [4], "classes": [0, 1]}
    model = DPRandomTree(**public, epsilon=INF).fit(X, y)
    rows = np.c_[np.full(8, 0.5), [0, 1, 2, 3, -1, 7, 0.5, 1e300]]
    found = model.predict_proba(rows)[:, 1]
    assert np.ptp(found[4:]) == 0
    assert np.abs(found[:4] - found[4]).min() > 0.05
    # A tree that asks for the column first leaves the row at its root, which says what the prior says.
    alone = DPRandomTree(**public, epsilon=INF, max_features=1, n_estimators=2).fit(X, y)
    (tree,) = np.flatnonzero(alone.structure_.features[:, 0] == 1)
    leaves = alone.apply(rows)[:, tree]
    assert np.all(leaves[4:] == alone.structure_.n_leaves)
    np.testing.assert_allclose(alone.inner_proba_[tree, 0], alone.class_prior_)
    # In fit, such a record counts in the other trees only, and pulls no category.
    odd = X.copy()
    odd[:100, 1] = -1
    counts = alone.fit(odd, y).leaf_counts_.sum(axis=(1, 2))
    assert counts[tree] == 3900
    assert counts.sum() == 7900


# --- plans that follow from class counts --------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_parts_of_the_reserved_budget_cost_no_more_whatever_the_counts_are(delta):
    for epsilon in (0.01, 1.0, 30.0, INF):
        for n_features, n_classes in ((1, 2), (13, 2), (64, 10)):
            model = DPRandomTree(bounds=(0, 1), classes=range(n_classes), epsilon=epsilon, delta=delta)
            parameters = model._check_parameters()
            plan = make_plan(parameters, n_features, Labels(n_classes), n_features)
            reserved = next(r.mechanism for r in plan.guarantee.releases if r.label == "leaf counts and weights")
            for n_rows in (1.0, 150.0, 1e4, 1e9):
                chosen = Shares(epsilon, delta)
                plan_trees(parameters, n_features, Labels(n_classes), n_rows, plan.remaining, chosen)
                assert reserved.covers(chosen.events)
                assert sum(r.share for r in chosen.releases) == pytest.approx(plan.remaining)
                if epsilon < INF:
                    assert not reserved.covers([*chosen.events, chosen.events[-1]])


def test_a_reserved_part_cannot_be_overdrawn_or_released():
    guarantee = DPRandomTree(bounds=(0, 1), classes=[0, 1]).privacy_plan(n_features=3)
    label = "leaf counts and weights"
    session = ReleaseSession(guarantee, accountant=None, source=NoiseSource(0), estimator="test")
    with pytest.raises(ReleaseError, match="refined"):
        session.release(label, np.zeros(3))
    session = ReleaseSession(guarantee, accountant=None, source=NoiseSource(0), estimator="test")
    for wrong in ([PureEvent(0.97)], [PureEvent(0.5), PureEvent(0.5)], [GaussianEvent(0.1)]):
        with pytest.raises(ReleaseError, match="cost more"):
            session.refine(label, [], wrong)
    with pytest.raises(ReleaseError, match="cost more"):
        session.refine("class counts", [], [])


def test_few_records_get_few_trees_without_being_told():
    X, y = load_digits(return_X_y=True)
    model = DPRandomTree(bounds=(0, 16), classes=range(10), random_state=0)
    assert model.fit(X, y).score(X, y) > 0.6
    assert 4 < len(model.leaf_proba_) < 30
    many = model.set_params(epsilon=100.0).fit(X, y)
    assert len(many.leaf_proba_) == 64
    assert len(model.set_params(epsilon=1e-3).fit(X, y).leaf_proba_) == 4


def test_labels_that_are_not_declared_are_noticed_by_released_counts():
    X, _ = mixed(5000)
    model = DPRandomTree(bounds=(0, 3), classes=["no", "yes"], epsilon=1.0, random_state=0)
    with pytest.warns(SchemaMismatchWarning, match="classes"):
        model.fit(X, np.full(5000, "n"))
    # A fifth that is declared is enough, and so are few records.
    for labels in (np.where(np.arange(5000) % 5 == 0, "no", "n"), np.full(100, "n")):
        model.fit(X[: len(labels)], labels)


def test_the_bound_on_the_curvature_is_finite_for_all_odds():
    # Infinite odds made it NaN, and a sum of integers of it an arbitrary number.
    odds = np.array([0.0, 5e-324, 1e-300, 1.0, 1e300, 1e308, np.inf])
    values = _majorant(odds)
    assert np.all((values >= 0) & (values <= 0.25))
    assert values[3] == 0.25
    with pytest.raises(FloatingPointError, match="not finite"):
        exact_sum(lambda part: part.sum(axis=0), np.array([[np.nan]]))
