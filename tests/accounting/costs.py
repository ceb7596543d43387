"""Costs of single events, for tests."""

from skdp.accounting import (
    ApproximateEvent,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    PureEvent,
    binary_log_loss,
    gaussian_epsilon,
)


def gaussian_cost(mu, delta=1e-5):
    return PrivacyCost(gaussian_epsilon(mu, delta), delta, (GaussianEvent(mu),))


def pure_cost(epsilon):
    return PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))


def approximate_cost(epsilon, delta):
    return PrivacyCost(epsilon, delta, (ApproximateEvent(epsilon, delta),))


def objective_cost(kappa, mu, delta=1e-5):
    return PrivacyCost(1.0, delta, (ObjectiveEvent(binary_log_loss(kappa), mu), GaussianEvent(0.02 * mu)))
