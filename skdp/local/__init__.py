"""Local privacy: each record is randomised before anyone sees it, and no one has to be trusted with the records."""

from ._categorical import HadamardResponse, RandomizedResponse, UnaryEncoder
from ._naive_bayes import LocalDPNaiveBayes
from ._numeric import LocalLaplace, PiecewiseMechanism

__all__ = [
    "HadamardResponse",
    "LocalDPNaiveBayes",
    "LocalLaplace",
    "PiecewiseMechanism",
    "RandomizedResponse",
    "UnaryEncoder",
]
