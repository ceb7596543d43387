"""Private mechanisms: the only package that draws noise. One mechanism a file, with its theorem."""

from ._base import Mechanism, NoNoise
from ._bits import BitStream, NoiseSource
from .discrete_gaussian import discrete_gaussian
from .discrete_laplace import DiscreteLaplaceMechanism, discrete_laplace
from .exponential import ExponentialMechanism
from .gamma import GammaMechanism, rounded_gamma_vector
from .gaussian import GaussianMechanism, rounded_normal
from .permute_and_flip import PermuteAndFlip

__all__ = [
    "BitStream",
    "DiscreteLaplaceMechanism",
    "ExponentialMechanism",
    "GammaMechanism",
    "GaussianMechanism",
    "Mechanism",
    "NoNoise",
    "NoiseSource",
    "PermuteAndFlip",
    "discrete_gaussian",
    "discrete_laplace",
    "rounded_gamma_vector",
    "rounded_normal",
]
