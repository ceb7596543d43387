"""Clipping, held to its bound in exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.sensitivity import augmented_norm, clip_rows


def squared(row):
    """Squared L2 norm of a row of doubles, without rounding."""
    return sum(Fraction(float(v)) ** 2 for v in row)


def assert_bounded(clipped):
    bound = Fraction(clipped.norm) ** 2
    for i, row in enumerate(clipped.array):
        assert squared(row) <= bound, f"row {i} is longer than the bound"


def hard_rows():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(60, 5)) * 10.0 ** rng.integers(-3, 4, size=(60, 1))]
    rows.append(rng.normal(size=(40, 5)) * 10.0 ** rng.integers(-300, 300, size=(40, 1)).astype(float))
    rows.append(rng.normal(size=(40, 5)) * 10.0 ** rng.integers(-300, 300, size=(40, 5)).astype(float))
    rows.append(np.eye(5) * 1e308)
    rows.append(np.full((1, 5), np.finfo(float).max))
    rows.append(-np.full((1, 5), np.finfo(float).max))
    rows.append(np.eye(5) * 5e-324)
    rows.append(np.full((1, 5), 5e-324))
    rows.append(np.full((1, 5), 2.2e-308))
    rows.append(np.array([[1e308, 5e-324, 1.0, -1.0, 0.0], [1e-150, 1e-160, 0, 0, 1e-170]]))
    rows.append(np.array([[1e150, 0, 0, 0, 0], [1.0001e150, 0, 0, 0, 0], [1e-140, 0, 0, 0, 0], [0.9e-140, 0, 0, 0, 0]]))
    rows.append(np.zeros((2, 5)))
    return np.vstack(rows)


@pytest.mark.parametrize("norm", [1e-100, 1e-12, 0.1, 1.0, math.pi, 3e7, 1e100])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_no_row_exceeds_the_bound(norm, constant):
    if constant > 90 * norm:
        constant *= norm  # see test_bound_of_a_large_constant
    X = hard_rows()
    clipped = clip_rows(X, norm, constant)
    assert clipped.array.shape == (len(X), 5 + (constant != 0))
    assert np.all(np.isfinite(clipped.array))
    assert_bounded(clipped)
    bare = clip_rows(X, norm)
    assert_bounded(bare)
    assert bare.norm == norm


def test_the_check_of_this_file_refuses_plain_division():
    # The broken twin: scaling to the bound itself exceeds it by a rounding error in some rows.
    X = np.random.default_rng(1).normal(size=(400, 5)) * 10
    twin = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert max(squared(row) for row in twin) > 1


def test_direction_is_kept_and_length_is_the_smaller_one():
    X = hard_rows()
    for norm in (0.1, 1.0, 3e7):
        clipped = clip_rows(X, norm).array
        for row, out in zip(X, clipped, strict=True):
            largest = np.abs(row).max()
            if largest == 0:
                assert not np.any(out)
                continue
            # The second route, in multiples of the row's largest entry.
            exact = [Fraction(float(v)) / Fraction(float(largest)) for v in row]
            length = math.sqrt(float(sum(v * v for v in exact)))
            wanted = [float(v) * min(float(largest), norm / length) for v in exact]
            # An entry that is tiny beside the row may lose digits on the way through the subnormal numbers.
            np.testing.assert_allclose(out, wanted, rtol=1e-11, atol=max(1e-322, 1e-100 * np.abs(out).max()))


def test_rows_within_the_bound_are_not_changed():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X *= rng.random((300, 1)) * 0.9999
    assert np.array_equal(clip_rows(X, 1.0).array, X)
    np.testing.assert_allclose(clip_rows(X * 2.0**-600, 1.0).array, X * 2.0**-600, rtol=1e-15)


@pytest.mark.parametrize("constant", [0.0, 1.5])
def test_clipping_again_changes_nothing_to_speak_of(constant):
    once = clip_rows(hard_rows(), 1.0, constant)
    twice = clip_rows(once.array[:, :5], 1.0, constant)
    np.testing.assert_allclose(twice.array, once.array, rtol=1e-15, atol=1e-322)
    assert twice.norm == once.norm


def test_input_is_not_changed_and_not_shared():
    X = np.random.default_rng(3).normal(size=(10, 3)) * 5
    before = X.copy()
    out = clip_rows(X, 1.0)
    assert np.array_equal(X, before)
    assert not np.shares_memory(out.array, X)
    # Also if there is nothing to clip.
    assert not np.shares_memory(clip_rows(X, 100.0).array, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, bool, ">f8"])
def test_other_numbers_become_doubles(dtype):
    X = (np.random.default_rng(4).normal(size=(50, 3)) * 40).clip(0, 100).astype(dtype)
    clipped = clip_rows(X, 2.0, 1.0)
    assert clipped.array.dtype == np.float64
    assert clipped.array.dtype.isnative
    assert_bounded(clipped)
    assert np.array_equal(clipped.array, clip_rows(X.astype(np.float64), 2.0, 1.0).array)


def test_largest_single_precision_rows():
    X = np.full((2, 3), np.finfo(np.float32).max, dtype=np.float32)
    np.testing.assert_allclose(clip_rows(X, 1.0).array, 1 / math.sqrt(3), rtol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layout_does_not_matter(order):
    X = hard_rows()
    expected = clip_rows(X, 1.0).array
    padded = np.zeros((2 * len(X), 10), order=order)
    padded[::2, ::2] = X
    for layout in (np.asarray(X, order=order), padded[::2, ::2], np.array(X[::-1], order=order)[::-1]):
        clipped = clip_rows(layout, 1.0)
        np.testing.assert_allclose(clipped.array, expected, rtol=1e-15, atol=1e-322)
        assert_bounded(clipped)


def test_memory_mapped_rows(tmp_path):
    X = hard_rows()
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert np.array_equal(clip_rows(mapped, 1.0, 1.0).array, clip_rows(X, 1.0, 1.0).array)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_columns", [1, 3, 17])
def test_each_row_is_mapped_by_itself(order, n_columns):
    # Neighbours stay neighbours: a row's image does not depend on the others, across blocks as well.
    X = np.random.default_rng(5).normal(size=(5000, n_columns)) * 3
    X = np.asarray(np.vstack([X, np.resize(hard_rows(), (100, n_columns))]), order=order)
    together = clip_rows(X, 1.0, 0.5).array
    if order == "C":
        for i in [0, 2047, 2048, 4096, 4999, *range(5000, len(X))]:
            assert np.array_equal(clip_rows(X[i : i + 1], 1.0, 0.5).array[0], together[i])
    for removed in (0, 100, 4999, len(X) - 1):
        without = clip_rows(np.asarray(np.delete(X, removed, axis=0), order=order), 1.0, 0.5).array
        assert np.array_equal(without, np.delete(together, removed, axis=0))


@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (4, 0), (1, 1)])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_hardly_any_data(shape, constant):
    clipped = clip_rows(np.ones(shape), 0.5, constant)
    assert clipped.array.shape == (shape[0], shape[1] + (constant != 0))
    assert clipped.norm == augmented_norm(0.5, constant)
    if constant:
        assert np.all(clipped.array[:, -1] == constant)
    assert_bounded(clipped)


@pytest.mark.parametrize("n_columns", [1, 2, 50, 2000])
def test_many_columns(n_columns):
    X = np.random.default_rng(6).normal(size=(20, n_columns)) * 100
    clipped = clip_rows(X, 1.0, 1.0)
    assert_bounded(clipped)
    np.testing.assert_allclose(np.linalg.norm(clipped.array[:, :-1], axis=1), 1.0, rtol=1e-11)


@pytest.mark.parametrize("constant", [1e-3, 1.0, -2.0, 50.0])
def test_constant_column_is_appended_last_and_enters_the_bound(constant):
    X = np.random.default_rng(7).normal(size=(100, 3)) * 10
    clipped = clip_rows(X, 1.0, constant)
    assert np.all(clipped.array[:, -1] == constant)
    assert clipped.norm == pytest.approx(math.sqrt(1 + constant**2), rel=1e-12)
    assert_bounded(clipped)
    # The bound is attained, and the broken twin, which forgets the column, is not one.
    longest = max(squared(row) for row in clipped.array)
    assert longest >= Fraction(clipped.norm) ** 2 * Fraction(1 - 1e-11)
    assert longest > 1


@pytest.mark.parametrize(("norm", "constant"), [(1e-9, 1.0), (1.0, 3e4)])
def test_bound_of_a_large_constant(norm, constant):
    assert_bounded(clip_rows(np.array([[5.0, 3.0]]), norm, constant))


@pytest.mark.parametrize(("norm", "constant"), [(3.0, 4.0), (1e100, 1e100), (1e-100, 1e-100), (2.0, 0.0), (2.0, -1.0)])
def test_augmented_norm(norm, constant):
    assert augmented_norm(norm, constant) == pytest.approx(norm * math.sqrt(1 + (constant / norm) ** 2), rel=1e-15)


def test_clipped_rows_cannot_be_given_another_bound():
    clipped = clip_rows(np.ones((1, 2)), 1.0)
    with pytest.raises(AttributeError):
        clipped.norm = 0.5


@pytest.mark.parametrize("n_columns", [1, 300, 4096, 8192, 8193, 9000, 20_000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_is_clipped_to_the_same_bits_wherever_it_stands(n_columns, order):
    # NumPy adds up one row of more than 8192 entries in another order than several.
    rng = np.random.default_rng(0)
    for size in (1.0, 1e160, 1e-160):
        X = np.asarray(size * rng.uniform(2, 3, size=(5, n_columns)), order=order)
        whole = clip_rows(X, 1.0).array
        for i in range(5):
            np.testing.assert_array_equal(clip_rows(X[i : i + 1], 1.0).array[0], whole[i])
            np.testing.assert_array_equal(clip_rows(X[i : i + 2], 1.0).array[0], whole[i])


@pytest.mark.parametrize("norm", [1.0, 0.7, 1e-139, 1e-145, 1e100])
def test_rows_at_the_bound_have_the_same_bits_beside_long_ones(norm):
    X = np.random.default_rng(6).normal(size=(500, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X *= (norm * (1 - 2.0**-40) * (1 + np.arange(-250, 250) * 2.0**-53))[:, None]
    beside = clip_rows(np.vstack([X, np.full((1, 3), 2 * norm)]), norm).array[:-1]
    alone = np.concatenate([clip_rows(row[None], norm).array for row in X])
    np.testing.assert_array_equal(alone, beside)
    assert_bounded(clip_rows(X, norm))
