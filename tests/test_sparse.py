"""Sparse rows: fits and predictions are those of the same rows in an array, and what one record changes is bounded.

Entries of the rows are multiples of a power of two, so that norms are exact and dense and sparse fits must release the
same bits. Perturbed minimisers are certified up to a residual, and agree up to it.
"""

import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import BudgetAccountant, Category, DPKMeans, Number, Schema
from skdp.checks import data as checks_of_data
from skdp.checks.data import MOST_DENSE_COLUMNS, canonical_rows
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.linear_model import DPSGDClassifier, ObjPertLogReg
from skdp.naive_bayes import DPNaiveBayes
from skdp.sensitivity import ClippedRows, clip_rows, exact_row_products, row_products
from skdp.solvers import clipped_gradients
from skdp.solvers.certified import Objective, certified_minimizer
from skdp.solvers.clipped_gradients import ClippedGradients, SparseGradients
from skdp.solvers.losses import Hinge, HuberHinge, LogLoss, MultinomialLogLoss, SoftmaxLogLoss
from skdp.solvers.row_objectives import SparseObjective, precise_products
from tests.estimators import (
    FREE,
    LOCAL,
    ONE_EACH,
    VARIANTS,
    data_for,
    declared,
    every_output,
    is_search,
    name_of,
    needs_y,
    released,
)
from tests.neighbours import COMPARED, most_moved

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.SchemaMismatchWarning"),
    pytest.mark.usefixtures("notes_of_modules_are_left"),
]

TAKERS = [estimator for estimator in VARIANTS if estimator._takes_sparse]
OTHERS = [estimator for estimator in ONE_EACH if not estimator._takes_sparse]
ONE_TAKER_EACH = [estimator for estimator in ONE_EACH if estimator._takes_sparse]

MINIMISERS = ("ObjPertLogReg", "OutputPertLogReg")


def rows_for(estimator, n_rows=200, seed=0, **kwargs):
    """Rows with many zeros, of which the others are multiples of 1/64, and their labels."""
    X, y = data_for(estimator, n_rows=n_rows, seed=seed, **kwargs)
    rng = np.random.default_rng(seed)
    X = np.round(X * 64) / 64 * (rng.random(X.shape) < 0.4)
    X[: n_rows // 10] = 0.0
    return X, y


def with_zeros(X):
    n, p = X.shape
    return sparse.csr_array((X.ravel().copy(), np.tile(np.arange(p), n), np.arange(n + 1) * p), shape=X.shape)


def unsorted(X):
    n, p = X.shape
    places = np.tile(np.arange(p)[::-1], n)
    return sparse.csr_matrix((X[:, ::-1].ravel().copy(), places, np.arange(n + 1) * p), shape=X.shape)


def duplicates(X):
    """Each entry in three parts, also those of zeros."""
    n, p = X.shape
    parts = np.stack([X / 4 + 1, X * 0.75, np.full(X.shape, -1.0)], axis=1).reshape(n, -1)
    places = np.tile(np.arange(p), 3 * n)
    return sparse.csr_array((parts.ravel(), places, np.arange(n + 1) * 3 * p), shape=X.shape)


def long_indices(X):
    rows = sparse.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def wrong_flags(X):
    rows = duplicates(X)
    rows.has_canonical_format = rows.has_sorted_indices = True
    return rows


def frame(X):
    return pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0))


FORMS = {
    **{kind.__name__: kind for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array)},
    **{kind.__name__: kind for kind in (sparse.coo_matrix, sparse.coo_array, sparse.lil_array, sparse.dok_array)},
    "stored zeros": with_zeros,
    "stored zeros by column": lambda X: with_zeros(X).tocsc(),
    "unsorted": unsorted,
    "duplicates": duplicates,
    "long indices": long_indices,
    "wrong flags": wrong_flags,
}


def parts_of(rows):
    names = ("data", "indices", "indptr", "row", "col")
    return {name: getattr(rows, name).copy() for name in names if hasattr(rows, name)}


def fitted(estimator, X, y, **parameters):
    model = declared(estimator, **parameters)
    model.set_params(**{name: 0 for name in ("random_state", "structure_seed") if name in model.get_params()})
    return model.fit(X, y if needs_y(estimator) else None)


def assert_same(one, other, exact=True):
    if type(one).__name__ in MINIMISERS:
        # Both are within the residual of the one minimiser; the intercept is in units of the constant feature.
        units = max(1.0, one.data_norm)
        bound = 20 * one.tol * one.C_ * units**2
        np.testing.assert_allclose(released(one), released(other), rtol=0, atol=bound)
    elif exact:
        np.testing.assert_array_equal(released(one), released(other))
    else:
        np.testing.assert_allclose(released(one), released(other), rtol=1e-9, atol=1e-9)
    assert repr(one.privacy_) == repr(other.privacy_)


def test_these_take_sparse_rows():
    assert {type(estimator).__name__ for estimator in TAKERS} == {
        *MINIMISERS,
        *("DPSGDClassifier", "DPSGDRegressor", "FunctionalMechLinReg", "FunctionalMechLogReg"),
        *("DPPCA", "ExpMechPCA", "DPNaiveBayes", "DPKMeans"),
    }


@pytest.mark.parametrize("estimator", TAKERS, ids=name_of)
@pytest.mark.parametrize("n_rows", [0, 1, 200])
def test_dense_and_sparse_fits_release_the_same_values(estimator, n_rows):
    X, y = rows_for(estimator, max(n_rows, 10))
    X, y = X[-n_rows:] if n_rows else X[:0], y[-n_rows:] if n_rows else y[:0]
    for epsilon in (1.0, 1e4):
        assert_same(
            fitted(estimator, X, y, epsilon=epsilon), fitted(estimator, sparse.csr_array(X), y, epsilon=epsilon)
        )


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fits_without_noise_agree(estimator, n_classes):
    X, y = data_for(estimator, n_classes=n_classes)
    X *= np.random.default_rng(0).random(X.shape) < 0.4
    dense = fitted(estimator, X, y, epsilon=np.inf, n_classes=n_classes)
    assert_same(dense, fitted(estimator, sparse.csc_array(X), y, epsilon=np.inf, n_classes=n_classes), exact=False)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_every_form_of_sparse_rows_is_the_same_data(estimator, form):
    X, y = rows_for(estimator)
    rows = FORMS[form](X)
    before = parts_of(rows)
    dense, model = fitted(estimator, X, y), fitted(estimator, rows, y)
    assert_same(dense, model)
    expected, found = every_output(dense, X, y), every_output(dense, rows, y)
    for name, value in expected.items():
        if name == "get_feature_names_out":
            assert list(found[name]) == list(value)
        else:
            # Sums over the columns of sparse rows have another order, and minimisers agree up to a residual.
            close = 1e-4 if type(estimator).__name__ in MINIMISERS else 1e-9
            np.testing.assert_allclose(found[name], value, rtol=close, atol=close, err_msg=name)
    for name, part in parts_of(rows).items():
        assert part.dtype == before[name].dtype
        np.testing.assert_array_equal(part, before[name])


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_other_types_and_frames(estimator):
    X, y = rows_for(estimator)
    integers = np.round(X)
    whole = fitted(estimator, integers, y)
    for dtype in (np.float32, np.int64, np.int8, np.longdouble):
        assert_same(
            fitted(estimator, integers.astype(dtype), y), fitted(estimator, sparse.csr_array(integers, dtype=dtype), y)
        )
    assert_same(whole, fitted(estimator, sparse.csr_array(integers.astype(np.int32)), y))
    assert_same(fitted(estimator, X, y), fitted(estimator, frame(X), y))


def counting_zeros(rows):
    """A mutant of `canonical_rows`: a zero that is stored counts."""
    data = np.where(rows.data == 0, 1.0, rows.data)
    return canonical_rows(sparse.csr_array((data, rows.indices, rows.indptr), rows.shape))


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_a_stored_zero_that_counts_is_found(estimator, monkeypatch):
    X, y = rows_for(estimator)
    dense = fitted(estimator, X, y)
    monkeypatch.setattr(checks_of_data, "canonical_rows", counting_zeros)
    with pytest.raises(AssertionError):
        assert_same(dense, fitted(estimator, with_zeros(X), y))


@pytest.mark.parametrize("estimator", [*OTHERS, *FREE, *LOCAL], ids=name_of)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
def test_small_sparse_rows_are_made_dense_elsewhere(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = rows_for(estimator)
    if estimator in LOCAL:
        X = np.abs(np.round(X)) % 3
    dense = fitted(estimator, X, y)
    expected = every_output(fitted(estimator, X, y), X, y)
    for form in ("csr_matrix", "csc_array", "duplicates"):
        rows = FORMS[form](X)
        model = fitted(estimator, rows, y)
        if hasattr(model, "privacy_") and type(estimator).__name__ not in {type(each).__name__ for each in LOCAL}:
            assert_same(dense, model)
        found = every_output(model, rows, y)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("estimator", [*filter(lambda each: not is_search(each), OTHERS), *FREE, *LOCAL], ids=name_of)
def test_wide_sparse_rows_are_refused_elsewhere(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_for(estimator)
    wide = sparse.csr_array((len(X), MOST_DENSE_COLUMNS + 1))
    model = declared(estimator)
    accountant = BudgetAccountant(epsilon=1e9, delta=0.5)
    if "accountant" in model.get_params():
        model.set_params(accountant=accountant)
    with pytest.raises(TypeError, match="sparse_output=False"):
        model.fit(wide, y if needs_y(estimator) else None)
    assert not accountant.ledger


COMPARED_TAKERS = [estimator for estimator in COMPARED if estimator._takes_sparse]


@pytest.mark.parametrize("estimator", COMPARED_TAKERS, ids=name_of)
def test_no_release_moves_by_more_than_it_says(estimator):
    most = most_moved(estimator, 0.5, sparse.csr_array, sizes=(0, 60))
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) > 0.1, most


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_array])
def test_duplicates_are_added_alike_with_any_other_rows(form):
    rng = np.random.default_rng(0)
    # What a sum of these is depends on the order.
    values = rng.permutation([1e16, -1e16, 1.0, 3.0, 1e8, -1e8, 0.1] * 6)
    places = np.sort(rng.integers(3, size=len(values)))
    sorted_row, other = np.arange(3), np.array([2, 0, 1])
    found = []
    for below in (sorted_row, other):
        data, indices = np.append(values, [1.0, 2.0, 3.0]), np.append(places, below)
        rows = sparse.csr_array((data, indices, [0, len(values), len(values) + 3]), shape=(2, 3))
        if form is sparse.coo_array:
            rows = sparse.coo_array((data, (np.repeat([0, 1], [len(values), 3]), indices)), shape=(2, 3))
        found.append(checks_of_data.validate_quietly(DPSGDClassifier(), rows).toarray()[0])
    np.testing.assert_array_equal(*found)


def scattered(n_rows, n_columns, seed=0, density=0.2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)


@pytest.mark.parametrize("constant", [0.0, 0.6])
def test_rows_are_clipped_one_by_one(constant):
    X = scattered(300, 40)
    X[5] *= 1e300
    X[6] *= 1e-310
    X[7] = 0.0
    X[8, :2] = [1.7e308, -1.7e308]
    clipped = clip_rows(sparse.csr_array(X), 2.0, constant)
    dense = clip_rows(X, 2.0, constant)
    assert clipped.norm == dense.norm
    np.testing.assert_allclose(clipped.array.toarray(), dense.array, rtol=1e-13)
    for k in range(20):
        alone = clip_rows(sparse.csr_array(X[k : k + 1]), 2.0, constant).array.toarray()[0]
        np.testing.assert_array_equal(alone, clipped.array.toarray()[k])
        assert sum(Fraction(float(entry)) ** 2 for entry in alone) <= Fraction(clipped.norm) ** 2


@pytest.mark.parametrize("n_columns", [1, 5, 1000])
def test_products_are_those_of_dense_rows(n_columns):
    X, matrix = scattered(5000, n_columns), np.random.default_rng(1).normal(size=(n_columns, 3))
    X[0] *= 1e300
    X[1] *= 1e-310
    for products in (row_products(sparse.csr_array(X), matrix), row_products(X, matrix)):
        np.testing.assert_allclose(products[1:], exact_row_products(X, matrix)[1:], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(exact_row_products(sparse.csr_array(X), matrix), exact_row_products(X, matrix))
    assert row_products(sparse.csr_array(X[:0]), matrix).shape == (0, 3)


@pytest.mark.parametrize("loss", [LogLoss(), Hinge(), SoftmaxLogLoss(3)], ids=lambda loss: type(loss).__name__)
def test_sums_of_gradients_are_those_of_dense_rows(loss, monkeypatch):
    monkeypatch.setattr(clipped_gradients, "INTEGER_ROWS", 3000)
    X = clip_rows(scattered(9000, 12, density=0.5), 1.0, 0.3).array
    rng = np.random.default_rng(2)
    y = rng.integers(loss.outputs if loss.outputs > 1 else 2, size=len(X))
    sums = {}
    order = rng.permutation(len(X))
    for name, rows, labels, kind in (
        ("dense", X.copy(), y, ClippedGradients),
        ("sparse", sparse.csr_array(X), y, SparseGradients),
        ("other order", sparse.csr_array(X[order]), y[order], SparseGradients),
    ):
        gradients = kind(ClippedRows(rows, 1.1), labels, loss, 0.4)
        point = gradients.at(np.random.default_rng(3).normal(size=(loss.outputs, X.shape[1])))
        sums[name] = [gradients.total(point, lattice=lattice) for lattice in (None, 2.0**-25)]
        if name != "other order":
            sums[name] += [gradients.total(point, np.arange(0, len(X), 2)), gradients.total(point, np.arange(100))]
    for one, other in zip(sums["dense"], sums["sparse"], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(sums["sparse"], sums["other order"], strict=False):
        np.testing.assert_array_equal(one, other)


def test_precise_products_are_those_of_rational_numbers():
    X = scattered(60, 30, density=0.7)
    X[3] = 0.0
    X[:, 4] = 1e9
    vector = np.random.default_rng(1).normal(size=30)
    high, low = precise_products(sparse.csr_array(X), vector)
    for row, *found in zip(X.tolist(), high.tolist(), low.tolist(), strict=True):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, vector.tolist(), strict=True))
        size = sum(abs(a * b) for a, b in zip(row, vector.tolist(), strict=True))
        assert abs(exact - sum(map(Fraction, found))) <= Fraction(size) * Fraction(2) ** -95


@pytest.mark.parametrize("loss", [LogLoss(), MultinomialLogLoss(3), HuberHinge()], ids=lambda loss: type(loss).__name__)
def test_certificates_hold_and_are_those_of_dense_rows(loss):
    X = scattered(400, 12)
    y = np.random.default_rng(2).integers(loss.outputs + 1, size=len(X))
    linear = np.random.default_rng(3).normal(size=(loss.outputs, 13))
    dense, own = (
        kind(clip_rows(form(X), 2.0, 0.6), y, loss, 3.0, 1.0, linear)
        for kind, form in ((Objective, np.asarray), (SparseObjective, sparse.csr_array))
    )
    theta = np.random.default_rng(4).normal(size=linear.shape)
    reference, error = dense.precise_gradient(theta)
    for gradient, own_error in (own.certified_gradient(theta), own.precise_gradient(theta)):
        assert np.linalg.norm(gradient - reference) <= own_error + error
        assert own_error < 1e-8
    # The second cannot be proved in doubles.
    for tau in (1e-6, own.precise_gradient(theta)[1] * 1.5):
        gradient, error = dense.precise_gradient(certified_minimizer(own, tau, 100))
        assert np.linalg.norm(gradient) <= tau + error


def test_many_columns_are_solved_without_a_matrix(monkeypatch):
    monkeypatch.setattr(SparseObjective, "gram", None)
    X = scattered(300, 3000, density=0.01)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = ObjPertLogReg(delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    assert_same(clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y))


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_each_sparse_row_is_predicted_by_itself(estimator):
    X, y = data_for(estimator)
    X *= np.random.default_rng(0).random(X.shape) < 0.4
    rows = sparse.csr_array(X)
    model = fitted(estimator, rows, y)
    for name in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            method = getattr(model, name)
            alone = np.concatenate([method(rows[k : k + 1]) for k in range(20)])
            for n in (2, 3, 8, 20):
                np.testing.assert_array_equal(method(rows[:n]), alone[:n])


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_nothing_of_sparse_rows_is_left(estimator):
    X, y = rows_for(estimator, n_rows=1000)
    few, many = (fitted(estimator, sparse.csr_array(X[:n]), y[:n]) for n in (100, 1000))
    assert len(pickle.dumps(few)) == len(pickle.dumps(many))
    assert vars(few).keys() == vars(fitted(estimator, X, y)).keys()
    found = pickle.dumps(many)
    assert b"csr" not in found


def stored(value):
    def change(X):
        rows = sparse.csr_array(X)
        rows.data[0] = value
        return rows

    return change


def beyond(X):
    rows = sparse.csr_array(X)
    rows.indices[-1] = X.shape[1] + 3
    return rows


def overflowing(X):
    rows = duplicates(X)
    rows.data[:] = 1.7e308
    return rows


@pytest.mark.parametrize("estimator", ONE_TAKER_EACH, ids=name_of)
def test_bad_sparse_rows_are_refused_without_their_values(estimator):
    X, y = rows_for(estimator, n_rows=773)
    X[-1, -1] = 1.0
    for change in (stored(np.nan), stored(np.inf), overflowing, beyond, lambda X: sparse.csr_array(X + 0j)):
        with pytest.raises(ValueError, match=r"NaN|infinity|valid|Complex") as error:
            fitted(estimator, change(X), y)
        assert "773" not in str(error.value)
    others = [sparse.coo_array(X[:, 0])] + [sparse.csr_array(X[1:])] * needs_y(estimator)
    for rows in others:
        with pytest.raises(ValueError, match="rows") as error:
            fitted(estimator, rows, y)
        assert "77" not in str(error.value)


@pytest.mark.parametrize(
    "model",
    [
        DPSGDClassifier(data_norm=2.0, classes=[0, 1], n_steps=3),
        ObjPertLogReg(data_norm=2.0, delta=1e-5, classes=[0, 1]),
        DPNaiveBayes(bounds=(-1.0, 1.0), n_bins=2, classes=[0, 1]),
        DPKMeans(2, bounds=(0.0, 1.0), delta=1e-5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_memory_is_in_proportion_to_stored_entries(model):
    n, p = 20_000, 20_000
    places = np.random.default_rng(0).integers(p, size=3 * n)
    X = sparse.csr_array((np.ones(3 * n), places, np.arange(n + 1) * 3), shape=(n, p))
    tracemalloc.start()
    try:
        clone(model).fit(X, np.arange(n) % 2).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Dense, the rows have 3.2 gigabytes.
    assert peak < 200e6


def test_wide_schemas_are_encoded_sparsely():
    rng = np.random.default_rng(0)
    columns = {"job": Category([f"job {k}" for k in range(300)]), "age": Number(0, 100)}
    schema = Schema(columns, target=Category([0, 1]))
    table = pd.DataFrame({"job": [f"job {k}" for k in rng.integers(300, size=500)], "age": rng.integers(101, size=500)})
    y = rng.integers(2, size=500)
    # Without noise, entries outside of the schema do not cost a part of epsilon.
    model = DPSGDClassifier(schema=schema, epsilon=np.inf, n_steps=5, random_state=0)
    found = clone(model).fit(table, y)
    assert sparse.issparse(found._encoded(table, reset=False))
    narrow = DPSGDClassifier(schema=schema.select("age"))
    assert not sparse.issparse(narrow._encoded(table[["age"]], reset=False))
    dense = found._encoding().encode(table)
    other = DPSGDClassifier(
        data_norm=found._declared("data_norm"), classes=[0, 1], epsilon=np.inf, n_steps=5, random_state=0
    )
    np.testing.assert_array_equal(other.fit(dense, y).coef_, found.coef_)
    np.testing.assert_array_equal(other.decision_function(dense), found.decision_function(table))


def test_memory_of_clusters_is_in_proportion_to_categories(monkeypatch):
    n, values = 3000, [f"value {k}" for k in range(10_000)]
    schema = Schema({"x": Category(values), "age": Number(0, 100)})
    codes, age = np.random.default_rng(0).integers([300, 100], size=(n, 2)).T
    table = pd.DataFrame({"x": np.array(values)[codes], "age": age})
    tracemalloc.start()
    try:
        labels = DPKMeans(2, delta=1e-5, schema=schema).fit_predict(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Dense, the rows have 240 megabytes, and 360 in both precisions.
    assert peak < 60e6
    assert labels.shape == (n,)

    model = DPKMeans(2, delta=1e-5, schema=Schema({"x": Category(values[:300]), "age": Number(0, 100)}), random_state=0)
    found = clone(model).fit(table)
    assert sparse.issparse(found._encoded(table, reset=False))
    monkeypatch.setattr(DPKMeans, "_takes_sparse", False)
    dense = clone(model).fit(table)
    assert not sparse.issparse(dense._encoded(table, reset=False))
    np.testing.assert_array_equal(found.cluster_centers_, dense.cluster_centers_)


def test_sparse_encoders_in_pipelines():
    jobs = pd.DataFrame({"job": ["a", "b"] * 100})
    y = np.arange(200) % 2
    models = []
    for sparse_output in (False, True):
        encoder = OneHotEncoder(categories=[list("abcdefgh")], handle_unknown="ignore", sparse_output=sparse_output)
        model = DPSGDClassifier(data_norm=1.0, classes=[0, 1], n_steps=5, random_state=0)
        models.append(make_pipeline(encoder, model).fit(jobs, y)[-1])
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_labels_that_are_not_declared_are_left_out():
    X, y = rows_for(DPNaiveBayes())
    with pytest.warns(PrivacyAssumptionWarning):
        DPNaiveBayes(bounds=(-5, 5)).fit(sparse.csr_array(X), y)
    model = DPNaiveBayes(bounds=(-5, 5), classes=[0, 7], random_state=0)
    assert_same(clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y))
    assert not is_regressor(model)
