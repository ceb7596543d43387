"""Data sets for the tests of naive Bayes, made up here."""

import numpy as np

#: What is public about `mixed`: two categorical columns, two with equal bins, one with bins of its own.
MIXED = {
    "bounds": ([0, -1, 0, 0, 0], [1, 1, 1, 10, 1]),
    "categorical_features": [0, 2],
    "n_categories": [3, 4],
    "bin_edges": {4: [0, 1, 10, 100, 1000]},
}


def mixed(n_rows=400, n_classes=3, seed=0):
    """Rows with categories, symmetric and skewed numbers, each of which depends on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    X = np.column_stack(
        [
            (rng.integers(3, size=n_rows) + (rng.random(n_rows) < 0.6) * y) % 3,
            np.clip(rng.normal(0.4 * y - 0.4, 0.3), -1, 1),
            (rng.integers(4, size=n_rows) + (rng.random(n_rows) < 0.5) * y) % 4,
            np.clip(rng.gamma(2 + y), 0, 10),
            np.exp(rng.normal(y, 1.5)),
        ]
    )
    return X, y
