"""Additive models on Adult and California housing, five splits: a change that loses accuracy has to say so.

The figures asked for are means over five fits, with a standard error of about 0.002 at epsilon 0.1 and less elsewhere
(R2: 0.008 and 0.003); the library reaches 0.005 (0.02) more or better.
"""

import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.datasets import load_adult

GAIN = [0, 1, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000]
LOSS = [0, 1, 1000, 1200, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2400, 2600, 3000, 5000]

LOWER = [-124.5, 32.5, 1, 0, 0, 0, 0, 0]
UPPER = [-114, 42, 52, 40_000, 6_500, 36_000, 6_100, 15.01]
MOST = 500_001


@pytest.fixture(scope="module")
def adult():
    """Numbers in [0, 1] and coded categories, labels, and what is public."""
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
        "n_bins": 16,
        "categories": {5 + j: block.shape[1] for j, block in enumerate(blocks)},
        "bin_edges": {2: np.array(GAIN) / 99_999, 3: np.array(LOSS) / 4356},
        "classes": [0, 1],
    }
    return np.column_stack([X[:, :5], *[block.argmax(axis=1) for block in blocks]]), data.target, public


@pytest.mark.adult
@pytest.mark.parametrize(
    ("epsilon", "delta", "accuracy", "area"),
    [(0.1, 1e-5, 0.842, 0.897), (1.0, 1e-5, 0.853, 0.91), (1.0, 0.0, 0.84, 0.90)],
)
def test_adult(adult, epsilon, delta, accuracy, area):
    X, y, public = adult
    found = []
    for split in range(5):
        order = np.random.default_rng(split).permutation(len(y))
        train, test = np.split(order, [round(0.8 * len(y))])
        model = DPAdditiveClassifier(epsilon=epsilon, delta=delta, random_state=split, **public).fit(X[train], y[train])
        p = model.predict_proba(X[test])[:, 1]
        found.append((model.score(X[test], y[test]), roc_auc_score(y[test], p)))
    reached = np.mean(found, axis=0)
    assert reached[0] >= accuracy, reached
    assert reached[1] >= area, reached


@pytest.fixture(scope="module")
def housing():
    folders = [os.environ.get("SKDP_DATA", "."), "../shared/data"]
    path = next((p for p in (Path(folder, "cal_housing.data.gz") for folder in folders) if p.exists()), None)
    if path is None:
        pytest.skip("California housing is not at hand: SKDP_DATA names no directory with cal_housing.data.gz")
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",")


def mean_score(table, epsilon, **public):
    scores = []
    for split in range(5):
        order = np.random.default_rng(split).permutation(len(table))
        train, test = np.split(order, [round(0.8 * len(table))])
        model = DPAdditiveRegressor(epsilon=epsilon, delta=1e-5, bounds_y=(0, MOST), random_state=split, **public)
        model.fit(table[train, :8], table[train, 8])
        scores.append(model.score(table[test, :8], table[test, 8]))
    return np.mean(scores)


@pytest.mark.housing
@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 0.61), (0.5, 0.66), (1.0, 0.67), (3.0, 0.67)])
def test_housing(housing, epsilon, least):
    assert mean_score(housing, epsilon, bounds=(LOWER, UPPER)) >= least


@pytest.mark.housing
@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 0.61), (0.5, 0.69), (1.0, 0.735), (3.0, 0.75)])
def test_housing_with_a_pair(housing, epsilon, least):
    totals = {j: np.sinh(np.linspace(0, np.arcsinh(UPPER[j]), 33)) for j in (3, 4, 5, 6)}
    rest = [0, 1, 2, 7]
    bounds = np.array(LOWER)[rest], np.array(UPPER)[rest]
    assert mean_score(housing, epsilon, bounds=bounds, bin_edges=totals, interactions=[(0, 1)]) >= least
