"""Synthetic tables, and a noisy histogram with models that are fitted to it."""

from ._generator import DPTableGenerator
from ._models import HistogramClassifier, HistogramRegressor
from ._noisy_histogram import NoisyHistogram

__all__ = ["DPTableGenerator", "HistogramClassifier", "HistogramRegressor", "NoisyHistogram"]
