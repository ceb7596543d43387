"""Quantiles: the exact law on tiny grids, all neighbours, and the sampler against it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from skdp.accounting import PureEvent, bounded_range_mu, gaussian_delta, gaussian_mu
from skdp.mechanisms import (
    ExactQuantiles,
    ExponentialMechanism,
    GridQuantiles,
    NoiseSource,
    even_levels,
    pure_share,
    quantile_depth,
    quantile_mechanism,
    quantile_scores,
)
from skdp.mechanisms.quantiles import weight_penalties
from skdp.sensitivity import PARTS, spread_counts
from tests.statistics import accept, chi_square, reject

CELLS = 4

LEVELS = {
    "median": even_levels(1),
    "quartiles": even_levels(2),
    "low": ((1,), 10),
    "both tails": ((1, 19), 20),
    "uneven": ((1, 2, 9), 10),
}

by_levels = pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())


def cut_law(counts, epsilon, q):
    """Probabilities of the edges of one cut."""
    counts = np.asarray(counts, dtype=float)
    scores = [-abs(counts[:o].sum() - float(q) * counts.sum()) for o in range(len(counts) + 1)]
    weights = np.exp(epsilon * np.array(scores) / (2 * max(float(q), 1 - float(q))))
    return weights / weights.sum()


def law(counts, epsilon, quantiles):
    """Probabilities of all outcomes, as a dictionary: the sampler's law by enumeration."""
    if not quantiles:
        return {(): 1.0}
    middle = len(quantiles) // 2
    q = quantiles[middle]
    out = {}
    for edge, p in enumerate(cut_law(counts, epsilon, q)):
        left = law(counts[:edge], epsilon, [x / q for x in quantiles[:middle]])
        right = law(counts[edge:], epsilon, [(x - q) / (1 - q) for x in quantiles[middle + 1 :]])
        for (a, pa), (b, pb) in itertools.product(left.items(), right.items()):
            key = (*a, edge, *(edge + x for x in b))
            out[key] = out.get(key, 0.0) + p * pa * pb
    return out


def as_quantiles(levels):
    return [Fraction(level, levels[1]) for level in levels[0]]


#: A crowd in one cell: tail levels tell only then how a cut moves.
CROWD = 25


def data_sets(most):
    """All multisets of at most so many records on the grid, as counts, alone and with a crowd in each cell."""
    small = [c for c in itertools.product(range(most + 1), repeat=CELLS) if sum(c) <= most]
    return small + [tuple(n + CROWD * (i == j) for i, n in enumerate(c)) for c in small for j in range(CELLS)]


def hockey_stick(first, second, epsilon):
    return np.maximum(first - np.exp(epsilon) * second, 0).sum()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@by_levels
def test_all_neighbours_of_all_tiny_data_sets(epsilon, levels):
    """The pure claim, and the Gaussian-DP claim for bounded-range cuts, on every pair."""
    quantiles, depth = as_quantiles(levels), quantile_depth(len(levels[0]))
    mu = bounded_range_mu(epsilon) * np.sqrt(depth)
    at = np.linspace(-1.5, 1.5, 31) * depth * epsilon
    curve = gaussian_delta(at, mu)
    largest, widest = 0.0, 0.0
    for counts in data_sets(2 if depth > 1 else 4):
        one = law(counts, epsilon, quantiles)
        p = np.array(list(one.values()))
        assert p.sum() == pytest.approx(1)
        for cell in range(CELLS):
            other = law([c + (i == cell) for i, c in enumerate(counts)], epsilon, quantiles)
            q = np.array([other[o] for o in one])
            losses = np.log(q / p)
            largest = max(largest, np.abs(losses).max())
            widest = max(widest, np.ptp(losses))
            for pair in ((p, q), (q, p)):
                assert np.all([hockey_stick(*pair, e) for e in at] <= curve + 1e-12)
    assert largest <= depth * epsilon * (1 + 1e-12)
    if depth == 1:
        # With more, which part the record is in depends on the first cut, and so does the interval.
        assert 0.99 * epsilon <= widest <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("records", "epsilon", "level"), [(40, 4.0, (1, 2)), (40, 4.0, (1, 10)), (40, 4.0, (9, 10))])
def test_pure_claim_is_nearly_attained(records, epsilon, level):
    """Most records in one cell: the edges around it change places."""
    largest = 0.0
    for place, cell in itertools.product(range(1, records), range(CELLS)):
        counts = [place, records - place, 0, 0] if level[0] < level[1] / 2 else [0, 0, place, records - place]
        p = cut_law(counts, epsilon, Fraction(*level))
        q = cut_law([c + (i == cell) for i, c in enumerate(counts)], epsilon, Fraction(*level))
        largest = max(largest, np.abs(np.log(q / p)).max())
    assert 0.9 * epsilon <= largest <= epsilon * (1 + 1e-12)


@by_levels
@pytest.mark.sample(every=2)
def test_twin_with_twice_the_exponent_is_caught(levels):
    quantiles, depth = as_quantiles(levels), quantile_depth(len(levels[0]))
    caught, at = 0.0, np.linspace(-1.5, 1.5, 31) * depth
    curve = gaussian_delta(at, bounded_range_mu(1.0) * np.sqrt(depth))
    for counts in data_sets(2 if depth > 1 else 4):
        p = np.array(list(law(counts, 2.0, quantiles).values()))
        for cell in range(CELLS):
            q = np.array(list(law([c + (i == cell) for i, c in enumerate(counts)], 2.0, quantiles).values()))
            for pair in ((p, q), (q, p)):
                caught = max(caught, np.max([hockey_stick(*pair, e) for e in at] - curve))
    assert caught > 1e-3


@pytest.mark.parametrize(("level", "whole"), [(1, 2), (1, 10), (9, 10), (3, 7)])
def test_scores_are_integers_and_move_as_claimed(level, whole):
    claim, largest = max(level, whole - level), 0.0
    for counts in data_sets(4):
        scores = quantile_scores(np.array(counts, dtype=float), level, whole)
        expected = [-abs(whole * sum(counts[:o]) - level * sum(counts)) for o in range(CELLS + 1)]
        np.testing.assert_array_equal(scores, expected)
        for cell in range(CELLS):
            more = np.array([c + (i == cell) for i, c in enumerate(counts)], dtype=float)
            largest = max(largest, np.ptp(quantile_scores(more, level, whole) - scores) / 2)
    assert 0.9 * claim <= largest <= claim
    np.testing.assert_array_equal(quantile_scores(np.empty(0), level, whole), [0.0])


@by_levels
@pytest.mark.sample(every=3)
def test_sampler_follows_the_law(levels):
    counts, epsilon = [2, 0, 1, 3], 0.8
    exact = law(counts, epsilon, as_quantiles(levels))
    mechanism = GridQuantiles(epsilon, *levels)
    stream = NoiseSource(0).stream("cuts")
    runs = 4000
    drawn = np.concatenate([mechanism.release(np.tile(counts, (50, 1)), stream) for _ in range(runs // 50)])
    keys = list(exact)
    found = dict.fromkeys(keys, 0)
    for row in drawn.astype(int).tolist():
        found[tuple(row)] += 1
    observed = [found[key] for key in keys]
    order = np.argsort([exact[key] for key in keys])
    p = np.array([exact[key] for key in keys])
    accept(chi_square(np.array(observed)[order], p[order]), "quantiles")
    wrong = law(counts, 2 * epsilon, as_quantiles(levels))
    q = np.array([wrong[key] for key in keys])
    reject(chi_square(np.array(observed)[order], q[order]), "quantiles with twice the exponent")


def hockey_sticks_above(one, other, at, curve):
    p = np.array(list(one.values()))
    q = np.array([other[o] for o in one])
    above = max(np.max([hockey_stick(*pair, e) for e in at] - curve) for pair in ((p, q), (q, p)))
    return np.abs(np.log(q / p)).max(), above


@pytest.mark.parametrize("rows", [2, 3])
@by_levels
@pytest.mark.sample(every=2)
def test_all_groups_of_rows_in_all_cells(levels, rows):
    """The rows of a group are on both sides of a cut, or of three: a depth still costs one cut."""
    epsilon = 1.5
    quantiles, depth = as_quantiles(levels), quantile_depth(len(levels[0]))
    at = np.linspace(-1.5, 1.5, 13) * depth * epsilon
    curve = gaussian_delta(at, bounded_range_mu(epsilon) * np.sqrt(depth))
    groups = [c for c in itertools.product(range(rows + 1), repeat=CELLS) if sum(c) <= rows]
    largest, for_one = 0.0, 0.0
    for counts in data_sets(1):
        one, sharper = (law(counts, e, quantiles) for e in (epsilon / rows, epsilon))
        for group in groups:
            more = np.add(counts, group)
            loss, above = hockey_sticks_above(one, law(more, epsilon / rows, quantiles), at, curve)
            assert above <= 1e-12
            largest = max(largest, loss)
            for_one = max(for_one, hockey_sticks_above(sharper, law(more, epsilon, quantiles), at, curve)[0])
    assert largest <= depth * epsilon * (1 + 1e-12)
    assert for_one > 1.5 * largest


@by_levels
@pytest.mark.sample(every=3)
def test_exponent_is_divided_by_the_rows_of_a_group(levels):
    counts, rows = [2, 0, 1, 3], 3
    mechanism, event = quantile_mechanism(2.4 * quantile_depth(len(levels[0])), 0.0, 1.0, *levels, 1, (), rows)
    assert (mechanism.sensitivity, mechanism.scale) == (rows, pytest.approx(rows / 2.4))
    assert event == quantile_mechanism(2.4 * quantile_depth(len(levels[0])), 0.0, 1.0, *levels, 1)[1]
    stream = NoiseSource(0).stream("cuts")
    drawn = np.concatenate([mechanism.release(np.tile(counts, (50, 1)), stream) for _ in range(80)])
    exact, wrong = law(counts, 0.8, as_quantiles(levels)), law(counts, 2.4, as_quantiles(levels))
    observed = np.array([np.all(drawn == key, axis=1).sum() for key in exact])
    p, q = (np.array([probabilities[key] for key in exact]) for probabilities in (exact, wrong))
    order = np.argsort(p)
    accept(chi_square(observed[order], p[order]), "quantiles by group")
    reject(chi_square(observed[order], q[order]), "quantiles by group with the exponent of one row")


def test_cuts_divide_records_evenly_and_gather_at_ties():
    counts = np.zeros((2, 64))
    counts[0] = 1e4
    counts[1, 0], counts[1, 32:] = 1e6, 100
    edges = GridQuantiles(1.0, *even_levels(3)).release(counts, NoiseSource(0).stream("cuts"))
    np.testing.assert_allclose(edges[0], np.arange(8, 64, 8), atol=1)
    assert np.all(np.diff(edges, axis=1) >= 0)
    assert np.count_nonzero(edges[1] > 31) == 3
    assert edges.shape == (2, 7)


def test_no_records_give_any_cuts():
    edges = GridQuantiles(1.0, *even_levels(3)).release(np.zeros((200, 8)), NoiseSource(0).stream("cuts"))
    assert edges.min() == 0
    assert edges.max() == 8


@by_levels
def test_without_noise_the_best_edges_are_found(levels):
    counts = np.random.default_rng(0).integers(1, 9, size=(5, 200)).astype(float)
    mechanism = ExactQuantiles(*levels)
    edges = mechanism.release(counts, NoiseSource(0).stream("cuts"))
    for column, row in zip(counts, edges.astype(int), strict=True):
        below = np.concatenate([[0], np.cumsum(column)])
        targets = np.array([float(q) for q in as_quantiles(levels)]) * column.sum()
        np.testing.assert_allclose(below[row], targets, atol=8)
    assert mechanism == ExactQuantiles(*levels)
    assert len({mechanism, ExactQuantiles(*levels)}) == 1
    assert repr(mechanism) == f"ExactQuantiles(levels={levels[0]}, whole={levels[1]})"


@pytest.mark.parametrize("n_levels", range(1, 20))
def test_depth_is_that_of_the_balanced_tree(n_levels):
    assert quantile_depth(n_levels) == int(np.ceil(np.log2(n_levels + 1)))


# --- weights ----------------------------------------------------------------------------------------------------------

WEIGHTS = (-1.0, -0.5, 0.0, -0.5, -3.0)


def weighted_law(counts, epsilon, q):
    """The law of one cut with public weights, which are rounded to scores of integers over the whole."""
    weights = cut_law(counts, epsilon, q) * np.exp(WEIGHTS)
    return weights / weights.sum()


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 10)])
def test_weights_leave_the_claim_as_it_is(q):
    widest = 0.0
    for counts in data_sets(4):
        p = weighted_law(counts, 1.0, q)
        for cell in range(CELLS):
            other = weighted_law([c + (i == cell) for i, c in enumerate(counts)], 1.0, q)
            widest = max(widest, np.ptp(np.log(other / p)))
            assert np.abs(np.log(other / p)).max() <= 1 + 1e-12
    assert 0.99 <= widest <= 1 + 1e-12


def test_sampler_follows_the_law_with_weights():
    counts, epsilon = [2, 0, 1, 3], 0.8
    mechanism = GridQuantiles(epsilon, (1000,), 10_000, WEIGHTS)
    stream = NoiseSource(0).stream("cuts")
    drawn = np.concatenate([mechanism.release(np.tile(counts, (50, 1)), stream) for _ in range(80)])
    observed = np.bincount(drawn[:, 0].astype(int), minlength=CELLS + 1)
    accept(chi_square(observed, weighted_law(counts, epsilon, Fraction(1, 10))), "weighted quantiles")
    reject(chi_square(observed, cut_law(counts, epsilon, Fraction(1, 10))), "quantiles without weights")
    # They decide where no record does.
    exact = ExactQuantiles((1,), 2, WEIGHTS).release(np.zeros((1, CELLS)), stream)
    assert exact.tolist() == [[2.0]]


STEPS = -2.0 * np.abs(np.arange(121) - 60)


@pytest.mark.parametrize("rows", [1, 7, 10**6])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e9])
def test_scores_of_many_rows_stay_integers(rows, epsilon, monkeypatch):
    seen = []
    monkeypatch.setattr(
        ExponentialMechanism, "select", lambda self, scores, stream: seen.append((scores, self.sensitivity)) or 0
    )
    counts = np.random.default_rng(0).integers(0, 10**6, len(STEPS) - 1)
    GridQuantiles(epsilon, (100,), 10_000, tuple(STEPS), rows).release([counts], NoiseSource(0).stream("cuts"))
    ((scores, change),) = seen
    assert change == 9900 * rows
    assert np.abs(scores).max() < 2**53
    assert np.all(scores == np.rint(scores))


@pytest.mark.parametrize("epsilon", [1e-12, 2.5e-9, 1.0, 1e5, 1e9])
@pytest.mark.parametrize("weights", [STEPS, 5 * STEPS, np.array(WEIGHTS)], ids=["steps", "far", "uneven"])
def test_scores_with_weights_stay_integers_that_one_record_moves_by_its_change(epsilon, weights, monkeypatch):
    seen = []
    monkeypatch.setattr(
        ExponentialMechanism, "select", lambda self, scores, stream: seen.append((scores, self.sensitivity)) or 0
    )
    counts = np.random.default_rng(0).integers(0, 10**6, len(weights) - 1)
    mechanism = GridQuantiles(epsilon, (100,), 10_000, tuple(weights))
    for cell in (None, *range(0, len(counts), 3)):
        mechanism.release([counts + (np.arange(len(counts)) == cell)], NoiseSource(0).stream("cuts"))
    scores = [[int(score) for score in found] for found, _ in seen]
    assert np.abs(scores).max() < 2**53
    for more, (found, change) in zip(scores, seen, strict=True):
        assert all(score == exact for score, exact in zip(found, more, strict=True))
        assert change == 9900
        moved = [a - b for a, b in zip(more, scores[0], strict=True)]
        assert max(map(abs, moved)) <= change


@pytest.mark.parametrize("epsilon", [0.5, 100.0, 8e4, 1e6, 1e9])
def test_weights_decide_between_equal_ranks_whatever_epsilon_is(epsilon):
    penalties = weight_penalties(STEPS, 9900, epsilon)
    assert penalties[60] == 0
    assert np.all(np.diff(penalties[60:]) >= 1)
    np.testing.assert_array_equal(penalties, penalties[::-1])
    # And no more than they say, but for the least step.
    np.testing.assert_allclose(
        penalties, np.maximum(-STEPS * 2 * 9900 / epsilon, np.abs(np.arange(121) - 60)), atol=0.5
    )
    assert not np.any(weight_penalties(np.zeros(5), 9900, epsilon))


# --- what a share of a budget buys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [even_levels(1), even_levels(3), ((1, 99), 100)])
@pytest.mark.parametrize("n_columns", [1, 5])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_all_cuts_together_cost_the_share(levels, n_columns, share):
    n_cuts = quantile_depth(len(levels[0])) * n_columns
    pure, event = quantile_mechanism(2.0, 0.0, share, *levels, n_columns)
    assert event == PureEvent(pure_share(2.0, share))
    assert pure.epsilon * n_cuts == pytest.approx(2.0 * share, rel=1e-12)
    assert Fraction(pure.epsilon) * n_cuts <= Fraction(event.epsilon)
    gaussian, event = quantile_mechanism(2.0, 1e-5, share, *levels, n_columns)
    assert event.mu() == pytest.approx(gaussian_mu(2.0, 1e-5) * np.sqrt(share))
    assert bounded_range_mu(gaussian.epsilon) * np.sqrt(n_cuts) <= event.mu() * (1 + 1e-9)
    assert bounded_range_mu(gaussian.epsilon) * np.sqrt(n_cuts) >= event.mu() * 0.999
    exact, event = quantile_mechanism(np.inf, 1e-5, share, *levels, n_columns)
    assert (exact, event) == (ExactQuantiles(*levels), PureEvent(np.inf))


def test_parts_of_a_pure_epsilon_are_never_more_than_the_whole():
    rng = np.random.default_rng(0)
    plain = 0
    for _ in range(2000):
        epsilon, n = rng.uniform(0.01, 20), int(rng.integers(2, 200))
        mechanism, event = quantile_mechanism(epsilon, 0.0, 1.0, *even_levels(2), n)
        assert event.epsilon == epsilon
        assert epsilon * (1 - 2.0**-48) <= Fraction(mechanism.epsilon) * 2 * n <= epsilon
        first, second = rng.uniform(0.01, 0.4, 2)
        shares = first, second, 1.0 - first - second
        parts = sum(Fraction(pure_share(epsilon, share)) for share in shares)
        assert epsilon * (1 - 2.0**-48) <= parts <= epsilon
        plain += sum(Fraction(epsilon * share) for share in shares) > epsilon
    # Without the margin, sums are above about as often as below.
    assert plain > 200
    assert pure_share(0.3, 1.0) == 0.3


# --- records that count by shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@by_levels
def test_records_in_shares_have_the_same_guarantee(levels, epsilon):
    """A record that is spread evenly over two parts of its cell may be on both sides of a cut."""
    quantiles, depth = as_quantiles(levels), quantile_depth(len(levels[0]))
    at = np.linspace(-1.5, 1.5, 13) * depth * epsilon
    curve = gaussian_delta(at, bounded_range_mu(epsilon) * np.sqrt(depth))

    def largest(share):
        losses = []
        for counts in itertools.product((0, 1, 2, CROWD), repeat=2):
            one = law(share * np.repeat(counts, 2), epsilon, quantiles)
            for cell in range(2):
                more = [c + (i == cell) for i, c in enumerate(counts)]
                losses.append(hockey_sticks_above(one, law(share * np.repeat(more, 2), epsilon, quantiles), at, curve))
        return np.max(losses, axis=0)

    loss, above = largest(0.5)
    assert loss <= depth * epsilon * (1 + 1e-12)
    assert above <= 1e-12
    # Shares that add up to 2 move the law by more.
    assert largest(1.0)[0] > 1.5 * loss


@by_levels
def test_scores_of_shares_are_exact_and_move_as_claimed(levels):
    level, whole = levels[0][0], levels[1]
    claim = max(level, whole - level)
    counts = np.random.default_rng(0).integers(0, 10**6, 50).astype(float)
    before = quantile_scores(spread_counts(counts[None])[0], level, whole)
    totals = [
        sum(int(c) for c in counts[: o // PARTS]) * PARTS + int(counts[min(o // PARTS, 49)]) * (o % PARTS)
        for o in range(50 * PARTS + 1)
    ]
    exact = [-abs(whole * t - level * totals[-1]) for t in totals]
    assert [Fraction(score) * PARTS for score in before.tolist()] == exact
    for cell in range(50):
        more = counts + (np.arange(50) == cell)
        after = quantile_scores(spread_counts(more[None])[0], level, whole)
        assert np.abs(after - before).max() <= claim
