"""Data sets for the tests of trees, made up here: two numeric columns and two categorical ones."""

import numpy as np

from skdp.schema.columns import check_columns
from tests.parameters import Parameters

MIXED = {"bounds": (0.0, 1.0), "categorical_features": [1, 3], "n_categories": [4, 3]}


def mixed(n_rows=600, n_classes=2, seed=0):
    """Rows whose class depends on all columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 4))
    X[:, 1] = rng.integers(4, size=n_rows)
    X[:, 3] = rng.integers(3, size=n_rows)
    score = 3 * X[:, 0] + (X[:, 1] == 2) + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n_rows)
    cuts = np.quantile(3 * rng.uniform(size=999) + rng.uniform(size=999), np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(cuts, score)


def columns_of(n_categories):
    """Columns with so many categories; those with 0 hold numbers between 0 and 1."""
    which = [j for j, n in enumerate(n_categories) if n]
    public = {"bounds": (0, 1), "categorical_features": which, "n_categories": [n_categories[j] for j in which]}
    return check_columns(Parameters(**public)).resolve(len(n_categories), None)
