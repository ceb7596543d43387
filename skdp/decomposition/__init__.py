"""Principal components."""

from ._exponential import ExpMechPCA

__all__ = ["ExpMechPCA"]
