"""Codes of cells, steps and counts, by brute force."""

import math

import numpy as np
import pytest

from skdp.additive import _cells, _plans
from skdp.additive._cells import joint_cells
from skdp.schema.columns import Columns
from skdp.schema.declared import Grid
from skdp.schema.entries import Categories

SIZES = (2, 5, 3)


def columns(sizes=SIZES, categorical=(2,)):
    kinds = tuple(Categories.codes(size) if j in categorical else np.arange(size + 1.0) for j, size in enumerate(sizes))
    return Columns(kinds, Grid(np.zeros(0), np.ones(0), 4))


def random_codes(rng, n, sizes=SIZES):
    """With some that are in no cell."""
    return np.stack([rng.integers(size + 1, size=n) for size in sizes]).astype(np.int32)


@pytest.mark.parametrize(("n_cells", "n_bytes"), [(2, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_codes_have_the_smallest_type_that_holds_no_cell_as_well(n_cells, n_bytes):
    codes = columns((n_cells,), (0,)).codes([np.array([0, n_cells - 1, -1])])
    assert codes.itemsize == n_bytes
    assert codes.tolist() == [[0, n_cells - 1, n_cells]]


def test_codes_of_joint_cells_exceed_the_type_of_columns():
    maps = tuple(np.append(np.arange(size), size).astype(np.int32) for size in (16, 17))
    codes = [np.array([15, 15, 16], dtype=np.uint8), np.array([16, 17, 0], dtype=np.uint8)]
    assert joint_cells(maps, codes).tolist() == [16 * 17 - 1, 16 * 17, 16 * 17]


def test_a_penalty_on_steps_is_one_on_jumps():
    theta = np.random.default_rng(0).normal(size=5)
    curve = _cells.steps(6) @ theta
    np.testing.assert_allclose(np.diff(curve), 2 * theta / math.sqrt(5))


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


@pytest.mark.parametrize("n_labels", [0, 3])
def test_weighted_counts_move_by_what_is_claimed(n_labels):
    """Without delta, the numbers of records in cells have a small weight. Released are the values of the mechanism."""
    own, rng = columns(), np.random.default_rng(0)
    X = [rng.integers(-1, size, 60) for size in SIZES]
    known, labels = rng.random(60) < 0.8, rng.integers(max(n_labels, 1), size=60)

    before = _plans.CountsPlan.of(1.0, 0.0, own, n_labels)

    class Session:
        def mechanism(self, label):
            return before.releases[0].mechanism

        def release(self, label, values):
            self.values = np.array(values)
            return self.values

    def released(rows):
        session, used = Session(), rows & known
        kind = (known[rows], labels[used]) if n_labels else ()
        cells = _plans.release_cells(session, own, [one[used] for one in X], None, before, *kind)
        assert cells.total == max(used.sum(), cells.total)
        for codes, counts in zip(own.codes([one[used] for one in X]), cells.counts, strict=True):
            np.testing.assert_array_equal(counts, np.bincount(codes, minlength=len(counts) + 1)[:-1])
        return session.values

    every, most = released(np.full(60, True)), Session().mechanism("").sensitivity
    moved = [np.abs(every - released(np.arange(60) != k)).sum() for k in range(60)]
    assert max(moved) == 1 + 3 * before.weight <= most <= max(moved) * (1 + 1e-3)
