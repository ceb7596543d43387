"""With epsilon = inf, estimators do what they do at a very large epsilon.

Structure and noise are seeded, so that no test fails by chance.
"""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp.additive import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.linear_model import ObjPertLogReg
from skdp.mechanisms import BestChoices, NoiseSource
from skdp.naive_bayes import DPNaiveBayes
from skdp.preprocessing import BoundsScaler
from skdp.tree import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor
from tests.difficult import difficult

LARGE = 1e5


def scaled(kind):
    return lambda data_norm, bounds, **parameters: make_pipeline(
        BoundsScaler(bounds), kind(data_norm=data_norm, **parameters)
    )


def cells(kind, **fixed):
    return lambda data_norm, **parameters: kind(**fixed, **parameters)


CLASSIFIERS = {
    "random trees": cells(DPRandomTree),
    "greedy tree": cells(DPGreedyTree),
    "naive Bayes": cells(DPNaiveBayes),
    "Gaussian naive Bayes": cells(DPNaiveBayes, numeric="gaussian"),
    "additive": cells(DPAdditiveClassifier),
    "additive without pairs": cells(DPAdditiveClassifier, interactions=None),
    "logistic regression": scaled(ObjPertLogReg),
    "support vectors": scaled(partial(ObjPertLogReg, loss="huber")),
}
TABLES = ("duplicated", "exclusive_or", "small_part", "heavy_tailed_target", "few_rows")


def mean_scores(make, table, y, **parameters):
    """Return mean scores at a very large epsilon and without noise, over three draws."""
    n_train, norm = len(y) * 2 // 3, math.sqrt(table.X.shape[1])
    return [
        np.mean([
            make(norm, epsilon=epsilon, bounds=table.bounds, random_state=seed, **parameters)
            .fit(table.X[:n_train], y[:n_train])
            .score(table.X[n_train:], y[n_train:])
            for seed in range(3)
        ])
        for epsilon in (LARGE, math.inf)
    ]  # fmt: skip


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_as_good_without_noise_as_with_little(name, kind, delta):
    table = difficult(kind, 25 * 300 if kind == "few_rows" else 1800)
    make, classes = CLASSIFIERS[name], list(range(table.n_classes))
    large, without = mean_scores(make, table, table.y, delta=delta, classes=classes)
    assert without > large - 0.03


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", TABLES)
def test_regressions_by_trees_are_as_good_without_noise_as_with_little(kind, delta):
    table = difficult(kind, 25 * 300 if kind == "few_rows" else 1800)
    make = cells(DPRandomTreeRegressor)
    large, without = mean_scores(make, table, table.target, delta=delta, bounds_y=table.target_bounds)
    assert without > large - 0.05


def test_pairs_are_chosen_without_noise():
    table = difficult("exclusive_or", 4000)
    make = {"bounds": table.bounds, "delta": 1e-6, "random_state": 0}
    model = DPAdditiveClassifier(epsilon=math.inf, classes=[0, 1], **make).fit(table.X, table.y)
    assert (0, 1) in model.term_columns_
    model = DPAdditiveRegressor(epsilon=math.inf, bounds_y=table.target_bounds, **make).fit(table.X, table.target)
    assert (0, 1) in model.term_columns_


def test_the_best_candidates_have_equal_chances():
    """False-alarm probability: 2 (9/16)^400 + ..., below 1e-50. The noise is seeded."""
    scores = np.array([[0.0, 3.0, 3.0, 1.0], [5.0, 5.0 + 1e-9, 5.0 - 1e-9, 5.0]])
    source = NoiseSource(0)
    chosen = np.array([BestChoices(1.0).release(scores, source.stream(str(k))) for k in range(400)])
    assert set(chosen[:, 0]) == {1.0, 2.0}
    assert set(chosen[:, 1]) == {0.0, 1.0, 2.0, 3.0}
