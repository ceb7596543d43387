"""The exact building blocks: Bernoulli(exp(-gamma)), geometric, uniform integers, permutations.

False-alarm probability of every stochastic test: 1e-6. Where a decision depends on chosen bits, the truth is
computed in decimal arithmetic with 60 digits, and nothing is left to chance.
"""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skdp.mechanisms import _exact
from skdp.mechanisms._exact import bernoulli_exp, geometric, random_permutation, uniform_below
from tests.mechanisms.streams import ONES, Counted, Replay, stream
from tests.statistics import accept, binomial, chi_square, chi_square_buckets, chi_square_integers, reject

# The scalar path takes tens of microseconds a draw.
MANY, FEW = 200_000, 20_000

GAMMAS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10), Fraction(1), Fraction(7, 2), Fraction(6)]


def draw(gamma, n, bits, error=2.0**-50):
    return bernoulli_exp(np.full(n, float(gamma)), error, lambda i: gamma, bits)


@pytest.fixture
def scalar_only(monkeypatch):
    """Let no decision of a filter stand; returns the counter of scalar decisions."""
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    counted = Counted(_exact._bernoulli_exp_scalar)
    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", counted)
    return counted


@pytest.mark.parametrize("gamma", GAMMAS, ids=str)
def test_bernoulli_exp_has_the_stated_probability(gamma):
    heads = draw(gamma, MANY, stream(f"bernoulli {gamma}")).sum()
    accept(binomial(heads, MANY, np.exp(-float(gamma))), f"Bernoulli(exp(-{gamma}))")
    reject(binomial(heads, MANY, np.exp(-float(gamma * Fraction(6, 5) + Fraction(1, 100)))), "gamma off by 20 %")


@pytest.mark.parametrize("gamma", GAMMAS, ids=str)
@pytest.mark.sample(every=3)
def test_bernoulli_exp_on_the_scalar_path(gamma, scalar_only):
    heads = draw(gamma, FEW, stream(f"scalar bernoulli {gamma}")).sum()
    assert scalar_only.calls == FEW
    accept(binomial(heads, FEW, np.exp(-float(gamma))), f"Bernoulli(exp(-{gamma})), scalar")
    reject(binomial(heads, FEW, np.exp(-float(gamma * Fraction(6, 5) + Fraction(1, 20)))), "gamma off by 20 %")


def scaled_threshold(gamma, bits):
    """exp(-gamma) 2^bits, to 60 digits."""
    with decimal.localcontext(decimal.Context(prec=100)):
        return (Decimal(-gamma.numerator) / gamma.denominator).exp() * 2**bits


@pytest.mark.parametrize("gamma", [*GAMMAS[1:], Fraction(20), Fraction(36), Fraction(1, 2**60)], ids=str)
@pytest.mark.parametrize("more", [0, 1, 2**63, ONES])
def test_bernoulli_exp_is_right_for_every_prefix_around_the_threshold(gamma, more):
    # 53 bits around exp(-gamma) 2^53, each followed by the same further word: the truth is known for each.
    middle = int(scaled_threshold(gamma, 53))
    prefixes = [p for p in range(middle - 400, middle + 401) if 0 <= p < 2**53]
    threshold = scaled_threshold(gamma, 117)
    for prefix in prefixes:
        # If the further word leaves it open as well, a third decides: zeros, so that U is known exactly.
        uniform = (prefix << 64) | more
        bits = Replay([prefix << 11, more], then=Replay([0] * 4))
        assert bool(draw(gamma, 1, bits)[0]) == (uniform < threshold), (gamma, prefix - middle, more)


@pytest.mark.parametrize("gamma", [*GAMMAS[1:], Fraction(36)], ids=str)
@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_bernoulli_exp_is_right_where_the_further_word_is_the_thresholds_own(gamma, shift):
    # 53 + 64 bits that are those of the threshold: the third word decides. One unit off, they decide by themselves.
    first = int(scaled_threshold(gamma, 117))
    second = int(scaled_threshold(gamma, 181)) % 2**64
    prefix, more = divmod(first + shift, 2**64)
    for third in (0, max(0, second - 1), second + 1, ONES):
        bits = Replay([prefix << 11, more, third], then=Replay([0] * 4))
        uniform = ((first + shift) << 64) | third
        assert bool(draw(gamma, 1, bits)[0]) == (uniform < scaled_threshold(gamma, 181)), (gamma, shift, third)


@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(5, 2)], ids=str)
def test_bernoulli_exp_paths_agree_on_the_same_bits(gamma):
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, size=2000, dtype=np.uint64)
    certain = draw(gamma, words.size, Replay(words))  # without further words: the filter was certain of all
    scalar = [_exact._bernoulli_exp_scalar(int(w) >> 11, gamma, stream("more")) for w in words]
    assert certain.tolist() == scalar
    assert 0 < certain.sum() < words.size


def test_bernoulli_exp_edge_words():
    assert draw(Fraction(1), 1, Replay([0])).tolist() == [True]
    assert draw(Fraction(1), 1, Replay([ONES])).tolist() == [False]
    # U < 1 always, also for the largest word: it takes one further word to be sure.
    assert draw(Fraction(0), 1, Replay([ONES, 0])).tolist() == [True]
    assert draw(Fraction(0), 1, Replay([0])).tolist() == [True]
    tiny = Fraction(1, 2**60)
    assert draw(tiny, 1, Replay([ONES, 0])).tolist() == [True]
    assert draw(tiny, 1, Replay([ONES, ONES])).tolist() == [False]
    # Probability exp(-40) is less than 2^-53: 53 zeros are not enough to accept, and not enough to refuse.
    assert draw(Fraction(40), 1, Replay([0, 0])).tolist() == [True]
    assert draw(Fraction(40), 1, Replay([0, ONES])).tolist() == [False]
    # exp(-744) is a subnormal double without precision, exp(-800) is none at all.
    for gamma in (744, 800, 3000):
        assert draw(Fraction(gamma), 1, Replay([0, ONES])).tolist() == [False]
        assert draw(Fraction(gamma), 1, Replay([0] * 100)).tolist() == [True]
        assert draw(Fraction(gamma), 1, Replay([1 << 11])).tolist() == [False]


def test_bernoulli_exp_trusts_the_exact_exponent_not_the_double():
    # A double that is off by as much as the caller admits must not change a single decision.
    gamma, off = Fraction(1, 2), 1e-3
    middle = int(scaled_threshold(gamma, 53))
    for shift in (-(2**40), -1, 1, 2**40):
        for double in (0.5 - off, 0.5 + off):
            word = (middle + shift) << 11
            answer = bernoulli_exp(np.array([double]), off, lambda i: gamma, Replay([word, 0]))
            assert bool(answer[0]) == (shift < 0)


def test_bernoulli_exp_of_nothing():
    assert draw(Fraction(1), 0, Replay([])).size == 0


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 10, 33])
def test_uniform_below_is_uniform_and_its_sign_is_independent(bound):
    value, sign = uniform_below(bound, 50_000, stream(f"uniform {bound}"))
    assert value.min() >= 0
    assert value.max() < bound
    table = np.bincount(value + bound * sign, minlength=2 * bound)
    accept(chi_square(table, np.full(2 * bound, 1 / (2 * bound))), f"uniform below {bound}, with a fair bit")
    skewed = np.repeat([1.0, 1.15], bound)
    reject(chi_square(table, skewed / skewed.sum()), "one sign 15 % too likely")


def test_uniform_below_without_rejection_is_refused():
    # The broken twin: a word modulo 3 of two bits.
    words = stream("modulo").words(50_000)
    reject(chi_square(np.bincount((words & np.uint64(3)).astype(int) % 3), np.full(3, 1 / 3)), "modulo")


@pytest.mark.parametrize("bound", [2**62, 2**61 + 1, 3 * 2**60, 2**46 - 1])
def test_uniform_below_large_bounds(bound):
    value, sign = uniform_below(bound, 20_000, stream(f"uniform {bound}"))
    assert value.min() >= 0
    assert value.max() < bound
    edges = [bound * i // 16 - 1 for i in range(1, 16)]
    accept(chi_square_buckets(value, lambda x: (x + 1) / bound, edges), f"uniform below {bound}")
    reject(chi_square_buckets(value, lambda x: ((x + 1) / bound) ** 1.1, edges), "a power of a uniform")
    accept(binomial(sign.sum(), sign.size, 0.5), "the bit beside it")


@pytest.mark.parametrize("bound", [1, 3, 2**62, 2**62 - 1])
def test_uniform_below_edge_words(bound):
    value, sign = uniform_below(bound, 1, Replay([0, ONES], then=Replay([0] * 60)))
    kept = [0] if ONES % 2 ** max(1, (bound - 1).bit_length()) >= bound else [0, bound - 1]
    assert value[: len(kept)].tolist() == kept
    assert not sign[0]
    if len(kept) == 2:
        assert sign[1]


def geometric_pmf(v):
    return float(np.exp(-v) * -np.expm1(-1.0))


def test_geometric_law():
    sample = geometric(MANY, stream("geometric"))
    accept(chi_square_integers(sample, geometric_pmf, 0, 20), "geometric")
    q = np.exp(-1.05)
    reject(chi_square_integers(sample, lambda v: float(q**v * (1 - q)), 0, 20), "rate 5 % too large")


@pytest.mark.sample(every=5)
def test_geometric_law_on_the_scalar_path():
    bits = stream("geometric scalar")
    sample = np.array([_exact._geometric_scalar(int(w), bits) for w in bits.words(FEW)])
    accept(chi_square_integers(sample, geometric_pmf, 0, 12), "geometric, scalar")
    q = np.exp(-1.15)
    reject(chi_square_integers(sample, lambda v: float(q**v * (1 - q)), 0, 12), "rate 15 % too large")


def test_geometric_paths_agree_on_the_same_bits():
    words = np.random.default_rng(2).integers(0, 2**64, size=2000, dtype=np.uint64)
    certain = geometric(words.size, Replay(words))
    assert certain.tolist() == [_exact._geometric_scalar(int(w), stream("more")) for w in words]


@pytest.mark.parametrize("more", [0, 2**63, ONES])
def test_geometric_is_right_for_every_word_around_every_threshold(more):
    with decimal.localcontext(decimal.Context(prec=100)):
        for v in range(1, 45):
            threshold = Decimal(-v).exp() * 2**64
            for word in range(int(threshold) - 2, int(threshold) + 3):
                if word <= 0:
                    continue
                # U = (word 2^64 + more + something in [0, 1)) / 2^128.
                truth = int(-((Decimal((word << 64) | more) + Decimal("0.5")) / 2**128).ln())
                got = geometric(1, Replay([word, more], then=Replay([2**63] * 3)))
                assert got.tolist() == [truth], (v, word - int(threshold), more)


def test_geometric_edge_words():
    assert geometric(1, Replay([ONES])).tolist() == [0]
    # 64 zero bits, then a one: U is in [2^-65, 2^-64), 44.36 <= -log U <= 45.06.
    assert geometric(1, Replay([0, ONES])).tolist() == [44]
    assert geometric(1, Replay([0, 2**63, 0])).tolist() == [45]
    assert geometric(1, Replay([0, 0, 0, ONES])).tolist() == [int(192 * np.log(2))]


def test_permutations_of_four_are_uniform():
    bits = stream("permutations")
    index = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    drawn = [index[tuple(random_permutation(4, bits).tolist())] for _ in range(20_000)]
    accept(chi_square(np.bincount(drawn, minlength=24), np.full(24, 1 / 24)), "24 permutations")
    # The broken twin: ties between two-bit words are left in order.
    words = stream("two bits").words(80_000).reshape(-1, 4) & np.uint64(3)
    biased = [index[tuple(np.argsort(w, kind="stable").tolist())] for w in words]
    reject(chi_square(np.bincount(biased, minlength=24), np.full(24, 1 / 24)), "ties in order")


def test_permutation_with_a_collision_is_drawn_anew():
    bits = Replay([5, 7, 5, ONES, 3, 2, 1, 0])
    assert random_permutation(4, bits).tolist() == [3, 2, 1, 0]
    assert bits.drawn == 8


@pytest.mark.parametrize("n", [0, 1])
def test_permutations_of_hardly_anything(n):
    assert random_permutation(n, stream("few")).tolist() == list(range(n))


def test_words_of_two_bits_leave_permutations_uniform():
    # Collisions nearly always: those that remain must still be uniform.
    class TwoBits:
        inner = stream("two bits, drawn anew")

        def words(self, n):
            return self.inner.words(n) & np.uint64(3)

    index = {order: i for i, order in enumerate(itertools.permutations(range(3)))}
    drawn = [index[tuple(random_permutation(3, TwoBits()).tolist())] for _ in range(8_000)]
    accept(chi_square(np.bincount(drawn, minlength=6), np.full(6, 1 / 6)), "permutations from two-bit words")
    reject(chi_square(np.bincount(drawn, minlength=6), np.array([1.2, 1, 1, 1, 1, 1]) / 6.2), "one 20 % too likely")
