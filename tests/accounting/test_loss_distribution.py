"""Composition of privacy losses, against closed forms, a contour integral, and dp_accounting."""

import math
from collections import Counter

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle
from scipy import stats

from skdp.accounting import GaussianEvent, PureEvent, SampledGaussianEvent, gaussian_delta, gaussian_epsilon
from skdp.accounting._events import compose_events
from skdp.accounting._loss_distribution import no_losses
from tests.accounting.contour import contour_delta


@pytest.mark.parametrize(("mu", "n_times"), [(0.3, 1), (0.05, 400)])
def test_gaussian_losses_have_the_closed_form_down_to_tiny_deltas(mu, n_times):
    whole = GaussianEvent(mu).privacy_loss_distribution(1e-3).self_compose(n_times)
    together = mu * math.sqrt(n_times)
    epsilons = np.linspace(0.0, together**2 / 2 + 9 * together, 60)
    exact = gaussian_delta(epsilons, together)
    found = whole.get_delta_for_epsilon(epsilons)
    assert exact.min() < 1e-18
    assert np.all(found >= exact)
    assert np.all(found <= exact * 1.01)
    # One by one, with a tilt of its own for each.
    assert all(exact[i] <= whole.get_delta_for_epsilon(epsilons[i]) <= found[i] * (1 + 1e-6) for i in (0, 30, 59))
    assert gaussian_epsilon(together, 1e-12) <= whole.get_epsilon_for_delta(1e-12)
    assert whole.get_epsilon_for_delta(1e-12) <= gaussian_epsilon(together, 1e-12) * 1.001


def test_pure_losses_are_binomial():
    whole = PureEvent(0.1).privacy_loss_distribution(1e-4).self_compose(30)
    successes = np.arange(31)
    losses = 0.1 * (2 * successes - 30)
    law = stats.binom.pmf(successes, 30, 1 / (1 + math.exp(-0.1)))
    for epsilon in (-1.0, 0.0, 0.55, 2.0, 2.9):
        exact = float(law @ np.maximum(-np.expm1(epsilon - losses), 0.0))
        assert exact * (1 - 1e-12) <= whole.get_delta_for_epsilon(epsilon) <= exact * (1 + 1e-5) + 1e-30
    assert whole.get_delta_for_epsilon(3.001) == 0
    assert whole.get_epsilon_for_delta(0.0) == pytest.approx(3.0, rel=1e-6)


@pytest.mark.parametrize("removed", [True, False])
def test_sampled_losses_against_a_contour_integral(removed):
    event = SampledGaussianEvent(0.01, 1.0, 1)
    whole = event.privacy_loss_distribution(5e-4).self_compose(1000)
    one = type(whole)(whole.interval, whole._directions[:1] if removed else whole._directions[1:])
    # The abscissas are near the saddle points, since nothing else keeps the digits of tiny deltas.
    tilts = (2.0, 4.0, 5.0) if removed else (2.0, 10.0, 20.0)
    for epsilon, tilt in zip((0.2, 2.0, 3.0), tilts, strict=True):
        exact = contour_delta(0.01, 1.0, 1000, epsilon, tilt, removed)
        assert contour_delta(0.01, 1.0, 1000, epsilon, tilt * 1.3, removed) == pytest.approx(exact, rel=1e-7, abs=0)
        assert exact * (1 - 1e-8) <= one.get_delta_for_epsilon(epsilon) <= exact * 1.03


def test_a_million_steps_are_not_understated():
    # An allowance for rounding that counted events, not steps, admitted this plan.
    event = SampledGaussianEvent(1e-3, 0.5, 10**6)
    exact = contour_delta(1e-3, 0.5, 10**6, 3.51, 13.0)
    assert exact == pytest.approx(1.05768e-11, rel=1e-5)
    assert exact <= event.privacy_loss_distribution(2e-5).get_delta_for_epsilon(3.51) <= 1.03 * exact


def test_agrees_with_dp_accounting():
    ours = SampledGaussianEvent(0.1, 0.5, 1).privacy_loss_distribution(1e-3)
    theirs = oracle.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3, sampling_prob=0.1)
    for n_times in (1, 100):
        for epsilon in (0.1, 1.0):
            reference = theirs.self_compose(n_times).get_delta_for_epsilon(epsilon)
            assert ours.self_compose(n_times).get_delta_for_epsilon(epsilon) == pytest.approx(reference, rel=1e-6)
    both = ours.compose(PureEvent(0.2).privacy_loss_distribution(1e-3))
    reference = theirs.compose(oracle.from_privacy_parameters(_pair(0.2), 1e-3)).get_delta_for_epsilon(0.3)
    assert both.get_delta_for_epsilon(0.3) == pytest.approx(reference, rel=1e-6)


def _pair(epsilon):
    from dp_accounting.pld import common

    return common.DifferentialPrivacyParameters(epsilon, 0.0)


def test_order_and_ends():
    identity = no_losses(1e-3)
    assert identity.get_delta_for_epsilon([-1.0, 0.0, 1.0]).tolist() == [-math.expm1(-1.0), 0.0, 0.0]
    assert identity.get_epsilon_for_delta(0.0) == 0
    one = GaussianEvent(0.5).privacy_loss_distribution(1e-3)
    assert one.compose(identity).get_delta_for_epsilon(1.0) == one.get_delta_for_epsilon(1.0)
    assert one.get_delta_for_epsilon(-0.3) == pytest.approx(float(gaussian_delta(-0.3, 0.5)), rel=1e-5)
    with pytest.raises(ValueError, match="same lattice"):
        one.compose(no_losses(1e-4))
    # What is never proved has no epsilon.
    assert one.get_epsilon_for_delta(0.0) == math.inf


@pytest.mark.parametrize("event", [GaussianEvent(0.5), PureEvent(1.0)])
def test_infinity_beside_other_epsilons(event):
    losses = event.privacy_loss_distribution(1e-2)
    for epsilons in ([0.0, math.inf], [0.0, 0.5, 1.0, 2.0, math.inf]):
        deltas = losses.get_delta_for_epsilon(epsilons)
        np.testing.assert_array_equal(deltas[:-1], losses.get_delta_for_epsilon([*epsilons[:-1], 1e6])[:-1])
        assert deltas[-1] == losses.get_delta_for_epsilon(1e6) < 1e-29
    # Nothing is proved for an epsilon or a delta that is no number.
    assert losses.get_delta_for_epsilon(math.nan) == 1
    for delta in (-1e-9, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\]"):
            losses.get_epsilon_for_delta(delta)


def test_losses_far_above_epsilon_are_not_lost():
    # The exponentials of such losses overflow, and delta is nearly 1.
    counts = Counter([SampledGaussianEvent(0.6, 28.41, 3), GaussianEvent(3.0)])
    assert compose_events(counts, 1e-2).get_delta_for_epsilon(19.0) > 0.9
    deltas = (
        SampledGaussianEvent(0.5, 25.0, 6).privacy_loss_distribution(1e-2).get_delta_for_epsilon([0.0, 10.0, 100.0])
    )
    assert np.all(deltas > 0.9)


@pytest.mark.parametrize("n_times", [0, -1, 0.5])
def test_repetitions_are_counted_by_positive_integers(n_times):
    with pytest.raises(ValueError, match="n_times"):
        GaussianEvent(1.0).privacy_loss_distribution(1e-3).self_compose(n_times)
