"""Clustering."""

from ._dp_kmeans import DPKMeans
from ._sample_aggregate import SampleAggKMeans

__all__ = ["DPKMeans", "SampleAggKMeans"]
