"""Differentially private estimators for scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._allocation import allocate
    from .accounting import BudgetAccountant
    from .cluster import DPKMeans, SampleAggKMeans
    from .decomposition import DPPCA, ExpMechPCA
    from .linear_model import (
        DPSGDClassifier,
        ExpMechERM,
        FunctionalMechLinReg,
        FunctionalMechLogReg,
        ObjPertLogReg,
        ObjPertSVC,
        OutputPertLogReg,
        OutputPertSVC,
    )
    from .naive_bayes import DPNaiveBayes
    from .neural_network import DPMLPClassifier, DPMLPRegressor
    from .preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler, PrivateLabelSet, PublicBinner
    from .tree import DPGreedyTree, DPRandomTree

__version__ = "0.1.0.dev0"

__all__ = [
    "DPPCA",
    "BoundsScaler",
    "BudgetAccountant",
    "DPGreedyTree",
    "DPKMeans",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "DPNaiveBayes",
    "DPQuantileBinner",
    "DPRandomTree",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPStandardScaler",
    "ExpMechERM",
    "ExpMechPCA",
    "FunctionalMechLinReg",
    "FunctionalMechLogReg",
    "ObjPertLogReg",
    "ObjPertSVC",
    "OutputPertLogReg",
    "OutputPertSVC",
    "PrivateLabelSet",
    "PublicBinner",
    "SampleAggKMeans",
    "__version__",
    "allocate",
]

# Imported on first use, so that `import skdp` stays quick.
_HOME = {
    "BudgetAccountant": "accounting",
    "DPPCA": "decomposition",
    "DPNaiveBayes": "naive_bayes",
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
    "DPQuantileBinner": "preprocessing",
    "DPStandardScaler": "preprocessing",
    "PrivateLabelSet": "preprocessing",
    "PublicBinner": "preprocessing",
    "BoundsScaler": "preprocessing",
    "allocate": "_allocation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
