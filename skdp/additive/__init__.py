"""Additive models with one curve for each column of a table."""

from ._classifier import DPAdditiveClassifier
from ._regressor import DPAdditiveRegressor

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor"]
