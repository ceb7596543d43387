"""One table of instances feeds every common test; expected failures of scikit-learn's checks live here too."""

from skdp.linear_model import FunctionalMechLinReg, FunctionalMechLogReg, ObjPertLogReg, OutputPertLogReg
from skdp.tree import DPGreedyTree, DPRandomTree

# A large epsilon, because scikit-learn's checks ask for accuracy on a few dozen rows. The noise is real all the same.
_GENEROUS = {"epsilon": 500.0, "data_norm": 30.0}

CLASSIFIERS = [
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

TREES = [
    DPRandomTree(**_WIDE, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
        {"delta": 1e-5, "thresholds": "quantile"},
        {"delta": 0.0, "thresholds": "quantile", "weights": "equal"},
    )
]

TREES += [
    DPGreedyTree(**_WIDE, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
        {"delta": 1e-5, "criterion": "max"},
        {"delta": 0.0, "criterion": "max"},
    )
]

ESTIMATORS = CLASSIFIERS + FUNCTIONAL + TREES

_ITERATIONS = "the number of iterations depends on private data and is not kept"

_EMPTY = "data without rows are a neighbour of data with one, and are fitted like any other"

EXPECTED_FAILURES = {
    "FunctionalMechLinReg": {"check_estimators_empty_data_messages": _EMPTY},
    "OutputPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
    "ObjPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
}

# What fit may leave behind: functions of releases and of public parameters.
FITTED_ATTRIBUTES = {
    "OutputPertLogReg": {"coef_", "intercept_", "classes_", "C_", "privacy_", "n_features_in_", "feature_names_in_"},
    "FunctionalMechLinReg": {"coef_", "intercept_", "alpha_", "privacy_", "n_features_in_", "feature_names_in_"},
    "FunctionalMechLogReg": {
        "coef_",
        "intercept_",
        "classes_",
        "alpha_",
        "privacy_",
        "n_features_in_",
        "feature_names_in_",
    },
    "DPGreedyTree": {
        "structure_",
        "leaf_counts_",
        "leaf_proba_",
        "classes_",
        "privacy_",
        "n_features_in_",
        "feature_names_in_",
    },
    "DPRandomTree": {
        "structure_",
        "leaf_counts_",
        "leaf_proba_",
        "class_prior_",
        "tree_weights_",
        "intercept_",
        "classes_",
        "privacy_",
        "n_features_in_",
        "feature_names_in_",
    },
    "ObjPertLogReg": {"coef_", "intercept_", "classes_", "C_", "privacy_", "n_features_in_", "feature_names_in_"},
}


def name_of(estimator):
    """Label an instance by what tells it from the others."""
    variant = [
        getattr(estimator, name, None)
        for name in ("loss", "solver", "calibration", "thresholds", "weights", "criterion")
    ]
    kind = "gaussian" if estimator.delta else "pure"
    return "-".join([type(estimator).__name__, *[v for v in variant if v is not None], kind])


def expected_failures(estimator):
    """Return the checks that are known to fail, with reasons."""
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})
