"""Labels by truncated noise: the exact law for all counts, its neighbours, and the sampler against it."""

import decimal
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import NoiseSource, StabilityCounts
from tests.statistics import accept, chi_square, reject

CASES = [(0.1, 1e-3), (0.5, 1e-5), (1.0, 1e-6), (1.0, 0.2), (3.0, 1e-9), (20.0, 1e-5), (1e-3, 0.01)]

every_case = pytest.mark.parametrize(("epsilon", "delta"), CASES)


def told(epsilon, k, counts):
    """Probability that a label is released, by adding up the noise's law in high precision."""
    with decimal.localcontext(decimal.Context(prec=50)):
        ratio = (-Decimal(epsilon)).exp()
        one_side = [ratio**j for j in range(k + 1)]
        weights = one_side[:0:-1] + one_side
        total = sum(weights)
        above = [Decimal(0)]
        for weight in reversed(weights):
            above.append(above[-1] + weight)
        # above[m] / total is the probability of one of the m largest values.
        return [above[min(max(n, 0), 2 * k + 1)] / total for n in counts]


def worst_delta(epsilon, k, claim):
    """Largest delta, over counts, events and directions, that is needed beside `claim`."""
    p = told(epsilon, k, range(2 * k + 4))
    with decimal.localcontext(decimal.Context(prec=50)):
        factor = Decimal(claim).exp()
        needed = [
            max(b - factor * a, a - factor * b, (1 - a) - factor * (1 - b), (1 - b) - factor * (1 - a))
            for a, b in itertools.pairwise(p)
        ]
        return float(max(needed))


@every_case
def test_claim_holds_for_all_counts_and_is_used(epsilon, delta):
    mechanism = StabilityCounts(epsilon, delta)
    k = mechanism.threshold
    needed = worst_delta(1 / mechanism.scale, k, epsilon)
    assert needed <= delta
    # The least threshold that there is.
    assert k == 1 or worst_delta(epsilon, k - 1, epsilon) > delta
    assert needed >= 0.9 * math.exp(-epsilon) * delta or k == 1


@every_case
def test_pure_part_of_the_claim_is_used(epsilon, delta):
    k = StabilityCounts(epsilon, delta).threshold
    p = told(epsilon, k, range(1, 2 * k + 2))
    largest = max(float((b / a).ln()) for a, b in itertools.pairwise(p))
    assert largest >= 0.9 * epsilon or delta > 0.1


@every_case
def test_twin_with_half_the_noise_or_a_lower_threshold_is_caught(epsilon, delta):
    k = StabilityCounts(epsilon, delta).threshold
    assert worst_delta(epsilon, max(k // 2, 0), epsilon) > delta
    assert worst_delta(2 * epsilon, k, epsilon) > delta or k == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-2), (1.0, 0.05), (3.0, 1e-3)])
def test_sampler_follows_the_law(epsilon, delta):
    mechanism = StabilityCounts(epsilon, delta)
    k, runs = mechanism.threshold, 4000
    counts = np.arange(2 * k + 3)
    drawn = mechanism.release(np.tile(counts, runs), NoiseSource(0).stream("labels")).reshape(runs, -1) > 0
    assert not drawn[:, 0].any()
    assert drawn[:, -1].all()
    p = np.array(told(epsilon, k, counts), dtype=float)
    least = min(stats.binomtest(int(hits), runs, q).pvalue for hits, q in zip(drawn.sum(axis=0), p, strict=True))
    accept(least * len(counts), "labels that are released")
    wrong = np.array(told(2 * epsilon, k, counts), dtype=float)
    reject(stats.binomtest(int(drawn[:, k].sum()), runs, wrong[k]).pvalue, "labels with half the noise")


def test_smallest_and_largest_parameters():
    stream = NoiseSource(0).stream("labels")
    assert StabilityCounts(1e-6, 1e-12).release([0, 10**9], stream).astype(bool).tolist() == [False, True]
    assert StabilityCounts(1e4, 1e-300).release([0, 1, 9], stream).tolist()[::2] == [0, 9]
    assert StabilityCounts(1.0, 0.9).threshold == 1
    # Nearly uniform noise on 2k + 1 numbers.
    assert StabilityCounts(1e-6, 0.01).threshold == 50
    assert StabilityCounts(1e-6, 1e-6).threshold == pytest.approx(np.log((1 + 2) / 2) * 1e6, rel=1e-3)
    assert StabilityCounts(1.0, 1e-6).release([], stream).shape == (0,)


# --- counts above the threshold --------------------------------------------------------------------------------------


def law_of_counts(epsilon, k, count):
    """Law of the released number for a count: 0, or the noisy count above the threshold."""
    weights = np.exp(-epsilon * np.abs(np.arange(-k, k + 1)))
    law = np.zeros(3 * k + 4)
    for noise, weight in zip(range(-k, k + 1), weights / weights.sum(), strict=True):
        law[count + noise if count and count + noise > k else 0] += weight
    return law


def delta_of_counts(epsilon, k, claim):
    """Largest delta, over neighbouring counts, that is needed next to `claim`."""
    laws = [law_of_counts(epsilon, k, count) for count in range(2 * k + 3)]
    pairs = [*itertools.pairwise(laws), *itertools.pairwise(laws[::-1])]
    return max(np.maximum(p - math.exp(claim) * q, 0).sum() for p, q in pairs)


@every_case
def test_claim_holds_for_released_counts(epsilon, delta):
    mechanism = StabilityCounts(epsilon, delta)
    k = mechanism.threshold
    if k > 2000:
        pytest.skip("the law has too many atoms for brute force")
    assert delta_of_counts(1 / mechanism.scale, k, epsilon) <= delta * (1 + 1e-6)
    # Twins with a lower threshold, or with half of the noise, are caught.
    assert delta_of_counts(1 / mechanism.scale, max(k // 2, 0), epsilon) > delta or k == 1
    assert delta_of_counts(2 / mechanism.scale, k, epsilon) > delta or k == 1


def test_counts_follow_their_law():
    mechanism, runs = StabilityCounts(1.0, 0.05), 20_000
    k = mechanism.threshold
    stream = NoiseSource(0).stream("labels")
    for count in (1, k, 2 * k):
        drawn = mechanism.release(np.full(runs, count), stream).astype(int)
        law = law_of_counts(1 / mechanism.scale, k, count)
        accept(chi_square(np.bincount(drawn, minlength=len(law)), law), f"released counts of {count} records")
    wrong = law_of_counts(2 / mechanism.scale, k, 2 * k)
    reject(chi_square(np.bincount(drawn, minlength=len(wrong)), wrong), "released counts with half the noise")
