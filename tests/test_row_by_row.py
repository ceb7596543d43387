"""What a model makes of a row has the same bits whatever rows surround it, so that scores can be counted.

Where bins follow, or labels are counted, the last bit of one number can move a record. A new record must not do that to
others. Models of scikit-learn, which some estimators here hold, add up in an order that depends on the number of rows.
"""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor

from skdp.neural_network._gradients import Outputs, codes_of
from skdp.sensitivity import exact_row_products, largest_products, positive_products, rounded_products, row_products
from tests.estimators import FEATURES, ONE_EACH

#: Predict with models of scikit-learn.
HOLD_OTHERS = {"HistogramClassifier", "HistogramRegressor", "PATEClassifier", "SampleAggregate"}

MODELS = [model for model in ONE_EACH if type(model).__name__ not in HOLD_OTHERS]


def fitted(model):
    """Return a fitted copy, and the rows of the fit."""
    X = np.random.default_rng(0).normal(size=(200, FEATURES.get(type(model).__name__, 5)))
    return clone(model).set_params(random_state=0).fit(X, X[:, 0] if is_regressor(model) else X[:, 0] > 0), X


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_row_is_predicted_by_itself(model):
    model, X = fitted(model)
    for name in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            method = getattr(model, name)
            alone = np.concatenate([method(X[k : k + 1]) for k in range(33)])
            for n in (1, 2, 3, 5, 8, 16, 33):
                for order in "CF":
                    np.testing.assert_array_equal(method(np.array(X[:n], order=order)), alone[:n])


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
@pytest.mark.parametrize("model", ONE_EACH, ids=lambda model: type(model).__name__)
def test_predictions_for_rows_of_large_numbers_are_finite(model):
    model, X = fitted(model)
    n_columns = X.shape[1]
    signs = np.vstack([np.ones(n_columns), (-1.0) ** np.arange(n_columns), np.eye(n_columns)])
    # Logarithms of probabilities may be infinite, and so may products in models of scikit-learn.
    largest = 1e300 if type(model).__name__ in HOLD_OTHERS - {"PATEClassifier"} else np.finfo(float).max
    for size in (1e155, 1e300, largest):
        for name in ("predict", "transform", "predict_proba"):
            if hasattr(model, name):
                for rows in (size * signs, -size * signs):
                    made = getattr(model, name)(rows)
                    assert made.dtype.kind != "f" or np.all(np.isfinite(made)), (name, size)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
@pytest.mark.parametrize("model", ONE_EACH, ids=lambda model: type(model).__name__)
def test_rows_that_are_not_finite_are_refused(model):
    model, X = fitted(model)
    n_columns = X.shape[1]
    for name in ("coef_", "components_", "cluster_centers_"):
        if hasattr(model, name):
            # Nothing follows from the numbers, and they are refused all the same.
            setattr(model, name, getattr(model, name) * 0)
    kinds = [np.array, sparse.csr_array] if getattr(model, "_takes_sparse", False) else [np.array]
    for number, named in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        for column in (0, n_columns - 1):
            rows = np.float32(X)
            rows[150, column] = number
            for kind, dtype, chosen in product(kinds, (np.float32, np.float64), (slice(None), slice(150, 151))):
                for method in ("predict", "transform", "predict_proba", "decision_function"):
                    if hasattr(model, method):
                        with pytest.raises(ValueError, match=f"Input X contains {named}"):
                            getattr(model, method)(kind(rows[chosen].astype(dtype)))


@pytest.mark.parametrize("n_columns", [1, 2, 5, 64, 1000])
def test_products_are_those_of_rational_numbers(n_columns):
    rng = np.random.default_rng(n_columns)
    X, matrix = rng.normal(size=(7, n_columns)), rng.normal(size=(n_columns, 3))
    scale = np.abs(X).max(axis=1)[:, None] * np.abs(matrix).max(axis=0) * n_columns
    exact = np.array([[sum(map(float.__mul__, row, column)) for column in matrix.T.tolist()] for row in X.tolist()])
    for products in (row_products, exact_row_products):
        assert np.all(np.abs(products(X, matrix) - exact) <= scale * 2.0**-38)
    np.testing.assert_array_equal(exact_row_products(X[:, ::-1], matrix[::-1]), exact_row_products(X, matrix))


@pytest.mark.parametrize("n_columns", [1, 3, 8, 17, 20, 100, 4095, 4097, 9000])
def test_products_do_not_depend_on_other_rows(n_columns):
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(min(5000, 3_000_000 // n_columns), n_columns))
    matrix = rng.normal(size=(n_columns, 3))
    together = row_products(X, matrix)
    for order in "CF":
        np.testing.assert_array_equal(row_products(np.array(X, order=order), matrix), together)
    for k in rng.integers(len(X), size=200):
        for n in (1, 2, 3):
            np.testing.assert_array_equal(row_products(X[k : k + n], matrix), together[k : k + n])
    chosen = rng.permutation(len(X))[: len(X) // 2]
    np.testing.assert_array_equal(row_products(X[chosen], matrix), together[chosen])


@pytest.mark.parametrize("row_products", [row_products, exact_row_products])
def test_products_of_extreme_numbers(row_products):
    X = np.array([[1e308, -1e308], [5e-324, 1e-310], [0.0, 0.0], [1e308, 1e308]])
    matrix = np.array([[1.0, 1e-300, 0.0], [0.5, 1e10, 0.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(row_products(X, matrix), np.nan_to_num(X @ matrix), rtol=1e-12)
    assert row_products(X[:0], matrix).shape == (0, 3)
    assert row_products(X[:, :0], matrix[:0]).tolist() == [[0.0] * 3] * 4


def near_ties(rng, n_rows, matrix, constants):
    """Return rows for which the first two sums differ by rounding only."""
    rows = rng.normal(size=(n_rows, len(matrix)))
    difference = matrix[:, 0] - matrix[:, 1]
    rows -= ((rows @ difference + constants[0] - constants[1]) / (difference @ difference))[:, None] * difference
    return rows


def with_extremes(rng, rows):
    """Return the rows, some of which are made very long or short."""
    rows = rows.copy()
    rows[::7] *= 10.0 ** rng.integers(-320, 300, size=len(rows[::7]))[:, None]
    rows[::11] = 0.0
    return rows


@pytest.mark.parametrize("n_products", [2, 3, 30])
@pytest.mark.parametrize("n_columns", [1, 2, 20, 300])
def test_largest_products_are_those_of_row_products(n_columns, n_products):
    rng = np.random.default_rng(n_columns)
    matrix, constants = rng.normal(size=(n_columns, n_products)), rng.normal(size=n_products)
    matrix[:, 2:] *= 0.01
    constants[2:] -= 10
    rows = near_ties(rng, 3000, matrix, constants)
    tables = [(matrix * scale, constants) for scale in (1.0, 1e-30, 1e39, 1e160)]
    tables += [(matrix * 0, constants * 0), (matrix, constants + 1e7)]
    tables.append((np.hstack([matrix, matrix]), np.tile(constants, 2)))
    with np.errstate(all="ignore"):
        for X in (rows, np.asfortranarray(rows), rows[:1], rows[:0], np.float32(rows), with_extremes(rng, rows)):
            for table, sums in tables:
                expected = (row_products(X, table) + sums).argmax(axis=1)
                np.testing.assert_array_equal(largest_products(X, table, sums), expected)
        if n_columns > 2:
            # Without the second look, these rows would not do.
            fast, safe = rows @ matrix + constants, row_products(rows, matrix) + constants
            assert np.any(fast.argmax(axis=1) != safe.argmax(axis=1))


@pytest.mark.parametrize("n_columns", [1, 2, 20, 300])
def test_positive_products_are_those_of_row_products(n_columns):
    rng = np.random.default_rng(n_columns)
    matrix, constant = rng.normal(size=(n_columns, 1)), rng.normal(size=1)
    rows = near_ties(rng, 3000, np.hstack([matrix, 0 * matrix]), np.append(constant, 0.0))
    with np.errstate(all="ignore"):
        for X in (rows, rows[:1], rows[:0], np.float32(rows), with_extremes(rng, rows), sparse.csr_array(rows)):
            for scale in (0.0, 1.0, 1e-30, 1e160):
                for shift in (constant, constant * 0, constant + 1e7):
                    expected = row_products(X, scale * matrix)[:, 0] + shift > 0
                    np.testing.assert_array_equal(positive_products(X, scale * matrix, shift), expected)
        if n_columns > 2:
            fast, safe = rows @ matrix + constant, row_products(rows, matrix) + constant
            assert np.any((fast > 0) != (safe > 0))


def near_middles(rng, n_rows, matrix, step):
    """Return rows whose first products are in the middle between two multiples of a step, but for rounding."""
    rows, column = rng.uniform(-1, 1, size=(n_rows, len(matrix))), matrix[:, 0]
    for _ in range(3):
        products = rows @ column / step
        rows += ((np.floor(products) + 0.5 - products) * step / (column @ column))[:, None] * column
    return rows


@pytest.mark.parametrize("n_products", [1, 3, 100])
@pytest.mark.parametrize("n_columns", [2, 20, 300])
def test_rounded_products_are_those_of_row_products(n_columns, n_products):
    rng = np.random.default_rng(n_columns)
    matrix = rng.normal(size=(n_columns, n_products))
    finest = 2.0 ** (n_columns.bit_length() - 42)
    rows = near_middles(rng, 500, matrix, finest)
    kinds = [np.array, np.asfortranarray, lambda X: np.float32(np.clip(X, -1e30, 1e30)), sparse.csr_array]
    with np.errstate(all="ignore"):
        for X, kind in product((rows, rows[:1], rows[:0], with_extremes(rng, rows)), kinds):
            products = row_products(kind(X), matrix)
            for unit in (1.5, 1e-90, 1e90):
                step = 2.0 ** (np.frexp(unit)[1] + n_columns.bit_length() - 43)
                rounded = rounded_products(kind(X), matrix, unit)
                on_lattice = np.abs(products) < 2.0**50 * step
                expected = np.rint(products / step) * step
                np.testing.assert_array_equal(rounded[on_lattice], expected[on_lattice])
                np.testing.assert_allclose(rounded, products, rtol=1e-14, atol=step)
        if n_products < 100:
            # Without the second look, these rows would not do.
            fast, safe = rows @ matrix, row_products(rows, matrix)
            assert np.any(np.rint(fast / finest) != np.rint(safe / finest))


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_rounded_products_refuse_rows_that_are_not_finite(number, value):
    X = np.full((100, 3), 0.5)
    X[50, 1] = number
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError):
        rounded_products(X, np.full((3, 2), value), 1.0)


@pytest.mark.parametrize("sizes", [(4, 3), (20, 64, 1), (20, 64, 3), (7, 100, 5, 2)])
def test_codes_of_networks_are_those_of_their_outputs(sizes):
    rng = np.random.default_rng(sum(sizes))
    coefs = [rng.normal(size=size) for size in pairwise(sizes)]
    intercepts = [rng.normal(size=size) for size in sizes[1:]]
    network = Outputs(coefs, intercepts)
    rows = rng.normal(size=(2000, sizes[0]))
    if sizes[-1] == 1:
        # Bisection between rows of different labels ends where the output is rounding only.
        low, high = (rows[codes_of(network(rows)) == code][:300] for code in (0, 1))
        n = min(len(low), len(high))
        low, high = low[:n], high[:n]
        for _ in range(60):
            middle = (low + high) / 2
            positive = codes_of(network(middle))[:, None] > 0
            low, high = np.where(positive, low, middle), np.where(positive, middle, high)
        rows[: 2 * n] = np.concatenate([low, high])
    for X in (rows, rows[:1], rows[:0], with_extremes(rng, rows)):
        np.testing.assert_array_equal(network.codes(X), codes_of(network(X)))
