"""One table of instances feeds every common test: their data, what they leave behind, and which checks fail."""

import dataclasses
from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skdp.additive import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.cluster import DPKMeans, SampleAggKMeans
from skdp.decomposition import DPPCA, ExpMechPCA
from skdp.ensemble import PATEClassifier, SampleAggregate
from skdp.linear_model import (
    DPSGDClassifier,
    DPSGDRegressor,
    ExpMechERM,
    FunctionalMechLinReg,
    FunctionalMechLogReg,
    ObjPertLogReg,
    OutputPertLogReg,
)
from skdp.local import (
    HadamardResponse,
    LocalDPNaiveBayes,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)
from skdp.model_selection import DPGridSearchCV
from skdp.model_selection._search import PrivateSearch
from skdp.naive_bayes import DPNaiveBayes
from skdp.neural_network import DPMLPClassifier, DPMLPRegressor
from skdp.preprocessing import (
    BoundsScaler,
    DPQuantileBinner,
    DPStandardScaler,
    NormClipper,
    PublicBinner,
    TableEncoder,
)
from skdp.schema import Category, Number, Schema
from skdp.schema.entries import table_columns
from skdp.solvers.losses import LogLoss, LossSum
from skdp.synthetic import DPTableGenerator, HistogramClassifier, HistogramRegressor, NoisyHistogram
from skdp.tree import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor
from tests.ensemble.data import public_rows
from tests.linear_model.data import blobs

# A large epsilon, because scikit-learn's checks ask for accuracy on a few dozen rows. The noise is real all the same.
_GENEROUS = {"epsilon": 500.0, "data_norm": 30.0}

PERTURBATION = [
    estimator(**_GENEROUS, **variant)
    for estimator in (OutputPertLogReg, ObjPertLogReg)
    for variant in ({"delta": 1e-5}, {"delta": 0.0}, {"delta": 1e-5, "loss": "huber"}, {"delta": 0.0, "loss": "huber"})
]

EXPONENTIAL = [
    ExpMechERM(**_GENEROUS),
    ExpMechERM(delta=1e-5, fit_intercept=False, **_GENEROUS),
    ExpMechERM("absolute_error", epsilon=1e3, data_norm=6.0, bounds_y=(-500.0, 500.0)),
]

# scikit-learn's checks hold standardised features for the most part, and targets up to some hundreds.
_WIDE = {"epsilon": 1e6, "bounds": (-5.0, 5.0)}

FUNCTIONAL = [
    *[
        FunctionalMechLinReg(bounds_y=(-500.0, 500.0), **_WIDE, **variant)
        for variant in ({"delta": 1e-5}, {"delta": 0.0})
    ],
    *[
        FunctionalMechLogReg(**_WIDE, **variant)
        for variant in ({"delta": 1e-5}, {"delta": 0.0}, {"delta": 1e-5, "calibration": "taylor"})
    ],
]

DESCENT = [
    *[
        DPSGDClassifier(**_GENEROUS, **variant)
        for variant in (
            {},
            {"batch_size": 0.5, "expected_n": 400},
            {"loss": "hinge", "penalty": "l1"},
            {"loss": "huber", "penalty": "elasticnet", "learning_rate": "cosine"},
        )
    ],
    *[
        DPSGDRegressor(epsilon=1e6, data_norm=6.0, bounds_y=(-500.0, 500.0), **variant)
        for variant in ({}, {"batch_size": 0.5, "expected_n": 400, "loss": "huber"})
    ],
]

NAIVE_BAYES = [
    DPNaiveBayes(**_WIDE, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
        {"delta": 1e-5, "numeric": "gaussian"},
        {"delta": 0.0, "numeric": "gaussian"},
    )
]

ADDITIVE = [
    *[
        DPAdditiveClassifier(**_WIDE, **variant)
        for variant in (
            {"delta": 1e-5, "interactions": None},
            {"delta": 0.0},
            {"delta": 1e-5, "n_bins": 8},
        )
    ],
    *[
        DPAdditiveRegressor(bounds_y=(-500.0, 500.0), **_WIDE, **variant)
        for variant in ({"delta": 1e-5, "interactions": None}, {"delta": 0.0, "n_bins": 8}, {"delta": 1e-5})
    ],
]

_BOX = {"n_clusters": 3, "epsilon": 1e6, "bounds": (-20.0, 20.0)}

CLUSTERING = [
    estimator(**_BOX, **variant)
    for estimator in (DPKMeans, SampleAggKMeans)
    for variant in ({"delta": 1e-5}, {"delta": 0.0})
]

TREES = [
    DPRandomTree(**_WIDE, **variant)
    for variant in (
        {"delta": 1e-5},
        # Deeper than by default for few records: the bounds are much wider than the data of scikit-learn's checks.
        {"delta": 0.0, "max_depth": 5},
        {"delta": 1e-5, "thresholds": "quantile"},
        {"delta": 0.0, "thresholds": "quantile", "weights": "equal"},
    )
]

TREES += [
    DPRandomTreeRegressor(bounds_y=(-500.0, 500.0), **_WIDE, **variant)
    for variant in (
        {"delta": 1e-5, "max_depth": 5},
        {"delta": 0.0, "max_depth": 5},
        {"delta": 0.0, "thresholds": "quantile", "expected_n": 200},
        {"delta": 1e-5, "thresholds": "quantile", "weights": "equal", "max_depth": 4, "max_features": 1},
    )
]

TREES += [
    DPGreedyTree(**_WIDE, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
    )
]

PREPROCESSING = [
    DPStandardScaler(**_WIDE, delta=1e-5),
    DPStandardScaler(**_WIDE, delta=0.0),
    DPQuantileBinner(**_WIDE, delta=1e-5),
    DPQuantileBinner(4, **_WIDE, delta=0.0, scale="symlog", encode="ordinal"),
]

_SCHEMA = Schema(
    {
        "x0": Number(-5, 5),
        "x1": Number(0.1, 5, scale="log", missing="cell"),
        "x2": Number(-5, 5, scale="log", step=0.5),
        "x3": Category([-1, 0, 1, 2]),
        "x4": Category([0.0, 1.0], other="missing"),
    }
)

#: Transformers that cost nothing.
FREE = [
    BoundsScaler((-5.0, 5.0)),
    BoundsScaler((-5.0, 5.0), feature_range=(0, 1)),
    NormClipper(3.0),
    PublicBinner([-2, -1, 0, 1]),
    PublicBinner(bounds=(-5.0, 5.0), encode="ordinal"),
    PublicBinner(bounds=(-5.0, 5.0), n_bins=3, scale="symlog"),
]

#: Transformers that cost nothing, and whose columns are declared.
TABLES = [TableEncoder(_SCHEMA), TableEncoder(_SCHEMA, form="codes")]


class AnyTable(TableEncoder):
    """An encoder whose schema has one column, which stands for all columns of a table: checks bring tables of any."""

    def fit(self, X, y=None):
        return super().fit(self._seen(X))

    def transform(self, X):
        return super().transform(X if hasattr(self, "_names") else self._seen(X))

    def _seen(self, X):
        names, columns = table_columns(X)
        self._names = names or range(len(columns))
        return X

    def _encoding(self):
        encoding = super()._encoding()
        [column] = encoding.schema.values()
        schema = Schema({str(name): column for name in getattr(self, "_names", ["x"])})
        return replace(encoding, schema=schema)


ANY_TABLE = [AnyTable({"x": column}, form) for column in ((-5, 5), range(4)) for form in ("linear", "codes")]

#: Transformers of the local model, which learn nothing, and randomise what they are given.
LOCAL = [
    RandomizedResponse(3),
    RandomizedResponse(3, n_reported="auto"),
    UnaryEncoder(3),
    UnaryEncoder(3, n_reported=1),
    HadamardResponse(5),
    HadamardResponse(5, n_reported="auto"),
    LocalLaplace((-5.0, 5.0)),
    PiecewiseMechanism((-5.0, 5.0)),
    PiecewiseMechanism((-5.0, 5.0), n_reported="all"),
]

LOCAL_NAIVE_BAYES = [
    LocalDPNaiveBayes(**_WIDE),
    LocalDPNaiveBayes(**_WIDE, n_reported="all"),
]

PCA = [
    ExpMechPCA(2, **_GENEROUS, **variant)
    for variant in (
        {"delta": 0.0},
        {"delta": 1e-5},
        {"delta": 0.0, "center": "private", "whiten": True},
        {"delta": 1e-5, "center": "private", "expected_n": 400},
    )
] + [
    DPPCA(2, **_GENEROUS, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
        {"delta": 1e-5, "center": "none", "whiten": True},
        {"delta": 0.0, "solver": "matrix"},
    )
]

_NETWORK = {"hidden_layer_sizes": (8,), "epsilon": 500.0, "delta": 1e-5, "data_norm": 5.0, "n_steps": 40}

NETWORKS = [
    DPMLPClassifier(**_NETWORK, **variant)
    for variant in (
        {"batch_size": 1.0},
        {"batch_size": 0.5, "expected_n": 300},
    )
] + [DPMLPRegressor(**{**_NETWORK, "n_steps": 100}, batch_size=1.0, bounds_y=(-8.0, 8.0))]

_CANDIDATES = {"fit_intercept": [True, False]}
_SEARCHED = ObjPertLogReg(data_norm=30.0)
_SEARCHED_REGRESSOR = FunctionalMechLinReg(bounds=(-10.0, 10.0), bounds_y=(-500.0, 500.0))
_LOSS = {"scoring": "neg_mean_absolute_error", "bounds_y": (-500.0, 500.0)}

SEARCHES = [
    DPGridSearchCV(_SEARCHED, _CANDIDATES, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    DPGridSearchCV(_SEARCHED, _CANDIDATES, epsilon=4000.0, strategy="holdout"),
    DPGridSearchCV(_SEARCHED_REGRESSOR, _CANDIDATES, epsilon=1e6, **_LOSS),
]

# Few bins, so that five columns and more have a histogram.
_BINNED = {"epsilon": 1e6, "bounds": (-3.0, 3.0), "n_bins": 3}

HISTOGRAMS = (NoisyHistogram, HistogramClassifier, HistogramRegressor)

SYNTHETIC = [
    *[NoisyHistogram(**_BINNED, delta=delta) for delta in (1e-5, 0.0)],
    *[HistogramClassifier(**_BINNED, **variant) for variant in ({"delta": 1e-5}, {"delta": 0.0})],
    *[HistogramRegressor(**_BINNED, bounds_y=(-8.0, 8.0), n_bins_y=16, delta=delta) for delta in (1e-5, 0.0)],
]

# A model of few cells, so that fits are quick.
GENERATORS = [
    DPTableGenerator(
        schema=dict.fromkeys("abcde", Number(-3, 3, missing="error")), epsilon=1e6, delta=delta, most_cells=256
    )
    for delta in (1e-5, 0.0)
]

ENSEMBLES = [
    PATEClassifier(GaussianNB(), public_X=public_rows, epsilon=500.0, n_teachers=4, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0, "max_queries": 60},
        {"delta": 1e-5, "student": GaussianNB()},
    )
] + [
    SampleAggregate(estimator, epsilon=1e6, n_blocks=4, **limits, **variant)
    for estimator, limits in (
        (LinearRegression(), {"bounds": (-40.0, 40.0)}),
        (LogisticRegression(), {"bounds": None, "radius": 12.0}),
    )
    for variant in ({"delta": 1e-5}, {"delta": 0.0})
]
ENSEMBLES += [
    SampleAggregate(estimator, aggregator="median", grid_size=4096, epsilon=1e6, n_blocks=4, delta=delta, bounds=bounds)
    for estimator, bounds, delta in (
        (LinearRegression(), (-40.0, 40.0), 0.0),
        (LogisticRegression(), (-5.0, 5.0), 1e-5),
    )
]

ESTIMATORS = [
    *PERTURBATION,
    *EXPONENTIAL,
    *FUNCTIONAL,
    *DESCENT,
    *NAIVE_BAYES,
    *ADDITIVE,
    *NETWORKS,
    *TREES,
    *PCA,
    *CLUSTERING,
    *PREPROCESSING,
    *LOCAL_NAIVE_BAYES,
    *SYNTHETIC,
    *GENERATORS,
    *ENSEMBLES,
    *SEARCHES,
]

#: Columns of the data for tests, where an estimator does not take five.
FEATURES = {"ExpMechERM": 3, "DPTableGenerator": 5}

#: Estimators for two classes only.
BINARY = {"ExpMechERM"}

# With columns of their own, which scikit-learn's checks do not have.
COLUMNS = {
    "categorical_features": [0],
    "n_categories": 3,
    "bin_edges": {1: [-5, -1, 0, 0.5, 1, 5]},
    "categories": {0: 3},
    "interactions": [(0, 1), (1, 2)],
}


def _quicker(estimator):
    """A copy that takes less time to fit, where no accuracy is asked for."""
    if isinstance(estimator, ExpMechERM):
        return clone(estimator).set_params(epsilon=min(estimator.epsilon, 30.0))
    return estimator


#: With as many steps as users take: what these release is compared from version to version.
THOROUGH = [_quicker(estimator) for estimator in ESTIMATORS] + [
    clone(estimator).set_params(**{name: value for name, value in COLUMNS.items() if name in estimator.get_params()})
    for estimator in NAIVE_BAYES + ADDITIVE + TREES + LOCAL_NAIVE_BAYES + SYNTHETIC
]

_FEW_STEPS = 12


def _of_few_steps(estimator):
    steps = estimator.get_params().get("n_steps", 0)
    # If None, it is 500.
    if steps is not None and steps <= _FEW_STEPS:
        return estimator
    # Few steps on samples take long to account for where epsilon is larger.
    return clone(estimator).set_params(n_steps=_FEW_STEPS, epsilon=min(estimator.epsilon, 500.0))


VARIANTS = [_of_few_steps(estimator) for estimator in THOROUGH]


def _boxed(estimator):
    """A copy for two labels or targets in the box [-1, 1], at the default budget."""
    parameters = {"epsilon": 1.0, "bounds": (-1.0, 1.0)}
    if is_classifier(estimator):
        parameters["classes"] = [0, 1]
    if is_regressor(estimator):
        parameters["bounds_y"] = (-1.0, 1.0)
    return clone(estimator).set_params(**parameters)


#: Estimators with `rows_per_group`.
BY_GROUP = [
    _boxed(estimator)
    for estimator in ESTIMATORS
    if hasattr(estimator, "rows_per_group") and hasattr(estimator, "bounds") and estimator.delta == 0
]

CLASSIFIERS = [estimator for estimator in VARIANTS if is_classifier(estimator)]

#: For tests of what does not depend on the variant.
ONE_EACH = list({type(estimator): estimator for estimator in reversed(VARIANTS)}.values())[::-1]

_ITERATIONS = "the number of iterations depends on private data and is not kept"

_EMPTY = "data without rows are a neighbour of data with one, and are fitted like any other"

_NO_ROWS = "nothing is learned from rows; where there are none, there are no reports"

_LABELS = "labels_ would be a function of the private rows; predict gives labels for rows that may be seen"

EXPECTED_FAILURES = {
    "BoundsScaler": {"check_estimators_empty_data_messages": _EMPTY},
    "DPQuantileBinner": {"check_estimators_empty_data_messages": _EMPTY},
    "DPStandardScaler": {"check_estimators_empty_data_messages": _EMPTY},
    "NormClipper": {"check_estimators_empty_data_messages": _EMPTY},
    "PublicBinner": {"check_estimators_empty_data_messages": _EMPTY},
    "AnyTable": {
        "check_estimators_empty_data_messages": _EMPTY,
        "check_dataframe_column_names_consistency": "columns are found by name, in any order",
    },
    "DPPCA": {"check_estimators_empty_data_messages": _EMPTY},
    "ExpMechPCA": {"check_estimators_empty_data_messages": _EMPTY},
    **{type(estimator).__name__: {"check_estimators_empty_data_messages": _NO_ROWS} for estimator in LOCAL},
    **{
        name: {"check_estimators_empty_data_messages": _EMPTY, "check_clustering": _LABELS}
        for name in ("DPKMeans", "SampleAggKMeans")
    },
    "SampleAggregate": {"check_estimators_empty_data_messages": _EMPTY},
    "DPSGDRegressor": {"check_estimators_empty_data_messages": _EMPTY},
    "DPAdditiveRegressor": {"check_estimators_empty_data_messages": _EMPTY},
    "DPRandomTreeRegressor": {"check_estimators_empty_data_messages": _EMPTY},
    "FunctionalMechLinReg": {"check_estimators_empty_data_messages": _EMPTY},
    "DPMLPRegressor": {"check_estimators_empty_data_messages": _EMPTY},
    "HistogramRegressor": {"check_estimators_empty_data_messages": _EMPTY},
    "NoisyHistogram": {"check_estimators_empty_data_messages": _EMPTY},
    "OutputPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
    "ObjPertLogReg": {"check_non_transformer_estimators_n_iter": _ITERATIONS},
}

# What fit may leave behind: functions of releases, and of public parameters.
RELEASED = {type(estimator).__name__: set(estimator._released) for estimator in ESTIMATORS if estimator._released}
PUBLIC = {type(estimator).__name__: set(estimator._public) for estimator in ESTIMATORS}


def public_attributes(estimator):
    """Names of what a fit to a frame leaves behind that says nothing about the rows."""
    common = {"privacy_", "n_features_in_", "feature_names_in_"}
    return PUBLIC[type(estimator).__name__] | common | ({"classes_"} if is_classifier(estimator) else set())


def released(model):
    """All numbers of a fitted model that come from releases."""
    names = sorted(RELEASED[type(model).__name__] - {"answers_"})
    values = {name: _flat(getattr(model, name)) for name in names}
    if hasattr(model, "answers_"):
        values["answers_"] = np.searchsorted(model.classes_, model.answers_).astype(float)
    for name in {"theta_", "var_"} & set(values):
        # Columns of another kind have no moments.
        values[name] = values[name][~np.isnan(values[name])]
    return np.concatenate(list(values.values()))


def _flat(value):
    if value is None or isinstance(value, str):
        return np.empty(0)
    if type(value).__name__ in RELEASED:
        return released(value)
    if dataclasses.is_dataclass(value):
        # The thresholds of cells that are not split are infinite.
        flat = _flat([getattr(value, field.name) for field in dataclasses.fields(value)])
        return flat[np.isfinite(flat)]
    if hasattr(value, "get_params"):
        # A model that was fitted to released numbers: its own, or what it says.
        last = value.steps[-1][1] if hasattr(value, "steps") else value
        if hasattr(last, "coef_"):
            return _flat([last.coef_, last.intercept_])
        said = value.predict(public_rows(value.n_features_in_)[:4])
        return _flat(np.searchsorted(value.classes_, said) if is_classifier(value) else said)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return np.concatenate([_flat(part) for part in value]) if value else np.empty(0)
    if np.asarray(value).dtype == object:
        # A slice or a loss, which has no number.
        return np.empty(0)
    return np.ravel(np.asarray(value, dtype=float))


def is_local(estimator):
    """Whether each row is randomised by itself, and their number is public."""
    return type(estimator).__module__.startswith("skdp.local")


def needs_y(estimator):
    """Whether labels or targets belong to the data."""
    return is_classifier(estimator) or is_regressor(estimator)


def of_many_columns(estimator, **parameters):
    """A copy for data of some more columns: the cells of a histogram are the product over them."""
    coarse = {"n_bins": 2, "n_bins_y": 2} if isinstance(estimator, HISTOGRAMS) else {}
    known = {name: value for name, value in coarse.items() if name in estimator.get_params()}
    return declared(estimator, **known, **parameters)


def output(model, X):
    """What a fitted model makes of rows. A histogram makes as many."""
    method = next((name for name in ("predict", "transform") if hasattr(model, name)), None)
    if method is not None:
        return getattr(model, method)(X)
    rows = model.sample(len(X), random_state=0)
    return np.asarray(rows[0] if isinstance(rows, tuple) else rows)


def every_output(model, X, y):
    """All that a fitted model says, by method."""
    out = {}
    rows = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "apply")
    rows += ("score_samples",)
    for name in rows:
        if hasattr(model, name):
            out[name] = getattr(model, name)(X)
    for name in ("get_covariance", "get_feature_names_out"):
        if hasattr(model, name):
            out[name] = getattr(model, name)()
    if hasattr(model, "score"):
        out["score"] = model.score(X, y)
    if hasattr(model, "inverse_transform"):
        out["inverse_transform"] = model.inverse_transform(np.asarray(out["transform"]))
    return out


def columns_up_to(estimator, n_features):
    """So many columns, or as many as the estimator takes."""
    return min(n_features, FEATURES.get(type(estimator).__name__, n_features))


def classes_up_to(estimator, n_classes):
    """So many classes, or as many as the estimator takes."""
    return 2 if type(estimator).__name__ in BINARY else n_classes


def without_data(value):
    """What is handed to a release, as it would be if it were 0."""
    if isinstance(value, LossSum):
        return LossSum(np.empty((0, len(value.frame))), np.empty(0), LogLoss(), 1.0)
    return np.zeros(np.shape(value))


def declared(estimator, n_classes=2, **parameters):
    """A copy that neither warns nor depends on labels."""
    if is_classifier(estimator):
        parameters = {"classes": list(range(classes_up_to(estimator, n_classes))), **parameters}
    if "classes" in parameters and is_search(estimator):
        parameters["estimator__classes"] = parameters.pop("classes")
    return clone(estimator).set_params(**parameters)


def is_search(estimator):
    """Whether fits of another estimator take place inside."""
    return isinstance(estimator, PrivateSearch)


def data_for(estimator, n_classes=2, n_rows=400, n_features=None, seed=0):
    """Overlapping clusters with rows of norm up to about 3, and their numbers or a linear function with noise."""
    if n_features is None:
        n_features = columns_up_to(estimator, 5)
    X, y = blobs(n_classes, n_rows, n_features, seed)
    return X, (20 * X[:, 0] - 7.0 * y if is_regressor(estimator) else y)


# Tests ask thousands of times when they are collected. Estimators of tables are not changed.
@cache
def name_of(estimator):
    """Label an instance by what tells it from the others."""
    parameters = estimator.get_params(deep=False)
    variant = [
        parameters.get(name)
        for name in (
            "loss",
            "solver",
            "calibration",
            "numeric",
            "thresholds",
            "weights",
            "aggregator",
            "center",
            "scale",
            "encode",
            "form",
            "strategy",
            "n_reported",
        )
    ]
    kind = "gaussian" if getattr(estimator, "delta", None) else "pure" if hasattr(estimator, "delta") else "free"
    sampled = ["sampled"] if getattr(estimator, "batch_size", None) not in (None, 1.0) else []
    named = [getattr(estimator, name, None) for name in ("categorical_features", "interactions")]
    columns = ["columns"] if any(value is not None for value in named) else []
    inner = [name for name in ("student",) if getattr(estimator, name, None) is not None]
    if isinstance(estimator, SampleAggregate):
        variant = [type(estimator.estimator).__name__, estimator.aggregator]
    return "-".join(
        [type(estimator).__name__, *[str(v) for v in variant if v is not None], kind, *sampled, *columns, *inner]
    )


#: Checks that give weights of records.
_OF_WEIGHTS = (
    "check_all_zero_sample_weights_error",
    "check_classifiers_one_label_sample_weights",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
)

_BY_COINS = "a record of weight 2 is kept with twice the probability of a record of weight 1, and counts once"

# 25 records of one label are left, and none of the others.
_FEW_KEPT = (
    "ExpMechERM-log_loss-gaussian",
    "DPMLPClassifier-gaussian",
)


def expected_failures(estimator):
    """Return the checks that are known to fail, with reasons."""
    return {**_failures(estimator), **_failures_of_weights(estimator)}


def _failures_of_weights(estimator):
    if not hasattr(estimator, "max_weight"):
        return {}
    if estimator.max_weight is None:
        failures = dict.fromkeys(_OF_WEIGHTS, "weights of records are refused without max_weight")
    else:
        failures = dict.fromkeys([check for check in _OF_WEIGHTS if "equivalence" in check], _BY_COINS)
        failures["check_all_zero_sample_weights_error"] = "the number of kept records is private"
    if name_of(estimator) in _FEW_KEPT:
        failures["check_class_weight_classifiers"] = "noise on 25 records, and the check asks for an accuracy of 0.87"
    return failures


def _failures(estimator):
    if isinstance(estimator, ExpMechERM):
        return _failures_of_few_parameters(estimator)
    if is_search(estimator):
        # Regressors have targets of any kind; classifiers have no labels without rows.
        return {"check_estimators_empty_data_messages": _EMPTY} if is_regressor(estimator) else {}
    if is_classifier(estimator):
        # Without declared labels, empty data are refused.
        return {k: v for k, v in EXPECTED_FAILURES.get(type(estimator).__name__, {}).items() if v is not _EMPTY}
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


def _failures_of_few_parameters(estimator):
    """Checks whose data have more columns than the sampler takes."""
    checks = ["check_estimators_dtypes", "check_dtype_object", "check_array_api_input"]
    checks += ["check_classifiers_one_label_sample_weights"]
    if estimator.fit_intercept:
        checks += ["check_n_features_in_after_fitting", "check_positive_only_tag_during_fit"]
    if is_regressor(estimator):
        checks += [
            "check_regressors_train",
            "check_regressor_data_not_an_array",
            "check_regressors_no_decision_function",
            "check_regressors_int",
            "check_fit2d_1sample",
        ]
    failures = dict.fromkeys(checks, "the sampler is for at most four parameters, and the data have more columns")
    if is_regressor(estimator):
        failures["check_estimators_empty_data_messages"] = _EMPTY
    return failures
