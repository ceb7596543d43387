"""Rows for the tests of principal components, made up here."""

import numpy as np


def cloud(n_rows=400, d=5, seed=0):
    """Gaussian rows about a common mean, with variances from 1 down to 0.04 along random axes."""
    rng = np.random.default_rng(seed)
    scales = np.linspace(1, 0.2, d)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (rng.normal(size=(n_rows, d)) * scales) @ turn + 0.4


def captured(X, components):
    """Variance along the components, relative to that along as many principal ones."""
    covariance = np.cov(X.T, bias=True)
    best = np.linalg.eigvalsh(covariance)[::-1][: len(components)].sum()
    return np.trace(components @ covariance @ components.T) / best
