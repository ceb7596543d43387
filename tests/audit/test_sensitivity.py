"""Sensitivities found by trying, of queries for which they are known."""

import math

import numpy as np
import pytest

from skdp.audit import brute_force_sensitivity

CORNERS = np.array([[-1.0, 1.0], [1.0, 1.0], [3.0, -4.0]])


@pytest.mark.parametrize(("norm", "expected"), [(1, 7.0), (2, 5.0), (math.inf, 4.0)])
def test_sums(norm, expected):
    found = brute_force_sensitivity(lambda X: X.sum(axis=0), CORNERS, norm=norm)
    assert found.value == pytest.approx(expected)
    np.testing.assert_array_equal(found.record[0], [[3.0, -4.0]])
    # Data sets of 0, 1 and 2 of 3 records, and 3 records to add.
    assert found.n_pairs == (1 + 3 + 6) * 3


def test_labels_belong_to_records():
    y = np.array([1.0, -1.0, 2.0])
    found = brute_force_sensitivity(lambda X, y: X.T @ y, (CORNERS, y))
    assert found.value == pytest.approx(10)
    assert found.record[1] == [2.0]


def test_a_mean_depends_on_the_data():
    found = brute_force_sensitivity(lambda X: X.mean() if len(X) else 0.0, np.array([[0.0], [1.0]]), n_rows=3)
    assert found.value == 1
    assert len(found.data[0]) == 0


def test_what_depends_on_the_order():
    """Alternating signs: a record in front moves all others."""
    found = brute_force_sensitivity(
        lambda X: (X[:, 0] * (-1.0) ** np.arange(len(X))).sum(), np.array([[1.0], [-1.0]]), n_rows=2
    )
    assert found.value > 1


def test_draws():
    records = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    found = brute_force_sensitivity(lambda X: X.sum(axis=0), records, n_rows=4, n_pairs=500)
    assert found.n_pairs == 500
    assert found.value <= np.linalg.norm(records, axis=1).max() + 1e-12
    assert found.value >= 0.99 * np.linalg.norm(records, axis=1).max()


def test_nan_is_a_change():
    with np.errstate(all="ignore"):
        assert brute_force_sensitivity(lambda X: np.nan if len(X) else 0.0, CORNERS).value == math.inf


def test_refusals():
    with pytest.raises(ValueError, match="shape"):
        brute_force_sensitivity(lambda X: X, CORNERS)
    with pytest.raises(ValueError, match="norm"):
        brute_force_sensitivity(lambda X: X.sum(), CORNERS, norm=3)
    with pytest.raises(ValueError, match="records"):
        brute_force_sensitivity(lambda X: X.sum(), CORNERS[:0])
