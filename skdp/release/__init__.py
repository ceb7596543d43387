"""The life cycle of a fit: from checked parameters and data to a plan, a charge, and released numbers."""

from .estimator import LabelsMixin, PrivateEstimator, Records, RowsMixin, Shape, TargetsMixin

__all__ = ["LabelsMixin", "PrivateEstimator", "Records", "RowsMixin", "Shape", "TargetsMixin"]
