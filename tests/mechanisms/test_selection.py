"""The exponential mechanism and permute-and-flip, from their exact probabilities.

Data sets of at most three records over three or four candidates are enumerated. The probabilities of every output are
computed from the definitions (a softmax; a recursion over the sets of candidates not yet visited), the guarantee is
checked on all neighbouring pairs, and the samplers are held against the same probabilities.

False-alarm probability of every stochastic test: 1e-6.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.mechanisms import ExponentialMechanism, PermuteAndFlip, _exact
from tests.mechanisms.streams import ONES, Counted, Replay, stream
from tests.statistics import accept, chi_square, reject

MECHANISMS = [ExponentialMechanism, PermuteAndFlip]


def softmax_pmf(scores, epsilon, score_range):
    best = max(scores)
    weights = [math.exp(epsilon * (q - best) / score_range) for q in scores]
    return [w / math.fsum(weights) for w in weights]


def flip_pmf(scores, epsilon, score_range):
    """Visit in random order, stop at the first head: recursion over the set that is left."""
    best = max(scores)
    heads = [math.exp(epsilon * (q - best) / score_range) for q in scores]

    @functools.cache
    def chosen(left):
        # Probabilities of the outputs, given that the candidates outside `left` showed tails.
        total = [0.0] * len(scores)
        for o in left:
            total[o] += heads[o] / len(left)
            if heads[o] < 1 and len(left) > 1:
                for other, p in enumerate(chosen(left - {o})):
                    total[other] += (1 - heads[o]) * p / len(left)
        return total

    return chosen(frozenset(range(len(scores))))


def noisy_max_pmf(scores, epsilon, score_range, cells=200_000):
    """Second route to permute-and-flip: report the largest score plus exponential noise, by quadrature."""
    # Above the largest score, P(all others below t) is a product of 1 - exp(-rate (t - q)).
    rate = epsilon / score_range
    t = max(scores) + (np.arange(cells) + 0.5) / cells * 60 / rate
    width = 60 / rate / cells
    below = [-np.expm1(-rate * (t - q)) for q in scores]
    pmf = []
    for o, q in enumerate(scores):
        others = math.prod(b for i, b in enumerate(below) if i != o)
        pmf.append(float(np.sum(rate * np.exp(-rate * (t - q)) * others) * width))
    return pmf


PMF = {ExponentialMechanism: softmax_pmf, PermuteAndFlip: flip_pmf}


def brute_force_flip(scores, epsilon, score_range):
    """Third route: all orders, one after the other."""
    best = max(scores)
    heads = [math.exp(epsilon * (q - best) / score_range) for q in scores]
    total = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        alive = 1.0
        for o in order:
            total[o] += alive * heads[o] / len(orders)
            alive *= 1 - heads[o]
    return total


@pytest.mark.parametrize("scores", [(0, 0, 0), (3, 1, 0), (2, 2, 1, 0), (-1.5, 0.25, 0)])
def test_the_routes_to_permute_and_flip_agree(scores):
    one = flip_pmf(scores, 0.8, 1.0)
    assert math.fsum(one) == pytest.approx(1, rel=1e-12)
    assert one == pytest.approx(brute_force_flip(scores, 0.8, 1.0), rel=1e-12)
    assert one == pytest.approx(noisy_max_pmf(scores, 0.8, 1.0), rel=1e-4)


def neighbours(k, steps, records=3):
    """All pairs of score vectors of neighbouring data sets with at most `records` records, each in `steps`."""
    pairs = set()
    for n in range(records):
        for data in itertools.combinations_with_replacement(steps, n):
            scores = tuple(sum(column) for column in zip((0,) * k, *data, strict=True))
            for record in steps:
                pairs.add((scores, tuple(q + r for q, r in zip(scores, record, strict=True))))
    return pairs


def worst_log_ratio(pmf, pairs, epsilon, score_range):
    worst = 0.0
    for scores, others in pairs:
        p, q = pmf(scores, epsilon, score_range), pmf(others, epsilon, score_range)
        worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)))
    return worst


# A record votes for one candidate, or approves of any number; or, not monotone, raises some and lowers others.
VOTES = [pytest.param(k, [tuple(int(i == j) for i in range(k)) for j in range(k)], id=f"votes {k}") for k in (3, 4)]
APPROVAL = [pytest.param(3, list(itertools.product((0, 1), repeat=3)), id="approval 3")]
SIGNED = [pytest.param(3, list(itertools.product((-1, 0, 1), repeat=3)), id="signed 3")]


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("k", "steps"), VOTES + APPROVAL)
def test_guarantee_of_monotone_scores(kind, epsilon, k, steps):
    mechanism = kind(epsilon, sensitivity=1.0, monotone=True)
    pairs = neighbours(k, steps)
    assert worst_log_ratio(PMF[kind], pairs, epsilon, mechanism.score_range) <= epsilon * (1 + 1e-12)
    # Raised one by one or lowered one by one, it is the same set of pairs; the same holds for negated scores.
    negated = {(tuple(-q for q in a), tuple(-q for q in b)) for a, b in pairs}
    assert worst_log_ratio(PMF[kind], negated, epsilon, mechanism.score_range) <= epsilon * (1 + 1e-12)
    # The broken twin: half the denominator.
    assert worst_log_ratio(PMF[kind], pairs, epsilon, mechanism.score_range / 2) > epsilon * 1.05


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("k", "steps"), SIGNED)
def test_guarantee_of_general_scores(kind, epsilon, k, steps):
    mechanism = kind(epsilon, sensitivity=1.0)
    pairs = neighbours(k, steps)
    assert worst_log_ratio(PMF[kind], pairs, epsilon, mechanism.score_range) <= epsilon * (1 + 1e-12)
    # The broken twin: the denominator of monotone scores.
    assert worst_log_ratio(PMF[kind], pairs, epsilon, mechanism.score_range / 2) > epsilon * 1.05


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_exponential_mechanism_is_bounded_range_and_permute_and_flip_is_not(epsilon):
    # Bounded range: over the outputs, the log ratio varies by at most epsilon (not 2 epsilon). It is what the
    # zCDP statement of one of the two rests on.
    spread = {}
    for kind in MECHANISMS:
        spread[kind] = 0.0
        for scores, others in neighbours(3, SIGNED[0].values[1]):
            p, q = (PMF[kind](s, epsilon, 2.0) for s in (scores, others))
            ratios = [math.log(a / b) for a, b in zip(p, q, strict=True)]
            spread[kind] = max(spread[kind], max(ratios) - min(ratios))
    assert spread[ExponentialMechanism] <= epsilon * (1 + 1e-12)
    assert spread[PermuteAndFlip] > epsilon * 1.01


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    for scores in itertools.product(range(4), repeat=3):
        best = max(scores)
        error = {
            kind: sum(p * (best - q) for p, q in zip(PMF[kind](scores, 1.0, 2.0), scores, strict=True))
            for kind in MECHANISMS
        }
        assert error[PermuteAndFlip] <= error[ExponentialMechanism] + 1e-12


CASES = [
    ((0.0, 0.0, 0.0), 1.0, 1.0, True),
    ((3.0, 1.0, 0.0), 0.7, 1.0, True),
    ((2.0, 2.0, 1.0, 0.0), 1.0, 1.0, False),
    ((-1.25, 0.3, 0.0, 0.1), 2.0, 0.5, False),
    ((1e6, 1e6 - 2, 1e6 + 1), 0.5, 1.0, True),
    ((5.0,), 1.0, 1.0, False),
]


def select_many(mechanism, scores, n, label):
    bits = stream(label)
    return np.bincount([mechanism.select(scores, bits) for _ in range(n)], minlength=len(scores))


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize(("scores", "epsilon", "sensitivity", "monotone"), CASES)
@pytest.mark.sample(every=3)
def test_sampler_has_the_exact_probabilities(kind, scores, epsilon, sensitivity, monotone):
    mechanism = kind(epsilon, sensitivity, monotone)
    assert mechanism.score_range == sensitivity * (1 if monotone else 2)
    counts = select_many(mechanism, scores, 10_000, f"{kind.__name__} {scores}")
    if len(scores) == 1:
        assert counts.tolist() == [10_000]
        return
    accept(chi_square(counts, PMF[kind](scores, epsilon, mechanism.score_range)), f"{mechanism} of {scores}")
    if len(set(scores)) > 1:
        reject(chi_square(counts, PMF[kind](scores, epsilon, mechanism.score_range / 1.3)), "epsilon 30 % too large")
        other = PMF[MECHANISMS[1 - MECHANISMS.index(kind)]]
        reject(chi_square(counts, other(scores, epsilon, mechanism.score_range)), "the other mechanism's law")


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.sample(every=6)
def test_sampler_when_no_filter_decides(kind, monkeypatch):
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    counted = Counted(_exact._bernoulli_exp_scalar)
    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", counted)
    mechanism, scores = kind(0.7, 1.0), (3.0, 1.0, 0.0)
    counts = select_many(mechanism, scores, 4000, f"scalar {kind.__name__}")
    assert counted.calls >= 3 * 4000
    accept(chi_square(counts, PMF[kind](scores, 0.7, 2.0)), f"{mechanism} of {scores}, scalar")
    reject(chi_square(counts, PMF[kind](scores, 0.7, 1.0)), "half the denominator")


@pytest.mark.parametrize("kind", MECHANISMS)
def test_many_candidates(kind):
    # More candidates than one batch of the sampler, all alike but one that is far ahead, or far behind.
    mechanism = kind(1.0, 1.0, True)
    scores = np.zeros(10_000)
    scores[1234] = 60.0
    assert {mechanism.select(scores, stream(f"ahead {i}")) for i in range(20)} == {1234}
    scores[1234] = -60.0
    drawn = [mechanism.select(scores, stream(f"behind {i}")) for i in range(300)]
    assert 1234 not in drawn
    cells = np.bincount(np.array(drawn) // 1000, minlength=10)
    accept(chi_square(cells, np.full(10, 0.1)), "uniform over the rest")
    reject(chi_square(np.bincount(np.array(drawn) // 1400, minlength=10), np.full(10, 0.1)), "not uniform")


@pytest.mark.parametrize("kind", MECHANISMS)
def test_exact_exponent_is_that_of_the_typed_numbers(kind, monkeypatch):
    # What the fallback decides by: epsilon (best - score) / range of the doubles, without rounding.
    monkeypatch.setattr(_exact, "ELEMENTARY", 1e30)
    seen = []

    def record(prefix, gamma, bits):
        seen.append(gamma)
        return True

    monkeypatch.setattr(_exact, "_bernoulli_exp_scalar", record)
    kind(0.1, 0.3).select([0.7, 0.1, 1e-30], stream("exponent"))
    possible = {Fraction(0.1) / Fraction(0.6) * (Fraction(0.7) - Fraction(q)) for q in (0.7, 0.1, 1e-30)}
    assert set(seen) <= possible
    assert len(set(seen)) >= 2


def test_permute_and_flip_follows_chosen_words():
    scores = [0.0, 5.0, 5.0]
    # Words 30, 10, 20 visit candidates 1, 2, 0. The first two are best: their coins show heads whatever the word.
    assert PermuteAndFlip(1.0, 1.0).select(scores, Replay([30, 10, 20, 0, 0, 0])) == 1
    assert PermuteAndFlip(1.0, 1.0).select(scores, Replay([30, 20, 10, ONES, ONES, ONES], Replay([0] * 9))) == 2
    # Candidate 0 first: heads with probability exp(-2.5).
    assert PermuteAndFlip(1.0, 1.0).select(scores, Replay([10, 20, 30, 0, 0, 0])) == 0
    tails = int(math.exp(-2.5) * 2**64) + 2**20
    assert PermuteAndFlip(1.0, 1.0).select(scores, Replay([10, 20, 30, tails, 0, 0])) == 1
    heads = int(math.exp(-2.5) * 2**64) - 2**20
    assert PermuteAndFlip(1.0, 1.0).select(scores, Replay([10, 20, 30, heads, 0, 0])) == 0


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], 3.0])
def test_scores_of_the_wrong_shape(kind, scores):
    with pytest.raises(ValueError, match="one-dimensional array with at least one element"):
        kind(1.0, 1.0).select(scores, stream("refused"))


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_refused_without_being_told(kind, bad):
    with pytest.raises(ValueError, match="scores must be finite") as caught:
        kind(1.0, 1.0).select([123.456, bad], stream("refused"))
    assert "123" not in str(caught.value)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_scores_far_apart(kind):
    assert kind(1.0, 1.0).select([0.0, 1e300], stream("far")) == 1
    assert kind(1e-3, 1e3).select([1e17, 0.0, -1e17], stream("far")) == 0


@pytest.mark.parametrize("kind", MECHANISMS)
def test_scores_whose_difference_overflows(kind):
    assert kind(1.0, 1.0).select([1e308, -1e308], stream("overflow")) == 0
