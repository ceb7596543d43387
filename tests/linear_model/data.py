"""Data sets for the tests of linear models, made up here."""

import numpy as np


def blobs(n_classes=2, n_rows=400, n_features=5, seed=0):
    """Overlapping clusters with rows of norm up to about 3."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, n_features))
    y = rng.integers(n_classes, size=n_rows)
    return centres[y] + 0.7 * rng.normal(size=(n_rows, n_features)), y


def saturating_pair(C, norm, n_features=1, n_classes=2, loss="log_loss"):
    """Neighbours on which one record moves the minimiser almost as far as it can.

    Many tiny records drive the score of e1 so far that a full-norm record on the wrong side has a loss
    gradient of nearly full norm, and so little curvature that it is not caught.
    """
    count = int(np.ceil(1000 / (C * norm**2)))
    X = np.zeros((count + 1, n_features))
    y = np.ones(count + 1, dtype=int)
    if loss == "huber" and n_classes > 2:
        # All one-vs-rest problems at once: class 0 on the negative side.
        X[:, 0], y[:] = -0.01 * norm, 0
    else:
        X[:, 0] = 0.01 * norm
    X[-1, 0], y[-1] = norm, 0
    return (X[:-1], y[:-1]), (X, y)
