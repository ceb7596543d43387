"""Privacy budgets, the costs of releases, and the calibration of noise."""

from ._accountant import BudgetAccountant
from ._budget import (
    GROUP_SUPPORT_HINT,
    Budget,
    Relation,
    bounded_range_epsilon,
    bounded_range_mu,
    check_delta,
    check_epsilon,
    check_same_unit,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_noise_multiplier,
    largest_epsilon,
    pure_dp_mu,
    renyi_budget,
    warn_of_delta,
)
from ._composition import largest_share
from ._compound import (
    ParallelEvent,
    RepeatedSelectionEvent,
    SampledGaussianEvent,
    renyi_epsilon,
    runs_parameter,
    sampled_gaussian_mu,
)
from ._events import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
)
from ._loss_distribution import PrivacyLossDistribution
from ._objective import (
    GAUSSIAN_RATIO,
    ObjectiveCurve,
    binary_log_loss,
    huber_hinge,
    huber_price,
    multinomial_log_loss,
    multinomial_price,
)
from ._parts import Part, Parts
from ._record import Record, RecordedRelease
from ._view import running_totals

__all__ = [
    "GAUSSIAN_RATIO",
    "GROUP_SUPPORT_HINT",
    "ApproximateEvent",
    "BoundedRangeEvent",
    "Budget",
    "BudgetAccountant",
    "GaussianEvent",
    "ObjectiveCurve",
    "ObjectiveEvent",
    "ParallelEvent",
    "Part",
    "Parts",
    "PrivacyCost",
    "PrivacyEvent",
    "PrivacyLossDistribution",
    "PureEvent",
    "Record",
    "RecordedRelease",
    "Relation",
    "RepeatedSelectionEvent",
    "SampledGaussianEvent",
    "binary_log_loss",
    "bounded_range_epsilon",
    "bounded_range_mu",
    "check_delta",
    "check_epsilon",
    "check_same_unit",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_noise_multiplier",
    "huber_hinge",
    "huber_price",
    "largest_epsilon",
    "largest_share",
    "multinomial_log_loss",
    "multinomial_price",
    "pure_dp_mu",
    "renyi_budget",
    "renyi_epsilon",
    "running_totals",
    "runs_parameter",
    "sampled_gaussian_mu",
    "warn_of_delta",
]
