"""Synthetic data from a noisy histogram, and models that are fitted to them."""

from ._models import HistogramClassifier, HistogramRegressor
from ._noisy_histogram import NoisyHistogram

__all__ = ["HistogramClassifier", "HistogramRegressor", "NoisyHistogram"]
