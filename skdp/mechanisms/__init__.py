"""Private mechanisms, each in a file with its theorem. This is the only package that draws noise."""

from ._base import Mechanism, NoNoise
from ._bits import GENERATORS, BitStream, NoiseSource, OneStream, global_generators
from ._calibrated import (
    TOTAL_BITS,
    coordinate_variance,
    is_gaussian,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    quantile_mechanism,
    within_reach,
)
from .bingham import BinghamMechanism, bingham_direction
from .channels import (
    UNKNOWN,
    CategoryChannel,
    Channel,
    HadamardChannel,
    KaryChannel,
    LatticeLaplaceChannel,
    NumberChannel,
    UnaryChannel,
    WindowChannel,
)
from .choices import BestChoices, GroupChoices
from .discrete_gaussian import discrete_gaussian
from .discrete_laplace import DiscreteLaplaceMechanism, discrete_laplace
from .exponential import ExponentialMechanism
from .gamma import GammaMechanism, rounded_gamma_vector
from .gaussian import GaussianMechanism, rounded_normal
from .local import LocalMechanism
from .permute_and_flip import PermuteAndFlip
from .poisson import LEAST_RATE, PoissonSampler
from .quantiles import ExactQuantiles, GridQuantiles, even_levels, quantile_depth, quantile_scores, weight_penalties
from .runs import BestOfRuns, draw_parts, number_of_runs
from .sampled_gaussian import SampledGaussianMechanism
from .stability import StabilityCounts, StabilityThreshold
from .tangent_planes import MOST_PARAMETERS, TangentPlaneMechanism

__all__ = [
    "GENERATORS",
    "LEAST_RATE",
    "MOST_PARAMETERS",
    "TOTAL_BITS",
    "UNKNOWN",
    "BestChoices",
    "BestOfRuns",
    "BinghamMechanism",
    "BitStream",
    "CategoryChannel",
    "Channel",
    "DiscreteLaplaceMechanism",
    "ExactQuantiles",
    "ExponentialMechanism",
    "GammaMechanism",
    "GaussianMechanism",
    "GridQuantiles",
    "GroupChoices",
    "HadamardChannel",
    "KaryChannel",
    "LatticeLaplaceChannel",
    "LocalMechanism",
    "Mechanism",
    "NoNoise",
    "NoiseSource",
    "NumberChannel",
    "OneStream",
    "PermuteAndFlip",
    "PoissonSampler",
    "SampledGaussianMechanism",
    "StabilityCounts",
    "StabilityThreshold",
    "TangentPlaneMechanism",
    "UnaryChannel",
    "WindowChannel",
    "bingham_direction",
    "coordinate_variance",
    "discrete_gaussian",
    "discrete_laplace",
    "draw_parts",
    "even_levels",
    "global_generators",
    "is_gaussian",
    "l1_mechanism",
    "l2_mechanism",
    "number_of_runs",
    "pure_share",
    "quantile_depth",
    "quantile_mechanism",
    "quantile_scores",
    "rounded_gamma_vector",
    "rounded_normal",
    "weight_penalties",
    "within_reach",
]
