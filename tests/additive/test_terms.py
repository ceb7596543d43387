"""The public features of cells, counts, and the margin: by brute force, and by another route."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.additive import _engines, _plans, _terms
from skdp.additive._terms import Layout
from skdp.schema.categories import Categories
from skdp.schema.columns import Columns
from skdp.schema.grid import Grid
from skdp.solvers.losses import LogLoss

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


# --- the budget -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("beside", [0.02, 0.12])
def test_there_is_room_for_what_is_beside(epsilon, beside):
    layout = Layout.of(columns(), 0.9)
    for n_classes in (2, 3):
        engine = _engines.ObjectiveEngine(epsilon, beside, layout, n_classes)
        used = math.fsum(event.epsilon for event in engine.plan().events)
        assert used + epsilon * beside <= epsilon
        assert used + epsilon * beside >= epsilon * (1 - 1e-6)
