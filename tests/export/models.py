"""Fitted models of all kinds, rows that are hard for an export, and which exports there are."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from skdp import DPPCA, BoundsScaler, Category, DPAdditiveRegressor, ObjPertLogReg, TableEncoder, make_private_pipeline
from tests.estimators import FREE, ONE_EACH, TABLES, VARIANTS, classes_up_to, data_for, declared, name_of, needs_y
from tests.schema.test_estimators import KINDS, fitted, made, table

#: Models without a twin.
WITHOUT = ("DPTableGenerator", "HistogramRegressor", "NormClipper", "NoisyHistogram", "PATEClassifier")

ARRAYS = [one for one in (*VARIANTS, *FREE) if type(one).__name__ not in WITHOUT]
SCHEMAS = [name for name in KINDS if name not in WITHOUT]


def of_array(estimator, n_classes=3):
    """Return a fitted model and rows, of which some are at edges of bins, and far beyond the bounds."""
    model = declared(estimator, classes_up_to(estimator, n_classes))
    X, y = data_for(estimator, n_classes if is_classifier(estimator) else 2)
    model.fit(*((X, y) if needs_y(estimator) else (X,)))
    rows = X.copy()
    rows[::3] = np.round(rows[::3], 1)
    rows[1::7] = np.round(rows[1::7])
    rows[5] *= 1e3
    return model, rows


def hard(frame, schema, seed=0):
    """Return rows with missing entries of all kinds, entries in no category, and numbers beyond their bounds."""
    rng, frame = np.random.default_rng(seed), frame.astype(object)
    for name in frame:
        texts = isinstance(schema[name], Category) and isinstance(schema[name].values[0], str)
        entries = ["church", "", "NA", "null", "nan", 7, 7.0] if texts else [1e9, -1e9, 0.3]
        entries += [None, np.nan] if schema[name].missing == "cell" else []
        some = rng.random(len(frame)) < 0.4
        frame.loc[some, name] = pd.Series([entries[k % len(entries)] for k in range(some.sum())], dtype=object).values
    return frame


def of_schema(name):
    model = made(name)
    X, y = table(model)
    return fitted(model, X, y), hard(X, model.schema)


def of_pipeline(kind):
    """Return a fitted private pipeline, and rows."""
    if kind == "array":
        X, y = data_for(ObjPertLogReg(data_norm=1.0))
        last = ObjPertLogReg(data_norm=3.0, classes=np.unique(y).tolist())
        steps = BoundsScaler((-5.0, 5.0)), DPPCA(2, data_norm=3.0), last
        return make_private_pipeline(*steps, epsilon=2.0, delta=1e-6).fit(X, y), X
    model = made("ObjPertLogReg")
    X, y = table(model)
    encoder = TableEncoder(model.schema)
    last = ObjPertLogReg(**encoder.parameters(ObjPertLogReg))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_private_pipeline(encoder, last, epsilon=2.0).fit(X, y), hard(X, model.schema)


def of_table(estimator):
    """Return an encoder of a table, and rows."""
    names = list(estimator.schema)
    frame = pd.DataFrame(data_for(estimator)[0][:, : len(names)], columns=names)
    return estimator.fit(frame), hard(frame, estimator.schema)


def of_amounts():
    """Return a regressor whose terms add up to square roots, and rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = 10 * rng.exponential(np.exp(X[:, 0]))
    model = DPAdditiveRegressor(epsilon=50.0, delta=1e-6, bounds=(-1, 1), bounds_y=(0, 100)).fit(X, y)
    assert model.link_ == "sqrt"
    return model, X


#: A function that returns a fitted model and rows, by name.
EVERY = {
    **{f"{name_of(one)}-{k}": (of_array, one) for k, one in enumerate(ARRAYS)},
    **{f"{type(one).__name__}-two": (of_array, one, 2) for one in ONE_EACH if is_classifier(one) and one in ARRAYS},
    **{f"schema-{name}": (of_schema, name) for name in SCHEMAS},
    **{f"table-{one.form}": (of_table, one) for one in TABLES},
    "amounts": (of_amounts,),
    **{f"pipeline-{kind}": (of_pipeline, kind) for kind in ("array", "schema")},
}


@cache
def case(name):
    make, *arguments = EVERY[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*arguments)
