"""Noise with density proportional to exp(-||z||), rounded exactly.

False-alarm probability of every stochastic test: 1e-6. The tests with chosen words are deterministic.
"""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import GammaMechanism, gaussian, rounded_normal
from skdp.mechanisms.gaussian import LazyGamma, LazyNormals, _round_scalar, round_to_integers
from tests.mechanisms.streams import ONES, Counted, Replay, stream, without_doubles
from tests.statistics import accept, chi_square_integers, independence, reject

FINE = 2.0**30


def vectors(p, n, label, scale=FINE):
    bits = stream(label)
    return np.array([rounded_normal(scale, p, bits, LazyGamma(p + 1, bits)) for _ in range(n)])


def ks(sample, cdf):
    return float(stats.kstest(sample, cdf).pvalue)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 40])
def test_norm_is_gamma_and_direction_is_uniform(p):
    z = vectors(p, 5000, f"gamma vector {p}") / FINE
    norm = np.linalg.norm(z, axis=1)
    accept(ks(norm, stats.gamma(p).cdf), f"norm, p={p}")
    reject(ks(norm, stats.gamma(p, scale=1.15).cdf), "scale 15 % too large")
    reject(ks(norm, stats.gamma(p + max(1, p // 10)).cdf), "shape too large")
    if p == 1:
        accept(float(stats.binomtest(int((z > 0).sum()), len(z)).pvalue), "sign")
        return
    u = z / norm[:, None]
    # A coordinate of a uniform direction: (1 + u)/2 has the Beta((p-1)/2, (p-1)/2) distribution.
    for j in (0, p - 1):
        accept(ks((1 + u[:, j]) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf), f"coordinate {j} of the direction")
        reject(ks((1 + u[:, j] * 0.85) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf), "a flattened sphere")
    along = u @ np.full(p, 1 / math.sqrt(p))
    accept(ks((1 + along) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf), "the diagonal's component of the direction")
    accept(independence(norm, u[:, 0]), "norm and direction")
    accept(independence(norm, np.abs(u[:, 0])), "norm and direction, up to sign")
    reject(independence(norm, np.abs(z[:, 0])), "norm and coordinate")


@pytest.mark.parametrize("p", [1, 2, 3, 6])
@pytest.mark.sample(every=2)
def test_each_coordinate_has_variance_p_plus_one(p):
    # A second route to the shape: E z_j^2 = p + 1, through its standard error.
    squares = (vectors(p, 12_000 if p == 1 else 5000, f"variance {p}") / FINE) ** 2
    per_vector = squares.mean(axis=1)
    z = (per_vector.mean() - (p + 1)) / (per_vector.std() / math.sqrt(len(per_vector)))
    accept(2 * stats.norm.sf(abs(z)), "variance")
    wrong = (per_vector.mean() - 1.2 * (p + 1)) / (per_vector.std() / math.sqrt(len(per_vector)))
    reject(2 * stats.norm.sf(abs(wrong)), "20 % too large")


def test_a_factor_of_the_wrong_shape_is_refused():
    # The broken twin: Gamma(p/2) where Gamma((p+1)/2) belongs gives a norm that is too small.
    bits = stream("wrong shape")
    z = np.array([round_to_integers(FINE, LazyNormals(3, bits), LazyGamma(3, bits)) for _ in range(4000)]) / FINE
    reject(ks(np.linalg.norm(z, axis=1), stats.gamma(3).cdf), "wrong shape")


def rounded_laplace(scale):
    def pmf(k):
        if k == 0:
            return -math.expm1(-0.5 / scale)
        return math.exp(-(abs(k) - 0.5) / scale) * -math.expm1(-1 / scale) / 2

    return pmf


@pytest.mark.parametrize("scale", [0.4, 1.5, 6.0])
@pytest.mark.sample(every=3)
def test_in_one_dimension_it_is_rounded_laplace_noise(scale):
    sample = vectors(1, 12_000, f"Laplace {scale}", scale)[:, 0]
    width = int(8 * scale) + 3
    accept(chi_square_integers(sample, rounded_laplace(scale), -width, width), f"rounded Laplace({scale})")
    reject(chi_square_integers(sample, rounded_laplace(1.15 * scale), -width, width), "15 % too much")


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.sample(every=4)
def test_law_when_the_filter_decides_nothing(p, monkeypatch):
    monkeypatch.setattr(gaussian, "LazyNormals", without_doubles)
    counted = Counted(_round_scalar)
    monkeypatch.setattr(gaussian, "_round_scalar", counted)
    n = 4000 if p == 1 else 2000
    z = vectors(p, n, f"decimal {p}", 100.0) / 100.0
    assert counted.calls == n * p
    # Rounding to 1/100 of the scale moves the distribution function by less than 0.01.
    jitter = (np.random.default_rng(0).random(z.shape) - 0.5) / 100
    norm = np.linalg.norm(z + jitter, axis=1)
    accept(ks(norm, stats.gamma(p).cdf), f"norm, p={p}, decimal")
    reject(ks(norm, stats.gamma(p, scale=1.15).cdf), "15 % too much")


@pytest.mark.parametrize("twice_shape", [1, 2, 3, 8, 51])
def test_the_ideal_factor_lies_within_the_stated_error(twice_shape):
    for i in range(20):
        factor = LazyGamma(twice_shape, stream(f"factor {twice_shape} {i}"))
        with decimal.localcontext(decimal.Context(prec=150)):
            before = None
            for bits in (117, 181, 309):
                low, high = factor.interval(bits)
                assert low < high
                assert Decimal(factor.value) - Decimal(factor.error) <= low
                assert high <= Decimal(factor.value) + Decimal(factor.error)
                if before:
                    assert before[0] <= low
                    assert high <= before[1]
                    assert high - low < (before[1] - before[0]) * Decimal("1e-12")
                before = low, high
        assert factor.error < 1e-9


@pytest.mark.parametrize(
    "words", [[1 << 11], [2**53 - 1 << 11], [2**52 << 11], [ONES, ONES, ONES], [3 << 11, ONES], [0], [0, ONES]]
)
@pytest.mark.parametrize("more", [0x123456789ABCDEF0, ONES, 1])
def test_edge_words_of_the_factor(words, more):
    factor = LazyGamma(2 * len(words), Replay(words, then=Replay([more] * 30)))
    with decimal.localcontext(decimal.Context(prec=150)):
        low, high = factor.interval(309)
        # A second route: the sum of logarithms at the midpoints of what is known.
        middle = sum(-2 * ((Decimal(p) + Decimal("0.5")) / Decimal(2) ** factor._bits).ln() for p in factor._prefixes)
        assert low <= middle.sqrt() <= high
        assert high - low < Decimal("1e-30")
        if math.isfinite(factor.error):
            assert Decimal(factor.value) - Decimal(factor.error) <= low
            assert high <= Decimal(factor.value) + Decimal(factor.error)
        else:
            assert 0 in words or all(w >> 11 == 2**53 - 1 for w in words)


@pytest.mark.parametrize("word", [0, ONES])
def test_an_edge_word_in_the_factor_does_not_stop_the_sampler(word):
    normals = LazyNormals(1, stream("normals of the edge"))
    factor = LazyGamma(2, Replay([word], then=stream("more of the edge")))
    got = round_to_integers(1000.0, normals, factor)
    with decimal.localcontext(decimal.Context(prec=150)):
        truth = Decimal(1000) * sum(normals.interval(0, 309)) / 2 * sum(factor.interval(309)) / 2
    assert abs(Decimal(int(got[0])) - truth) <= Decimal("0.5")


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("scale", [3.3, 2.0**30, 2.0**37])
def test_paths_agree_on_the_same_bits(p, scale):
    for i in range(100):
        bits = stream(f"agree {p} {scale} {i}")
        normals, factor = LazyNormals(p, bits), LazyGamma(p + 1, bits)
        rounded = round_to_integers(scale, normals, factor)
        assert rounded.tolist() == [_round_scalar(scale, j, normals, factor) for j in range(p)]


@pytest.mark.parametrize("p", [1, 3])
def test_release_law(p):
    mechanism = GammaMechanism(epsilon=0.5, sensitivity=2.0, size=p)
    bits = stream(f"release {p}")
    value = np.linspace(-1, 1, p)
    noise = np.array([mechanism.release(value, bits) - value for _ in range(5000)]) / 4.0
    norm = np.linalg.norm(noise, axis=1)
    accept(ks(norm, stats.gamma(p).cdf), "norm of released minus value, over sensitivity / epsilon")
    reject(ks(2 * norm, stats.gamma(p).cdf), "half the noise")
    reject(ks(1.15 * norm, stats.gamma(p).cdf), "15 % less noise")


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_scale_pays_for_rounding(size):
    mechanism = GammaMechanism(0.3, 5.0, size)
    needed = (Decimal(5) + Decimal(mechanism.step) * Decimal(size).sqrt()) / Decimal(mechanism.epsilon)
    assert needed <= Decimal(mechanism.scale) <= needed * (1 + Decimal("1e-12"))


def test_density_ratio_is_within_the_guarantee_and_half_the_scale_is_not():
    # The theorem: the log ratio of the densities of f + z and f' + z, at outputs all around.
    rng = np.random.default_rng(4)
    outputs = rng.normal(size=(2000, 3)) * 30
    f, neighbour = np.zeros(3), np.array([2.0, 0, 0])
    outputs = np.vstack([outputs, [[50.0, 0, 0], [-50.0, 0, 0]]])
    distance = np.linalg.norm(outputs - f, axis=1) - np.linalg.norm(outputs - neighbour, axis=1)
    mechanism = GammaMechanism(0.5, 2.0, 3)
    assert np.abs(distance).max() / mechanism.scale <= 0.5
    assert np.abs(distance).max() / mechanism.scale >= 0.5 * (1 - 1e-6)
    assert np.abs(distance).max() / (mechanism.scale / 2) > 0.9
