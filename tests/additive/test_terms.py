"""The public features of cells, counts, sums of gradients, and the margin: by brute force, and by another route."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special
from skdp.additive._fine import split_for_pairs

from skdp.accounting import GAUSSIAN_RATIO, gaussian_mu
from skdp.additive import _descent_noise, _engines, _plans, _terms
from skdp.additive._descent_noise import Moved
from skdp.additive._gradients import CellGradients, CentredGradients
from skdp.additive._groups import Centred, GroupedLayout
from skdp.additive._terms import Layout
from skdp.schema.categories import Categories
from skdp.schema.columns import Columns
from skdp.schema.grid import Grid
from skdp.sensitivity import ClippedRows, clip_rows
from skdp.solvers.clipped_gradients import ClippedGradients
from skdp.solvers.losses import Huber, LogLoss, SoftmaxLogLoss

SIZES = (2, 5, 3)


def columns(sizes=SIZES, pairs=((0, 1),), categorical=(2,)):
    kinds = tuple(Categories.codes(size) if j in categorical else np.arange(size + 1.0) for j, size in enumerate(sizes))
    return Columns(kinds, Grid(np.zeros(0), np.ones(0), 4), pairs=pairs)


def random_codes(rng, n, sizes=SIZES):
    """With some that are in no cell."""
    return np.stack([rng.integers(size + 1, size=n) for size in sizes]).astype(np.int32)


@pytest.mark.parametrize(("n_cells", "n_bytes"), [(2, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_codes_have_the_smallest_type_that_holds_no_cell_as_well(n_cells, n_bytes):
    codes = columns((n_cells,), (), (0,)).codes([np.array([0, n_cells - 1, -1])])
    assert codes.itemsize == n_bytes
    assert codes.tolist() == [[0, n_cells - 1, n_cells]]


def test_codes_of_pairs_exceed_the_type_of_columns():
    own = columns((16, 17, 3), categorical=(0, 1, 2))
    codes = own.codes([np.array([15, 15, -1]), np.array([16, 17, 0]), np.zeros(3, dtype=int)])
    assert codes.itemsize == 1
    assert Layout.of(own, 1.0).codes(codes)[-1].tolist() == [16 * 17 - 1, 16 * 17, 16 * 17]


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_cells", [1, 2, 3, 16, 33, 200])
@pytest.mark.parametrize("smoothness", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("ordered", [False, True])
def test_all_rows_have_the_length_one(n_cells, smoothness, ordered):
    rows = _terms.cell_rows(n_cells, ordered, smoothness)
    assert len(rows) == n_cells
    lengths = np.linalg.norm(rows, axis=1)
    assert np.all(lengths <= 1 + 2.0**-40)
    if n_cells > 1:
        np.testing.assert_allclose(lengths, 1.0, rtol=1e-12)


@pytest.mark.parametrize("excess", [0.0, 1e-15, 1e-9, 0.5])
@pytest.mark.parametrize("pairs", [(), ((0, 1),)])
def test_no_computed_row_is_longer_than_one(monkeypatch, excess, pairs):
    """In exact arithmetic, and whatever the numerics of rows may do."""
    made = _terms.cell_rows
    monkeypatch.setattr(_terms, "cell_rows", lambda *given: made(*given) * (1 + excess))
    for term in Layout.of(columns((33, 20, 3), pairs), 0.7).terms:
        lengths = [sum(Fraction(entry) ** 2 for entry in row) for row in term.rows.tolist()]
        assert max(lengths) <= 1
        assert min(lengths[:-1]) > 1 - 1e-9


def test_products_are_the_mixture():
    k, s = 7, 0.8
    distance = np.abs(np.arange(k)[:, None] - np.arange(k))
    expected = s * (1 - 2 * distance / (k - 1)) + (1 - s) * (np.eye(k) - 1 / k) / (1 - 1 / k)
    rows = _terms.cell_rows(k, True, s)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-12)


def test_a_penalty_on_steps_is_one_on_jumps():
    theta = np.random.default_rng(0).normal(size=5)
    curve = _terms.steps(6) @ theta
    np.testing.assert_allclose(np.diff(curve), 2 * theta / math.sqrt(5))


@pytest.mark.parametrize("smoothness", [0.0, 0.5, 1.0])
def test_no_row_is_longer_than_the_norm(smoothness):
    layout = Layout.of(columns(pairs=((0, 1), (1, 2))), smoothness)
    every = np.stack(np.meshgrid(*[np.arange(size + 1) for size in SIZES], indexing="ij")).reshape(3, -1)
    features = layout.features(layout.codes(every.astype(np.int32)))
    lengths = np.linalg.norm(features, axis=1)
    assert lengths.max() <= layout.data_norm
    assert lengths.max() >= layout.data_norm * (1 - 1e-9)
    # What is in no cell of a column adds nothing, in pairs neither.
    assert lengths.min() == 0.0
    assert layout.n_features == features.shape[1]


def test_pairs_merge_ordered_cells():
    layout = Layout.of(columns((40, 3), ((0, 1),), categorical=(1,)), 0.9)
    pair = layout.terms[-1]
    assert pair.shape == (16, 3)
    codes = np.stack([np.arange(41), np.full(41, 1)]).astype(np.int32)
    cells = pair.codes(codes)
    assert cells[-1] == 48
    assert np.all(np.diff(cells[:-1]) >= 0)
    assert set(cells[:-1] // 3) == set(range(16))


# --- counts ---------------------------------------------------------------------------------------------------------


def test_counts_move_by_what_is_claimed():
    """Records with other labels are in no cell, and are counted."""
    rng = np.random.default_rng(0)
    codes, known = random_codes(rng, 50), rng.random(50) < 0.7

    def counts(kept):
        return np.append(_plans.records_in_cells(SIZES, codes[:, kept & known]), _plans.left_out(known[kept]))

    largest, of_others = 0, 0
    for k in range(50):
        moved = counts(np.full(50, True)) - counts(np.arange(50) != k)
        assert np.all(moved >= 0)
        assert np.abs(moved).sum() <= _plans.cell_sensitivity(3)
        assert (moved**2).sum() <= _plans.cell_sensitivity(3)
        largest, of_others = max(largest, np.abs(moved).sum()), max(of_others, moved[-1])
    assert largest == _plans.cell_sensitivity(3)
    assert of_others == 1


# --- gradients ------------------------------------------------------------------------------------------------------

LOSSES = [LogLoss(), SoftmaxLogLoss(4), Huber(2.0)]


def gradient_data(derivative, n=300, seed=0):
    rng = np.random.default_rng(seed)
    layout = Layout.of(columns(), 0.7)
    codes = layout.codes(random_codes(rng, n))
    targets = rng.uniform(-1, 1, n) if isinstance(derivative, Huber) else rng.integers(derivative.outputs + 1, size=n)
    if isinstance(derivative, SoftmaxLogLoss):
        targets = rng.integers(4, size=n)
    weights = rng.normal(size=(derivative.outputs, layout.n_features + 1))
    return layout, codes, targets, weights


@pytest.mark.parametrize("derivative", LOSSES, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("max_norm", [0.05, 100.0])
def test_sums_are_those_over_dense_rows(derivative, max_norm):
    layout, codes, targets, weights = gradient_data(derivative)
    ours = CellGradients(layout, derivative, max_norm, codes, targets)
    rows = clip_rows(layout.features(codes), layout.data_norm, layout.constant)
    dense = ClippedGradients(rows, targets, derivative, max_norm)
    found = ours.total(ours.at(weights))
    expected = dense.total(dense.at(weights))
    if max_norm == 100.0:
        np.testing.assert_allclose(found, expected, atol=1e-3)
    # Dense rows are clipped by their own length, ours by the largest.
    assert found.shape == expected.shape


@pytest.mark.parametrize("derivative", LOSSES, ids=lambda d: type(d).__name__)
def test_a_record_moves_a_sum_by_its_own_gradient_exactly(derivative):
    layout, codes, targets, weights = gradient_data(derivative, 9000)
    max_norm, largest = 0.2, 0.0
    whole = CellGradients(layout, derivative, max_norm, codes, targets)
    point = whole.at(weights)
    total = whole.total(point)
    for k in (0, 17, 8191, 8192, 8999):
        keep = np.arange(9000) != k
        without = CellGradients(layout, derivative, max_norm, codes[:, keep], targets[keep])
        alone = CellGradients(layout, derivative, max_norm, codes[:, [k]], targets[[k]])
        moved = total - without.total(point)
        np.testing.assert_array_equal(moved, alone.total(point))
        assert np.linalg.norm(moved) <= max_norm
    # Records in all cells, and far off: nine tenths of the bound.
    for label in (0, 1):
        full = layout.codes(np.array([[1], [4], [2]], dtype=np.int32))
        target = np.array([label if not isinstance(derivative, Huber) else 2.0 * label - 1])
        one = CellGradients(layout, derivative, max_norm, full, target)
        largest = max(largest, float(np.linalg.norm(one.total(one.at(weights * 0)))))
    assert 0.9 * max_norm <= largest <= max_norm


def centred_data(loss, n, seed=0):
    """A pair on two resolutions, an indicator of many cells, and counts that most records disagree with."""
    rng = np.random.default_rng(seed)
    coarse = columns((4, 40, 3), ((0, 1), (1, 2)))
    cells = split_for_pairs(coarse, 64)
    layout = GroupedLayout.of(cells, coarse, 0.8, 3.0)
    counts = [rng.uniform(0, 50, size) ** 2 for size in cells.sizes]
    features = Centred.by_default(layout, layout.probabilities(counts, 5.0))
    codes = layout.codes(random_codes(rng, n, cells.sizes))
    targets = rng.uniform(-1, 1, n) if isinstance(loss, Huber) else rng.integers(4, size=n)
    if loss.signed:
        targets = rng.integers(2, size=n)
    weights = rng.normal(size=(loss.outputs, layout.n_features + 1))
    return features, codes, targets, weights


@pytest.mark.parametrize("loss", LOSSES, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("max_norm", [0.05, math.inf])
def test_sums_of_centred_features_are_those_over_dense_rows(loss, max_norm):
    features, codes, targets, weights = centred_data(loss, 300)
    ours = CentredGradients(features, loss, max_norm, codes, targets)
    rows = np.column_stack([features.features(codes), np.full(300, features.layout.constant)])
    longest = float(np.linalg.norm(rows, axis=1).max())
    dense = ClippedGradients(ClippedRows(rows, longest), targets, loss, 1e6 if max_norm == math.inf else max_norm)
    found, expected = ours.total(ours.at(weights)), dense.total(dense.at(weights))
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda d: type(d).__name__)
def test_a_record_moves_a_sum_of_centred_features_by_its_own_gradient_exactly(loss):
    features, codes, targets, weights = centred_data(loss, 9000)
    max_norm = 0.2
    whole = CentredGradients(features, loss, max_norm, codes, targets)
    point = whole.at(weights)
    total = whole.total(point)
    for k in (0, 17, 8191, 8192, 8999):
        keep = np.arange(9000) != k
        without = CentredGradients(features, loss, max_norm, codes[:, keep], targets[keep])
        alone = CentredGradients(features, loss, max_norm, codes[:, [k]], targets[[k]])
        moved = total - without.total(point)
        np.testing.assert_array_equal(moved, alone.total(point))
        assert np.linalg.norm(moved) <= max_norm
    lengths = []
    for k in range(200):
        alone = CentredGradients(features, loss, max_norm, codes[:, [k]], targets[[k]])
        lengths.append(float(np.linalg.norm(alone.total(point))))
    # Records are clipped by their own lengths, so that many attain the bound, and none exceeds it.
    assert max(lengths) <= max_norm
    assert np.mean(np.array(lengths) > 0.99 * max_norm) > 0.2


def test_cells_of_pairs_on_two_resolutions_are_parts_of_merged_ones():
    coarse = columns((4, 40, 100), ((0, 1), (1, 2)), categorical=())
    cells = split_for_pairs(coarse, 64)
    assert cells.sizes == (64, 40, 100)
    layout = GroupedLayout.of(cells, coarse, 0.8, 3.0)
    assert [term.shape for term in layout.terms[3:]] == [(64, 40), (40, 64)]
    first, fine = (group for group in layout.groups if group.term == 3)
    assert first.size == 256
    assert first.rows is not None
    assert fine.rows is None
    assert (first.share, fine.share) == (0.5, 0.5)
    places = first.bins.reshape(64, 40)
    np.testing.assert_array_equal(places // 16, np.broadcast_to(np.arange(64)[:, None] // 4, (64, 40)))
    np.testing.assert_array_equal(places % 16, np.broadcast_to(np.arange(40) * 16 // 40, (64, 40)))
    # What a cell of a pair adds without weights of records is what the bins of its columns add.
    plain = Layout.of(coarse, 0.8)
    values = [np.arange(len(term.rows) - 1.0)[:, None] for term in plain.terms]
    found = layout.in_cells(values, plain)
    every = np.stack(np.meshgrid(np.arange(64), np.arange(40), np.arange(100), indexing="ij")).reshape(3, -1)
    codes = layout.codes(every.astype(np.int32))
    in_bins = plain.codes(np.stack([layout.bins[j][own] for j, own in enumerate(every)]).astype(np.int32))
    for own, cell, expected, place in zip(found[:4], codes, values, in_bins, strict=False):
        np.testing.assert_array_equal(own[cell], expected[place])


def test_without_noise_wide_terms_move_as_one():
    """The deviations of wide indicators, one by one, are about those of all features together."""
    features, codes, _, _ = centred_data(Huber(2.0), 3000)
    engine = _engines.GradientEngine(1.0, 1e-5, 0.04, features.layout, Huber(2.0), 100, 0.2, 0.2)
    found = Moved.of(engine, features, codes, 3000.0, bends=True)
    assert found.wide
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_descent_noise, "MOST_TOGETHER", 10**6)
        whole = Moved.of(engine, features, codes, 3000.0, bends=True)
    assert not whole.wide
    for own, expected in zip(found.in_cells(), whole.in_cells(), strict=True):
        assert np.median(own / expected) == pytest.approx(1.0, abs=0.25)


# --- the margin -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.0, 0.7, 2.0, 8.0])
def test_derivatives_of_the_loss_with_a_margin(margin):
    loss, z = LogLoss(margin), np.linspace(-12, 12, 501)[:, None]
    for code in (0, 1):
        target = loss.encode(np.full(len(z), code))
        step = 1e-5
        slope = (loss.value(z + step, target) - loss.value(z - step, target)) / (2 * step)
        derivative = loss.derivative(z, target)
        np.testing.assert_allclose(derivative[:, 0], slope, atol=1e-7)
        bend = (loss.derivative(z + step, target) - loss.derivative(z - step, target))[:, 0] / (2 * step)
        ((_, _, second),) = loss.second_derivative(z, target)
        np.testing.assert_allclose(second, bend, atol=1e-7)
        # All that theorem 2 of objective perturbation uses.
        u = np.abs(derivative[:, 0])
        assert np.all((u > 0) & (u <= 1))
        np.testing.assert_allclose(second, u * (1 - u), atol=1e-12)
        assert len(np.unique(np.sign(derivative))) == 1


@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("kappa", "mu"), [(0.27, 1 / 3.73), (0.9, 1 / 3.73), (4.0, 1.0)])
def test_the_curve_of_theorem_2_holds_with_a_margin(margin, kappa, mu):
    """The densities of the minimiser without and with one record of norm 1, in one dimension, integrated."""
    from skdp.accounting import binary_log_loss

    C = kappa
    sigma = C / mu
    w = np.linspace(-14 * sigma - 3, 14 * sigma + 3, 400_001)

    def logs(counts):
        noise, bend = -w, np.ones_like(w)
        for sign, length, count in counts:
            u = special.expit(margin - sign * length * w)
            noise = noise + count * C * sign * length * u
            bend = bend + count * C * length**2 * u * (1 - u)
        return -(noise**2) / (2 * sigma**2) - 0.5 * math.log(2 * math.pi * sigma**2) + np.log(bend)

    curve = binary_log_loss(kappa)
    epsilon = max(1.0, curve.threshold(mu))
    for others in ([], [(1, 0.01, 3000)], [(-1, 0.01, 3000)]):
        p, q = logs([*others, (1, 1.0, 1)]), logs(others)
        for one, other in ((p, q), (q, p)):
            delta = integrate.trapezoid(np.maximum(np.exp(one) - np.exp(epsilon + other), 0.0), w)
            assert delta <= curve.delta(epsilon, mu) * (1 + 1e-5) + 1e-9


def test_log_odds_invert_the_margin():
    from skdp.additive._classifier import logits

    scores = np.linspace(-6, 6, 25)
    for margin in (0.0, 1.5, 4.0):
        p = special.expit(logits(scores, margin))
        np.testing.assert_allclose(p * special.expit(margin - scores), (1 - p) * special.expit(margin + scores))
        assert np.all(np.diff(p) > 0)
    np.testing.assert_array_equal(logits(scores, 0.0), scores)


# --- the budget -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 1e-2])
@pytest.mark.parametrize("beside", [0.02, 0.12])
def test_there_is_room_for_what_is_beside(epsilon, delta, beside):
    layout = Layout.of(columns(), 0.9)
    for n_classes in (2, 3):
        engine = _engines.ObjectiveEngine(epsilon, delta, beside, layout, n_classes, None, None)
        objective, solution = engine.plan().events
        whole = gaussian_mu(epsilon, delta)
        if n_classes == 2:
            # Squares add up to the whole, as for Gaussian mechanisms.
            used = math.fsum([objective.noise_mu**2, solution.noise_mu**2, beside * whole**2])
            assert (1 - 1e-9) * whole**2 <= used <= whole**2
            assert engine.weight * engine.geometry.norm**2 <= GAUSSIAN_RATIO * objective.noise_mu
        else:
            rest = math.hypot(solution.noise_mu, whole * math.sqrt(beside))
            assert objective.curve.delta(epsilon, objective.noise_mu, rest) <= delta
