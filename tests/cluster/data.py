"""Data sets for the tests of clustering, made up here."""

import numpy as np


def mixture(n_clusters=5, n_rows=20_000, n_features=2, seed=0, spread=0.03):
    """Gaussian clusters in the unit box."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.1, 0.9, (n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_rows)
    return np.clip(centres[labels] + spread * rng.standard_normal((n_rows, n_features)), 0, 1)


def inertia(X, centres):
    """Sum of squared distances to the nearest centre."""
    squares = np.einsum("ij,ij->i", X, X)[:, None] - 2 * X @ centres.T + np.einsum("ij,ij->i", centres, centres)
    return float(np.maximum(squares.min(axis=1), 0).sum())
