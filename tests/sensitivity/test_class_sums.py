"""Sums by class: what one record can change in them, by brute force."""

import numpy as np
import pytest

from skdp.sensitivity import class_sums_l1, class_sums_l2


def contributions(n_cells, n_moments, weight, seed=0):
    """What records add to their row: random ones, corners, and values whose square was rounded either way."""
    rng = np.random.default_rng(seed)
    values = [*rng.uniform(-1, 1, size=(200, n_moments)), np.ones(n_moments), -np.ones(n_moments), np.zeros(n_moments)]
    for v in values:
        for w in (v**2, np.floor(v**2 * 4) / 4, np.ceil(v**2 * 4) / 4):
            yield np.concatenate([np.ones(n_cells), v, weight * (w - 0.5)])


@pytest.mark.parametrize(("n_cells", "n_moments"), [(1, 0), (13, 0), (1, 1), (1, 20), (3, 4)])
@pytest.mark.parametrize("weight", [0.5, 1.0, 1.375, 3.0])
def test_one_record_moves_no_more_and_attains_it(n_cells, n_moments, weight):
    moved = list(contributions(n_cells, n_moments, weight))
    for claim, norm in ((class_sums_l2, np.linalg.norm), (class_sums_l1, lambda z: np.abs(z).sum())):
        largest = max(norm(z) for z in moved)
        bound = claim(n_cells, n_moments, weight)
        assert 0.999999 * bound <= largest <= bound * (1 + 1e-12)
