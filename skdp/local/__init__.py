"""Local privacy: each record is randomised before anyone else sees it, so that nobody has to be trusted."""

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
