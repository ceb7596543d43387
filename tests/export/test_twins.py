"""Twins in plain scikit-learn say what the models say, and hold nothing of this library."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    DPGreedyTree,
    DPNaiveBayes,
    DPStandardScaler,
    Number,
    Schema,
)
from skdp.exceptions import SeededNoiseWarning
from skdp.export import to_sklearn
from tests.estimators import FREE, ONE_EACH, data_for, declared, needs_y
from tests.export.models import EVERY, WITHOUT, case
from tests.inspection.test_trusted import Finder

METHODS = ("predict", "predict_proba", "transform")


def agree(expected, found, tolerance):
    """Tell whether numbers are equal up to a tolerance, relative to the largest one, and labels are equal."""
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.dtype.kind in "OUSb":
        return np.array_equal(expected, found)
    scale = max(1.0, np.abs(expected).max())
    return expected.shape == found.shape and np.abs(expected - found).max() <= tolerance * scale


@pytest.mark.sample(by=lambda name: name.partition("-")[0])
@pytest.mark.parametrize("name", EVERY)
def test_a_twin_says_what_the_model_says(name):
    model, rows = case(name)
    twin = to_sklearn(model)
    methods = [method for method in METHODS if hasattr(model, method)]
    assert methods
    # Coordinates of PCA are rounded.
    tolerance = 1e-10 if "PCA" in name else 1e-12
    for method in methods:
        with np.errstate(all="ignore"):
            assert agree(getattr(model, method)(rows), getattr(twin, method)(rows), tolerance), method
    # A step of a pickle is named by its module.
    finder = Finder(twin)
    finder.load()
    assert not [found for found in finder.found if "skdp" in found]


def test_others_are_refused():
    # A twin of these has to be refused, and each class is either refused or compared above.
    compared = {name.partition("-")[0] for name in EVERY}
    for estimator in (*ONE_EACH, *FREE):
        name = type(estimator).__name__
        assert (name in WITHOUT) != (name in compared)
        if name in WITHOUT:
            X, y = data_for(estimator)
            model = declared(estimator).fit(*((X, y) if needs_y(estimator) else (X,)))
            with pytest.raises(TypeError, match=r"(?s)no twin in scikit-learn.*skops"):
                to_sklearn(model)
    with pytest.raises(NotFittedError):
        to_sklearn(DPNaiveBayes())


def test_large_trees_are_refused():
    X = np.random.default_rng(0).uniform(-1, 1, (4000, 12))
    y = (np.sin(9 * X).sum(axis=1) > 0).astype(int)
    model = DPGreedyTree(epsilon=1e6, bounds=(-1, 1), classes=[0, 1], max_depth=8).fit(X, y)
    with pytest.raises(TypeError, match="too many combinations"):
        to_sklearn(model)


@pytest.mark.parametrize("n_bins", [3, 7, 10, 16, 100])
def test_numbers_at_edges_are_in_the_bins_of_the_model(n_bins):
    """Decimal numbers are at edges, which rounding moves to one side or the other."""
    rows = np.round(np.linspace(-0.1, 1.1, 1201), 3)[:, None]
    X, y = rows.clip(0, 1), np.arange(len(rows)) % 2
    # Probabilities of neighbouring bins differ.
    y = (y + (X[:, 0] * n_bins).astype(int)) % 2
    model = DPNaiveBayes(epsilon=1e6, bounds=(0, 1), classes=[0, 1], n_bins=n_bins).fit(X, y)
    assert agree(model.predict_proba(rows), to_sklearn(model).predict_proba(rows), 1e-12)


def test_a_table_needs_no_declared_types():
    """A column of texts that spell numbers may hold numbers, with and without missing entries."""
    schema = Schema(
        {"rooms": Category(["1", "2", "10"]), "smoker": Category([False, True]), "level": Category([0.5, 1.5, 3])},
        target={"sold": ["no", "yes"]},
    )
    X = schema.sample(400, seed=1)
    model = DPNaiveBayes(schema=schema, epsilon=50.0).fit(X, X["sold"])
    twin = to_sklearn(model)
    frames = [
        pd.DataFrame({"rooms": [1, 2, 10, 3], "smoker": [True, False, True, True], "level": [0.5, 3, 1.5, 2]}),
        pd.DataFrame({"rooms": [1.0, np.nan, 10.0], "smoker": [1, 0, 2], "level": [np.nan, 3.0, 1.5]}),
        pd.DataFrame({"rooms": ["1", "2.0", None], "smoker": [None, True, False], "level": ["0.5", "3", None]}),
        pd.DataFrame({"rooms": ["10", "many", "NA"], "smoker": ["1", "0", "1"], "level": [3, 3, 0]}, dtype=object),
    ]
    for frame in frames:
        assert agree(model.predict_proba(frame), twin.predict_proba(frame), 1e-12)
    with pytest.raises(ValueError, match="level"):
        twin.predict(frames[0].drop(columns="level"))


def test_declared_spellings_of_missing_entries_and_refused_entries():
    schema = Schema(
        {
            "a": Category(["x", "NA"]),
            "b": Category(["x", "y"], other="missing"),
            "c": Category(["x", "y"], other="error", missing="error"),
            "d": Number(0, 10, missing="error"),
        },
        target={"sold": ["no", "yes"]},
    )
    X = schema.sample(400, seed=1)
    model = DPAdditiveClassifier(schema=schema, epsilon=50.0, delta=1e-6).fit(X, X["sold"])
    twin = to_sklearn(model)
    rows = pd.DataFrame({"a": ["x", None, "NA", "z"], "b": ["x", None, "z", "y"], "c": "x", "d": [0, 5, 10, 20]})
    assert agree(model.predict_proba(rows), twin.predict_proba(rows), 1e-12)
    # What the model refuses has a prediction of the twin.
    assert np.isfinite(twin.predict_proba(rows.assign(c=["z", None, "x", "y"], d=[np.nan, 1, 2, 3]))).all()


def test_a_column_transformer_with_private_parts():
    from sklearn.compose import ColumnTransformer

    X, _ = data_for(DPStandardScaler(bounds=(-5, 5)))
    parts = [("some", DPStandardScaler(bounds=(-5, 5)), [0, 2]), ("none", "passthrough", [1])]
    fitted = ColumnTransformer(parts).fit(X)
    assert agree(fitted.transform(X), to_sklearn(fitted).transform(X), 1e-12)


def test_a_twin_needs_no_skdp(tmp_path):
    model, rows = case("schema-DPAdditiveClassifier")
    answers = model.predict_proba(rows)
    (tmp_path / "twin.pickle").write_bytes(pickle.dumps((to_sklearn(model), rows, answers)))
    code = (
        "import pickle, sys; sys.modules['skdp'] = None; import numpy as np; "
        "twin, rows, answers = pickle.load(open('twin.pickle', 'rb')); "
        "assert np.abs(twin.predict_proba(rows) - answers).max() < 1e-12"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_twin_of_columns_has_nothing_of_the_private_steps(tmp_path):
    budget = BudgetAccountant(epsilon=100.0, delta=1e-3, ledger=tmp_path / "ledger.sqlite")
    steps = [("a", DPStandardScaler(bounds=(0, 1), epsilon=1.0, random_state=7, accountant=budget), [0, 1])]
    columns = ColumnTransformer(steps, remainder="passthrough", sparse_threshold=0.9)
    X = np.random.default_rng(0).random((200, 3))
    with pytest.warns(SeededNoiseWarning):
        twin = to_sklearn(columns.fit(X))
    np.testing.assert_allclose(twin.transform(X), columns.transform(X), rtol=1e-12)
    text = pickle.dumps(twin)
    assert b"skdp" not in text
    assert b"ledger" not in text
    assert "DPStandardScaler" not in repr(twin)
    assert not twin.sparse_output_
