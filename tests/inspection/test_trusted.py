"""The list of trusted types holds all types of this library that a fitted model has, and no others."""

import copy
import io
import pickle
import re
import warnings

import numpy as np
import pytest

import skdp
from skdp import (
    DPPCA,
    Category,
    DPNaiveBayes,
    DPQuantileBinner,
    DPRandomizedSearchCV,
    RandomizedResponse,
    Schema,
    TableEncoder,
    make_private_pipeline,
)
from skdp.preprocessing import NormClipper
from tests.estimators import ESTIMATORS, FREE, LOCAL, TABLES, data_for, declared, needs_y
from tests.schema.test_estimators import KINDS, fitted, made, table


class Finder(pickle.Unpickler):
    """Notes what a pickle names."""

    def __init__(self, model):
        super().__init__(io.BytesIO(pickle.dumps(model)))
        self.found = set()

    def find_class(self, module, name):
        self.found.add(f"{module}.{name}")
        return super().find_class(module, name)


def types_in(model):
    """Return the full names of the types that a model holds, without those of NumPy, scikit-learn and pandas."""
    finder = Finder(model)
    finder.load()
    return {name for name in finder.found if name.partition(".")[0] in ("skdp", "fractions")}


def _every_model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in (*ESTIMATORS, *FREE, *LOCAL, *TABLES):
            X, y = data_for(estimator)
            yield declared(estimator).fit(*((X, y) if needs_y(estimator) else (X,)))
        for name in KINDS:
            model = made(name)
            yield fitted(model, *table(model))
        labels = ["a", "b"] * 50
        X = {"x": np.linspace(0, 1, 100), "c": labels}
        schema = Schema({"x": (0, 1), "c": ["a", "b"]}, target=Category(["a", "b"]))
        encoder, model = TableEncoder(schema, form="codes"), DPNaiveBayes(bounds=(0, 1), classes=["a", "b"])
        yield make_private_pipeline(encoder, model, epsilon=1.0, delta=1e-6).fit(X, labels)
        linear = TableEncoder(schema)
        reduced = DPPCA(2, data_norm=linear.data_norm, delta=1e-6)
        clipped = skdp.ObjPertLogReg(data_norm=1.0, classes=["a", "b"])
        yield make_private_pipeline(linear, reduced, NormClipper(1.0), clipped, epsilon=1.0, delta=1e-6).fit(X, labels)
        # Its guarantee is for replacing one record, so that quantiles cost a pair.
        binner = DPQuantileBinner(3, bounds=(0, 1), delta=1e-6)
        numbers = np.linspace(0, 1, 100)[:, None]
        yield make_private_pipeline(binner, RandomizedResponse(3), epsilon=1.0, delta=1e-6).fit(numbers)
        draws = {"n_bins": [2, 3, 4]}
        search = DPRandomizedSearchCV(DPNaiveBayes(schema=schema), draws, n_iter=2, epsilon=5.0, delta=1e-5)
        yield search.fit(X, labels)


@pytest.fixture(scope="module")
def every_model():
    """Fitted models of all kinds, with and without schemas."""
    return list(_every_model())


def test_all_types_are_listed(every_model):
    found = set().union(*map(types_in, every_model))
    assert found == set(skdp.TRUSTED_TYPES)


def state(model):
    """Return what a model holds, as text."""
    return {name: re.sub(" at 0x[0-9a-f]+", "", repr(value)) for name, value in vars(model).items()}


def test_skops_saves_and_loads_every_model(every_model):
    io_of_skops = pytest.importorskip("skops.io", reason="skops is not installed")
    kinds, trusted = set(), [*skdp.TRUSTED_TYPES, "tests.ensemble.data.PublicRows"]
    for model in every_model:
        if hasattr(getattr(model, "public_X", None), "columns"):
            # skops does not write tables of pandas.
            model = copy.copy(model)
            model.public_X = None
        again = io_of_skops.loads(io_of_skops.dumps(model), trusted=trusted)
        assert type(again) is type(model)
        assert state(again) == state(model)
        kinds.add(type(model).__name__)
    estimators = {name for name in skdp.__all__ if hasattr(getattr(skdp, name), "fit")}
    assert estimators <= kinds
