"""The base class of all private estimators."""

from .release.mixin import DPEstimatorMixin

__all__ = ["DPEstimatorMixin"]
