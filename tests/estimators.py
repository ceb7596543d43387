"""One table of instances feeds every common test: their data, what they leave behind, and which checks fail."""

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from skdp.cluster import DPKMeans, SampleAggKMeans
from skdp.linear_model import FunctionalMechLinReg, FunctionalMechLogReg, ObjPertLogReg, OutputPertLogReg
from tests.linear_model.data import blobs

# A large epsilon, because scikit-learn's checks ask for accuracy on a few dozen rows. The noise is real all the same.
_GENEROUS = {"epsilon": 500.0, "data_norm": 30.0}

PERTURBATION = [
    estimator(**_GENEROUS, **variant)
    for estimator in (OutputPertLogReg, ObjPertLogReg)
    for variant in ({"delta": 1e-5}, {"delta": 0.0}, {"delta": 1e-5, "loss": "huber"}, {"delta": 0.0, "loss": "huber"})
]

# scikit-learn's checks hold standardised features for the most part, and targets up to some hundreds.
_WIDE = {"epsilon": 1e6, "bounds": (-5.0, 5.0)}

FUNCTIONAL = [
    *[
        FunctionalMechLinReg(bounds_y=(-500.0, 500.0), **_WIDE, **variant)
        for variant in (
            {"delta": 1e-5},
            {"delta": 0.0},
            {"delta": 1e-5, "solver": "adassp"},
            {"delta": 0.0, "solver": "adassp"},
        )
    ],
    *[
        FunctionalMechLogReg(**_WIDE, **variant)
        for variant in ({"delta": 1e-5}, {"delta": 0.0}, {"delta": 1e-5, "calibration": "taylor"})
    ],
]

_BOX = {"n_clusters": 3, "epsilon": 1e6, "bounds": (-20.0, 20.0)}

CLUSTERING = [
    estimator(**_BOX, **variant)
    for estimator in (DPKMeans, SampleAggKMeans)
    for variant in ({"delta": 1e-5}, {"delta": 0.0})
]

ESTIMATORS = PERTURBATION + FUNCTIONAL + CLUSTERING

CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]

#: For tests of what does not depend on the variant.
ONE_EACH = list({type(estimator): estimator for estimator in reversed(ESTIMATORS)}.values())[::-1]

_ITERATIONS = "the number of iterations depends on private data and is not kept"

_EMPTY = "data without rows are a neighbour of data with one, and are fitted like any other"

_LABELS = "labels_ would be a function of the private rows; predict gives labels for rows that may be seen"

EXPECTED_FAILURES = {
    **{
        name: {"check_estimators_empty_data_messages": _EMPTY, "check_clustering": _LABELS}
        for name in ("DPKMeans", "SampleAggKMeans")
    },
    "FunctionalMechLinReg": {"check_estimators_empty_data_messages": _EMPTY},
    "OutputPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
    "ObjPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
}

# What fit may leave behind: functions of releases ...
RELEASED = {
    "DPKMeans": {"cluster_centers_"},
    "SampleAggKMeans": {"cluster_centers_"},
    "OutputPertLogReg": {"coef_", "intercept_"},
    "ObjPertLogReg": {"coef_", "intercept_"},
    "FunctionalMechLinReg": {"coef_", "intercept_", "alpha_"},
    "FunctionalMechLogReg": {"coef_", "intercept_"},
}

# ... and of public parameters.
PUBLIC = {
    "DPKMeans": set(),
    "SampleAggKMeans": set(),
    "OutputPertLogReg": {"C_"},
    "ObjPertLogReg": {"C_"},
    "FunctionalMechLinReg": set(),
    "FunctionalMechLogReg": {"alpha_"},
}


def public_attributes(estimator):
    """Names of what a fit to a frame leaves behind that says nothing about the rows."""
    common = {"privacy_", "n_features_in_", "feature_names_in_"}
    return PUBLIC[type(estimator).__name__] | common | ({"classes_"} if is_classifier(estimator) else set())


def released(model):
    """All numbers of a fitted model that come from releases."""
    return _flat([getattr(model, name) for name in sorted(RELEASED[type(model).__name__])])


def _flat(value):
    if isinstance(value, list | tuple):
        return np.concatenate([_flat(part) for part in value]) if value else np.empty(0)
    return np.ravel(np.asarray(value, dtype=float))


def declared(estimator, n_classes=2, **parameters):
    """A copy that neither warns nor depends on labels."""
    if is_classifier(estimator):
        parameters = {"classes": list(range(n_classes)), **parameters}
    return clone(estimator).set_params(**parameters)


def takes_y(estimator):
    """Whether `fit` looks at y."""
    return is_classifier(estimator) or is_regressor(estimator)


def data_for(estimator, n_classes=2, n_rows=400, n_features=5, seed=0):
    """Overlapping clusters with rows of norm up to about 3, and their numbers or a linear function with noise."""
    X, y = blobs(n_classes, n_rows, n_features, seed)
    return X, (20 * X[:, 0] - 7.0 * y if is_regressor(estimator) else y)


def name_of(estimator):
    """Label an instance by what tells it from the others."""
    variant = [getattr(estimator, name, None) for name in ("loss", "solver", "calibration")]
    kind = "gaussian" if estimator.delta else "pure"
    return "-".join([type(estimator).__name__, *[v for v in variant if v is not None], kind])


def expected_failures(estimator):
    """Return the checks that are known to fail, with reasons."""
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})
