"""What a search and `allocate` book for a step before there are data is what the step's fit is charged.

Configurations are drawn at random: for each, the fixed cost is compared with the plans for data of several shapes.
"""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

import skdp
from skdp.exceptions import BudgetError
from tests.ensemble.data import public_rows
from tests.estimators import ONE_EACH, is_local, is_search

N_CONFIGURATIONS = 500

#: Numbers of columns, and fewer of them for plans that take long to make.
SHAPES, SLOW_SHAPES = (1, 2, 3, 5, 12, 40, 200), (2, 40)
SLOW = {"DPMLPClassifier", "DPMLPRegressor", "DPSGDClassifier", "DPSGDRegressor", "SampleAggregate"}
SLOW |= {"DPAdditiveClassifier", "DPAdditiveRegressor"}

EPSILON = [0.02, 0.3, 1.0, 4.0, 30.0, np.inf]
DELTA = [0.0, 0.0, 1e-12, 1e-6, 1e-3, 0.1]

#: Values of parameters that many estimators have.
COMMON = {
    "epsilon": [0.02, 0.3, 1.0, 4.0, 30.0, np.inf],
    "delta": [0.0, 0.0, 1e-12, 1e-6, 1e-3, 0.1],
    "data_norm": [0.5, 1.0, 8.0],
    "bounds": [(-1.0, 1.0), (0.0, 5.0)],
    "bounds_y": [(-1.0, 1.0), (0.0, 100.0)],
    "classes": [None, [0, 1], [0, 1, 2]],
    "expected_n": [None, 50, 10**4, 10**7],
    "categories": [None, {0: 3}, {0: 1}],
    "class_weight": [None, None, "balanced"],
}

_PCA = {
    "n_components": [None, 1, 2, 5, 40],
    "center": ["none", "private", "private", np.zeros(40)],
    "centered_norm": [None, 0.3],
}
_MOMENTS = {"data_norm": [None, 1.0]}
_WEIGHTS = {"C": ["auto", 0.1, 10.0]}
_NETWORK = {"batch_size": [1.0, 0.1], "n_steps": [5, 60]}
_CLUSTERS = {"n_clusters": [1, 2, 7]}

#: Values of other parameters that a cost may depend on.
OWN = {
    "DPPCA": _PCA | {"solver": ["auto", "matrix", "bingham", "bingham"]},
    "ExpMechPCA": _PCA | {"variance_share": [0.0, 0.1, 0.5]},
    "DPAdditiveClassifier": {"interactions": ["auto", None], "n_bins": [2, 16]},
    "DPAdditiveRegressor": {"interactions": ["auto", None], "n_bins": [2, 16]},
    "DPGreedyTree": {"max_depth": [None, 0, 3], "prune": [True, False]},
    "DPRandomTree": {
        "n_estimators": [None, 1, 5],
        "max_depth": [None, 0, 3],
        "max_features": [None, 1],
        "thresholds": ["uniform", "quantile"],
        "weights": ["equal", "newton"],
    },
    "DPRandomTreeRegressor": {
        "n_estimators": [None, 1, 5],
        "max_depth": [None, 0, 3],
        "max_features": [None, 1],
        "thresholds": ["uniform", "quantile"],
        "weights": ["equal", "newton"],
    },
    "DPNaiveBayes": {"numeric": ["binned", "gaussian"]},
    "DPKMeans": _CLUSTERS,
    "SampleAggKMeans": _CLUSTERS | {"n_blocks": [None, 5], "estimator": [None, KMeans(2)]},
    "DPSGDClassifier": {"batch_size": [None, 1.0, 0.1], "n_steps": [None, 5]},
    "DPSGDRegressor": {"batch_size": [None, 1.0, 0.1], "n_steps": [None, 5]},
    "ExpMechERM": {"classes": [None, [0, 1]], "loss": ["log_loss"], "bounds_y": [None], "fit_intercept": [True, False]},
    "FunctionalMechLinReg": _MOMENTS | {"fit_intercept": [True, False]},
    "FunctionalMechLogReg": _MOMENTS | {"calibration": ["lda", "taylor"]},
    "ObjPertLogReg": _WEIGHTS | {"loss": ["log_loss", "huber"]},
    "OutputPertLogReg": _WEIGHTS | {"loss": ["log_loss", "huber"]},
    "DPMLPClassifier": _NETWORK,
    "DPMLPRegressor": _NETWORK,
    "NoisyHistogram": {"n_bins": [2, 3]},
    "HistogramClassifier": {"n_bins": [2, 3]},
    "HistogramRegressor": {"n_bins": [2, 3]},
    "PATEClassifier": {
        "teacher": [GaussianNB()],
        "public_X": [public_rows],
        "n_teachers": [None, 4],
        "max_queries": [None, 7],
    },
    "SampleAggregate": {"estimator": [LinearRegression()], "n_blocks": [4, 20], "aggregator": ["mean", "median"]},
    "DPStandardScaler": {"clip": [1.0, 3.0]},
    "DPQuantileBinner": {"n_bins": [2, 10]},
}

CHOICES = {
    type(model): {name: values for name, values in COMMON.items() if name in model.get_params()}
    | OWN.get(type(model).__name__, {})
    for model in ONE_EACH
    if not is_local(model) and not is_search(model)
}


def drawn(rng):
    """A configuration, which need not be a good one."""
    kinds = [kind for kind in CHOICES for _ in range(1 if kind.__name__ in SLOW else 4)]
    kind = kinds[rng.integers(len(kinds))]
    return kind(**{key: values[rng.integers(len(values))] for key, values in CHOICES[kind].items()})


def compared(model, rng):
    """How many plans the fixed cost of a configuration was compared with."""
    try:
        cost = model._fixed_cost()
    except (ValueError, BudgetError):
        return 0
    if cost is None:
        return 0
    n_compared = 0
    classes = getattr(model, "classes", None)
    n_classes = int(rng.integers(2, 5)) if classes is None else len(classes)
    for n_features in SHAPES if type(model).__name__ not in SLOW else SLOW_SHAPES:
        try:
            plan = model.privacy_plan(n_features=n_features, n_classes=n_classes if is_classifier(model) else None)
        except ValueError:
            # More components than columns, for instance.
            continue
        assert plan.cost == cost, (model, n_features, n_classes)
        n_compared += 1
    return n_compared


@pytest.mark.filterwarnings("ignore")
def test_fixed_costs_are_those_of_the_plans():
    rng = np.random.default_rng(0)
    assert sum(compared(drawn(rng), rng) for _ in range(N_CONFIGURATIONS)) > N_CONFIGURATIONS


@pytest.mark.parametrize(
    ("model", "fixed"),
    [
        (skdp.ExpMechPCA(2, data_norm=1.0, center="private", delta=1e-6, epsilon=0.5), False),
        (skdp.DPPCA(2, data_norm=1.0, solver="bingham", delta=1e-6, epsilon=0.5), False),
        (skdp.ExpMechPCA(2, data_norm=1.0, center="private", epsilon=0.5), True),
        (skdp.ExpMechPCA(2, data_norm=1.0, delta=1e-6, epsilon=0.5), True),
        (skdp.DPPCA(2, data_norm=1.0, delta=1e-6, epsilon=0.5), True),
        (skdp.ExpMechPCA(30, data_norm=1.0, center="private", delta=1e-6, epsilon=0.5), True),
    ],
)
def test_noise_of_a_private_mean_depends_on_the_number_of_columns(model, fixed):
    costs = [model.privacy_plan(n_features=n_features).cost for n_features in (30, 40, 2000)]
    costs += [] if model.n_components == 30 else [model.privacy_plan(n_features=2).cost]
    assert fixed == all(cost == costs[0] for cost in costs)
    assert model._fixed_cost() == (costs[0] if fixed else None)
