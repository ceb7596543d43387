"""Ensembles of models that are fitted to blocks of the records and aggregated privately."""

from ._pate import PATEClassifier
from ._sample_aggregate import SampleAggregate

__all__ = ["PATEClassifier", "SampleAggregate"]
