"""Additive models: one curve for each column of a table, to be looked at."""

from ._classifier import DPAdditiveClassifier
from ._regressor import DPAdditiveRegressor

__all__ = ["DPAdditiveClassifier", "DPAdditiveRegressor"]
