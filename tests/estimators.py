"""One table of instances feeds every common test; expected failures of scikit-learn's checks live here too."""

from skdp.linear_model import ObjPertLogReg, OutputPertLogReg

# A large epsilon, because scikit-learn's checks ask for accuracy on a few dozen rows. The noise is real all the same.
_GENEROUS = {"epsilon": 500.0, "data_norm": 30.0}

CLASSIFIERS = [
    estimator(**_GENEROUS, **variant)
    for estimator in (OutputPertLogReg, ObjPertLogReg)
    for variant in ({"delta": 1e-5}, {"delta": 0.0}, {"delta": 1e-5, "loss": "huber"}, {"delta": 0.0, "loss": "huber"})
]

ESTIMATORS = CLASSIFIERS

_ITERATIONS = "the number of iterations depends on private data and is not kept"

EXPECTED_FAILURES = {
    "OutputPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
    "ObjPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
}

# What fit may leave behind: functions of releases and of public parameters.
FITTED_ATTRIBUTES = {
    "OutputPertLogReg": {"coef_", "intercept_", "classes_", "C_", "privacy_", "n_features_in_", "feature_names_in_"},
    "ObjPertLogReg": {"coef_", "intercept_", "classes_", "C_", "privacy_", "n_features_in_", "feature_names_in_"},
}


def name_of(estimator):
    """Label an instance by what tells it from the others."""
    return f"{type(estimator).__name__}-{estimator.loss}-{'gaussian' if estimator.delta else 'pure'}"


def expected_failures(estimator):
    """Return the checks that are known to fail, with reasons."""
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})
