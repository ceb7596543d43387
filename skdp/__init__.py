"""Differentially private estimators for scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import BudgetAccountant as BudgetAccountant
    from .additive import DPAdditiveClassifier as DPAdditiveClassifier
    from .additive import DPAdditiveRegressor as DPAdditiveRegressor
    from .cluster import DPKMeans as DPKMeans
    from .cluster import SampleAggKMeans as SampleAggKMeans
    from .decomposition import DPPCA as DPPCA
    from .decomposition import ExpMechPCA as ExpMechPCA
    from .ensemble import PATEClassifier as PATEClassifier
    from .ensemble import SampleAggregate as SampleAggregate
    from .inspection import TRUSTED_TYPES as TRUSTED_TYPES
    from .linear_model import DPSGDClassifier as DPSGDClassifier
    from .linear_model import DPSGDRegressor as DPSGDRegressor
    from .linear_model import ExpMechERM as ExpMechERM
    from .linear_model import FunctionalMechLinReg as FunctionalMechLinReg
    from .linear_model import FunctionalMechLogReg as FunctionalMechLogReg
    from .linear_model import ObjPertLogReg as ObjPertLogReg
    from .linear_model import OutputPertLogReg as OutputPertLogReg
    from .local import HadamardResponse as HadamardResponse
    from .local import LocalDPNaiveBayes as LocalDPNaiveBayes
    from .local import LocalLaplace as LocalLaplace
    from .local import PiecewiseMechanism as PiecewiseMechanism
    from .local import RandomizedResponse as RandomizedResponse
    from .local import UnaryEncoder as UnaryEncoder
    from .model_selection import DPGridSearchCV as DPGridSearchCV
    from .model_selection import DPRandomizedSearchCV as DPRandomizedSearchCV
    from .model_selection import allocate as allocate
    from .model_selection import make_private_pipeline as make_private_pipeline
    from .model_selection import private_cross_val_score as private_cross_val_score
    from .model_selection import private_score as private_score
    from .naive_bayes import DPNaiveBayes as DPNaiveBayes
    from .neural_network import DPMLPClassifier as DPMLPClassifier
    from .neural_network import DPMLPRegressor as DPMLPRegressor
    from .preprocessing import BoundsScaler as BoundsScaler
    from .preprocessing import DPQuantileBinner as DPQuantileBinner
    from .preprocessing import DPStandardScaler as DPStandardScaler
    from .preprocessing import PublicBinner as PublicBinner
    from .preprocessing import TableEncoder as TableEncoder
    from .schema import Category as Category
    from .schema import Number as Number
    from .schema import Schema as Schema
    from .stats import describe as describe
    from .synthetic import DPTableGenerator as DPTableGenerator
    from .synthetic import HistogramClassifier as HistogramClassifier
    from .synthetic import HistogramRegressor as HistogramRegressor
    from .synthetic import NoisyHistogram as NoisyHistogram
    from .tree import DPGreedyTree as DPGreedyTree
    from .tree import DPRandomTree as DPRandomTree
    from .tree import DPRandomTreeRegressor as DPRandomTreeRegressor

__version__ = "0.3.0.dev0"

# Packages are imported on first use, so that `import skdp` is fast.
_PACKAGES = {
    "accounting": "BudgetAccountant",
    "additive": "DPAdditiveClassifier DPAdditiveRegressor",
    "cluster": "DPKMeans SampleAggKMeans",
    "decomposition": "DPPCA ExpMechPCA",
    "ensemble": "PATEClassifier SampleAggregate",
    "inspection": "TRUSTED_TYPES",
    "linear_model": "DPSGDClassifier DPSGDRegressor ExpMechERM FunctionalMechLinReg FunctionalMechLogReg "
    "ObjPertLogReg OutputPertLogReg",
    "local": ("HadamardResponse LocalDPNaiveBayes LocalLaplace PiecewiseMechanism RandomizedResponse UnaryEncoder"),
    "model_selection": (
        "DPGridSearchCV DPRandomizedSearchCV allocate make_private_pipeline private_cross_val_score private_score"
    ),
    "naive_bayes": "DPNaiveBayes",
    "neural_network": "DPMLPClassifier DPMLPRegressor",
    "preprocessing": ("BoundsScaler DPQuantileBinner DPStandardScaler PublicBinner TableEncoder"),
    "schema": "Category Number Schema",
    "stats": "describe",
    "synthetic": "DPTableGenerator HistogramClassifier HistogramRegressor NoisyHistogram",
    "tree": "DPGreedyTree DPRandomTree DPRandomTreeRegressor",
}
_MODULES = {*_PACKAGES, "audit", "datasets", "exceptions", "mechanisms"}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
