"""Private mechanisms, each in the file of its theorem. This is the only package that draws noise."""

from ._base import GENERATORS, BitStream, Mechanism, NoiseSource, NoNoise, OneStream, global_generators, restarted
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
    LocalMechanism,
    NumberChannel,
    UnaryChannel,
    WindowChannel,
)
from .discrete import DiscreteLaplaceMechanism, StabilityCounts, discrete_laplace
from .gaussian import GammaMechanism, GaussianMechanism, rounded_normal
from .quantiles import ExactQuantiles, GridQuantiles, even_levels, quantile_depth, quantile_scores, weight_penalties
from .sampled_gaussian import LEAST_RATE, PoissonSampler, SampledGaussianMechanism
from .selection import (
    BestChoices,
    BestOfRuns,
    ExponentialMechanism,
    GroupChoices,
    PermuteAndFlip,
    draw_parts,
    number_of_runs,
)
from .tangent_planes import MOST_PARAMETERS, TangentPlaneMechanism
