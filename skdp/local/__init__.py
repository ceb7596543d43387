"""Local privacy: each record is randomised before anyone else sees it, so that nobody has to be trusted."""

from ._naive_bayes import LocalDPNaiveBayes
from ._transformers import HadamardResponse, LocalLaplace, PiecewiseMechanism, RandomizedResponse, UnaryEncoder

__all__ = [
    "HadamardResponse",
    "LocalDPNaiveBayes",
    "LocalLaplace",
    "PiecewiseMechanism",
    "RandomizedResponse",
    "UnaryEncoder",
]
