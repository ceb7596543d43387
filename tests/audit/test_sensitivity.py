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
    # Data sets of 0, 1 and 2 of 3 records, 3 records to add, and so many positions.
    assert found.n_pairs == (1 * 1 + 3 * 2 + 9 * 3) * 3


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


def test_every_order_and_position():
    """It changes only if a large record comes between a small and a middle one."""

    def between(X):
        return float(list(X[:, 0]) == [0.0, 2.0, 1.0])

    found = brute_force_sensitivity(between, np.array([[0.0], [1.0], [2.0]]))
    assert found.value == 1
    whole = np.insert(found.data[0], found.position, found.record[0], axis=0)
    assert between(whole) != between(found.data[0])
    drawn = brute_force_sensitivity(between, np.array([[0.0], [1.0], [2.0]]), n_pairs=100, n_rows=2)
    assert drawn.n_pairs == 100
    assert drawn.value == 1


def test_replaced_records():
    for n_rows, n_pairs in ((1, 3 * 3), (2, 3 * 3 + 9 * 3 * 2)):
        found = brute_force_sensitivity(lambda X: X.sum(axis=0), CORNERS, norm=1, n_rows=n_rows, replace=True)
        # From (-1, 1) to (3, -4).
        assert found.value == pytest.approx(9)
        assert found.n_pairs == n_pairs
    assert brute_force_sensitivity(len, CORNERS, replace=True).value == 0
    assert brute_force_sensitivity(len, CORNERS, replace=True, n_pairs=20, n_rows=3).value == 0


def test_draws():
    records = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    found = brute_force_sensitivity(lambda X: X.sum(axis=0), records, n_rows=4, n_pairs=500)
    assert found.n_pairs == 500
    assert found.value <= np.linalg.norm(records, axis=1).max() + 1e-12
    assert found.value >= 0.99 * np.linalg.norm(records, axis=1).max()


def test_nan_is_a_change():
    with np.errstate(all="ignore"):
        assert brute_force_sensitivity(lambda X: np.nan if len(X) else 0.0, CORNERS).value == math.inf


def test_extreme_numbers():
    def query(scale):
        return lambda X: np.full(2, scale * len(X))

    with np.errstate(all="ignore"):
        assert brute_force_sensitivity(lambda X: np.nan, CORNERS).value == 0
        assert brute_force_sensitivity(lambda X: np.inf, CORNERS).value == 0
        assert brute_force_sensitivity(lambda X: [0.0, np.inf if len(X) else 0.0], CORNERS).value == math.inf
    assert brute_force_sensitivity(query(1e-200), CORNERS).value == pytest.approx(2**0.5 * 1e-200)
    assert brute_force_sensitivity(query(1e200), CORNERS).value == pytest.approx(2**0.5 * 1e200)


def test_results_can_be_compared():
    one, two = (brute_force_sensitivity(len, CORNERS) for _ in range(2))
    assert one != two


def test_refusals():
    with pytest.raises(ValueError, match="returned None"):
        brute_force_sensitivity(lambda X: None, CORNERS)
    with pytest.raises(ValueError, match="n_rows"):
        brute_force_sensitivity(len, CORNERS, n_rows=0, replace=True)
    with pytest.raises(TypeError, match="replace"):
        brute_force_sensitivity(len, CORNERS, replace="yes")
    with pytest.raises(ValueError, match="shape"):
        brute_force_sensitivity(lambda X: X, CORNERS)
    with pytest.raises(ValueError, match="norm"):
        brute_force_sensitivity(lambda X: X.sum(), CORNERS, norm=3)
    with pytest.raises(ValueError, match="records"):
        brute_force_sensitivity(lambda X: X.sum(), CORNERS[:0])
