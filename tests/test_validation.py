"""Arrays that need no conversion skip the checks of scikit-learn, and are accepted or refused as by these checks."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdp import DPPCA, DPKMeans, DPNaiveBayes, DPStandardScaler, ObjPertLogReg
from skdp.checks import data

X = np.random.default_rng(0).uniform(size=(40, 3))
Y = X[:, 0] > 0.5

MODELS = [
    DPStandardScaler(bounds=(0, 1)),
    DPPCA(data_norm=2.0, delta=1e-5),
    DPKMeans(2, bounds=(0, 1)),
    DPNaiveBayes(bounds=(0, 1), classes=[False, True]),
    ObjPertLogReg(data_norm=2.0, classes=[False, True]),
]


def with_entry(number, dtype=np.float64):
    rows = X.astype(dtype)
    rows[7, 1] = number
    return rows


ROWS = {
    "doubles": X,
    "single precision": np.float32(X),
    "by columns": np.asfortranarray(X),
    "backwards": X[::-1, ::-1],
    "large": np.full((4, 3), 1.7e308),
    "large singles": np.full((4, 3), 3e38, dtype=np.float32),
    "integers": np.ones((4, 3), dtype=np.int64),
    "booleans": X > 0.5,
    "other bytes": X.astype(X.dtype.newbyteorder()),
    "complex": X + 1j,
    "text": X.astype(str),
    "objects": X.astype(object),
    "NaN": with_entry(np.nan),
    "infinity": with_entry(np.inf),
    "minus infinity in single precision": with_entry(-np.inf, np.float32),
    "no rows": X[:0],
    "no columns": X[:, :0],
    "too few columns": X[:, :2],
    "vector": X[0],
    "cube": X[None],
    "matrix": X[:4].view(np.matrix),
    "masked": np.ma.masked_array(X, X > 0.9),
    "list": X.tolist(),
    "frame": pd.DataFrame(X, columns=list("abc")),
}


def outcome(model, rows):
    """Return what a model makes of rows, or its error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = (model.transform if hasattr(model, "transform") else model.predict)(rows)
        except Exception as error:
            made = type(error), str(error)
    return made, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_arrays_are_accepted_as_by_scikit_learn(model, named, monkeypatch):
    model = clone(model).set_params(random_state=0).fit(pd.DataFrame(X, columns=list("abc")) if named else X, Y)
    found = [outcome(model, rows) for rows in ROWS.values()]
    shortcut = [data._is_as_expected(model, rows, reset=False, dtype=[np.float64]) for rows in ROWS.values()]
    assert shortcut == [not named] * 4 + [False] * (len(ROWS) - 4)
    monkeypatch.setattr(data, "_is_as_expected", lambda *args, **kwargs: False)
    for rows, (made, messages) in zip(ROWS.values(), found, strict=True):
        expected, expected_messages = outcome(model, rows)
        np.testing.assert_array_equal(made, expected)
        assert type(made) is type(expected)
        assert messages == expected_messages
