"""Private mechanisms, each in the file of its theorem. This is the only package that draws noise."""

from ._base import Mechanism, NoNoise
from ._bits import GENERATORS, BitStream, NoiseSource, OneStream, global_generators
from ._calibrated import (
    TOTAL_BITS,
    choice_mechanism,
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
from .discrete import DiscreteLaplaceMechanism, discrete_gaussian, discrete_laplace
from .gaussian import GammaMechanism, GaussianMechanism, rounded_gamma_vector, rounded_normal
from .local import LocalMechanism
from .quantiles import ExactQuantiles, GridQuantiles, even_levels, quantile_depth, quantile_scores, weight_penalties
from .runs import BestOfRuns, draw_parts, number_of_runs
from .sampled_gaussian import LEAST_RATE, PoissonSampler, SampledGaussianMechanism
from .selection import BestChoices, ExponentialMechanism, GroupChoices, PermuteAndFlip
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
    "choice_mechanism",
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
