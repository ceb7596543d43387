"""Sums over samples with noise, step by step.

False-alarm probability of every stochastic test: 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from skdp.accounting import SampledGaussianEvent
from skdp.mechanisms import SampledGaussianMechanism, sampled_gaussian
from tests.auditing import shift_over_spread
from tests.mechanisms.streams import stream
from tests.statistics import accept, clopper_pearson, reject


def run(mechanism, n_rows, value, label):
    """What every step releases, of ``value(rows)``."""
    steps = mechanism.steps(n_rows, stream(f"{label} samples"), stream(f"{label} noise"))
    return np.array([release(value(rows)) for rows, release in steps])


def ks(sample, cdf="norm"):
    return float(stats.kstest(sample, cdf).pvalue)


@pytest.mark.parametrize("size", [1, 7, 3000])
def test_noise_has_the_stated_law(size):
    n_steps = max(1, 20_000 // size)
    mechanism = SampledGaussianMechanism(0.4, 2.0, size, n_steps)
    noise = run(mechanism, 5, lambda rows: np.full(size, 3.0), f"law {size}")
    assert noise.shape == (n_steps, size)
    standard = (noise - 3.0) / mechanism.scale
    accept(ks(standard.ravel()), "noise of all steps")
    reject(ks(standard.ravel() * 1.1), "10 % too much noise")
    assert mechanism.scale == pytest.approx(5.0, rel=1e-5)
    assert np.all(noise % mechanism.step == 0)
    if n_steps > 100:
        accept(float(stats.pearsonr(standard[1:, 0], standard[:-1, 0]).pvalue), "steps are independent")


def test_chunks_of_noise_differ(monkeypatch):
    monkeypatch.setattr(sampled_gaussian, "_CHUNK_NUMBERS", 8)
    noise = run(SampledGaussianMechanism(1.0, 1.0, 4, 9), 1, lambda rows: np.zeros(4), "chunks")
    assert len(np.unique(noise)) == noise.size


def test_name():
    assert SampledGaussianMechanism(1.0, 1.0, 1, 30).name == "Gaussian in 30 steps on all rows"
    assert SampledGaussianMechanism(1.0, 1.0, 1, 5, 0.1).name == "Gaussian in 5 steps on samples at rate 0.1"


def test_all_rows_without_sampling():
    steps = SampledGaussianMechanism(1.0, 1.0, 1, 3).steps(10, stream("a"), stream("b"))
    assert [rows for rows, _ in steps] == [None, None, None]


def test_samples_and_noise_do_not_share_bits():
    """The same noise comes out whatever the rate."""
    zero = np.zeros(2)
    full = run(SampledGaussianMechanism(1.0, 1.0, 2, 5), 10, lambda rows: zero, "shared")
    half = run(SampledGaussianMechanism(1.0, 1.0, 2, 5, 0.5), 10, lambda rows: zero, "shared")
    np.testing.assert_array_equal(full, half)


def test_the_shape_of_the_sum_is_kept():
    for _, release in SampledGaussianMechanism(1.0, 1.0, 6, 2).steps(1, stream("s"), stream("t")):
        assert release(np.zeros((2, 3))).shape == (2, 3)


def test_a_step_releases_once_and_what_was_planned():
    for _, release in SampledGaussianMechanism(1.0, 1.0, 3, 1).steps(1, stream("s"), stream("t")):
        release(np.zeros(3))
        with pytest.raises(IndexError):
            release(np.zeros(3))
    for _, release in SampledGaussianMechanism(1.0, 1.0, 3, 1).steps(1, stream("s"), stream("t")):
        with pytest.raises(ValueError, match="planned"):
            release(np.zeros(4))
    with pytest.raises(TypeError, match="step by step"):
        SampledGaussianMechanism(1.0, 1.0, 3, 1).release(np.zeros(3), stream("s"))


def test_the_sum_itself_is_not_changed():
    total = np.array([0.3, -0.4])
    for _, release in SampledGaussianMechanism(1.0, 1.0, 2, 1).steps(1, stream("s"), stream("t")):
        release(total)
    np.testing.assert_array_equal(total, [0.3, -0.4])


def test_without_noise():
    mechanism = SampledGaussianMechanism(math.inf, 1.0, 2, 3, 0.5)
    assert mechanism.scale == 0
    released = run(mechanism, 10, lambda rows: np.array([0.1, 0.2]), "inf")
    np.testing.assert_array_equal(released, np.tile([0.1, 0.2], (3, 1)))


def test_sums_far_beyond_the_noise_are_moved_back():
    mechanism = SampledGaussianMechanism(1.0, 1.0, 1, 2)
    released = run(mechanism, 1, lambda rows: np.array([1e300]), "far")
    assert np.all(np.isfinite(released))
    assert np.all(np.abs(released) <= 2.0**53 * mechanism.step)
    assert np.all(released % mechanism.step == 0)


@pytest.mark.parametrize("sensitivity", [1e-280, 1e300])
def test_noise_out_of_the_range_of_doubles_is_refused(sensitivity):
    """One over the lattice's step would be infinite, and a sum of 0 be told from others."""
    with pytest.raises(ValueError, match="range of doubles"):
        SampledGaussianMechanism(1.0, sensitivity, 1, 1)
    SampledGaussianMechanism(math.inf, sensitivity, 1, 1)


def test_what_numpy_says_of_a_sum_is_not_heard():
    with np.errstate(all="raise"):
        for value in (1e-310, 1e308):
            assert np.all(
                np.isfinite(run(SampledGaussianMechanism(1.0, 1e-3, 1, 2), 1, lambda rows, v=value: np.array([v]), "x"))
            )


def test_rounding_is_paid_for():
    coarse = SampledGaussianMechanism(1.0, 1.0, 10_000, 1, lattice_bits=4)
    assert coarse.scale >= 1.0 + coarse.step * 100
    assert SampledGaussianMechanism(1.0, 1.0, 10_000, 1).scale == pytest.approx(1.0, rel=1e-5)


def canary(rate, n_steps, present, runs, label, mu=0.5):
    """Sum over steps of what is released, over the noise, with or without a record that always adds all it may."""
    mechanism = SampledGaussianMechanism(mu, 1.0, 1, n_steps * runs, rate)

    def value(rows):
        return np.array([1.0 if present and (rows is None or len(rows)) else 0.0])

    return run(mechanism, 1, value, label)[:, 0].reshape(runs, n_steps).sum(axis=1) / mechanism.scale


def test_canary_in_full_batches():
    runs, n_steps = 2000, 9
    mu, error = shift_over_spread(
        canary(1.0, n_steps, True, runs, "with") / 3, canary(1.0, n_steps, False, runs, "without") / 3
    )
    event = SampledGaussianEvent(1.0, 0.5, n_steps)
    assert event.mu() - 5 * error <= mu <= event.mu() + 5 * error
    # A calibration that forgets the square root of the number of steps states a third of that.
    assert mu > 0.5 + 5 * error


@pytest.mark.sample(every=3)
def test_canary_in_samples():
    """One step at q = 1/2: the likelihood ratio's events have the deltas of the stated law, and no more."""
    runs, mu, rate = 40_000, 2.0, 0.5
    with_record = canary(rate, 1, True, runs, "sampled with", mu)
    without = canary(rate, 1, False, runs, "sampled without", mu)
    loss = SampledGaussianEvent(rate, mu, 1).privacy_loss_distribution(1e-3)
    for epsilon in (0.2, 0.5, 0.65):
        cut = (math.log((math.exp(epsilon) - 1 + rate) / rate) + mu * mu / 2) / mu
        high = clopper_pearson(int(np.sum(with_record > cut)), runs)
        low = clopper_pearson(int(np.sum(without > cut)), runs)
        stated = loss.get_delta_for_epsilon(epsilon)
        assert high[0] - math.exp(epsilon) * low[1] <= stated, "more is given away than is stated"
        assert high[1] - math.exp(epsilon) * low[0] >= stated, "the audit is off the mark"
        # A rate of .3 states too little, and the audit says so.
        less = SampledGaussianEvent(0.3, mu, 1).privacy_loss_distribution(1e-3).get_delta_for_epsilon(epsilon)
        assert high[0] - math.exp(epsilon) * low[1] > less
