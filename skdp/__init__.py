"""Differentially private estimators for scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import BudgetAccountant
    from .additive import DPAdditiveClassifier, DPAdditiveRegressor
    from .cluster import DPKMeans, SampleAggKMeans
    from .decomposition import DPPCA, ExpMechPCA
    from .ensemble import PATEClassifier, SampleAggregate
    from .inspection import TRUSTED_TYPES
    from .linear_model import (
        DPSGDClassifier,
        DPSGDRegressor,
        ExpMechERM,
        FunctionalMechLinReg,
        FunctionalMechLogReg,
        ObjPertLogReg,
        OutputPertLogReg,
    )
    from .local import (
        HadamardResponse,
        LocalDPNaiveBayes,
        LocalLaplace,
        PiecewiseMechanism,
        RandomizedResponse,
        UnaryEncoder,
    )
    from .model_selection import (
        DPGridSearchCV,
        DPRandomizedSearchCV,
        allocate,
        make_private_pipeline,
        private_cross_val_score,
        private_score,
    )
    from .naive_bayes import DPNaiveBayes
    from .neural_network import DPMLPClassifier, DPMLPRegressor
    from .preprocessing import (
        BoundsScaler,
        DPQuantileBinner,
        DPStandardScaler,
        PublicBinner,
        TableEncoder,
    )
    from .schema import Category, Number, Schema
    from .stats import describe
    from .synthetic import HistogramClassifier, HistogramRegressor, NoisyHistogram
    from .tree import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor

__version__ = "0.1.0"

__all__ = [
    "DPPCA",
    "TRUSTED_TYPES",
    "BoundsScaler",
    "BudgetAccountant",
    "Category",
    "DPAdditiveClassifier",
    "DPAdditiveRegressor",
    "DPGreedyTree",
    "DPGridSearchCV",
    "DPKMeans",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "DPNaiveBayes",
    "DPQuantileBinner",
    "DPRandomTree",
    "DPRandomTreeRegressor",
    "DPRandomizedSearchCV",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPStandardScaler",
    "ExpMechERM",
    "ExpMechPCA",
    "FunctionalMechLinReg",
    "FunctionalMechLogReg",
    "HadamardResponse",
    "HistogramClassifier",
    "HistogramRegressor",
    "LocalDPNaiveBayes",
    "LocalLaplace",
    "NoisyHistogram",
    "Number",
    "ObjPertLogReg",
    "OutputPertLogReg",
    "PATEClassifier",
    "PiecewiseMechanism",
    "PublicBinner",
    "RandomizedResponse",
    "SampleAggKMeans",
    "SampleAggregate",
    "Schema",
    "TableEncoder",
    "UnaryEncoder",
    "__version__",
    "allocate",
    "describe",
    "make_private_pipeline",
    "private_cross_val_score",
    "private_score",
]

# Packages are imported on first use, so that `import skdp` is fast.
_PACKAGES = {
    "accounting": "BudgetAccountant",
    "additive": "DPAdditiveClassifier DPAdditiveRegressor",
    "cluster": "DPKMeans SampleAggKMeans",
    "decomposition": "DPPCA ExpMechPCA",
    "ensemble": "PATEClassifier SampleAggregate",
    "inspection": "TRUSTED_TYPES",
    "linear_model": (
        "DPSGDClassifier DPSGDRegressor ExpMechERM FunctionalMechLinReg FunctionalMechLogReg "
        "ObjPertLogReg OutputPertLogReg"
    ),
    "local": ("HadamardResponse LocalDPNaiveBayes LocalLaplace PiecewiseMechanism RandomizedResponse UnaryEncoder"),
    "model_selection": (
        "DPGridSearchCV DPRandomizedSearchCV allocate make_private_pipeline private_cross_val_score private_score"
    ),
    "naive_bayes": "DPNaiveBayes",
    "neural_network": "DPMLPClassifier DPMLPRegressor",
    "preprocessing": ("BoundsScaler DPQuantileBinner DPStandardScaler PublicBinner TableEncoder"),
    "schema": "Category Number Schema",
    "stats": "describe",
    "synthetic": "HistogramClassifier HistogramRegressor NoisyHistogram",
    "tree": "DPGreedyTree DPRandomTree DPRandomTreeRegressor",
}
_MODULES = {*_PACKAGES, "audit", "datasets", "exceptions", "mechanisms"}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
