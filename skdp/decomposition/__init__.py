"""Principal components."""

from ._exponential import ExpMechPCA
from ._matrix import DPPCA

__all__ = ["DPPCA", "ExpMechPCA"]
