"""Sums of clipped gradients over the bins of records: by brute force, over dense rows, and record by record.

Nothing is left to chance: seeds are fixed.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.additive import _features
from skdp.additive._cells import bins_of
from skdp.additive._curves import GradientEngine, Moved
from skdp.additive._features import CellGradients, Centred, GroupedLayout
from skdp.schema.columns import Columns
from skdp.schema.declared import Grid
from skdp.schema.entries import Categories
from skdp.sensitivity import ClippedRows
from skdp.solvers.clipped_gradients import EXACT_ROWS, ClippedGradients
from skdp.solvers.losses import Huber, LogLoss, SoftmaxLogLoss

LOSSES = {
    "two": (LogLoss(), 0.5),
    "four": (SoftmaxLogLoss(4), 0.5 * math.sqrt(2)),
    "numbers": (Huber(2.0), 0.2),
}
EVERY_LOSS = pytest.mark.parametrize("name", LOSSES)

SIZES = (4, 40, 3, 1)


def columns():
    """Four bins that stay apart, 40 cells that are merged, a category, and a column of one cell."""
    kinds = (np.arange(5.0), np.arange(41.0), Categories.codes(3), np.arange(2.0))
    return Columns(kinds, Grid(np.zeros(0), np.ones(0), 4))


def features_of(rng, smoothness=0.8):
    """Centred features for released counts that most records disagree with."""
    own = columns()
    counts = [rng.uniform(0, 50, size) ** 2 for size in own.sizes]
    bins = bins_of(own, 10, counts, 1e5, 5.0)
    layout = GroupedLayout.of(own, bins, smoothness)
    return Centred.of(layout, layout.probabilities(counts, 5.0))


def random_targets(loss, n, rng):
    if isinstance(loss, Huber):
        return rng.uniform(-1, 1, n)
    return rng.integers(2 if loss.signed else loss.outputs, size=n)


def problem(name, n, seed=0, smoothness=0.8):
    rng = np.random.default_rng(seed)
    loss, clip = LOSSES[name]
    features = features_of(rng, smoothness)
    layout = features.layout
    codes = layout.codes(np.stack([rng.integers(size + 1, size=n) for size in SIZES]).astype(np.int32))
    norm = clip * math.hypot(layout.data_norm, layout.constant)
    weights = rng.normal(size=(loss.outputs, layout.n_features + 1))
    return features, codes, random_targets(loss, n, rng), norm, weights


def dense_rows(features, codes):
    """The rows of records, written down from the definition of centred features."""
    layout = features.layout
    parts = []
    for k, group in enumerate(layout.groups):
        shares = features.probabilities[group.term]
        table = features.rows[k]
        if table is None:
            table = features.scales[k] * (np.eye(group.size) - shares)
        parts.append(np.vstack([table, np.zeros((1, table.shape[1]))])[codes[group.term]])
    return np.hstack([*parts, np.full((codes.shape[1], 1), layout.constant)])


# --- features ---------------------------------------------------------------------------------------------------------


def test_features_have_mean_0_and_the_stated_mean_square():
    features = features_of(np.random.default_rng(0))
    layout, total = features.layout, 0.0
    for t, shares in enumerate(features.probabilities):
        rows, length = features.rows_of_bins(t)
        assert length == 0
        assert shares.sum() == pytest.approx(1)
        np.testing.assert_allclose(shares @ rows, 0, atol=1e-12)
        total += shares @ (rows**2).sum(axis=1)
    # A column of one cell has no features.
    assert features.rows_of_bins(3)[0].shape == (1, 0)
    # The mean square of this column counts as 0.2, at the least.
    assert 0.7 * layout.data_norm**2 < total < layout.data_norm**2


def test_rare_bins_are_not_scaled_up():
    own = columns()
    counts = [np.append(1e6, np.zeros(size - 1)) for size in own.sizes]
    layout = GroupedLayout.of(own, bins_of(own, 10, counts, 1e6, 1.0), 0.8)
    features = Centred.of(layout, layout.probabilities(counts, 1.0))
    lengths = [np.linalg.norm(features.rows_of_bins(t)[0], axis=1).max() for t in range(3)]
    assert max(lengths) < 6 * layout.data_norm


# --- one record -------------------------------------------------------------------------------------------------------


@EVERY_LOSS
def test_no_record_adds_more_than_the_bound(name):
    """Records in every combination of bins, with every label, at points near and far: in exact arithmetic."""
    features, _, _, norm, weights = problem(name, 0)
    loss, layout = LOSSES[name][0], features.layout
    sizes = [size + 1 for size in layout.sizes]
    every = np.stack([own.ravel() for own in np.meshgrid(*map(np.arange, sizes), indexing="ij")]).astype(np.int32)
    rng = np.random.default_rng(1)
    codes = every[:, rng.permutation(every.shape[1])[:150]]
    targets = random_targets(loss, codes.shape[1], rng)
    largest = Fraction(0)
    for scale in (0.0, 1.0, 1e6):
        for k in range(codes.shape[1]):
            alone = CellGradients(features, loss, norm, codes[:, [k]], targets[[k]])
            found = alone.total(alone.at(scale * weights))
            assert np.all(np.isfinite(found))
            largest = max(largest, sum(Fraction(entry) ** 2 for entry in found.ravel().tolist()))
    assert largest <= Fraction(norm) ** 2
    assert largest >= Fraction(0.99 * norm) ** 2


@EVERY_LOSS
def test_a_record_moves_a_sum_by_its_own_gradient_exactly(name):
    n = EXACT_ROWS + 800
    features, codes, targets, norm, weights = problem(name, n)
    loss = LOSSES[name][0]
    whole = CellGradients(features, loss, norm, codes, targets)
    point = whole.at(weights)
    total = whole.total(point)
    for k in (0, 17, EXACT_ROWS - 1, EXACT_ROWS, n - 1):
        keep = np.arange(n) != k
        without = CellGradients(features, loss, norm, codes[:, keep], targets[keep])
        alone = CellGradients(features, loss, norm, codes[:, [k]], targets[[k]])
        moved = total - without.total(point)
        np.testing.assert_array_equal(moved, alone.total(point))
        assert 0 < np.linalg.norm(moved) <= norm


def test_sums_over_samples_are_refused():
    """Each step sees all records. A sum over them in place of a sample would cost more than is charged."""
    features, codes, targets, norm, weights = problem("numbers", 50)
    gradients = CellGradients(features, LOSSES["numbers"][0], norm, codes, targets)
    for total in (gradients.total, gradients.exact):
        with pytest.raises(ValueError, match="sums over all records"):
            total(gradients.at(weights), np.arange(3))


@EVERY_LOSS
def test_scores_that_are_added_are_those_of_the_record_alone(name):
    n = EXACT_ROWS + 800
    features, codes, targets, norm, weights = problem(name, n)
    loss, rng = LOSSES[name][0], np.random.default_rng(5)
    start = rng.normal(scale=rng.choice([0.1, 5, 1e6], (n, 1)), size=(n, loss.outputs))
    whole = CellGradients(features, loss, norm, codes, targets, start)
    point = whole.at(weights)
    total = whole.total(point)
    assert not np.array_equal(total, CellGradients(features, loss, norm, codes, targets).total(point))
    for k in (0, 17, EXACT_ROWS, n - 1):
        keep = np.arange(n) != k
        without = CellGradients(features, loss, norm, codes[:, keep], targets[keep], start[keep])
        alone = CellGradients(features, loss, norm, codes[:, [k]], targets[[k]], start[[k]])
        moved = total - without.total(point)
        np.testing.assert_array_equal(moved, alone.total(point))
        assert np.linalg.norm(moved) <= norm
    # Scores of features are added to those of the start.
    zeros = np.zeros_like(weights)
    constant = np.zeros_like(weights)
    constant[:, -1] = whole.at(np.ones_like(weights))[:, -1]
    rows = features.layout.constant * np.ones((n, loss.outputs))
    of_features = CellGradients(features, loss, norm, codes, targets).total(constant)
    of_start = CellGradients(features, loss, norm, codes, targets, rows).total(zeros)
    np.testing.assert_allclose(of_start, of_features, atol=1e-3 * n**0.5)


@EVERY_LOSS
def test_sums_do_not_depend_on_the_order_of_records_or_on_parts(name):
    n = 2 * EXACT_ROWS + 5
    features, codes, targets, norm, weights = problem(name, n)
    loss = LOSSES[name][0]
    whole = CellGradients(features, loss, norm, codes, targets)
    point = whole.at(weights)
    total = whole.total(point)
    order = np.random.default_rng(3).permutation(n)
    shuffled = CellGradients(features, loss, norm, codes[:, order], targets[order])
    np.testing.assert_array_equal(shuffled.total(point), total)
    parts = [
        CellGradients(features, loss, norm, codes[:, part], targets[part]).total(point)
        for part in np.array_split(order, 5)
    ]
    np.testing.assert_array_equal(np.sum(parts, axis=0), total)


@EVERY_LOSS
def test_many_equal_records_add_up_exactly(name):
    """All partial sums are as large as they can be, so that a bit too many would be lost."""
    n = 60_000
    features, _, _, norm, weights = problem(name, 0)
    loss = LOSSES[name][0]
    codes = np.array([[3], [features.layout.sizes[1] - 1], [2], [0]], dtype=np.uint8)
    alone = CellGradients(features, loss, norm, codes, np.zeros(1, dtype=int))
    point = alone.at(weights)
    one = alone.total(point).ravel().tolist()
    whole = CellGradients(features, loss, norm, np.repeat(codes, n, axis=1), np.zeros(n, dtype=int))
    assert [Fraction(entry) for entry in whole.total(point).ravel().tolist()] == [n * Fraction(entry) for entry in one]


@EVERY_LOSS
@pytest.mark.parametrize("smoothness", [0.8, 1.0])
@pytest.mark.parametrize("bounded", [True, False])
def test_sums_are_those_over_dense_rows(name, bounded, smoothness):
    features, codes, targets, norm, weights = problem(name, 300, smoothness=smoothness)
    loss = LOSSES[name][0]
    ours = CellGradients(features, loss, norm if bounded else math.inf, codes, targets)
    rows = dense_rows(features, codes)
    longest = float(np.linalg.norm(rows, axis=1).max())
    dense = ClippedGradients(ClippedRows(rows, longest), targets, loss, norm if bounded else 1e6)
    found, expected = ours.total(ours.at(weights)), dense.total(dense.at(weights))
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())
    free = ClippedGradients(ClippedRows(rows, longest), targets, loss, 1e6)
    is_clipped = not np.allclose(found, free.total(free.at(weights)), atol=0.05 * np.abs(expected).max())
    assert is_clipped == bounded


@EVERY_LOSS
def test_the_length_of_a_record_is_known(name):
    """Without the length of its row, a record in a rare bin would add more than the bound."""
    features, codes, targets, norm, weights = problem(name, 300)
    lengths = np.linalg.norm(dense_rows(features, codes), axis=1)
    row_norm = math.hypot(features.layout.data_norm, features.layout.constant)
    assert lengths.max() > 1.2 * row_norm
    loss = LOSSES[name][0]
    with pytest.MonkeyPatch.context() as patch:
        true = CellGradients._bounds_of
        patch.setattr(
            CellGradients, "_bounds_of", lambda self, lengths, most: true(self, np.full(len(lengths), row_norm), most)
        )
        k = int(np.argmax(lengths))
        alone = CellGradients(features, loss, norm, codes[:, [k]], targets[[k]])
        found = max(np.linalg.norm(alone.total(alone.at(scale * weights))) for scale in (0.0, 1.0, -1.0, 1e6, -1e6))
    assert found > norm


def test_of_many_indicators_deviations_are_about_those_of_all_features(monkeypatch):
    """The deviations of wide indicators, one by one, are about those of all features together."""
    own = Columns((Categories.codes(4), Categories.codes(60)), Grid(np.zeros(0), np.ones(0), 4))
    rng = np.random.default_rng(0)
    counts = [rng.uniform(0, 50, size) ** 2 for size in own.sizes]
    layout = GroupedLayout.of(own, bins_of(own, 10, counts, 1e5, 5.0), 0.8)
    features = Centred.of(layout, layout.probabilities(counts, 5.0))
    codes = layout.codes(np.stack([rng.choice(len(p), 3000, p=p) for p in features.probabilities]).astype(np.int32))
    engine = GradientEngine(1.0, 1e-5, 0.04, layout, Huber(2.0), 0.2, 0.2)
    whole = Moved.of(engine, features, codes, 3000.0, 1.0, [])
    assert not whole.wide
    monkeypatch.setattr(_features, "MOST_TOGETHER", 30)
    found = Moved.of(engine, features, codes, 3000.0, 1.0, [])
    assert set(found.wide) == {1}
    for one, expected in zip(found.in_cells(), whole.in_cells(), strict=True):
        assert np.median(one / expected) == pytest.approx(1.0, abs=0.25)
