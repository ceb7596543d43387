"""Mechanisms for a share of a budget: what their sensitivities allow for, what they cost, and what they are given."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.accounting import GaussianEvent, PureEvent, gaussian_mu
from skdp.mechanisms import (
    TOTAL_BITS,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GammaMechanism,
    GaussianMechanism,
    GroupChoices,
    NoNoise,
    PermuteAndFlip,
    coordinate_variance,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    within_reach,
)


@pytest.mark.parametrize("shares", [[1.0], [0.1] * 10, [1 / 3] * 3, [0.7, 0.2, 0.1], [1 / 49] * 49])
def test_parts_of_epsilon_are_never_more_than_the_whole(shares):
    for epsilon in (0.1, 1.0, 0.7, 3.3):
        parts = [Fraction(pure_share(epsilon, share)) for share in shares]
        assert (1 - 1e-14) * epsilon <= sum(parts) <= Fraction(epsilon)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("size", [1, 10, 3000])
def test_l2_mechanism_allows_for_roundings(delta, size):
    mechanism, event = l2_mechanism(0.8, delta, 0.25, 1.7, size)
    if delta:
        assert isinstance(mechanism, GaussianMechanism)
        # A quarter of the square is half of the parameter.
        assert event == GaussianEvent(gaussian_mu(0.8, delta) / 2)
        assert mechanism.parameter == gaussian_mu(0.8, delta) / 2
    else:
        assert isinstance(mechanism, GammaMechanism)
        assert event == PureEvent(pure_share(0.8, 0.25))
        assert mechanism.parameter == event.epsilon
    # A quarter of a step for each coordinate, before and after, is for doubles; the mechanism's own is in `scale`.
    assert mechanism.sensitivity == pytest.approx(1.7 + mechanism.step * math.sqrt(size) / 2, rel=1e-15)
    assert mechanism.rounding == pytest.approx(mechanism.step * math.sqrt(size) / 2, rel=1e-15)
    least = (mechanism.sensitivity + mechanism.step * math.sqrt(size)) / mechanism.parameter
    assert least <= mechanism.scale <= least * (1 + 1e-13)
    assert mechanism.sensitivity <= 1.7 * (1 + 2.0 ** (1 - TOTAL_BITS))


@pytest.mark.parametrize("epsilon", [1e-5, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_l1_mechanism_allows_for_roundings(epsilon, size):
    for sensitivity in (1e-3, 1.0, 1.7):
        mechanism = l1_mechanism(epsilon, sensitivity, size)
        assert isinstance(mechanism, DiscreteLaplaceMechanism)
        assert math.frexp(mechanism.step)[0] == 0.5
        # Three quarters of a step for each coordinate, on either side.
        assert mechanism.sensitivity == sensitivity + 1.5 * size * mechanism.step
        assert mechanism.sensitivity <= sensitivity * (1 + 3 * 2.0**-TOTAL_BITS)
        assert sensitivity / (epsilon * mechanism.step) <= 2.0**44


def test_noise_of_a_long_vector_stays_within_integers():
    mechanism = l1_mechanism(1e-5, 1.0, 2**16)
    assert 2.0**42 <= 1.0 / (1e-5 * mechanism.step) <= 2.0**44


def test_values_are_clipped_to_what_doubles_hold():
    mechanisms = [l2_mechanism(1.0, delta, 1.0, 1.0, 3)[0] for delta in (0.0, 1e-6)] + [l1_mechanism(1.0, 1.0, 3)]
    for mechanism in mechanisms:
        most = 2.0**49 * mechanism.step
        given = [-np.inf, -most * 1.01, -0.3, 0.9 * most, 1e300]
        np.testing.assert_array_equal(within_reach(mechanism, given), [-most, -most, -0.3, 0.9 * most, most])
    np.testing.assert_array_equal(within_reach(NoNoise(1.0), [1e300, -2.0]), [1e300, -2.0])


def test_variances_of_coordinates():
    gaussian, gamma = (l2_mechanism(1.0, delta, 1.0, 1.0, 4)[0] for delta in (1e-6, 0.0))
    laplace = l1_mechanism(1.0, 1.0, 4)
    assert coordinate_variance(gaussian) == gaussian.scale**2
    # E |z|^2 = p (p + 1) scale^2, over p coordinates.
    assert coordinate_variance(gamma) == 5 * gamma.scale**2
    assert coordinate_variance(laplace) == 2 * laplace.scale**2


@pytest.mark.parametrize("monotone", [False, True])
def test_choices_of_groups_have_the_scale_of_single_ones(monotone):
    for bounded_range, kind in ((True, ExponentialMechanism), (False, PermuteAndFlip)):
        choices = GroupChoices(0.5, 3.0, monotone, bounded_range)
        assert choices.name == kind.name
        assert choices.scale == (1 if monotone else 2) * 3.0 / 0.5
