"""The life cycle of a fit: from checked parameters and data to a plan, a charge, and released numbers."""

from .estimator import LabelsMixin, ManyTargetsMixin, PrivateEstimator, Records, RowsMixin, Shape, TargetsMixin

__all__ = ["LabelsMixin", "ManyTargetsMixin", "PrivateEstimator", "Records", "RowsMixin", "Shape", "TargetsMixin"]
