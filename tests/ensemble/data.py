"""Public rows for tests: of no data set, and for any number of columns."""

import numpy as np


def public_rows(n_features):
    """Normal rows, somewhat wider than standardised ones."""
    return 1.5 * np.random.default_rng(0).normal(size=(300, n_features))
