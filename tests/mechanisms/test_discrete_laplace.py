"""Discrete Laplace noise against its probabilities in closed form.

False-alarm probability of every stochastic test: 1e-6.
"""

from fractions import Fraction

import numpy as np
import pytest

from skdp.mechanisms import DiscreteLaplaceMechanism, _exact, discrete_laplace
from tests.mechanisms.streams import Counted, stream
from tests.statistics import accept, chi_square_buckets, chi_square_integers, independence, reject

N = 100_000

SCALES = [Fraction(1, 4), Fraction(3, 7), Fraction(1), Fraction(5, 3), Fraction(17, 4), Fraction(100, 7), Fraction(40)]


def pmf(scale):
    q = np.exp(-1 / float(scale))
    return lambda k: float((1 - q) / (1 + q) * q ** abs(k))


def below(scale):
    """P(K <= k), written so that scales of any size keep their precision."""
    t = float(scale)

    def probability(k):
        q = np.exp(-1 / t)
        return float(np.exp(k / t) / (1 + q)) if k < 0 else float(1 - np.exp(-(k + 1) / t) / (1 + q))

    return probability


def test_the_probabilities_of_this_file_sum_to_one():
    for scale in SCALES:
        weights = [pmf(scale)(k) for k in range(-4000, 4001)]
        np.testing.assert_allclose(sum(weights), 1, rtol=1e-12)
        np.testing.assert_allclose(sum(weights[:4004]), below(scale)(3), rtol=1e-12)
        np.testing.assert_allclose(sum(weights[:3997]), below(scale)(-4), rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_law(scale):
    sample = discrete_laplace(scale, N, stream(f"discrete Laplace {scale}"))
    assert sample.dtype == np.int64
    width = int(8 * scale) + 6
    accept(chi_square_integers(sample, pmf(scale), -width, width), f"discrete Laplace({scale})")
    for factor in (0.87, 1.15):
        wrong = chi_square_integers(sample, pmf(factor * float(scale)), -width, width)
        reject(wrong, f"discrete Laplace with {factor} of its scale")


def test_negative_zero_counted_twice_is_refused():
    # The broken twin: a sign is put on a geometric variable, and minus zero is kept.
    rng = np.random.default_rng(0)
    geometric = rng.geometric(1 - np.exp(-1 / 3), size=N) - 1
    twin = np.where(rng.random(N) < 0.5, -geometric, geometric)
    reject(chi_square_integers(twin, pmf(3), -30, 30), "minus zero kept")


@pytest.mark.parametrize(
    "scale", [2**20 + 1, 2**40 + 1, Fraction(2**45 + 1, 3), 2**46, Fraction(2**46 - 1, 2**6)], ids=str
)
def test_law_of_huge_scales(scale):
    sample = discrete_laplace(scale, N, stream(f"huge {scale}"))
    edges = np.rint(np.linspace(-7, 7, 57) * float(scale)).astype(np.int64)
    accept(chi_square_buckets(sample, below(scale), edges), f"discrete Laplace({scale})")
    reject(chi_square_buckets(sample, below(1.1 * float(scale)), edges), "10 % too much")
    # All residues occur alike: no lattice within the lattice.
    for modulus in (2, 3, 8):
        residues = np.bincount(sample % modulus, minlength=modulus)
        accept(chi_square_integers(sample % modulus, lambda k, m=modulus: 1 / m, 0, modulus - 1), "residues")
        assert residues.min() > 0


def test_draws_are_independent_of_their_neighbours():
    sample = discrete_laplace(20, N, stream("independent"))
    accept(independence(sample[:-1:2], sample[1::2]), "consecutive draws")
    reject(independence(sample[:-1], sample[:-1] + sample[1:]), "a sum and its term")


@pytest.mark.parametrize("scale", [Fraction(3, 7), Fraction(5, 3)], ids=str)
@pytest.mark.sample(every=2)
def test_law_when_no_filter_decides(scale, monkeypatch):
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    counted = Counted(_exact._bernoulli_exp_scalar)
    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", counted)
    sample = discrete_laplace(scale, 6_000, stream(f"scalar {scale}"))
    assert counted.calls >= 6_000
    accept(chi_square_integers(sample, pmf(scale), -12, 12), f"discrete Laplace({scale}), scalar")
    reject(chi_square_integers(sample, pmf(1.2 * float(scale)), -12, 12), "20 % too much")


def test_scalar_path_with_a_wrong_exponent_is_refused(monkeypatch):
    # The broken twin of the fallback: it decides by twice the gamma.
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    right = _exact._bernoulli_exp_scalar
    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", lambda prefix, gamma, bits: right(prefix, 2 * gamma, bits))
    sample = discrete_laplace(Fraction(5), 6_000, stream("wrong scalar"))
    reject(chi_square_integers(sample, pmf(5), -40, 40), "a wrong fallback")


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_size(size):
    assert discrete_laplace(2, size, stream("size")).shape == (size,)


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 2), 2**46 + 1, Fraction(2**46 + 1, 2**40)])
def test_scale_that_cannot_be_drawn(scale):
    with pytest.raises(ValueError, match="scale must be positive"):
        discrete_laplace(scale, 1, stream("refused"))


@pytest.mark.parametrize("epsilon", [2.0**-20, 0.1, 1.0, 3.7, 100.0])
@pytest.mark.parametrize("sensitivity", [1.0, 2.0, np.sqrt(7)])
@pytest.mark.parametrize("step", [1.0, 2.0**-10])
def test_lattice_scale_is_rounded_up_and_hardly(epsilon, sensitivity, step):
    mechanism = DiscreteLaplaceMechanism(epsilon, sensitivity, 3, step)
    wanted = Fraction(sensitivity) / Fraction(epsilon) / Fraction(step)
    assert wanted <= mechanism.lattice_scale <= wanted * (1 + Fraction(1, 2**30))
    assert mechanism.lattice_scale.numerator <= 2**46
    assert mechanism.scale == pytest.approx(sensitivity / epsilon, rel=1e-9)


def test_release_law_and_lattice():
    mechanism = DiscreteLaplaceMechanism(epsilon=0.5, sensitivity=1.0, size=N, step=0.25)
    value = np.arange(N) % 7 - 3.0
    noise = (mechanism.release(value, stream("release")) - value) / 0.25
    assert np.array_equal(noise, np.rint(noise))
    accept(chi_square_integers(noise.astype(int), pmf(8), -70, 70), "released minus value")
    reject(chi_square_integers(noise.astype(int), pmf(7), -70, 70), "noise for epsilon 0.57")


def test_release_keeps_the_shape():
    mechanism = DiscreteLaplaceMechanism(1.0, 1.0, 6)
    assert mechanism.release(np.zeros((2, 3)), stream("shape")).shape == (2, 3)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (0.3, 2.0)])
def test_probabilities_satisfy_the_guarantee_and_half_the_scale_does_not(epsilon, sensitivity):
    # The theorem, from the probabilities themselves: neighbours are `sensitivity` apart.
    scale = float(DiscreteLaplaceMechanism(epsilon, sensitivity, 1).lattice_scale)
    outputs = range(-200, 201)

    def worst(t):
        return max(abs(np.log(pmf(t)(o) / pmf(t)(o - int(sensitivity)))) for o in outputs)

    assert worst(scale) <= epsilon * (1 + 1e-9)
    assert worst(scale) >= epsilon * (1 - 1e-6)
    assert worst(scale / 2) > 1.9 * epsilon
