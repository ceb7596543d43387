"""Channels of local privacy: the exact ratio of probabilities, the law of what is drawn, and estimates without bias.

False-alarm probability of each chi-square test: 1e-6 over the choice of the seed, which is fixed.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg

from skdp.mechanisms import (
    UNKNOWN,
    HadamardChannel,
    KaryChannel,
    LatticeLaplaceChannel,
    LocalMechanism,
    UnaryChannel,
    WindowChannel,
)
from skdp.mechanisms._exact import coins, exp_below, least_flip, mixture_weight, uniform_integers, walsh_transform
from tests.mechanisms.reports import reports_of
from tests.mechanisms.streams import Replay, stream
from tests.statistics import accept, binomial, chi_square, chi_square_integers, reject

EPSILONS = [2.0**-20, 0.01, 0.5, 1.0, math.log(3), 3.0, 10.0, 30.0]

epsilons = pytest.mark.parametrize("epsilon", EPSILONS)


def power(epsilon, part=1):
    """exp(part * epsilon) to 90 digits, by decimal arithmetic on the exact double."""
    with localcontext() as context:
        context.prec = 90
        exponent = Fraction(epsilon) * Fraction(part)
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def holds_and_is_used(ratio, epsilon):
    assert ratio <= power(epsilon)
    assert ratio >= power(epsilon, Fraction(999, 1000))


MIXTURES = [
    lambda e: KaryChannel(e, 2),
    lambda e: KaryChannel(e, 7),
    lambda e: HadamardChannel.best(e, 2),
    lambda e: HadamardChannel.best(e, 13),
    lambda e: HadamardChannel(e, 13, 2),
    lambda e: HadamardChannel(e, 13, 4),
    lambda e: HadamardChannel(e, 13, 16),
    lambda e: WindowChannel.best(e, 32),
    lambda e: WindowChannel(e, 5, 40),
]

mixtures = pytest.mark.parametrize("make", MIXTURES)


def inputs(channel):
    if isinstance(channel, WindowChannel):
        return list(range(channel.largest + 1))
    return [UNKNOWN, *range(channel.n_categories)]


def chance_of(channel, report, x):
    """The exact probability of a report of a mixture."""
    weight = Fraction(channel.heads, 2**64) if x != UNKNOWN else Fraction(0)
    inside = x != UNKNOWN and report in reports_of(channel, x)
    return (weight / channel.set_size if inside else 0) + (1 - weight) / channel.n_reports


def chance_of_bit(channel, bit, hit):
    """The exact probability of a bit of unary encoding."""
    chance = Fraction(channel.heads[0 if hit else 1], 2**64)
    return chance if bit else 1 - chance


def law_of(channel):
    """The exact matrix of probabilities, by input and report."""
    return [[chance_of(channel, r, x) for r in range(channel.n_reports)] for x in inputs(channel)]


def largest_ratio(rows):
    return max(max(column) / min(column) for column in zip(*rows, strict=True))


@mixtures
@epsilons
def test_exact_ratio_of_mixtures(make, epsilon):
    rows = law_of(make(epsilon))
    assert all(sum(row) == 1 for row in rows)
    holds_and_is_used(largest_ratio(rows), epsilon)


@epsilons
def test_exact_ratio_of_unary_encoding(epsilon):
    channel = UnaryChannel(epsilon, 4)
    rows = [
        [
            math.prod((chance_of_bit(channel, bit, i == x) for i, bit in enumerate(report)), start=Fraction(1))
            for report in itertools.product((0, 1), repeat=4)
        ]
        for x in range(-1, 4)
    ]
    assert all(sum(row) == 1 for row in rows)
    holds_and_is_used(largest_ratio(rows), epsilon)


@epsilons
def test_exact_ratio_of_lattice_noise(epsilon):
    channel = LatticeLaplaceChannel(Fraction(epsilon) / 3, 2**20 if epsilon > 0.01 else 2**10)
    # Each step towards a report multiplies its probability by exp(1 / scale).
    reached = channel.largest / channel.lattice_scale
    assert Fraction(epsilon) / 3 * Fraction(999, 1000) <= reached <= Fraction(epsilon) / 3


@epsilons
@pytest.mark.parametrize("k", [1, 2, 3])
def test_exact_ratio_of_a_row_of_columns(epsilon, k):
    # All reports of three columns, out of which k are drawn.
    part = Fraction(epsilon) / k
    channels = (KaryChannel(part, 2), KaryChannel(part, 3), HadamardChannel.best(part, 2))
    rows = []
    for x in itertools.product(range(2), range(3), range(2)):
        row = []
        for drawn in itertools.combinations(range(3), k):
            for report in itertools.product(*(range(channels[j].n_reports) for j in drawn)):
                chance = [chance_of(channels[j], r, x[j]) for j, r in zip(drawn, report, strict=True)]
                row.append(math.prod(chance, start=Fraction(1, math.comb(3, k))))
        assert sum(row) == 1
        rows.append(row)
    holds_and_is_used(largest_ratio(rows), epsilon)


@pytest.mark.parametrize("make", [*MIXTURES, lambda e: UnaryChannel(e, 4)])
def test_a_broken_twin_has_too_large_a_ratio(make):
    # One column forgotten in the split: the part for three is spent on each of four.
    channel = make(Fraction(1.0) / 3)
    if isinstance(channel, UnaryChannel):
        p, q = (Fraction(heads, 2**64) for heads in channel.heads)
        ratio = p * (1 - q) / (q * (1 - p))
    else:
        ratio = largest_ratio(law_of(channel))
    assert ratio**4 > power(1.0)
    assert ratio**3 <= power(1.0)


@pytest.mark.parametrize("epsilon", [60.0, 500.0, 1e6, 1e9])
def test_a_large_epsilon_is_never_certainty(epsilon):
    assert mixture_weight(epsilon, Fraction(3)) == 2**64 - 1
    assert least_flip(epsilon) == 1
    assert exp_below(Fraction(epsilon)) <= power(64.0)


def test_the_weight_is_the_largest():
    for epsilon, parts in itertools.product(EPSILONS, (Fraction(2), Fraction(7, 3), Fraction(1000))):
        heads = mixture_weight(epsilon, parts)
        ratios = [1 + Fraction(h, 2**64 - h) * parts for h in (heads, heads + 1)]
        assert ratios[0] <= power(epsilon) < ratios[1]
        flip = least_flip(epsilon)
        assert Fraction(2**64 - flip, flip) <= power(epsilon) < Fraction(2**64 - flip + 1, flip - 1)


# --- coins and integers -------------------------------------------------------------------------------------


def test_coins_compare_all_64_bits():
    heads = 0xABCD_0000_0000_0007
    same, below, above = 0xABCD, 0xABCC, 0xABCE
    prefixes = np.array([same, below, same, above, same, same, same, same], dtype=np.uint16).view(np.uint64)
    # 48 further bits of those that are open, at the front of a word.
    further = [tail << 16 for tail in (0, 6, 7, 8, 2**48 - 1, 5)]
    outcome = coins(heads, 8, Replay([*prefixes, *further]))
    assert outcome.tolist() == [True, True, True, False, False, False, False, True]


def test_coins_that_are_certain():
    assert coins(2**64, 5, Replay([])).all()
    assert not coins(0, 10**5, stream("never")).any()


@pytest.mark.parametrize("heads", [2**64 // 3, 2**63, 12345 << 40, 2**64 - 2**50])
def test_coins_have_their_probability(heads):
    n = 200_000
    hits = coins(heads, n, stream("coins")).sum()
    accept(binomial(hits, n, heads / 2**64), "coins")
    wrong = heads / 2**64 * (0.95 if heads > 2**60 else 2.0)
    reject(binomial(hits, n, wrong), "coins")


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64, 1000])
def test_integers_are_uniform(bound):
    draws = uniform_integers(bound, 200_000, stream("integers"))
    assert len(draws) == 200_000
    assert draws.min() >= 0
    assert draws.max() < bound
    if bound > 1:
        accept(chi_square(np.bincount(draws, minlength=bound), np.full(bound, 1 / bound)), "integers")
    assert [len(uniform_integers(bound, n, stream(f"{n}"))) for n in range(9)] == list(range(9))


# --- the law of what is drawn --------------------------------------------------------------------------------


@mixtures
def test_law_of_mixtures(make):
    channel, n = make(1.0), 100_000
    for x in {inputs(channel)[0], 1, inputs(channel)[-1]}:
        reports = channel.draw(np.full(n, x), stream(f"law of {x}"))
        seen = np.bincount(reports, minlength=channel.n_reports)
        accept(chi_square(seen, [float(chance_of(channel, r, x)) for r in range(channel.n_reports)]), "reports")
        if x != UNKNOWN:
            twin = make(1.25)
            if twin.n_reports == channel.n_reports and twin.set_size == channel.set_size:
                wrong = [float(chance_of(twin, r, x)) for r in range(channel.n_reports)]
                reject(chi_square(seen, wrong), "reports")


def test_law_of_unary_encoding():
    channel, n = UnaryChannel(1.0, 3), 100_000
    for x in (UNKNOWN, 0, 2):
        bits = channel.draw(np.full(n, x), stream(f"bits of {x}"))
        seen = np.bincount(bits @ [4, 2, 1], minlength=8)

        def chance(report, shown=channel, x=x):
            return math.prod(float(chance_of_bit(shown, bit, i == x)) for i, bit in enumerate(report))

        every = list(itertools.product((0, 1), repeat=3))
        accept(chi_square(seen, [chance(report) for report in every]), "bits")
        reject(chi_square(seen, [chance(report, UnaryChannel(1.2, 3)) for report in every]), "bits")


def test_law_of_lattice_noise():
    channel = LatticeLaplaceChannel(2.0, 16)
    reports = channel.draw(np.full(100_000, 5), stream("lattice"))

    def pmf(k, rate=1 / 8):
        return math.tanh(rate / 2) * math.exp(-rate * abs(k - 5))

    accept(chi_square_integers(reports, pmf, -60, 60), "lattice noise")
    reject(chi_square_integers(reports, lambda k: pmf(k, 1 / 7.5), -60, 60), "lattice noise")


def test_which_columns_are_drawn_is_uniform_and_has_no_regard_for_the_row():
    for value in (0, 2):
        mechanism = LocalMechanism((KaryChannel(1.0, 3),) * 4, 2)
        reports = mechanism.release(np.full((120_000, 4), value), stream(f"columns {value}"))
        shown = reports >= 0
        assert np.all(shown.sum(axis=1) == 2)
        seen = np.bincount(shown @ [1, 2, 4, 8], minlength=16)
        chances = np.array([1 / 6 if bin(code).count("1") == 2 else 0 for code in range(16)])
        accept(chi_square(seen, chances), "columns")


def test_columns_and_rows_are_independent():
    mechanism = LocalMechanism((KaryChannel(1.0, 2),) * 2, 2)
    reports = mechanism.release(np.zeros((200_000, 2), dtype=int), stream("independent"))
    q = float(chance_of(mechanism.channels[0], 1, 0))
    law = [(1 - q) ** 2, (1 - q) * q, (1 - q) * q, q**2]
    pairs = np.bincount(reports @ [1, 2], minlength=4)
    accept(chi_square(pairs, law), "columns")
    neighbours = np.bincount(reports[:-1:2, 0] + 2 * reports[1::2, 0], minlength=4)
    accept(chi_square(neighbours, law), "rows")
    twin = np.repeat(reports[::2], 2, axis=0)
    reject(chi_square(np.bincount(twin[::2, 0] + 2 * twin[1::2, 0], minlength=4), law), "twins")


# --- estimates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("make", MIXTURES[:-2])
def test_scores_are_unbiased_and_squares_are_theirs(make, epsilon):
    channel = make(epsilon)
    each = np.eye(channel.n_reports)
    scores = channel.scores(each, np.ones(channel.n_reports))
    squares = channel.squares(each, np.ones(channel.n_reports))
    np.testing.assert_allclose(squares, scores**2, rtol=1e-9, atol=1e-9 * squares.max())
    chances = np.array(law_of(channel)[1:], dtype=float)
    np.testing.assert_allclose(chances @ scores, np.eye(channel.n_categories), atol=1e-9)


def test_scores_of_bits_are_unbiased():
    channel = UnaryChannel(1.0, 3)
    p, q = channel.rates
    for x in range(3):
        chances = np.where(np.arange(3) == x, p, q)
        np.testing.assert_allclose(channel.scores(chances[None], 1.0)[0], np.eye(3)[x], atol=1e-12)
    bits = np.array(list(itertools.product((0, 1), repeat=3)), dtype=float)
    np.testing.assert_allclose(channel.squares(bits, np.ones(8)), channel.scores(bits, np.ones(8)) ** 2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
def test_window_estimates_are_unbiased_and_deviate_as_said(epsilon):
    channel = WindowChannel.best(epsilon, 64)
    values = channel.estimate(np.arange(channel.n_reports))
    chances = np.array(law_of(channel), dtype=float)
    np.testing.assert_allclose(chances @ values, np.arange(65), atol=1e-8)
    deviations = np.sqrt(chances @ values**2 - np.arange(65.0) ** 2)
    assert channel.deviation == pytest.approx(deviations.max(), rel=1e-6)


def test_the_window_is_the_papers():
    # Probability and variance of the continuous mechanism (Wang et al. 2019, equations 5 and 6).
    for epsilon in (0.5, 1.0, 3.0):
        channel = WindowChannel.best(epsilon, 2**20)
        root = math.exp(epsilon / 2)
        inside = channel.weight + (1 - channel.weight) * channel.window / channel.n_reports
        assert inside == pytest.approx(root / (root + 1), rel=1e-5)
        variance = 1 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert (channel.deviation / 2**19) ** 2 == pytest.approx(variance, rel=1e-5)


def test_lattice_noise_deviates_as_said():
    channel = LatticeLaplaceChannel(1.0, 2**10)
    reports = channel.draw(np.zeros(400_000, dtype=int), stream("deviation"))
    assert reports.std() == pytest.approx(channel.deviation, rel=0.01)
    assert channel.deviation == pytest.approx(math.sqrt(2) * 2**10, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_walsh_transform_is_the_hadamard_matrix(size):
    values = np.arange(3.0 * size).reshape(3, size) ** 2
    np.testing.assert_allclose(walsh_transform(values), values @ linalg.hadamard(size))


def test_own_sets_of_a_block_share_half():
    channel = HadamardChannel(1.0, 14, 8)
    for x, y in itertools.combinations(range(14), 2):
        shared = set(reports_of(channel, x)) & set(reports_of(channel, y))
        assert len(reports_of(channel, x)) == 4
        assert len(shared) == (2 if x // 7 == y // 7 else 0)


@pytest.mark.parametrize("epsilon", [math.inf])
def test_without_noise(epsilon):
    codes = np.array([0, 3, 2, 1])
    np.testing.assert_array_equal(KaryChannel(epsilon, 4).draw(codes, stream("a")), codes)
    hadamard = HadamardChannel.best(epsilon, 4)
    np.testing.assert_array_equal(hadamard.scores(hadamard.counts(hadamard.draw(codes, stream("a"))), 4), np.ones(4))
    np.testing.assert_array_equal(UnaryChannel(epsilon, 4).draw(codes, stream("a")), np.eye(4)[codes])
    window = WindowChannel.best(epsilon, 4)
    np.testing.assert_allclose(window.estimate(window.draw(codes, stream("a"))), codes)
    np.testing.assert_array_equal(LatticeLaplaceChannel(epsilon, 4).draw(codes, stream("a")), codes)
