"""Tables that random trees were not tuned on: weights that are estimated are never markedly worse than equal ones.

Structure and noise are seeded: nothing here fails by chance.
"""

import math

import numpy as np
import pytest

from skdp import DPRandomTree
from tests.difficult import difficult
from tests.made_up import copies_of_one_column, made_up, three_hidden_kinds

EPSILONS = (0.1, 1.0, 3.0, 10.0, math.inf)


def accuracies(table, epsilons=EPSILONS, **parameters):
    X, X_test, y, y_test = table.halves()
    model = DPRandomTree(delta=1e-6, bounds=table.bounds, classes=range(table.n_classes), random_state=0, **parameters)
    return np.array([model.set_params(epsilon=e).fit(X, y).score(X_test, y_test) for e in epsilons])


@pytest.mark.parametrize(("table", "least"), [(copies_of_one_column(), 0.94), (three_hidden_kinds(9000), 0.97)])
def test_trees_that_repeat_each_other_are_told_apart_at_any_epsilon(table, least):
    assert np.all(accuracies(table, EPSILONS[1:]) >= least)


@pytest.mark.parametrize("number", [0, 8, 10, 24])
def test_estimated_weights_are_no_worse_than_equal_ones_or_than_a_constant(number):
    # Full Newton steps lost up to nine tenths on each of them.
    table = made_up(number)
    y = table.halves()[3]
    epsilons = EPSILONS[1:]
    found, equal = accuracies(table, epsilons), accuracies(table, epsilons, weights="equal")
    assert np.all(found >= equal - 0.03)
    assert np.all(found >= np.bincount(y).max() / len(y) - 0.03)
    assert np.all(np.diff(found) >= -0.03), "more epsilon is not worse"


@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 3.0), (1e-6, 3.0), (1e-6, 10.0), (0.0, math.inf)])
def test_columns_that_say_nothing_give_the_prior(delta, epsilon):
    # The accuracy was .03 to .07 below that of the most frequent label, because leaves were fitted to chance.
    table = difficult("no_signal", 3000)
    model = DPRandomTree(epsilon=epsilon, delta=delta, bounds=table.bounds, classes=[0, 1], random_state=0)
    assert np.ptp(model.fit(table.X, table.y).predict_proba(table.X), axis=0).max() < 1e-12
    # A weak signal is kept: four labels in ten are wrong.
    weak = difficult("noisy_labels", 3000)
    assert model.fit(weak.X, weak.y).score(weak.X, weak.y) > 0.56


def test_tables_are_the_same_each_time_and_of_all_kinds():
    for number in range(8):
        one, two = made_up(number), made_up(number)
        np.testing.assert_array_equal(one.X, two.X)
        assert set(np.unique(one.y)) <= set(range(one.n_classes))
        assert np.all(np.isfinite(one.X))
    assert len({made_up(number).kind for number in range(8)}) == 8


@pytest.mark.parametrize(("kind", "least"), [("small_part", -0.01), ("equal_rows", -0.01), ("one_class", -0.003)])
def test_a_step_that_noise_spoils_is_not_taken(kind, least):
    """Accuracy minus the share of the most frequent label, at epsilon 0.5: -0.033, -0.017 and -0.007."""
    table = difficult(kind, 3000)
    X, X_test, y, y_test = table.X[:2000], table.X[2000:], table.y[:2000], table.y[2000:]
    models = [
        DPRandomTree(epsilon=0.5, bounds=table.bounds, classes=range(table.n_classes), random_state=seed).fit(X, y)
        for seed in range(12)
    ]
    constant = np.mean(y_test == np.bincount(y).argmax())
    assert np.mean([model.score(X_test, y_test) for model in models]) - constant > least
