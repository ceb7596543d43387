"""What a model makes of a row has the same bits whatever rows surround it, so that scores can be counted.

Where bins follow, or labels are counted, the last bit of one number can move a record. A new record must not do that to
others. Models of scikit-learn, which some estimators here hold, add up in an order that depends on the number of rows.
"""

import numpy as np
import pytest
from sklearn.base import clone, is_regressor

from skdp.sensitivity import exact_row_products, row_products
from tests.estimators import FEATURES, ONE_EACH

#: Predict with models of scikit-learn.
HOLD_OTHERS = {"HistogramClassifier", "HistogramRegressor", "PATEClassifier", "SampleAggregate"}

MODELS = [model for model in ONE_EACH if type(model).__name__ not in HOLD_OTHERS]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_row_is_predicted_by_itself(model):
    X = np.random.default_rng(0).normal(size=(200, FEATURES.get(type(model).__name__, 5)))
    model = clone(model).set_params(random_state=0).fit(X, X[:, 0] if is_regressor(model) else X[:, 0] > 0)
    for name in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            method = getattr(model, name)
            alone = np.concatenate([method(X[k : k + 1]) for k in range(33)])
            for n in (1, 2, 3, 5, 8, 16, 33):
                for order in "CF":
                    np.testing.assert_array_equal(method(np.array(X[:n], order=order)), alone[:n])


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
        np.testing.assert_allclose(row_products(X, matrix), X @ matrix, rtol=1e-12)
    assert row_products(X[:0], matrix).shape == (0, 3)
    assert row_products(X[:, :0], matrix[:0]).tolist() == [[0.0] * 3] * 4
