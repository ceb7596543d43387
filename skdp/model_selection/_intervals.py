r"""Intervals of scores that are computed from released tables.

A score that is a sum of gains is a quotient of two noisy sums. Its interval inverts a test of the quotient. A record
with a weight :math:`w\in[0,1]` and a relative gain :math:`x\in[0,1]` adds :math:`w(x-q)` to the tested sum, whose mean
is 0 at the true quotient :math:`q`. By :math:`w^2\le w` and :math:`x^2\le x`, the variance is at most
:math:`E[w]\,q(1-q)`, as that of a proportion. If :math:`m` records of each group count, the square of their sum is at
most :math:`m` times the sum of their squares.

Areas, F1 and recall are smooth functions of the counts. Their intervals use the gradient at the released counts.
Records of a bin are tied, which lowers an area. The effect is estimated from pairs of bins and added to the area, and
the interval is wider by it. With :math:`B` bins, products of the noise of a positive and of a negative count have the
variance :math:`B^2\sigma^4/2` together. It is divided by the square of the number of pairs of records, and added.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import Mechanism
from ..release.estimates import Around, Quotient
from ..release.laws import Law, combination
from ._scoring import TABLES, TIES, Score, Table, pairs_of_bins, precisions

Array = NDArray[np.float64]

#: Up to this number of cells, the law of a sum of their noise is computed exactly.
_MOST_CELLS = 200


def spread_of(measure: Score | Table, released: NDArray, mechanism: Mechanism, rows: int) -> tuple[Any, Any]:
    """Return the standard error by noise of a score or table, and the rule of its intervals."""
    # `rows` is the largest number of counted records of a group. `released` holds the noisy sums or counts.
    if isinstance(measure, Score):
        # Sums are measured in the largest change by one group.
        unit = float(measure.most) * rows
        gained, missed = (float(each) / unit for each in released)
        quotient = Quotient(
            gained,
            gained + missed,
            mechanism,
            np.array([1.0, 0.0]) / unit,
            np.array([1.0, 1.0]) / unit,
            None,
            0.0,
            1.0,
            shift=-measure.unit if measure.loss else 0.0,
            scale=measure.unit,
        )
        return quotient.standard_error, quotient
    counts = np.maximum(released, 0).astype(np.float64)
    if measure.metric in TABLES:
        law = combination(mechanism, 1.0)
        return np.full(counts.shape, math.sqrt(law.variance)), Around(released, law, np.sqrt(rows * counts), 0.0)
    value = measure.value(released)
    if math.isnan(value):
        # The counts hold no information, so that the interval is the whole range.
        return math.inf, Around(0.5, Law(normal=math.inf), 0.0, 0.0, 1.0)
    noise = math.sqrt(combination(mechanism, 1.0).variance)
    gradient = gradient_of(measure, counts if measure.edges is None else released.astype(np.float64), 3 * noise)
    law = _law(mechanism, gradient)
    centred = gradient - (counts * gradient).sum() / counts.sum()
    sampling = math.sqrt(rows * float((counts * centred**2).sum()))
    ties = 0.0
    if measure.is_area:
        ties = abs(measure.area(released.astype(np.float64))[1])
        pairs = float(np.prod(np.maximum(released.sum(axis=0), 1)))
        squares = len(released) * noise**2 / math.sqrt(2) / pairs
        law = replace(law, normal=math.hypot(law.normal, squares))
    return math.sqrt(law.variance), Around(value, law, sampling, 0.0, 1.0, allowance=ties)


def _law(mechanism: Mechanism, gradient: Array) -> Law:
    """Return the law of the noise in a linear combination of counts, which is nearly normal for many counts."""
    if gradient.size <= _MOST_CELLS:
        return combination(mechanism, gradient)
    return Law(normal=float(np.linalg.norm(gradient)) * math.sqrt(combination(mechanism, 1.0).variance))


def gradient_of(table: Table, counts: Array, least: float = 1.0) -> Array:
    """Return the derivatives of a score by the counts. A precision among fewer records than `least` changes less."""
    with np.errstate(all="ignore"):
        if table.edges is None:
            slopes = _gradient_of_f1 if table.metric.startswith("f1") else _gradient_of_recall
            return np.nan_to_num(slopes(counts, table.metric))
        pairs = _gradient_of_bins(table.metric, pairs_of_bins(counts), least).repeat(2, axis=0)[: len(counts)]
        weight = TIES[table.metric]
        return np.nan_to_num((1 + weight) * _gradient_of_bins(table.metric, counts, least) - weight * pairs)


def _gradient_of_bins(metric: str, counts: Array, least: float) -> Array:
    # By decreasing estimated probability.
    negative, positive = counts[::-1].T
    if metric == "roc_auc":
        slopes = _gradient_of_area(negative, positive)
    else:
        slopes = _gradient_of_precision(negative, positive, max(least, 1.0))
    return np.stack(slopes, axis=1)[::-1]


def _gradient_of_f1(counts: Array, metric: str) -> Array:
    k = len(counts)
    totals = counts.sum(axis=0)[:k] + counts.sum(axis=1)
    scores = 2 * np.diagonal(counts) / totals
    weights = _weights_of_labels(metric, k)
    # A label without any count has a score of 0, which does not change at once.
    shares = np.where(totals > 0, weights / totals, 0.0)
    loss = np.nan_to_num(shares * scores)
    gradient: Array = np.zeros(counts.shape) - loss[:, None]
    gradient[:, :k] -= loss
    gradient[np.arange(k), np.arange(k)] += 2 * shares
    return gradient


def _gradient_of_recall(counts: Array, metric: str) -> Array:
    k, totals = len(counts), counts.sum(axis=1)
    shares = np.where(totals > 0, _weights_of_labels(metric, k) / totals, 0.0)
    gradient: Array = np.zeros(counts.shape) - np.nan_to_num(shares * np.diagonal(counts) / totals)[:, None]
    gradient[np.arange(k), np.arange(k)] += shares
    return gradient


def _weights_of_labels(metric: str, k: int) -> Array:
    return np.full(k, 1 / k) if metric.endswith("_macro") else np.array([0.0, 1.0])


def _gradient_of_area(negative: Array, positive: Array) -> tuple[Array, Array]:
    below = negative.sum() - np.cumsum(negative) + negative / 2
    value = float(positive @ below) / float(positive.sum() * negative.sum())
    above = np.cumsum(positive) - positive / 2
    pairs = positive.sum() * negative.sum()
    return (above - value * positive.sum()) / pairs, (below - value * negative.sum()) / pairs


def _gradient_of_precision(negative: Array, positive: Array, least: float) -> tuple[Array, Array]:
    true, false = np.cumsum(positive), np.cumsum(negative)
    precision = precisions(negative, positive)
    share = positive / true[-1]
    value = float(share @ precision)
    each = share / np.maximum(true + false, least) ** 2

    def later(slopes: Array) -> Array:
        return np.cumsum(slopes[::-1])[::-1]

    return -later(each * true), (precision - value) / true[-1] + later(each * false)
