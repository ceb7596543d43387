"""Ideal normal noise, rounded exactly: the law, the float filter's error bounds, and the decimal path behind it.

False-alarm probability of every stochastic test: 1e-6. The tests with chosen words are deterministic.
"""

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import special, stats

from skdp.mechanisms import GaussianMechanism, _lazy, rounded_normal
from skdp.mechanisms._lazy import LazyNormals, _round_scalar
from tests.mechanisms.streams import ONES, Counted, Replay, stream
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
    # At 2^44 most decisions are taken in decimal arithmetic.
    sample = rounded_normal(scale, N if bits < 40 else N // 4, stream(f"fine {bits}"))
    accept(ks(sample / scale, "norm"), f"rint(2^{bits} N)")
    reject(ks(sample / scale * 1.1, "norm"), "10 % too much")
    accept(chi_square_buckets(sample / scale, special.ndtr, np.linspace(-4, 4, 65)), "its tails")
    for modulus in (2, 8, 1024):
        accept(chi_square_integers(sample % modulus, lambda k, m=modulus: 1 / m, 0, modulus - 1), "its low bits")
    reject(chi_square_integers((sample // 2 * 2) % 8, lambda k: 1 / 8, 0, 7), "low bits that are even")


def test_the_normals_of_a_pair_and_of_neighbouring_pairs_are_independent():
    sample = rounded_normal(2.0**30, 2 * N, stream("pairs"))
    accept(independence(sample[::2], sample[1::2]), "within pairs")
    accept(independence(sample[1:-1:2], sample[2::2]), "between pairs")
    accept(independence(np.abs(sample[::2]), np.abs(sample[1::2])), "magnitudes within pairs")
    accept(ks((sample[::2] + sample[1::2]) / math.sqrt(2) / 2**30, "norm"), "sums of pairs")
    # The broken twin: pairs on the disk, whose radius is not transformed.
    radius = np.hypot(sample[::2], sample[1::2])
    disk = np.sqrt(-np.expm1(-((radius / 2**30) ** 2) / 2)) / radius
    reject(independence(np.abs(sample[::2] * disk), np.abs(sample[1::2] * disk)), "points of the disk")


def no_float(monkeypatch):
    """Make every double of a lazy normal say nothing; returns the counter of decimal decisions."""
    evaluate = LazyNormals._evaluate

    def nothing(self, size):
        value, _ = evaluate(self, size)
        return value, np.full(size, np.inf)

    monkeypatch.setattr(LazyNormals, "_evaluate", nothing)
    counted = Counted(_round_scalar)
    monkeypatch.setattr(_lazy, "_round_scalar", counted)
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
    error = scale * normals.error + np.abs(value) * 2.0**-50
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


def pair(a, b):
    """Words of a pair with the given 53-bit prefixes; the low bits are not looked at."""
    return [a << 11, b << 11]


def word(x):
    """The 53-bit prefix that holds x in [-1, 1)."""
    return math.floor((x + 1) * 2**52)


MIDDLE = 2**52
EDGE_PAIRS = {
    "near the origin": (MIDDLE, MIDDLE),
    "just left of the origin": (MIDDLE - 1, MIDDLE),
    "near the origin, a few units off": (MIDDLE + 5, MIDDLE - 3),
    "small": (MIDDLE + 2**20, MIDDLE - 2**19),
    "on an axis": (MIDDLE, word(0.7)),
    "one tiny coordinate": (MIDDLE + 1, word(-0.999)),
    "close to the circle": (word(0.6), word(0.8) - 4),
    "a little inside the circle": (word(0.6), word(0.8) - 2**15),
    "further inside": (word(-0.6), word(0.8) - 2**30),
    "ordinary": (word(0.3), word(-0.4)),
}


@pytest.mark.parametrize("name", EDGE_PAIRS)
@pytest.mark.parametrize("more", [0, ONES, 0x123456789ABCDEF0])
def test_the_ideal_normal_lies_within_the_stated_error(name, more):
    a, b = EDGE_PAIRS[name]
    # The first batch takes 17 pairs; what follows extends the chosen one.
    filler = [w for _ in range(16) for w in pair(word(0.1), word(0.1))]
    normals = LazyNormals(2, Replay(pair(a, b) + filler, then=Replay([more, more], then=stream("more"))))
    assert normals._prefixes[0].tolist() == [a, b]
    with decimal.localcontext(decimal.Context(prec=150)):
        for i in range(2):
            low, high = normals.interval(i, 309)
            assert low < high
            assert high - low < Decimal("1e-50")
            value, error = normals.value[i], normals.error[i]
            if math.isfinite(error):
                assert Decimal(float(value)) - Decimal(float(error)) <= low
                assert high <= Decimal(float(value)) + Decimal(float(error))
            # A second route: the formula itself, at the midpoint of the uniforms.
            p, q, bits = normals._refined[0]
            x, y = ((2 * Decimal(t) + 1) / Decimal(2) ** bits - 1 for t in (p, q))
            s = x * x + y * y
            truth = (x, y)[i] * (-2 * s.ln() / s).sqrt()
            assert low <= truth <= high


def test_the_error_bound_holds_for_random_pairs_and_is_not_wasteful():
    normals = LazyNormals(400, stream("bounds"))
    with decimal.localcontext(decimal.Context(prec=120)):
        middles = [sum(normals.interval(i, 181)) / 2 for i in range(400)]
        off = np.array([abs(float(m - Decimal(float(v)))) for m, v in zip(middles, normals.value, strict=True)])
    assert np.all(off <= normals.error)
    # If the bound were a thousand times what is needed, a filter at scale 2^44 would decide nothing.
    assert np.median(normals.error) < 1e-12
    assert np.any(off > normals.error / 1000)


def test_intervals_shrink_and_are_nested():
    with decimal.localcontext(decimal.Context(prec=250)):
        for i in range(9):
            # A new object each time: the two normals of a pair are refined together.
            normals = LazyNormals(9, stream("nested"))
            before = normals.interval(i, 53)
            for bits in (117, 181, 245, 501):
                after = normals.interval(i, bits)
                assert before[0] <= after[0] < after[1] <= before[1]
                assert after[1] - after[0] < (before[1] - before[0]) * Decimal("1e-15")
                before = after


# x is in [1 - 2^-52, 1) and y about 2^-26, so that y^2 is about 2^-52: the sum of squares lies on either side of 1,
# as the bits of x decide that follow.
STRADDLING = (2**53 - 1, MIDDLE + 2**26)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_pair_on_the_circle_is_kept_or_dropped_by_its_further_bits(before):
    # Pairs that are kept, and as many that are not.
    inside = [w for _ in range(before) for w in pair(word(0.1), word(0.2)) + pair(word(-0.9), word(0.9))]
    filler = [w for _ in range(40) for w in pair(word(0.3), word(0.1))]
    batch = int((before + 1) * 1.3) + 16
    for more, kept in ((0, True), (ONES, False)):
        words = (inside + pair(*STRADDLING) + filler)[: 2 * batch]
        bits = Replay([*words, more, 0], then=stream("later"))
        normals = LazyNormals(2 * before + 2, bits)
        first = tuple(normals._prefixes[before].tolist())
        assert (first == STRADDLING) == kept
        if not kept:
            assert first == (word(0.3), word(0.1))
            assert normals._refined == {}
            continue
        # What was drawn to place the pair belongs to its value.
        assert normals._refined == {before: (STRADDLING[0] << 64 | more, STRADDLING[1] << 64, 117)}
        with decimal.localcontext(decimal.Context(prec=120)):
            x, y = 1 - Decimal(2) ** -52, Decimal(2) ** -26
            s = x * x + y * y
            factor = (-2 * s.ln() / s).sqrt()
            for i, v in ((2 * before, x), (2 * before + 1, y)):
                low, high = normals.interval(i, 245)
                assert low < high
                assert abs(low - v * factor) < Decimal("1e-11")
                truth = int((v * factor * 2**40 + Decimal("0.5")).to_integral_value(decimal.ROUND_FLOOR))
                assert _lazy.round_to_integers(2.0**40, normals)[i] == truth


def test_a_pair_on_the_circle_in_a_later_batch():
    outside = pair(word(0.9), word(0.9))
    first = pair(word(0.1), word(0.2)) + 17 * outside
    second = outside + pair(*STRADDLING) + 15 * pair(word(0.3), word(0.1))
    normals = LazyNormals(4, Replay([*first, *second, 5, 6]))
    assert normals._prefixes.tolist() == [[word(0.1), word(0.2)], list(STRADDLING)]
    assert normals._refined == {1: (STRADDLING[0] << 64 | 5, STRADDLING[1] << 64 | 6, 117)}


def test_the_stated_error_is_a_bound_on_the_circle_too():
    filler = [w for _ in range(16) for w in pair(word(0.3), word(0.1))]
    normals = LazyNormals(2, Replay(pair(*STRADDLING) + filler + [0, 0]))
    assert tuple(normals._prefixes[0].tolist()) == STRADDLING
    with decimal.localcontext(decimal.Context(prec=120)):
        for i in range(2):
            distance = abs(normals.interval(i, 117)[0] - Decimal(float(normals.value[i])))
            assert normals.error[i] >= float(distance)


def test_a_pair_that_straddles_for_long_is_refined_for_long():
    # Bits that keep the sum of squares at 1 as far as 117 bits tell: x^2 + y^2 = 1 with y = 2^-26 exactly.
    with decimal.localcontext(decimal.Context(prec=120)):
        x = (1 - Decimal(2) ** -52).sqrt()
        prefix = int((x + 1) * Decimal(2) ** 116)
    assert prefix >> 64 == 2**53 - 1
    filler = [w for _ in range(16) for w in pair(word(0.3), word(0.1))]
    bits = Replay(pair(*STRADDLING) + filler + [prefix & ONES, 0, 0, 0], then=stream("later"))
    normals = LazyNormals(2, bits)
    assert tuple(normals._prefixes[0].tolist()) == STRADDLING
    assert normals._refined[0][2] >= 181


def test_pairs_close_to_the_circle_have_the_right_share():
    # Every filter answer withheld: all pairs are placed in decimal arithmetic, pi/4 of them inside.
    outcomes = []
    for i in range(3000):
        bits = stream(f"disk {i}")
        batch = (bits.words(2) >> np.uint64(11)).astype(np.int64).reshape(1, 2)
        normals = LazyNormals.__new__(LazyNormals)
        normals._stream, normals._refined = bits, {}
        outcomes.append(len(normals._inside_disk(batch, 0)))
        v = normals._centres(batch)[0]
        assert outcomes[-1] == (v @ v < 1)
    accept(float(stats.binomtest(sum(outcomes), 3000, math.pi / 4).pvalue), "pairs inside the disk")
    reject(float(stats.binomtest(sum(outcomes), 3000, math.pi / 4 * 0.9).pvalue), "10 % fewer")


def test_all_zero_and_all_one_words_do_not_stop_the_sampler():
    for chosen in ([0] * 34, [ONES] * 34, [0, ONES] * 17, pair(MIDDLE, MIDDLE) * 17):
        sample = rounded_normal(2.0**30, 2, Replay(chosen, then=stream("rest")))
        assert np.all(np.abs(sample) < 20 * 2**30)
    # At the origin the radius is unbounded as far as 53 bits tell; 64 more put it near sqrt(2 * 104 * log 2).
    sample = rounded_normal(1.0, 2, Replay(pair(MIDDLE, MIDDLE) * 17, then=Replay([ONES] * 2)))
    assert np.hypot(*sample) > 11


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
            rounded = _lazy.round_to_integers(scale, normals)[0]
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
