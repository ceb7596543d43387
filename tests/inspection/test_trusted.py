"""The list of trusted types holds all types of this library that a fitted model has, and no others."""

import io
import pickle
import warnings

import skdp
from tests.estimators import ESTIMATORS, data_for, declared, needs_y
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


def every_model():
    """Yield fitted models of all kinds, with and without schemas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in ESTIMATORS:
            X, y = data_for(estimator)
            yield declared(estimator).fit(*((X, y) if needs_y(estimator) else (X,)))
        for name in KINDS:
            model = made(name)
            yield fitted(model, *table(model))


def test_all_types_are_listed():
    found = set().union(*map(types_in, every_model()))
    assert found == set(skdp.TRUSTED_TYPES)
