"""Models made of many models, each fitted to a block of the records, whose answers are aggregated privately."""

from ._pate import PATEClassifier
from ._sample_aggregate import SampleAggregate

__all__ = ["PATEClassifier", "SampleAggregate"]
