"""Cut points: the exact law on tiny grids, all neighbours, and the sampler against it."""

import itertools

import numpy as np
import pytest

from skdp.accounting import bounded_range_mu, gaussian_delta
from skdp.mechanisms import GridQuantiles, NoiseSource, bisection_scores
from tests.statistics import accept, chi_square, reject

CELLS = 4


def cut_law(counts, epsilon):
    """Probabilities of the edges of one cut."""
    counts = np.asarray(counts, dtype=float)
    scores = [-abs(counts[:o].sum() - counts.sum() / 2) for o in range(len(counts) + 1)]
    weights = np.exp(epsilon * np.array(scores))
    return weights / weights.sum()


def law(counts, epsilon, levels):
    """Probabilities of all outcomes, as a dictionary: the sampler's law by enumeration."""
    if levels == 0:
        return {(): 1.0}
    out = {}
    for edge, p in enumerate(cut_law(counts, epsilon)):
        left = law(counts[:edge], epsilon, levels - 1)
        right = law(counts[edge:], epsilon, levels - 1)
        for (a, pa), (b, pb) in itertools.product(left.items(), right.items()):
            key = (*a, edge, *(edge + x for x in b))
            out[key] = out.get(key, 0.0) + p * pa * pb
    return out


def data_sets(most):
    """All multisets of at most so many records on the grid, as counts."""
    return [c for c in itertools.product(range(most + 1), repeat=CELLS) if sum(c) <= most]


def hockey_stick(first, second, epsilon):
    return np.maximum(first - np.exp(epsilon) * second, 0).sum()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("levels", [1, 2])
def test_all_neighbours_of_all_tiny_data_sets(epsilon, levels):
    """The pure claim, and the Gaussian-DP claim for bounded-range cuts, on every pair."""
    mu = bounded_range_mu(epsilon) * np.sqrt(levels)
    at = np.linspace(-1.5, 1.5, 31) * levels * epsilon
    curve = gaussian_delta(at, mu)
    largest, widest = 0.0, 0.0
    for counts in data_sets(3 if levels > 1 else 5):
        one = law(counts, epsilon, levels)
        p = np.array(list(one.values()))
        assert p.sum() == pytest.approx(1)
        for cell in range(CELLS):
            other = law([c + (i == cell) for i, c in enumerate(counts)], epsilon, levels)
            q = np.array([other[o] for o in one])
            losses = np.log(q / p)
            largest = max(largest, np.abs(losses).max())
            widest = max(widest, np.ptp(losses))
            for pair in ((p, q), (q, p)):
                assert np.all([hockey_stick(*pair, e) for e in at] <= curve + 1e-12)
    assert largest <= levels * epsilon * (1 + 1e-12)
    if levels == 1:
        # With more levels, which part the record is in depends on the first cut, and so does the interval.
        assert 0.99 * epsilon <= widest <= epsilon * (1 + 1e-12)


def test_twin_with_twice_the_exponent_is_caught():
    widest = 0.0
    for counts in data_sets(5):
        one = cut_law(counts, 2.0)
        for cell in range(CELLS):
            other = cut_law([c + (i == cell) for i, c in enumerate(counts)], 2.0)
            widest = max(widest, np.ptp(np.log(other / one)))
    assert widest > 1.0


def test_scores_are_the_ones_of_the_theorem():
    counts = np.array([3.0, 0, 5, 1])
    expected = [-abs(counts[:o].sum() - 4.5) for o in range(5)]
    np.testing.assert_array_equal(bisection_scores(counts), expected)
    np.testing.assert_array_equal(bisection_scores(np.empty(0)), [0.0])


def test_sampler_follows_the_law():
    counts, epsilon = [2, 0, 1, 3], 0.8
    exact = law(counts, epsilon, 2)
    mechanism = GridQuantiles(epsilon, 2)
    stream = NoiseSource(0).stream("cuts")
    runs = 4000
    drawn = np.concatenate([mechanism.release(np.tile(counts, (50, 1)), stream) for _ in range(runs // 50)])
    keys = list(exact)
    found = {key: 0 for key in keys}
    for row in drawn.astype(int).tolist():
        found[tuple(row)] += 1
    observed = [found[key] for key in keys]
    order = np.argsort([exact[key] for key in keys])
    p = np.array([exact[key] for key in keys])
    accept(chi_square(np.array(observed)[order], p[order]), "cut points")
    wrong = law(counts, 2 * epsilon, 2)
    q = np.array([wrong[key] for key in keys])
    reject(chi_square(np.array(observed)[order], q[order]), "cut points with twice the exponent")


def test_cuts_divide_records_evenly_and_gather_at_ties():
    counts = np.zeros((2, 64))
    counts[0] = 1e4
    counts[1, 0], counts[1, 32:] = 1e6, 100
    edges = GridQuantiles(1.0, 3).release(counts, NoiseSource(0).stream("cuts"))
    np.testing.assert_allclose(edges[0], np.arange(8, 64, 8), atol=1)
    assert np.all(np.diff(edges, axis=1) >= 0)
    assert np.count_nonzero(edges[1] > 31) == 3
    assert edges.shape == (2, 7)


def test_no_records_give_any_cuts():
    edges = GridQuantiles(1.0, 3).release(np.zeros((200, 8)), NoiseSource(0).stream("cuts"))
    assert edges.min() == 0
    assert edges.max() == 8
