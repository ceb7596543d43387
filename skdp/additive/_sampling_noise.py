"""The effect of the sampling of records on the curves of gradient steps, and the shrinkage of each curve.

Curves that are fitted to few records follow these records more closely than their distribution. The effect of sampling
on a curve is estimated from released numbers. The variance of a record's gradient follows from the class probabilities
of pseudo-records. The linear recursion of the steps turns it into a variance v of the curve. If the curve has the
variance V, the expected part of the curve that is not sampling error is 1 - v/V (James and Stein 1961). Steps that have
not converged have already shrunk the curve, by a factor that the same recursion gives. The curve is not shrunk by this
factor again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..solvers.linear_rule import probabilities
from ._engines import GradientEngine
from ._scores import curvatures
from ._terms import MOST_EIGENVALUES, Layout
from ._uncertainty import pseudo_records

Array = NDArray[np.float64]


def without_sampling(
    engine: GradientEngine, coef: Array, intercept: Array, counts: list[Array], count: float
) -> tuple[list[Array], Array]:
    """Return the values of cells by term, each shrunk towards its mean, and the factor of each term."""
    layout = engine.layout
    assert isinstance(layout, Layout)
    tables, kept = layout.values(coef), np.ones(len(layout.terms))
    variances = sampling_variances(engine, tables, intercept, counts, count)
    for t, (weights, (sampling, whole, converged)) in enumerate(variances):
        if whole > 0 and converged > 0:
            part = sampling / whole
            # The second number is smaller if sampling explains a small part. If sampling explains the whole curve, the
            # order of cells is kept.
            kept[t] = min(1.0, max(1 - part, 1 / (1 + part) ** 2) / converged)
        tables[t] = tables[t] + (kept[t] - 1) * (tables[t] - weights @ tables[t])
    return tables, kept


def sampling_variances(
    engine: GradientEngine, tables: list[Array], intercept: Array, counts: list[Array], count: float
) -> list[tuple[Array, tuple[float, float, float]]]:
    """Return shares of cells, and three numbers, for each term.

    The numbers are the variance that sampling gives to a curve, the variance of the curve, and the part of the curve
    that steps have reached.
    """
    assert isinstance(engine.layout, Layout)
    bend, variance = _moments_of_gradients(engine, tables, intercept, counts)
    out = []
    for values, (weights, rows) in zip(tables, engine.layout.centred_rows(counts), strict=True):
        values = values - weights @ values
        # Adding one number to the curves of all classes changes no probability.
        values = values - values.mean(axis=1, keepdims=True) if values.shape[1] > 1 else values
        squares, vectors = _directions(rows)
        moved = engine.response_along(count * bend * squares, count)
        sampling = float(np.sum((squares * moved) ** 2)) * count * variance
        # The part of the curve in each direction, or in all directions.
        along = np.ones(1) if vectors is None else ((vectors.T @ (np.sqrt(weights)[:, None] * values)) ** 2).sum(axis=1)
        total = float(along.sum())
        reached = float(along @ (moved * count * bend * squares)[: len(along)])
        whole = float(weights @ (values**2).sum(axis=1))
        out.append((weights, (sampling, whole, reached / total if total > 0 else 0.0)))
    return out


def _directions(rows: Array) -> tuple[Array, Array | None]:
    """Return the eigenvalues of the covariance of features, and the values of the eigenvectors in cells."""
    if rows.shape[1] > MOST_EIGENVALUES:
        return np.full(rows.shape[1], float((rows**2).sum()) / rows.shape[1]), None
    vectors, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    return lengths**2, vectors


def _moments_of_gradients(
    engine: GradientEngine, tables: list[Array], intercept: Array, counts: list[Array]
) -> tuple[float, float]:
    """Return the mean curvature of a record's clipped loss in a direction, and the mean square of its derivative."""
    assert isinstance(engine.layout, Layout)
    codes = engine.layout.codes(pseudo_records(counts))
    scores = np.tile(intercept, (codes.shape[1], 1))
    for own, values in zip(codes, tables, strict=True):
        scores += values[np.minimum(own, len(values) - 1)]
    scores = scores[:, 0] if scores.shape[1] == 1 else scores
    most = engine.descent.max_norm / engine.descent.settings.row_norm
    bends = np.einsum("kki->i", curvatures(scores, 0.0, most))
    p = probabilities(scores)
    squares = (1 - p) ** 2
    if scores.ndim > 1:
        squares += (p**2).sum(axis=1, keepdims=True) - p**2
    variance = (p * np.minimum(squares, most**2)).sum(axis=1)
    return float(bends.mean()) / max(p.shape[1] - 1, 1), float(variance.mean())
