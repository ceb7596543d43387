"""The description of columns: two ways to read codes agree, and names, positions and masks lead to the same columns."""

import warnings

import numpy as np
import pytest

from skdp.schema.columns import Encoder, check_columns
from skdp.schema.declared import Grid
from skdp.schema.entries import Categories
from tests.parameters import Parameters

VALUES = [0, 4, 2, 5, -1, 2.5, np.nan, np.inf, -np.inf, 1e300, 1]
CELLS = [0, 4, 2, 5, 5, 5, 5, 5, 5, 5, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, object])
def test_codes_are_read_as_categories_are(dtype):
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        values = np.array(VALUES, dtype=dtype)
        warnings.simplefilter("error")
        coded = Categories.codes(5)
        listed = Categories(coded.values)
        assert coded.cells(values).tolist() == listed.cells(values).tolist() == CELLS


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_codes_of_integer_types(dtype):
    values = np.array([0, 1, 100], dtype=dtype)
    expected = [0, 1, 1] if dtype is bool else [0, 1, 100]
    assert Categories.codes(300).cells(values).tolist() == expected
    assert Categories.codes(1).cells(values).tolist() == [0, 1, 1]


@pytest.mark.parametrize("values", [[b"a", b"\xff"], ["a", "1"], [0.1, 3], [True, False]])
def test_entries_are_found_among_categories_of_their_type(values):
    categories = Categories(np.array(values))
    for column in (categories.values, categories.values.astype(object)):
        assert categories.encode(np.append(column, column[:1])).tolist() == [0, 1, 0]
        assert categories.encode(np.array([None, "b", 7.5, b"\xfe"], dtype=object)).tolist() == [-1] * 4


@pytest.mark.parametrize("scale", ["linear", "log", "symlog", "auto"])
def test_cells_lie_between_their_edges(scale):
    grid = Grid(np.array([0.5, 1.0]), np.array([8.0, 3.0]), 16, scale)
    edges = grid.every_edge()
    middles = (edges[:, :-1] + edges[:, 1:]) / 2
    np.testing.assert_array_equal(grid.cells(middles.T), np.arange(16)[:, None] + np.zeros((1, 2)))
    np.testing.assert_array_equal(grid.cells(np.array([[-1e300, 0.0], [1e300, 9.0]])), [[0, 0], [15, 15]])


def test_names_positions_and_masks_give_the_same_columns():
    names = np.array(["a", "b", "c", "d"], dtype=object)
    X = np.random.default_rng(0).uniform(-1, 4, size=(50, 4)).round(1)
    X[:, 1] = np.arange(50) % 4
    found = []
    for which, own in ((["b"], "d"), ([1], 3), ([False, True, False, False], 3)):
        public = {
            "bounds": ([0, 1], [1, 3]),
            "categorical_features": which,
            "n_categories": 3,
            "bin_edges": {own: [0, 1, 2]},
        }
        columns = check_columns(Parameters(**public), n_bins=4).resolve(4, names)
        assert columns.sizes == (4, 3, 4, 2)
        assert columns.tables.tolist() == [1, 0, 2, 3]
        assert columns.table_sizes.tolist() == [4, 4, 4, 2]
        found.append(Encoder(columns).cells(X))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[0][:, 0], X[:, 1])
