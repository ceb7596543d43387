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
    from .linear_model import (
        DPSGDClassifier,
        DPSGDRegressor,
        ExpMechERM,
        FunctionalMechLinReg,
        FunctionalMechLogReg,
        ObjPertLogReg,
        ObjPertSVC,
        OutputPertLogReg,
        OutputPertSVC,
    )
    from .local import (
        HadamardResponse,
        LocalDPNaiveBayes,
        LocalLaplace,
        PiecewiseMechanism,
        RandomizedResponse,
        UnaryEncoder,
    )
    from .model_selection import DPGridSearchCV, DPRandomizedSearchCV, private_cross_val_score, private_score
    from .model_selection._allocation import allocate
    from .naive_bayes import DPNaiveBayes
    from .neural_network import DPMLPClassifier, DPMLPRegressor
    from .preprocessing import (
        BoundsScaler,
        DPQuantileBinner,
        DPStandardScaler,
        PrivateLabelSet,
        PublicBinner,
        private_quantiles,
    )
    from .synthetic import HistogramClassifier, HistogramRegressor, NoisyHistogram
    from .tree import DPGreedyTree, DPRandomTree

__version__ = "0.1.0"

__all__ = [
    "DPPCA",
    "BoundsScaler",
    "BudgetAccountant",
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
    "ObjPertLogReg",
    "ObjPertSVC",
    "OutputPertLogReg",
    "OutputPertSVC",
    "PATEClassifier",
    "PiecewiseMechanism",
    "PrivateLabelSet",
    "PublicBinner",
    "RandomizedResponse",
    "SampleAggKMeans",
    "SampleAggregate",
    "UnaryEncoder",
    "__version__",
    "allocate",
    "private_cross_val_score",
    "private_quantiles",
    "private_score",
]

# Imported on first use, so that `import skdp` stays quick.
_HOME = {
    "BudgetAccountant": "accounting",
    "DPAdditiveClassifier": "additive",
    "DPAdditiveRegressor": "additive",
    "DPPCA": "decomposition",
    "DPGridSearchCV": "model_selection",
    "DPNaiveBayes": "naive_bayes",
    "DPRandomizedSearchCV": "model_selection",
    "DPMLPClassifier": "neural_network",
    "DPMLPRegressor": "neural_network",
    "DPGreedyTree": "tree",
    "DPRandomTree": "tree",
    "ExpMechPCA": "decomposition",
    "DPKMeans": "cluster",
    "DPSGDClassifier": "linear_model",
    "DPSGDRegressor": "linear_model",
    "ExpMechERM": "linear_model",
    "FunctionalMechLinReg": "linear_model",
    "FunctionalMechLogReg": "linear_model",
    "ObjPertLogReg": "linear_model",
    "ObjPertSVC": "linear_model",
    "OutputPertLogReg": "linear_model",
    "OutputPertSVC": "linear_model",
    "SampleAggKMeans": "cluster",
    "HistogramClassifier": "synthetic",
    "HistogramRegressor": "synthetic",
    "NoisyHistogram": "synthetic",
    "PATEClassifier": "ensemble",
    "SampleAggregate": "ensemble",
    "DPQuantileBinner": "preprocessing",
    "DPStandardScaler": "preprocessing",
    "PrivateLabelSet": "preprocessing",
    "PublicBinner": "preprocessing",
    "BoundsScaler": "preprocessing",
    "HadamardResponse": "local",
    "LocalDPNaiveBayes": "local",
    "LocalLaplace": "local",
    "PiecewiseMechanism": "local",
    "RandomizedResponse": "local",
    "UnaryEncoder": "local",
    "allocate": "model_selection._allocation",
    "private_cross_val_score": "model_selection",
    "private_quantiles": "preprocessing",
    "private_score": "model_selection",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
