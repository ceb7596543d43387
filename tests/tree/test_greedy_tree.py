"""The greedy tree: scores and their ranges by brute force, exact laws on tiny data, known answers.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed. The laws of choices are enumerated.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from skdp import DPGreedyTree
from skdp.accounting import bounded_range_mu, gaussian_delta, gaussian_mu
from skdp.mechanisms import GroupChoices, NoiseSource
from skdp.tree import _greedy_tree, export_text
from skdp.tree._greedy_tree import SCORE_SENSITIVITY, Candidates, Splits, histogram, split_scores
from skdp.tree._smoothing import few_records
from tests.made_up import made_up
from tests.statistics import accept, chi_square, reject
from tests.tree.data import MIXED, columns_of, mixed

FALSE_ALARM = 1e-6
INF = math.inf
COLUMNS = columns_of([0, 4, 0, 3])
NOTHING = Splits(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0, dtype=np.intp), np.empty(0, dtype=bool))


def scores_of(X, y, n_classes=2, columns=COLUMNS, n_thresholds=3, splits=NOTHING):
    candidates = Candidates(columns, n_thresholds)
    return split_scores(*candidates.children(histogram(candidates, splits, n_classes, X, y)))


def naive_score(y, right, n_classes):
    total = 0.0
    for side in (y[right], y[~right]):
        counts = np.bincount(side, minlength=n_classes)
        if len(side):
            total -= len(side) * (1 - ((counts / len(side)) ** 2).sum())
    return total


# --- scores -------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_a_naive_loop():
    X, y = mixed(300, n_classes=3)
    X[:3, 1] = [-1, 4, 1.5]
    splits = Splits(np.array([2]), np.array([0.4]), np.array([-1]), np.array([False]))
    found = scores_of(X, y, 3, splits=splits)
    candidates = Candidates(COLUMNS, 3)
    features, thresholds, categories = candidates.split(np.arange(candidates.n_candidates))
    assert candidates.n_candidates == 3 + 4 + 3 + 3
    node = (X[:, 2] > 0.4).astype(int)
    np.testing.assert_array_equal(splits.leaves(X)[0], node)
    for which in (0, 1):
        rows, labels = X[node == which], y[node == which]
        for c in range(candidates.n_candidates):
            values = rows[:, features[c]]
            right = values == categories[c] if categories[c] >= 0 else values > thresholds[c]
            assert found[which, c] == pytest.approx(naive_score(labels, right, 3))


def test_two_categories_are_one_candidate():
    columns = columns_of([2, 1])
    assert Candidates(columns, 9).n_candidates == 2


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_move_within_the_claimed_range_and_in_one_direction(n_classes):
    rng = np.random.default_rng(0)
    claim, most = SCORE_SENSITIVITY, 0.0
    for n_rows in (0, 1, 2, 5, 40, 400):
        for _ in range(20):
            X, _ = mixed(n_rows, seed=int(rng.integers(1e6)))
            # Classes that are pure, or nearly so, move most.
            y = np.where(rng.uniform(size=n_rows) < rng.choice([0, 0.02, 0.5]), rng.integers(n_classes, size=n_rows), 0)
            row, label = mixed(1, seed=int(rng.integers(1e6)))[0], rng.integers(n_classes)
            before = scores_of(X, y, n_classes)
            after = scores_of(np.vstack([X, row]), np.append(y, label), n_classes)
            change = before - after
            assert change.min() >= -1e-9
            most = max(most, change.max(), np.ptp(change))
            assert most <= claim
    assert most >= 0.95 * claim


# --- the exact law of a choice ------------------------------------------------------------------------------------

TINY = columns_of([0])
RECORDS = [(x, y) for x in (0.1, 0.4, 0.6, 0.9) for y in (0, 1)]


def exponential_law(scores, rate):
    weights = np.exp(rate * (scores - scores.max()))
    return weights / weights.sum()


def permute_and_flip_law(scores, rate):
    """Enumerate the orders."""
    p = np.exp(rate * (scores - scores.max()))
    law = np.zeros(len(p))
    orders = list(itertools.permutations(range(len(p))))
    for order in orders:
        left = 1.0
        for o in order:
            law[o] += left * p[o] / len(orders)
            left *= 1 - p[o]
    return law


LAWS = {True: exponential_law, False: permute_and_flip_law}


def tiny_scores(records):
    data = np.array(records, dtype=float).reshape(-1, 2)
    return scores_of(data[:, :1], data[:, 1].astype(int), columns=TINY)[0]


@pytest.mark.parametrize("bounded_range", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_all_neighbours_of_all_tiny_data_sets(bounded_range, epsilon):
    rate = epsilon / SCORE_SENSITIVITY
    law = LAWS[bounded_range]
    at = np.linspace(-1.2, 1.2, 25) * epsilon
    curve = gaussian_delta(at, bounded_range_mu(epsilon))
    largest = widest = 0.0
    for size in range(5):
        for records in itertools.combinations_with_replacement(RECORDS, size):
            p = law(tiny_scores(records), rate)
            for record in RECORDS:
                q = law(tiny_scores([*records, record]), rate)
                losses = np.log(q / p)
                largest = max(largest, np.abs(losses).max())
                if bounded_range:
                    widest = max(widest, np.ptp(losses))
                    for a, b in ((p, q), (q, p)):
                        assert np.all(np.maximum(a - np.exp(at)[:, None] * b, 0).sum(axis=1) <= curve + 1e-12)
    assert largest <= epsilon * (1 + 1e-9)
    assert not bounded_range or widest <= epsilon * (1 + 1e-9)
    # So much of it is used by data sets of up to four records.
    assert largest >= 0.3 * epsilon


def test_twin_with_twice_the_exponent_is_caught():
    largest = 0.0
    for size in range(5):
        for records in itertools.combinations_with_replacement(RECORDS, size):
            p = permute_and_flip_law(tiny_scores(records), 2 / SCORE_SENSITIVITY)
            for record in RECORDS:
                q = permute_and_flip_law(tiny_scores([*records, record]), 2 / SCORE_SENSITIVITY)
                largest = max(largest, np.abs(np.log(q / p)).max())
    assert largest > 1.0


@pytest.mark.parametrize("bounded_range", [True, False])
def test_choices_follow_their_laws_in_each_group(bounded_range):
    scores = np.array([[3.0, 1.0, 2.5, 0.0], [0.0, 0.0, 7.0, 7.0]])
    mechanism = GroupChoices(1.2, 2.0, monotone=True, bounded_range=bounded_range)
    stream = NoiseSource(0).stream("choices")
    drawn = np.array([mechanism.release(scores, stream) for _ in range(3000)]).astype(int)
    law = LAWS[bounded_range]
    observed = np.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=16)
    right = np.outer(*(law(row, 0.6) for row in scores)).ravel()
    wrong = np.outer(*(law(row, 1.2) for row in scores)).ravel()
    order = np.argsort(right)
    accept(chi_square(observed[order], right[order]), "choices in two groups")
    reject(chi_square(observed[order], wrong[order]), "choices with twice the exponent")
    assert mechanism.scale == pytest.approx(2.0 / 1.2)
    assert mechanism.name == ("exponential" if bounded_range else "permute-and-flip")


# --- known answers ------------------------------------------------------------------------------------------------


def test_infinite_epsilon_is_the_greedy_tree():
    # No two splits of these records are equally good.
    rng = np.random.default_rng(1)
    grid = np.arange(1, 8) / 8
    X = rng.choice(grid, size=(2000, 3)) + 0.01
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.3) & (X[:, 2] < 0.6) ^ (rng.uniform(size=2000) < 0.1)).astype(int)
    ours = DPGreedyTree(epsilon=INF, bounds=(0, 1), classes=[0, 1], max_depth=3, n_thresholds=7).fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_infinite_epsilon_gives_exact_counts():
    X, y = mixed(1000, n_classes=3)
    model = DPGreedyTree(**MIXED, epsilon=INF, classes=[0, 1, 2]).fit(X, y)
    expected = np.zeros((32, 3))
    np.add.at(expected, (model.apply(X)[:, 0], y), 1)
    np.testing.assert_array_equal(model.leaf_counts_[0], expected)


def test_reachable_leaves_are_those_that_records_reach():
    rng = np.random.default_rng(0)
    candidates = Candidates(COLUMNS, 3)
    # A record on each side of each threshold, every category, and what is none.
    cells = np.linspace(0.1, 0.9, 5), np.arange(-1, 4), np.linspace(0.1, 0.9, 5), np.arange(-1, 3)
    X = np.array(list(itertools.product(*cells)))
    found = []
    for _ in range(200):
        features, thresholds, categories = candidates.split(rng.integers(candidates.n_candidates, size=15))
        splits = Splits(features, thresholds, categories, np.zeros(15, dtype=bool))
        np.testing.assert_array_equal(np.flatnonzero(splits.reachable()), np.unique(splits.leaves(X)))
        found.append(splits.reachable().sum())
    assert min(found) < 8
    assert max(found) > 12
    np.testing.assert_array_equal(NOTHING.reachable(), [[True]])


def test_what_no_record_can_reach_counts_nothing_and_is_not_printed():
    X, y = mixed(200)
    model = DPGreedyTree(bounds=(0, 1), classes=[0, 1], epsilon=0.01, max_depth=5, prune=False, random_state=0)
    model.fit(X[:, [0]], y)
    reachable = model.structure_.reachable()
    assert 0 < reachable.sum() < 32
    assert not model.leaf_counts_[~reachable].any()
    assert model.leaf_counts_[reachable].any(axis=-1).all()
    text = export_text(model, decimals=6)
    assert text.count("class:") == reachable.sum()
    assert len(text.splitlines()) == 3 * reachable.sum() - 2


def test_counts_of_leaves_move_by_one():
    X, y = mixed(50)
    model = DPGreedyTree(**MIXED, epsilon=INF, classes=[0, 1], max_depth=3).fit(X, y)
    base = _greedy_tree.leaf_counts(model.structure_, X, y, 2)
    for row in mixed(30, seed=1)[0]:
        difference = _greedy_tree.leaf_counts(model.structure_, np.vstack([X, row]), np.append(y, 1), 2) - base
        assert np.abs(difference).sum() == np.linalg.norm(difference) == 1


def test_noise_of_the_leaf_counts():
    def counts(delta):
        model = DPGreedyTree(bounds=(0, 1), classes=[0, 1], epsilon=0.5, delta=delta)
        empty = np.empty((0, 2)), np.empty(0)
        fits = [clone(model).set_params(random_state=i).fit(*empty) for i in range(40)]
        return np.concatenate([fit.leaf_counts_[fit.structure_.reachable()].ravel() for fit in fits])

    scale = 1 / (gaussian_mu(0.5, 1e-5) * math.sqrt(0.4))
    assert stats.kstest(counts(1e-5), stats.norm(scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(counts(1e-5), stats.norm(scale=0.6 * scale).cdf).pvalue < FALSE_ALARM
    pure = counts(0.0)
    assert np.all(pure == np.rint(pure))
    assert np.mean(np.abs(pure)) == pytest.approx(1 / (0.5 * 0.4), rel=0.25)


def test_plan_of_levels():
    plan = DPGreedyTree(bounds=(0, 1), classes=[0, 1], delta=1e-5, max_depth=3).privacy_plan(n_features=4)
    assert [r.label for r in plan.releases] == [f"splits of level {i}" for i in range(3)] + ["leaf counts"]
    assert plan.cost.mu() == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-9)
    for release, event in zip(plan.releases[:3], plan.events[:3], strict=True):
        assert bounded_range_mu(release.mechanism.epsilon) <= event.mu()
        assert event.mu() == pytest.approx(gaussian_mu(1.0, 1e-5) * math.sqrt(0.2), rel=1e-9)
    pure = DPGreedyTree(bounds=(0, 1), classes=[0, 1], max_depth=3).privacy_plan(n_features=4)
    assert [event.epsilon for event in pure.events] == pytest.approx([0.2, 0.2, 0.2, 0.4])


def test_a_noisy_tree_finds_what_is_there():
    X, y = mixed(20_000)
    for delta in (1e-5, 0.0):
        model = DPGreedyTree(**MIXED, classes=[0, 1], delta=delta, random_state=0).fit(X, y)
        assert model.structure_.features[0] == 0
        assert model.score(X, y) > 0.8


# --- pruning ----------------------------------------------------------------------------------------------------


def test_nodes_with_few_records_are_told():
    counts = np.array([[900.0, 100], [50, 800], [4, -3], [9, 2], [1, 2], [-6, 0], [70, 60], [300, 1]])
    few = few_records(counts, 10.0)
    np.testing.assert_array_equal(few, [False, False, False, False, True, True, False])
    assert not few_records(np.maximum(counts, 0), 0.0).any()
    assert few_records(counts, 1e4).all()
    np.testing.assert_array_equal(few_records(counts[:1], 1.0), [])


def test_leaves_below_a_merged_node_say_the_same():
    X, y = mixed(1000)
    parameters = {**MIXED, "epsilon": 0.4, "classes": [0, 1], "random_state": 0, "max_depth": 6}
    pruned = DPGreedyTree(**parameters).fit(X, y)
    whole = DPGreedyTree(**parameters, prune=False).fit(X, y)
    np.testing.assert_array_equal(pruned.leaf_counts_, whole.leaf_counts_)
    merged = pruned.structure_.merged
    assert 0 < merged.sum() < len(merged)
    assert not whole.structure_.merged.any()
    for level in range(6):
        for node, taken_back in enumerate(merged[2**level - 1 : 2 ** (level + 1) - 1]):
            below = pruned.leaf_proba_[0, node * 2 ** (6 - level) : (node + 1) * 2 ** (6 - level)]
            if taken_back:
                assert np.all(below == below[0])
    text = export_text(pruned, decimals=9)
    shape = text.count("class:"), len(text.splitlines())
    assert shape[0] <= 1 + np.count_nonzero(~merged)
    assert shape[1] == 3 * shape[0] - 2
    shown = [[float(v) for v in line.split("[")[1][:-1].split(",")] for line in text.splitlines() if "[" in line]
    np.testing.assert_allclose(np.sum(shown, axis=0), pruned.leaf_counts_[0].sum(axis=0), atol=1e-6)


# --- text ---------------------------------------------------------------------------------------------------------


def test_text_of_the_tree():
    X, y = mixed(2000)
    model = DPGreedyTree(**MIXED, epsilon=INF, classes=["no", "yes"], max_depth=2).fit(X, np.array(["no", "yes"])[y])
    lines = export_text(model, ["a", "b", "c", "d"]).splitlines()
    assert len(lines) == 6 + 4
    threshold = model.structure_.thresholds[0]
    assert lines[0] == f"|--- a <= {threshold:.2f}"
    counts = model.leaf_counts_[0, 0]
    assert lines[2].endswith(f"counts [{counts[0]:.2f}, {counts[1]:.2f}]")
    assert "class: yes" in export_text(model)
    flat = DPGreedyTree(**MIXED, classes=[0, 1], max_depth=0).fit(X, y)
    assert export_text(flat).startswith("|--- class: ")
    by_category = DPGreedyTree(epsilon=INF, categorical_features=[0], n_categories=4, classes=[0, 1], max_depth=1)
    text = export_text(by_category.fit(X[:, 1:2], y))
    assert text.splitlines()[0] == "|--- feature_0 is not 2"


def test_trees_are_less_deep_with_little_epsilon():
    depths = [
        len(DPGreedyTree(bounds=(0, 1), classes=[0, 1], epsilon=epsilon).privacy_plan(n_features=3).releases) - 1
        for epsilon in (1e-5, 0.03, 0.1, 0.3, 1.0, 10.0, INF)
    ]
    assert depths == [1, 2, 3, 4, 5, 5, 5]


def test_few_records_and_little_epsilon_are_close_to_the_majority():
    """The mean accuracy less the share of the majority was -0.086 with a depth of 5."""
    gaps = []
    for number in (12, 26, 28, 32, 52, 57):
        table = made_up(number, 4000)
        X, X_test, y, y_test = table.halves()
        for seed in range(3):
            model = DPGreedyTree(epsilon=0.1, delta=1e-6, bounds=table.bounds, classes=range(table.n_classes))
            gaps.append(
                model.set_params(random_state=seed).fit(X, y).score(X_test, y_test)
                - np.mean(y_test == np.bincount(y).argmax())
            )
    assert np.mean(gaps) > -0.05
