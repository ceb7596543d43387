"""Normals from points under the curve: the pieces, decisions next to the curve, the tail, and the bits that follow.

The pieces are checked one by one in decimal arithmetic, and so are decisions on chosen bits. False-alarm probability of
every stochastic test: 1e-6.
"""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special, stats

from skdp.mechanisms import gaussian
from skdp.mechanisms.gaussian import _BELOW, _PEAK, _RANK, _SHIFTED_STRIP, _STRIPS, _TAIL, LazyNormals
from tests.mechanisms.streams import ONES, Counted, Replay, stream
from tests.statistics import accept, binomial, reject

STRIP = _SHIFTED_STRIP >> 47
EDGE = Fraction(_STRIPS, 64)
OPEN = range(_BELOW, _TAIL)


def curve(x):
    """The height of the curve, within the current decimal context."""
    x = Decimal(x.numerator) / Decimal(x.denominator)
    return _PEAK * (-x * x / 2).exp()


def word(head, within, negative=False):
    """The word that chooses a piece, 47 bits within its strip, and a sign."""
    return head | within << 16 | negative << 63


def drawn(*words, then=None):
    """What comes of these words; a point above the curve is replaced by one of the first piece."""
    return LazyNormals(1, Replay(words, then=then or Replay([word(0, 0)])))


# --- The region -------------------------------------------------------------------------------------------------------


def test_the_pieces_are_different_rectangles_that_cover_the_curve():
    assert _SHIFTED_STRIP.shape == _RANK.shape == (2**16,)
    assert _TAIL == 2**16 - 1
    ranks = [set() for _ in range(_STRIPS)]
    for piece in range(_TAIL):
        ranks[STRIP[piece]].add(int(_RANK[piece]))
    assert sum(map(len, ranks)) == _TAIL
    with decimal.localcontext(decimal.Context(prec=60)):
        for strip, own in enumerate(ranks):
            assert own == set(range(len(own)))
            assert len(own) >= curve(Fraction(strip, 64))
        # Those that are accepted without a look are under the curve; and it is nearly all that could be.
        for piece in range(_BELOW):
            assert _RANK[piece] + 1 <= HEIGHTS[STRIP[piece] + 1]
        assert all(_RANK[piece] + 1 > HEIGHTS[STRIP[piece] + 1] for piece in OPEN)
    assert _BELOW > 0.98 * 2**16


with decimal.localcontext(decimal.Context(prec=60)):
    HEIGHTS = [curve(Fraction(j, 64)) for j in range(_STRIPS + 1)]


def test_the_stairs_of_the_tail_cover_the_curve_and_have_the_area_of_a_piece():
    with decimal.localcontext(decimal.Context(prec=60)):
        assert curve(EDGE) <= Decimal(2) ** -5
        # From a stair to the next, the curve falls by more than a half, more and more so.
        assert (-Decimal(EDGE.numerator) / EDGE.denominator / 4).exp() < Decimal("0.5")
    areas = [Fraction(1, 4) * Fraction(1, 2 ** (5 + k)) for k in range(200)]
    probabilities = [Fraction(1, 2 ** (k + 1)) for k in range(200)]
    assert [area / Fraction(1, 64) for area in areas] == probabilities


def test_the_share_of_points_under_the_curve():
    exact = _PEAK * math.sqrt(math.pi / 2) / (2**16 / 64)
    n, rejected = 200_000, 0
    normals = LazyNormals.__new__(LazyNormals)
    normals._stream, normals._refined, normals.largest = stream("share"), {}, 8.0
    rejected = len(normals._draw(range(n))[1])
    accept(binomial(n - rejected, n, exact), "points under the curve")
    reject(binomial(n - rejected, n, exact - 0.003), "0.3 % fewer")


# --- Decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(0, 0), (ONES, ONES), (0, ONES), (ONES, 0)], ids=["00", "11", "01", "10"])
@pytest.mark.parametrize("negative", [False, True])
def test_points_next_to_the_curve_are_placed_by_their_further_bits(more, negative, monkeypatch):
    exactly = Counted(LazyNormals._lies_under)
    monkeypatch.setattr(LazyNormals, "_lies_under", lambda *args: exactly(*args))
    rng = np.random.default_rng(1)
    more_y, more_x = more
    # Bits of a negative x count from the other side: so that its size is known, its further bits are turned over.
    more_own = more_x ^ ONES if negative else more_x
    kept = []
    for piece in rng.choice(np.array(OPEN), 120, replace=False).tolist():
        within = int(rng.integers(2**47))
        x = Fraction((int(STRIP[piece]) << 47 | within) << 64 | more_x, 2**117)
        with decimal.localcontext(decimal.Context(prec=100)):
            height = curve(x) - int(_RANK[piece])
            if not 0 < height < 1:
                continue
            middle = int(height * 2**53)
        for y in range(max(middle - 3, 0), min(middle + 4, 2**53)):
            bits = within ^ (2**47 - 1) if negative else within
            # Beyond two words of each, both are given zeros: they hardly ever matter.
            normals = drawn(word(piece, bits, negative), y << 11, more_y, more_own)
            truth = Decimal(y << 64 | more_y) < height * 2**117
            got = normals._prefixes[0] != 0
            assert got == truth, (piece, y - middle)
            kept.append(got)
            if got:
                prefix = int(STRIP[piece]) << 47 | within
                assert normals._prefixes[0] == (~prefix if negative else prefix)
                ((refined, known),) = normals._refined.values()
                assert known == 117
                assert refined == (int(normals._prefixes[0]) << 64 | more_own)
    assert exactly.calls == len(kept) > 200
    assert 0.3 < np.mean(kept) < 0.7


def test_a_point_that_stays_next_to_the_curve_is_refined_for_long():
    # The 117 bits of y are those of the curve at x, whose further bits are 0: the next words of y decide.
    decided = []
    for piece in OPEN[::16]:
        within = 2**46
        x = Fraction(int(STRIP[piece]) << 47 | within, 2**53)
        with decimal.localcontext(decimal.Context(prec=120)):
            height = curve(x) - int(_RANK[piece])
            if not 0 < height < 1:
                continue
            digits = int(height * 2**181)
        first, second, third = digits >> 128, (digits >> 64) % 2**64, digits % 2**64
        for shift in (-1, 1):
            if not 0 < third + shift * 2**40 < 2**64:
                continue
            bits = Replay([word(piece, within), first << 11, second, 0, third + shift * 2**40, 0], then=Replay([0] * 9))
            normals = LazyNormals(1, bits)
            assert (normals._prefixes[0] == x * 2**53) == (shift < 0)
            decided.append(shift)
            if shift < 0:
                assert normals._refined[0][1] == 181
    assert len(decided) > 20


def test_doubles_agree_with_decimals_on_the_same_bits():
    rng = np.random.default_rng(3)
    normals = LazyNormals(0, stream("bits that hardly matter"))
    for piece in rng.choice(np.array(OPEN), 300).tolist():
        within, y = int(rng.integers(2**47)), int(rng.integers(2**53))
        certain = drawn(word(piece, within), y << 11)
        prefix = int(STRIP[piece]) << 47 | within
        assert (certain._prefixes[0] == prefix) == normals._lies_under(int(_RANK[piece]), 0, y, 0, prefix)


def test_the_height_in_doubles_is_far_better_than_the_slack():
    rng = np.random.default_rng(4)
    x = np.r_[rng.integers(0, _STRIPS << 47, 300), (_STRIPS << 47) - 1, 0] * 2.0**-53
    height = _PEAK * np.exp(-0.5 * x * x)
    with decimal.localcontext(decimal.Context(prec=60)):
        off = [abs(float(Decimal(h) - curve(Fraction(v)))) for h, v in zip(height.tolist(), x.tolist(), strict=True)]
    assert max(off) < gaussian._SLACK / 2**6


def test_law_when_doubles_decide_nothing(monkeypatch):
    monkeypatch.setattr(gaussian, "_SLACK", np.inf)
    exactly = Counted(LazyNormals._lies_under)
    monkeypatch.setattr(LazyNormals, "_lies_under", lambda *args: exactly(*args))
    sample = LazyNormals(50_000, stream("decimal")).value
    assert exactly.calls > 500
    accept(float(stats.kstest(sample, "norm").pvalue), "standard normals")
    reject(float(stats.kstest(1.05 * sample, "norm").pvalue), "5 % too much")


class OnePiece:
    """Words that all choose one piece; every second request is for heights."""

    def __init__(self, piece, inner):
        self.piece, self.inner = piece, inner

    def words(self, n):
        return (self.inner.words(n) & np.uint64(2**64 - 2**16)) | np.uint64(self.piece)


@pytest.mark.parametrize("piece", [_BELOW, _BELOW + 300, _TAIL - 40, _TAIL - 400])
def test_law_within_a_wedge(piece):
    # Of a word for a height, the low 11 bits are not looked at: it is as good as uniform.
    strip, rank = int(STRIP[piece]), int(_RANK[piece])

    def density(x):
        return np.clip(_PEAK * np.exp(-x * x / 2) - rank, 0, 1)

    ends = strip / 64, (strip + 1) / 64
    grid = np.linspace(*ends, 2001)
    total = integrate.cumulative_trapezoid(density(grid), grid, initial=0)
    if total[-1] < 1e-4:
        pytest.skip("hardly any of this piece is under the curve")
    sample = LazyNormals(4000, OnePiece(piece, stream(f"wedge {piece}"))).value
    accept(binomial(np.sum(sample < 0), 4000, 0.5), "signs")
    accept(float(stats.kstest(np.abs(sample), lambda x: np.interp(x, grid, total / total[-1])).pvalue), "a wedge")
    assert np.all((np.abs(sample) >= ends[0]) & (np.abs(sample) <= ends[1]))


@pytest.mark.sample(every=2)
def test_law_of_the_tail():
    class Tail(OnePiece):
        def words(self, n):
            # Only requests of several words are for points.
            return super().words(n) if n > 1 else self.inner.words(n)

    sample = LazyNormals(3000, Tail(_TAIL, stream("tail"))).value
    edge = float(EDGE)
    accept(binomial(np.sum(sample < 0), 3000, 0.5), "signs")
    beyond = np.abs(sample)
    # The last slots are drawn one by one, from all pieces.
    beyond = beyond[beyond > edge]
    assert beyond.size >= 2995
    accept(float(stats.kstest(beyond, lambda x: 1 - special.ndtr(-x) / special.ndtr(-edge)).pvalue), "the tail")
    reject(float(stats.kstest(beyond, lambda x: 1 - np.exp(-0.8 * edge * (x - edge))).pvalue), "a longer tail")


# --- Values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stair", [0, 1, 5, 63, 64, 130])
@pytest.mark.parametrize("negative", [False, True])
def test_a_point_of_the_tail(stair, negative):
    words = [word(_TAIL, 0, negative), 0, *[0] * (stair // 64), 1 << stair % 64, 0x123456789ABCDEF0]
    # Its height is 0 for as long as it takes.
    normals = drawn(*words, then=Replay([0] * 10_000))
    low = EDGE + Fraction(stair, 4) + Fraction(0x123456789ABCDEF0 >> 13, 2**53)
    prefix = int(low * 2**53)
    assert normals._prefixes[0] == (~prefix if negative else prefix)
    assert abs(normals.value[0]) <= normals.largest
    assert abs(abs(Fraction(float(normals.value[0]))) - low) <= Fraction(normals.error)


def test_a_high_point_of_the_tail_is_drawn_anew():
    normals = drawn(word(_TAIL, 0), ONES, 1, ONES, ONES, ONES)
    assert normals._prefixes.tolist() == [0]
    assert normals._refined == {}


WITHIN = [0, 1, 2**46, 2**47 - 1]


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("head", [0, 1, 1000, 40_000, _BELOW - 1])
@pytest.mark.parametrize("more", [0, ONES, 0x123456789ABCDEF0])
def test_the_ideal_normal_lies_within_the_stated_error(head, within, more):
    for negative in (False, True):
        bits = Replay([word(head, within, negative)], then=Replay([more] * 9))
        normals = LazyNormals(1, bits)
        with decimal.localcontext(decimal.Context(prec=150)):
            low, high = normals.interval(0, 309)
            value, error = Decimal(float(normals.value[0])), Decimal(normals.error)
            assert low < high
            assert high - low < Decimal("1e-80")
            assert value - error <= low
            assert high <= value + error
            ends = sorted(Decimal(int(STRIP[head]) + k) / 64 * (-1 if negative else 1) for k in (0, 1))
            assert ends[0] - Decimal("1e-100") <= low
            assert high <= ends[1] + Decimal("1e-100")


def test_a_word_and_its_mirror_image_give_opposite_strips():
    words = stream("mirror").words(1000) & np.uint64(2**63 - 1)
    words = words[(words & np.uint64(2**16 - 1)) < _BELOW]
    plus = LazyNormals(words.size, Replay(words))
    minus = LazyNormals(words.size, Replay(words | np.uint64(2**63)))
    np.testing.assert_array_equal(np.floor(plus.value * 64), STRIP[(words & np.uint64(2**16 - 1)).astype(int)])
    np.testing.assert_array_equal(np.floor(plus.value * 64), -1 - np.floor(minus.value * 64))
    # Within the strip, bits count upwards.
    np.testing.assert_array_equal(plus._prefixes % 2**47, minus._prefixes % 2**47)


def test_the_error_bound_holds_for_random_normals_and_is_not_wasteful():
    normals = LazyNormals(400, stream("bounds"))
    with decimal.localcontext(decimal.Context(prec=120)):
        middles = [sum(normals.interval(i, 181)) / 2 for i in range(400)]
        off = np.array([abs(float(m - Decimal(float(v)))) for m, v in zip(middles, normals.value, strict=True)])
    assert np.all(off <= normals.error)
    assert normals.error < 1e-15
    assert np.any(off > normals.error / 10)


def test_intervals_shrink_and_are_nested():
    with decimal.localcontext(decimal.Context(prec=250)):
        for i in range(9):
            normals = LazyNormals(9, stream("nested"))
            before = normals.interval(i, 53)
            for bits in (117, 181, 245, 501):
                after = normals.interval(i, bits)
                assert before[0] <= after[0] < after[1] <= before[1]
                assert after[1] - after[0] < (before[1] - before[0]) * Decimal("1e-15")
                before = after


def test_bits_that_placed_a_point_belong_to_its_normal():
    # In a batch: the middle one of three is next to the curve.
    piece, within = _BELOW + 100, 2**45
    x = Fraction(int(STRIP[piece]) << 47 | within, 2**53)
    with decimal.localcontext(decimal.Context(prec=100)):
        y = int((curve(x) - int(_RANK[piece])) * 2**53)
    assert 0 < y < 2**53
    normals = LazyNormals(3, Replay([word(5, 5), word(piece, within), word(6, 6), (y - 1) << 11, 0, 7, 9]))
    assert normals._refined == {1: (int(x * 2**53) << 64 | 7, 117)}
    with decimal.localcontext(decimal.Context(prec=100)):
        low, high = normals.interval(1, 117)
        truth = Decimal(int(x * 2**53) << 64 | 7) / Decimal(2) ** 117
        assert low <= truth < high


def test_all_zero_and_all_one_words_do_not_stop_the_sampler():
    for chosen in ([0] * 34, [ONES] * 34, [0, ONES] * 17):
        sample = LazyNormals(2, Replay(chosen, then=stream("rest"))).value
        assert np.all(np.abs(sample) < 40)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 2**13, 2**13 + 1])
def test_size(size):
    assert LazyNormals(size, stream("size")).value.shape == (size,)
