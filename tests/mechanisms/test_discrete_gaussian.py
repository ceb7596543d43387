"""Discrete Gaussian noise against its probabilities, normalised by brute force.

False-alarm probability of every stochastic test: 1e-6.
"""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from skdp.mechanisms import _exact, discrete_gaussian
from tests.mechanisms.streams import Counted, stream
from tests.statistics import accept, chi_square_buckets, chi_square_integers, independence, reject

N = 100_000

SIGMAS = [Fraction(1, 3), 0.5, 0.8, Fraction(1), 1.7, Fraction(10, 3), 25.0]


def pmf(sigma):
    s = float(sigma)
    reach = int(40 * s) + 40
    total = math.fsum(math.exp(-0.5 * (k / s) ** 2) for k in range(-reach, reach + 1))
    return lambda k: math.exp(-0.5 * (k / s) ** 2) / total


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_law(sigma):
    sample = discrete_gaussian(sigma, N, stream(f"discrete Gaussian {sigma}"))
    assert sample.dtype == np.int64
    width = int(6 * sigma) + 4
    accept(chi_square_integers(sample, pmf(sigma), -width, width), f"discrete Gaussian({sigma})")
    for factor in (0.9, 1.1):
        wrong = chi_square_integers(sample, pmf(factor * float(sigma)), -width, width)
        reject(wrong, f"discrete Gaussian with {factor} of its sigma")


@pytest.mark.parametrize("sigma", [2000.5, 2.0**30, 2.0**44, Fraction(2**44) - Fraction(1, 3)], ids=str)
def test_law_of_huge_sigmas(sigma):
    # By Poisson's summation, P(K <= k) is Phi((k + 1/2) / sigma) up to exp(-2 pi^2 sigma^2) and sigma^-2 / 24.
    s = float(sigma)
    sample = discrete_gaussian(sigma, N, stream(f"huge {sigma}"))
    edges = np.rint(np.linspace(-3.5, 3.5, 43) * s).astype(np.int64)
    accept(chi_square_buckets(sample, lambda k: special.ndtr((k + 0.5) / s), edges), f"discrete Gaussian({sigma})")
    reject(chi_square_buckets(sample, lambda k: special.ndtr((k + 0.5) / (1.1 * s)), edges), "10 % too much")
    for modulus in (2, 3, 8):
        accept(chi_square_integers(sample % modulus, lambda k, m=modulus: 1 / m, 0, modulus - 1), "residues")


def test_rounded_continuous_noise_is_a_different_law():
    # Near sigma 0.4, rounding a normal is visibly not the discrete Gaussian: the test sees the difference.
    sample = np.rint(0.4 * np.random.default_rng(0).standard_normal(N)).astype(int)
    reject(chi_square_integers(sample, pmf(0.4), -4, 4), "a rounded normal")


@pytest.mark.parametrize("sigma", [0.8, Fraction(10, 3)], ids=str)
@pytest.mark.sample(every=3)
def test_law_when_no_filter_decides(sigma, monkeypatch):
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    counted = Counted(_exact._bernoulli_exp_scalar)
    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", counted)
    sample = discrete_gaussian(sigma, 5_000, stream(f"scalar {sigma}"))
    assert counted.calls >= 10_000
    width = int(6 * sigma) + 4
    accept(chi_square_integers(sample, pmf(sigma), -width, width), f"discrete Gaussian({sigma}), scalar")
    reject(chi_square_integers(sample, pmf(1.2 * float(sigma)), -width, width), "20 % too much")


def test_the_exponent_that_the_fallback_sees_is_the_stated_one(monkeypatch):
    # Second route for the exact exponent: (|k| - sigma^2/t)^2 / (2 sigma^2), against the double beside it.
    seen = []
    right = _exact.bernoulli_exp

    def spy(gamma, error, exact, bits):
        error = np.broadcast_to(error, gamma.shape)
        seen.extend((gamma[i], error[i], exact(i)) for i in range(min(50, gamma.size)))
        return right(gamma, error, exact, bits)

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["skdp.mechanisms.discrete"], "bernoulli_exp", spy)
    for sigma in (0.3, 1.7, 1e3, 2.0**40 + 0.5):
        seen.clear()
        discrete_gaussian(sigma, 100, stream(f"spy {sigma}"))
        assert len(seen) >= 50
        for gamma, error, exact in seen:
            assert abs(Fraction(float(gamma)) - exact) <= Fraction(float(error))


def test_draws_are_independent_of_their_neighbours():
    sample = discrete_gaussian(30, N, stream("independent"))
    accept(independence(sample[:-1:2], sample[1::2]), "consecutive draws")
    reject(independence(sample[:-1], sample[:-1] + sample[1:]), "a sum and its term")


@pytest.mark.parametrize("sigma", [1e-3, 1e-100])
def test_tiny_sigma_gives_zero(sigma):
    assert not np.any(discrete_gaussian(sigma, 1000, stream("tiny")))


@pytest.mark.parametrize("sigma", [1e-155, 1e-170, 1e-300])
def test_tiniest_sigma_gives_zero(sigma):
    assert not np.any(discrete_gaussian(sigma, 1000, stream("tiny")))


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_size(size):
    assert discrete_gaussian(2, size, stream("size")).shape == (size,)


@pytest.mark.parametrize("sigma", [0, -1.0, 2**44 + 1, math.inf, math.nan])
def test_sigma_that_cannot_be_drawn(sigma):
    with pytest.raises(ValueError, match="sigma must lie in"):
        discrete_gaussian(sigma, 1, stream("refused"))
