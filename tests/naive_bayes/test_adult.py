"""Naive Bayes on Adult, five splits, one configuration for all budgets: a change that loses accuracy has to say so.

The figures asked for are means over ten fits, with a standard error of about 0.001; the library reaches 0.003 to 0.02
more. What is public about the columns is written down here: their categories, their ranges, and edges for capital gains
and losses, which are 0 for most people and spread over five orders of magnitude for the others.
"""

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from skdp import DPNaiveBayes
from skdp.datasets import load_adult

pytestmark = pytest.mark.adult

# Dollars: nothing, below a thousand, then by steps that widen.
GAIN = np.array([0, 1, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000])
LOSS = np.array([0, 1, 1000, 1200, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2400, 2600, 3000, 5000])

# (epsilon, delta): accuracy, area under the ROC curve.
TARGETS = {
    (0.1, 1e-5): (0.822, 0.885),
    (1.0, 1e-5): (0.828, 0.900),
    (0.1, 0.0): (0.812, 0.875),
    (1.0, 0.0): (0.828, 0.900),
}


@pytest.fixture(scope="module")
def adult():
    """Rows with numbers in [0, 1] and coded categories, labels, and what is public about the columns."""
    try:
        data = load_adult()
    except FileNotFoundError as error:
        pytest.skip(f"Adult is not at hand: {error}")
    X = data.data * math.sqrt(13)
    variables = [name.split("=")[0] for name in data.feature_names]
    names = list(dict.fromkeys(variables[5:]))
    blocks = [X[:, [v == name for v in variables]] for name in names]
    public = {
        "bounds": (0, 1),
        "categorical_features": range(5, 13),
        "n_categories": [block.shape[1] for block in blocks],
        "bin_edges": {2: GAIN / 99_999, 3: LOSS / 4356},
        "classes": [0, 1],
    }
    return np.column_stack([X[:, :5], *[block.argmax(axis=1) for block in blocks]]), data.target, public


def scores(adult, draws=2, **parameters):
    """Mean accuracy, area under the curve and log loss."""
    X, y, public = adult
    found = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [round(0.8 * len(y))])
        for draw in range(draws):
            model = DPNaiveBayes(**{**public, **parameters}, random_state=10 * seed + draw).fit(X[train], y[train])
            p = model.predict_proba(X[test])[:, 1]
            found.append((model.score(X[test], y[test]), roc_auc_score(y[test], p), log_loss(y[test], p)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_accuracy(adult, epsilon, delta):
    reached = scores(adult, epsilon=epsilon, delta=delta)
    assert np.all(reached[:2] >= TARGETS[epsilon, delta]), reached


def test_the_power_of_the_evidence_mends_probabilities_and_labels(adult):
    mended = scores(adult, draws=1, epsilon=1.0, delta=1e-5)
    plain = scores(adult, draws=1, epsilon=1.0, delta=1e-5, dependence=0)
    assert mended[0] > plain[0] + 0.015
    assert mended[1] == pytest.approx(plain[1], abs=1e-6)
    assert mended[2] < plain[2] - 0.08
