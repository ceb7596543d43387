"""The guarantee of every transformer and classifier here, from the exact probabilities of its own channels."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from skdp.local import (
    HadamardResponse,
    LocalDPNaiveBayes,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)
from skdp.mechanisms import LatticeLaplaceChannel, UnaryChannel

MODELS = [
    RandomizedResponse(2),
    RandomizedResponse(1000),
    UnaryEncoder(10),
    HadamardResponse(3),
    HadamardResponse(1000),
    LocalLaplace((0, 1)),
    PiecewiseMechanism((0, 1)),
    LocalDPNaiveBayes(bounds=(0, 1), classes=[0, 1, 2]),
]


def log(value):
    """Logarithm of a rational number, to 60 digits or so."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def epsilon_of(channel):
    """The largest privacy loss of a channel: the logarithm of the largest ratio of its probabilities."""
    if isinstance(channel, LatticeLaplaceChannel):
        return channel.largest / channel.lattice_scale
    if isinstance(channel, UnaryChannel):
        p, q = (Fraction(heads, 2**64) for heads in channel.heads)
        return log(p * (1 - q) / (q * (1 - p)))
    weight = Fraction(channel.heads, 2**64)
    return log(1 + weight / (1 - weight) * Fraction(channel.n_reports, channel.set_size))


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("epsilon", [2.0**-20, 0.1, 1.0, math.pi, 10.0])
@pytest.mark.parametrize("n_reported", ["all", "auto", 1, 2])
def test_a_row_loses_at_most_epsilon_and_nearly_that(model, epsilon, n_reported):
    for n_features in (1, 2, 7):
        if n_reported == 2 and n_features == 1:
            continue
        plan = model.set_params(epsilon=epsilon, n_reported=n_reported).privacy_plan(n_features=n_features)
        mechanism = plan.releases[0].mechanism
        losses = sorted((epsilon_of(channel) for channel in mechanism.channels), reverse=True)
        worst = sum(losses[: mechanism.n_reported])
        assert worst <= Fraction(epsilon)
        assert worst >= Fraction(epsilon) * Fraction(999, 1000)
