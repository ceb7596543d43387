"""Ideal normal noise, rounded exactly: the law, the float filter's error bounds, and the decimal path behind it.

False-alarm probability of every stochastic test: 1e-6. The tests with chosen words are deterministic.
"""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import special, stats

from skdp.mechanisms import GaussianMechanism, gaussian, rounded_normal
from skdp.mechanisms.gaussian import LazyNormals, _round_scalar
from tests.mechanisms.streams import Counted, stream, without_doubles
from tests.statistics import accept, chi_square_buckets, chi_square_integers, independence, reject

N = 100_000

# A double's midpoint between lattice points, and 0.5 itself, are where rounding is decided.
SCALES = [0.2, 0.5, 1.0, 1.0 / 3, 3.7, 40.0]


def pmf(scale):
    return lambda k: float(special.ndtr((0.5 - abs(k)) / scale) - special.ndtr((-0.5 - abs(k)) / scale))


def ks(sample, cdf):
    return float(stats.kstest(sample, cdf).pvalue)


@pytest.mark.parametrize("scale", SCALES)
def test_law(scale):
    sample = rounded_normal(scale, N, stream(f"rounded normal {scale}"))
    assert sample.dtype == np.int64
    width = int(6 * scale) + 3
    accept(chi_square_integers(sample, pmf(scale), -width, width), f"rint({scale} N)")
    for factor in (0.9, 1.1):
        reject(chi_square_integers(sample, pmf(factor * scale), -width, width), f"{factor} of the scale")


@pytest.mark.parametrize("bits", [30, 44])
def test_law_on_a_fine_lattice(bits):
    scale = 2.0**bits
    sample = rounded_normal(scale, N, stream(f"fine {bits}"))
    accept(ks(sample / scale, "norm"), f"rint(2^{bits} N)")
    reject(ks(sample / scale * 1.1, "norm"), "10 % too much")
    accept(chi_square_buckets(sample / scale, special.ndtr, np.linspace(-4, 4, 65)), "its tails")
    for modulus in (2, 8, 1024):
        accept(chi_square_integers(sample % modulus, lambda k, m=modulus: 1 / m, 0, modulus - 1), "its low bits")
    reject(chi_square_integers((sample // 2 * 2) % 8, lambda k: 1 / 8, 0, 7), "low bits that are even")


def test_neighbouring_normals_are_independent():
    sample = rounded_normal(2.0**30, 2 * N, stream("pairs"))
    accept(independence(sample[::2], sample[1::2]), "neighbours")
    accept(independence(sample[1:-1:2], sample[2::2]), "neighbours, the other way")
    accept(independence(np.abs(sample[::2]), np.abs(sample[1::2])), "magnitudes")
    accept(ks((sample[::2] + sample[1::2]) / math.sqrt(2) / 2**30, "norm"), "sums")
    # The broken twin: pairs of which the longest are drawn anew.
    short = np.hypot(sample[::2], sample[1::2]) < 2 * 2**30
    reject(independence(np.abs(sample[::2][short]), np.abs(sample[1::2][short])), "pairs in a disk")


def no_float(monkeypatch):
    """Make every double of a lazy normal say nothing; returns the counter of decimal decisions."""
    monkeypatch.setattr(gaussian, "LazyNormals", without_doubles)
    counted = Counted(_round_scalar)
    monkeypatch.setattr(gaussian, "_round_scalar", counted)
    return counted


@pytest.mark.parametrize("scale", [0.5, 3.7])
def test_law_when_the_filter_decides_nothing(scale, monkeypatch):
    counted = no_float(monkeypatch)
    sample = rounded_normal(scale, 6_000, stream(f"decimal {scale}"))
    assert counted.calls == 6_000
    width = int(6 * scale) + 3
    accept(chi_square_integers(sample, pmf(scale), -width, width), f"rint({scale} N), decimal")
    reject(chi_square_integers(sample, pmf(1.15 * scale), -width, width), "15 % too much")


@pytest.mark.parametrize("scale", [0.5, 1.0, 1234.567, 2.0**30, 2.0**44])
def test_paths_agree_on_the_same_bits(scale):
    size = 1500
    normals = LazyNormals(size, stream(f"agree {scale}"))
    value = normals.value * scale
    error = scale * normals.error + np.abs(value) * 2.0**-52
    certain = np.abs(value - np.rint(value)) < 0.5 - error
    assert certain.sum() > 300
    for i in np.flatnonzero(certain).tolist():
        assert _round_scalar(scale, i, normals, None) == np.rint(value[i])


def test_a_wrong_double_does_not_survive_the_comparison():
    # The broken twin of the test above: a double that is off by 1e-9 is contradicted by the decimal path.
    normals = LazyNormals(500, stream("contradicted"))
    scale = 2.0**44
    wrong = np.rint(normals.value * (1 + 1e-9) * scale)
    assert any(_round_scalar(scale, i, normals, None) != wrong[i] for i in range(500))


def test_rounding_is_decided_on_the_right_side_of_a_half():
    # The scale is chosen so that the first normal times it is a half, up to the last bit of the double.
    normals = LazyNormals(2, stream("half"))
    with decimal.localcontext(decimal.Context(prec=120)):
        for ulps in range(-3, 4):
            scale = 0.5 / abs(normals.value[0])
            for _ in range(abs(ulps)):
                scale = math.nextafter(scale, math.inf if ulps > 0 else 0.0)
            middle = abs(sum(normals.interval(0, 309)) / 2) * Decimal(scale)
            assert abs(middle - Decimal("0.5")) < Decimal("1e-14")
            rounded = gaussian.round_to_integers(scale, normals)[0]
            assert abs(rounded) == (middle > Decimal("0.5"))


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_size(size):
    assert rounded_normal(3.0, size, stream("size")).shape == (size,)


@pytest.mark.parametrize("mu", [0.05, 1.0, 8.0])
def test_release_law(mu):
    mechanism = GaussianMechanism(mu, sensitivity=2.0, size=20_000)
    value = np.linspace(-5, 5, 20_000)
    noise = mechanism.release(value, stream(f"release {mu}")) - value
    accept(ks(noise * mu / 2.0, "norm"), "released minus value, over sensitivity / mu")
    reject(ks(noise * mu / 1.0, "norm"), "half the noise")
    reject(ks(noise * mu / 2.0 * 1.1, "norm"), "10 % less noise")


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("sensitivity", [1e-6, 1.0, 3e7])
def test_scale_pays_for_rounding(sensitivity, size):
    mechanism = GaussianMechanism(0.7, sensitivity, size)
    assert mechanism.rounding == pytest.approx(mechanism.step * math.sqrt(size) / 2)
    needed = (Decimal(sensitivity) + Decimal(mechanism.step) * Decimal(size).sqrt()) / Decimal(mechanism.mu)
    assert Decimal(mechanism.scale) >= needed
    assert mechanism.scale <= float(needed) * (1 + 1e-12)
    assert math.frexp(mechanism.step)[0] == 0.5
    assert 2.0**-31 <= mechanism.step / (sensitivity / 0.7) <= 2.0**-30


def test_release_keeps_the_shape():
    assert GaussianMechanism(1.0, 1.0, 6).release(np.zeros((2, 3)), stream("shape")).shape == (2, 3)
