"""Properties of estimators that follow from class and parameters: whether they are private, or learn nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

PRIVATE = frozenset({"epsilon", "delta", "accountant"})

UNIT = "rows_per_group"

Variants = list[dict[str, Any]] | None


def is_private(estimator: Any) -> bool:
    if not hasattr(estimator, "get_params"):
        return False
    # Estimators of the local model have pure privacy, and no parameter delta.
    delta = getattr(estimator, "delta", None)
    pure = {"delta"} if isinstance(delta, int | float) and delta == 0 else set()
    return set(estimator.get_params(deep=False)) | pure >= PRIVATE


def is_shared(estimator: Any) -> bool:
    """Tell whether the private steps of a pipeline share its budget, and are charged one by one."""
    return isinstance(estimator, Pipeline) and is_private(estimator)


def set_own(estimator: Any, **values: Any) -> Any:
    own = estimator.get_params(deep=False)
    return estimator.set_params(**{name: value for name, value in values.items() if name in own})


def randomizes_rows(estimator: Any) -> bool:
    """Tell whether the estimator randomises each row separately. Steps that see only its output are private, too."""
    return is_private(estimator) and getattr(estimator, "_randomizes_rows", False)


def holds_randomizer(estimator: Any) -> bool:
    return randomizes_rows(estimator) or any(holds_randomizer(child) for child in children_of(estimator).values())


#: Transformers and other estimators of scikit-learn that ignore labels, by package. Other classes may use labels.
_UNLABELLED = {
    "cluster": "FeatureAgglomeration",
    "covariance": "EmpiricalCovariance GraphicalLasso GraphicalLassoCV LedoitWolf MinCovDet OAS ShrunkCovariance",
    "decomposition": (
        "DictionaryLearning FactorAnalysis FastICA IncrementalPCA KernelPCA LatentDirichletAllocation "
        "MiniBatchDictionaryLearning MiniBatchNMF MiniBatchSparsePCA NMF PCA SparsePCA TruncatedSVD"
    ),
    "ensemble": "RandomTreesEmbedding",
    "feature_selection": "VarianceThreshold",
    "impute": "IterativeImputer KNNImputer MissingIndicator SimpleImputer",
    "kernel_approximation": "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler",
    "manifold": "Isomap LocallyLinearEmbedding MDS SpectralEmbedding TSNE",
    "neighbors": "KernelDensity KNeighborsTransformer NearestNeighbors RadiusNeighborsTransformer",
    "neural_network": "BernoulliRBM",
    "preprocessing": (
        "Binarizer KBinsDiscretizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler SplineTransformer StandardScaler"
    ),
    "random_projection": "GaussianRandomProjection SparseRandomProjection",
}


def ignores_labels(step: Any) -> bool:
    """Tell whether `fit` is known to ignore labels, which a pipeline passes to all of its steps."""
    library, package, *_ = [*type(step).__module__.split("."), "", ""]
    if library != "sklearn" or is_classifier(step) or is_regressor(step) or children_of(step):
        return False
    density = get_tags(step).estimator_type == "density_estimator"
    listed = type(step).__name__ in _UNLABELLED.get(package, "").split()
    return listed or density or is_clusterer(step) or is_outlier_detector(step)


def children_of(estimator: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if "__" not in name and _is_step(value) and not isinstance(value, type)
    }


def _is_step(value: Any) -> bool:
    """Tell whether a parameter is an estimator. Some transformers have fit_transform only."""
    return hasattr(value, "get_params") and any(hasattr(value, name) for name in ("fit", "fit_transform", "transform"))


def holds_private(estimator: Any) -> bool:
    return is_private(estimator) or any(holds_private(child) for child in children_of(estimator).values())


def has_bins(estimator: Any) -> bool:
    return hasattr(estimator, "get_params") and any(
        name.rpartition("__")[2] in ("n_bins", "thresholds", "max_depth") for name in estimator.get_params()
    )


def learns_nothing(estimator: Any, variants: Variants) -> bool:
    """Tell whether the step could learn from data, but its parameters exclude it."""
    if has_public_categories(estimator, variants) or _has_public_fill(estimator, variants):
        return True
    condition = _ONLY_COLUMNS.get(type(estimator))
    return condition is not None and variants is not None and all(map(condition, _each(estimator, variants)))


#: Steps that learn only the number and types of columns from rows, under a condition on their parameters. This was
#: checked in the source of each `fit`.
_ONLY_COLUMNS: dict[type, Callable[[dict[str, Any]], bool]] = {
    PolynomialFeatures: lambda given: True,
    PolynomialCountSketch: lambda given: True,
    SkewedChi2Sampler: lambda given: True,
    RBFSampler: lambda given: not isinstance(given["gamma"], str),
    GaussianRandomProjection: lambda given: not isinstance(given["n_components"], str),
    SparseRandomProjection: lambda given: not isinstance(given["n_components"], str),
    MissingIndicator: lambda given: given["features"] == "all",
    SplineTransformer: lambda given: not isinstance(given["knots"], str),
    CountVectorizer: lambda given: given["vocabulary"] is not None,
    TfidfTransformer: lambda given: not given["use_idf"],
    TfidfVectorizer: lambda given: given["vocabulary"] is not None and not given["use_idf"],
}

#: Alternatives to steps that learn from rows.
_INSTEAD = {
    "OneHotEncoder": "set categories, and handle_unknown='ignore', or use TableEncoder",
    "OrdinalEncoder": "set categories, and handle_unknown='use_encoded_value' with unknown_value, or use TableEncoder",
    "SimpleImputer": "set strategy='constant', keep_empty_features=True and add_indicator=False",
    "RBFSampler": "set gamma to a number",
    "GaussianRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "SparseRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "MissingIndicator": "set features='all'",
    "SplineTransformer": "set knots to an array",
    "CountVectorizer": "set vocabulary, or use HashingVectorizer",
    "TfidfTransformer": "set use_idf=False",
    "TfidfVectorizer": "set vocabulary and use_idf=False, or use HashingVectorizer",
    "StandardScaler": "use DPStandardScaler, or BoundsScaler",
    "MinMaxScaler": "use BoundsScaler",
    "MaxAbsScaler": "use BoundsScaler",
    "RobustScaler": "use DPStandardScaler, or BoundsScaler",
    "KBinsDiscretizer": "use DPQuantileBinner, or PublicBinner",
    "QuantileTransformer": "use DPQuantileBinner",
    "PCA": "use DPPCA",
}


def advice(estimators: list[Any]) -> str:
    """Name an alternative to each step that learns."""
    kinds = dict.fromkeys(type(estimator).__name__ for estimator in estimators)
    advice = [f"{kind}: {_INSTEAD[kind]}" for kind in kinds if kind in _INSTEAD]
    return f". Instead: {'; '.join(advice)}" if advice else ""


def _each(estimator: Any, variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = estimator.get_params(deep=False)
    return [{**own, **variant} for variant in variants]


def _has_public_fill(estimator: Any, variants: Variants) -> bool:
    """Tell whether the imputer fills in a constant and keeps all columns, also those without any value."""
    if not isinstance(estimator, SimpleImputer) or variants is None:
        return False
    return all(
        given["strategy"] == "constant" and given["keep_empty_features"] and not given["add_indicator"]
        for given in _each(estimator, variants)
    )


def has_public_categories(estimator: Any, variants: Variants) -> bool:
    """Tell whether the encoder learns nothing, because its categories are given and it accepts other values."""
    if not isinstance(estimator, OneHotEncoder | OrdinalEncoder) or variants is None:
        return False
    return all(
        not isinstance(given["categories"], str)
        and given["handle_unknown"] != "error"
        and given["min_frequency"] is None
        and given["max_categories"] is None
        for given in _each(estimator, variants)
    )
