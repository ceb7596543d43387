"""Poisson samples: the law of gaps, of sizes and of membership, and the decisions behind them.

False-alarm probability of every stochastic test: 1e-6. The tests with chosen words are deterministic.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import LEAST_RATE, PoissonSampler
from tests.mechanisms.streams import ONES, Counted, Replay, stream
from tests.statistics import accept, chi_square, chi_square_buckets, chi_square_integers, independence, reject

RATES = [0.9, 0.5, 0.1, 0.0066]


def sizes(rate, n_rows, n_samples, label):
    return np.array([len(rows) for rows in PoissonSampler(rate).samples(n_rows, n_samples, stream(label))])


@pytest.mark.parametrize("rate", RATES)
def test_law_of_gaps(rate):
    gaps = PoissonSampler(rate).gaps(200_000, stream(f"gaps {rate}"))
    width = int(8 / rate)
    accept(chi_square_integers(gaps, lambda k: rate * (1 - rate) ** k, 0, width), f"gaps at {rate}")
    for factor in (0.95, 1.05):
        wrong = min(rate * factor, 0.999)
        reject(chi_square_integers(gaps, lambda k, q=wrong: q * (1 - q) ** k, 0, width), f"a rate off by {factor}")


@pytest.mark.parametrize("rate", [1e-4, 1e-9])
def test_law_of_long_gaps(rate):
    gaps = PoissonSampler(rate).gaps(20_000, stream(f"long gaps {rate}"))

    def below(x, rate=rate):
        return -math.expm1((math.floor(x) + 1) * math.log1p(-rate))

    edges = np.linspace(0.05, 4, 40) / rate
    accept(chi_square_buckets(gaps, below, edges), f"gaps at {rate}")
    reject(chi_square_buckets(gaps * 1.1, below, edges), "a tenth too long")


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.75])
def test_sizes_are_binomial(rate):
    n_rows = 40
    counts = np.bincount(sizes(rate, n_rows, 20_000, f"sizes {rate}"), minlength=n_rows + 1)
    law = stats.binom.pmf(np.arange(n_rows + 1), n_rows, rate)
    accept(chi_square(counts, law / law.sum()), "sizes")
    # The broken twin: batches of a fixed size, as shuffling gives.
    fixed = np.zeros(n_rows + 1)
    fixed[round(rate * n_rows)] = 20_000
    reject(chi_square(fixed, law / law.sum()), "sizes that never vary")


def test_an_empty_sample_is_as_likely_as_it_should_be():
    empty = int(np.count_nonzero(sizes(0.05, 30, 20_000, "empty") == 0))
    accept(float(stats.binomtest(empty, 20_000, 0.95**30).pvalue), "P(no row)")
    reject(float(stats.binomtest(empty, 20_000, 0.95**28).pvalue), "P(no row) for two rows fewer")


def test_rows_are_drawn_alike_and_independently():
    n_rows, n_samples = 12, 40_000
    member = np.zeros((n_samples, n_rows), dtype=bool)
    for t, rows in enumerate(PoissonSampler(0.3).samples(n_rows, n_samples, stream("membership"))):
        assert np.all(np.diff(rows) > 0)
        member[t, rows] = True
    counts = member.sum(axis=0)
    for j in range(n_rows):
        accept(float(stats.binomtest(int(counts[j]), n_samples, 0.3).pvalue), f"row {j}")
    accept(independence(member[:, 3].astype(int), member[:, 4].astype(int), cells=2), "neighbouring rows")
    accept(independence(member[:-1, -1].astype(int), member[1:, 0].astype(int), cells=2), "neighbouring samples")
    accept(independence(member[:-1, 5].astype(int), member[1:, 5].astype(int), cells=2), "a row and itself")
    reject(independence(member[:, 3].astype(int), member[:, 3].astype(int), cells=2), "a row that comes in pairs")


def test_chunks_join_without_a_seam(monkeypatch):
    """Samples drawn three at a time have the law of samples drawn all at once."""
    from skdp.mechanisms import sampled_gaussian

    monkeypatch.setattr(sampled_gaussian, "_CHUNK_ROWS", 10)
    counts = np.bincount(sizes(0.3, 11, 20_000, "chunks"), minlength=12)
    law = stats.binom.pmf(np.arange(12), 11, 0.3)
    accept(chi_square(counts, law / law.sum()), "sizes")


def test_no_rows():
    samples = list(PoissonSampler(0.5).samples(0, 3, stream("none")))
    assert [len(rows) for rows in samples] == [0, 0, 0]


def gap_of(prefix, bits, rate):
    """The gap of the uniform prefix / 2^bits by exact arithmetic."""
    u, failure, k = Fraction(prefix, 2**bits), 1 - Fraction(rate), 0
    while u < failure ** (k + 1):
        k += 1
    return k


@pytest.mark.parametrize("rate", [0.5, 0.3, 0.01])
@pytest.mark.sample(every=2)
def test_the_table_says_what_exact_arithmetic_says(rate):
    table = PoissonSampler(rate)._table
    heads = [0, 1, 2, 777, 30_000, 32_767, 32_768, 40_000, 65_534, 65_535]
    for head in heads:
        ends = gap_of((head << 84) + 1, 100, rate) if head else math.inf, gap_of(((head + 1) << 84) - 1, 100, rate)
        # At the very edge of a threshold, doubles do not tell, and leave it open.
        assert table[head] in ({ends[0], -1} if ends[0] == ends[1] else {-1})
    assert np.mean(table == -1) < 0.02


def gap_from(words, rate):
    """The gap that a sampler makes of chosen words: the head in the first 16 bits, then 48, then 64."""
    replay = Replay(words)
    return int(PoissonSampler(rate).gaps(1, replay)[0]), replay.drawn


def test_further_bits_decide_at_a_threshold():
    # 1 - q is a multiple of 2^-18, so that the threshold between gaps of 0 and of 1 lies inside a head, and 48 more
    # bits of U, at the top of the second word, say on which side U is.
    rate = 1 - 0.7001953125 - 2.0**-18
    head, tail = divmod(int((1 - Fraction(rate)) * 2**64), 2**48)
    assert PoissonSampler(rate)._table[head] == -1
    for offset, gap in ((-(2**30), 1), (2**30, 0)):
        assert gap_from([head, (tail + offset) << 16], rate) == (gap, 2)
    # Next to the threshold doubles do not tell, and 64 bits do not either: those below it come with a third word.
    for offset, gap in ((-1, 1), (0, 0)):
        assert gap_from([head, (tail + offset) << 16, ONES // 3, 7, 7], rate)[0] == gap


def test_decimals_are_asked_rarely_and_decide_exactly(monkeypatch):
    counted = Counted(PoissonSampler._by_decimals)
    monkeypatch.setattr(PoissonSampler, "_by_decimals", lambda self, *a: counted(self, *a))
    PoissonSampler(0.01).gaps(200_000, stream("rare"))
    assert counted.calls <= 2
    # A uniform of which all 64 bits are zero may hide any gap: more bits are drawn until it is decided.
    assert gap_from([0, 0, 5], 0.5) == (gap_of(5, 128, 0.5), 3)


@pytest.mark.parametrize("rate", [0.5, 0.013])
def test_decimals_and_doubles_agree(rate):
    sampler = PoissonSampler(rate)
    rng = np.random.default_rng(0)
    for prefix in rng.integers(2**40, 2**63, 200).tolist():
        assert sampler._by_decimals(prefix, stream("agree")) == math.floor(
            math.log((prefix + 0.5) / 2**64) / math.log1p(-rate)
        )


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5, LEAST_RATE / 2, math.nan])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate"):
        PoissonSampler(rate)


def test_the_least_rate_is_fine():
    gaps = PoissonSampler(LEAST_RATE).gaps(100, stream("least"))
    assert np.all(gaps > 0)
    assert [len(rows) for rows in PoissonSampler(LEAST_RATE).samples(10, 5, stream("least"))] == [0] * 5


@pytest.mark.parametrize("rate", [LEAST_RATE, 2.0**-40])
def test_gaps_beyond_the_trials_need_no_decimals(rate, monkeypatch):
    # Exact arithmetic takes milliseconds a gap; here nearly all gaps are longer than all trials together.
    counted = Counted(PoissonSampler._by_decimals)
    monkeypatch.setattr(PoissonSampler, "_by_decimals", lambda self, *a: counted(self, *a))
    drawn = [len(rows) for rows in PoissonSampler(rate).samples(1000, 1000, stream("short"))]
    assert sum(drawn) <= 1
    assert counted.calls <= 1


def test_a_limit_changes_no_gap_within_it():
    sampler = PoissonSampler(1e-9)
    free, limited = (sampler.gaps(2000, stream("limit"), most) for most in (math.inf, 10**8))
    within = free <= 10**8
    assert 50 < np.count_nonzero(within) < 1000
    np.testing.assert_array_equal(free[within], limited[within])
    assert np.all(limited[~within] > 10**8)
