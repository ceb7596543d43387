"""Objectives of certified minimisation over sparse rows, and over rows in parts.

For sparse rows, there are neither dense rows nor their products. Products with rows take time in proportion to stored
entries. If second derivatives would be large, Newton steps come from conjugate gradients, as for dense rows, and no
matrix is computed. The proof of the result is the same: one pass over the rows, with a bound on its rounding errors.

For rows in parts, value, gradient and second derivative are sums over parts. Sums of doubles depend on how rows are
divided. Therefore a minimiser is equal to the one of rows in one place within what both are certified for, and not in
every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parts.arrays import KeptObjects, PartedArray
from ..sensitivity import ClippedRows, by_entry, clip_rows, sparse_gram, sum_over_rows, with_data
from .certified import Objective, two_product, two_sum
from .losses import SmoothLoss

Array = NDArray[np.float64]

# Number of rows whose weighted sum is computed at once in the proof. Few rows have few roundings after each other.
# There are more rows if there are many columns, because each sum has an entry for each column.
_LEAST_ROWS, _MOST_ROWS = 128, 2048

# Number of rows whose products are computed at once otherwise.
_BLOCK_ROWS = 2**16


class SparseObjective(Objective):
    """Sum the losses of clipped sparse rows, plus a regulariser and a linear term of shape (outputs, n_columns)."""

    _rows_of_matrix = 0

    def subsample(self, ratio: int) -> SparseObjective:
        sample = ClippedRows(self.rows.source[::ratio], self.norm)
        return SparseObjective(
            sample, self.codes[::ratio], self.loss, self.C * ratio, self.strong_convexity, self.linear
        )

    def predictor(self, theta: Array) -> Array:
        return self.rows.source @ np.ascontiguousarray(theta.T)

    def adjoint(self, weights: Array) -> Array:
        return _weighted_sum(self.rows.source, weights)

    def gram(self, weights: Array, positive: bool) -> Array:
        def block(rows: Any, w: Array) -> Array:
            if positive:
                return sparse_gram(with_data(rows, rows.data * by_entry(rows, np.sqrt(np.maximum(w, 0.0)))))
            return (rows.T @ with_data(rows, rows.data * by_entry(rows, w))).toarray()

        return sum_over_rows(block, self.rows.source, weights, block_rows=_BLOCK_ROWS)

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        """Return the gradient in double precision and a bound on the norm of its error."""
        # A predictor is a sum of as many products as a row has stored entries. Within a block, a row's contribution
        # passes through at most as many additions as the block has rows.
        q, p = self.shape
        block_rows = min(max(p // 8, _LEAST_ROWS), _MOST_ROWS)
        derivative = self.loss.derivative(self.predictor(theta), self.target).reshape(-1, q)
        total = sum_over_rows(_weighted_sum, self.rows.source, derivative, block_rows=block_rows)
        longest = int(np.diff(self.rows.source.indptr).max(initial=0))
        margin_error = (longest + 2 + q**1.5) * self.norm * float(np.linalg.norm(theta))
        return self._finish(theta, total, self.loss.curvature * margin_error, block_rows + 64)

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        for start in range(0, self.n_rows, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            rows = self.rows.source[block]
            z = [precise_products(rows, weights) for weights in theta]
            derivative = self.derivative_of_pairs(
                np.stack([high for high, _ in z], axis=1), np.stack([low for _, low in z], axis=1), self.target[block]
            )
            columns = rows.T.tocsr()
            for k, weights in enumerate(derivative.T):
                high_of_block, low_of_block = precise_products(columns, weights)
                high[k], error = two_sum(high[k], high_of_block)
                low[k] += low_of_block + error
        return self._finish_precise(theta, high + low)


def _weighted_sum(rows: Any, weights: Array) -> Array:
    """Return the sums of sparse rows, weighted by each column of `weights`."""
    return (rows.T @ weights).T


def precise_products(rows: Any, vector: Array) -> tuple[Array, Array]:
    """Return products of sparse rows with a vector, as an unevaluated sum of two doubles."""
    # Entries of a row are added in pairs, and their sums again in pairs, over all rows at once.
    out = np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
    high, low = two_product(rows.data, vector.take(rows.indices))
    counts = np.diff(rows.indptr)
    where = np.flatnonzero(counts)
    counts = counts[where]
    while len(high) > len(where):
        owner = np.repeat(np.arange(len(where)), counts)
        rank = np.arange(len(high)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.flatnonzero(rank % 2 == 0)
        second = np.minimum(first + 1, len(high) - 1)
        paired = (second > first) & (owner[second] == owner[first])
        high, rest = two_sum(high[first], np.where(paired, high[second], 0.0))
        low = low[first] + np.where(paired, low[second], 0.0) + rest
        counts = (counts + 1) // 2
    # The errors of many sums may add up. Therefore the part above half a unit is moved into the high part.
    out[0][where], out[1][where] = two_sum(high, low)
    return out


class PartedRows:
    """Clipped rows and their labels in parts, which are made once and kept where they lie."""

    def __init__(self, X: PartedArray, codes: PartedArray, norm: float, constant: float) -> None:
        self.parts = KeptObjects(partial(_clipped, norm, constant), (X, codes), _n_labels)

    def objective(
        self, problem: int | None, loss: SmoothLoss, C: float, strong_convexity: float, linear: Array
    ) -> PartedObjective:
        """Return the objective of one problem of several, or of labels with these codes if `problem` is None."""
        of_part = partial(_objective, problem, loss, linear.shape)
        return PartedObjective(self.parts, of_part, C, strong_convexity, linear)


def _clipped(norm: float, constant: float, X: NDArray, codes: NDArray[np.intp]) -> tuple[ClippedRows, NDArray[np.intp]]:
    return clip_rows(X, norm, constant), codes


def _n_labels(rows_and_codes: tuple[ClippedRows, NDArray[np.intp]]) -> int:
    return len(rows_and_codes[1])


def _objective(
    problem: int | None, loss: SmoothLoss, shape: tuple[int, ...], rows_and_codes: tuple[ClippedRows, NDArray]
) -> Objective:
    """Return the sum of the losses of one part."""
    rows, codes = rows_and_codes
    labels = codes if problem is None else (codes == problem).astype(np.intp)
    return Objective(rows, labels, loss, 1.0, 0.0, np.zeros(shape))


class PartedObjective(Objective):
    """Sum the losses of rows in parts. The point of evaluation replaces the predictors."""

    def __init__(
        self,
        parts: KeptObjects,
        of_part: Callable[[Any], Objective],
        C: float,
        strong_convexity: float,
        linear: Array,
        ratio: int = 1,
    ) -> None:
        # `of_part` returns the sum of the losses of the rows of one part, from the kept object. Every `ratio`-th row of
        # a part counts.
        self._parts, self._of_part, self._ratio, self._weight = parts, of_part, ratio, C
        self._known: tuple[bytes, Array] = b"", np.empty(0)
        # The objective without rows solves and certifies with the sums over all rows.
        without_rows = copy(of_part(parts.without_rows))
        without_rows.C, without_rows.strong_convexity, without_rows.linear = C * ratio, strong_convexity, linear
        without_rows.n_rows = parts.n_rows if ratio == 1 else int(self._sum(_count)[0])
        self._without_rows, self.n_rows = without_rows, without_rows.n_rows
        self.norm, self.loss = without_rows.norm, without_rows.loss
        self.C, self.strong_convexity = without_rows.C, strong_convexity
        self.linear, self.shape = linear, linear.shape

    def subsample(self, ratio: int) -> PartedObjective:
        more = ratio * self._ratio
        return PartedObjective(self._parts, self._of_part, self._weight, self.strong_convexity, self.linear, more)

    def predictor(self, theta: Array) -> Array:
        return theta

    def _sum(self, task: Callable[..., Any]) -> Any:
        return self._parts.sum(partial(_applied, task, self._of_part, self._ratio))

    def _value_and_gradient(self, z: Array) -> Array:
        if self._known[0] != z.tobytes():
            self._known = z.tobytes(), self._sum(partial(_value_and_gradient, z))
        return self._known[1]

    def value(self, theta: Array, z: Array) -> float:
        ridge = 0.5 * self.strong_convexity * float(np.vdot(theta, theta))
        return self.C * float(self._value_and_gradient(z)[0]) + ridge + float(np.vdot(self.linear, theta))

    def gradient(self, theta: Array, z: Array) -> Array:
        total = self._value_and_gradient(z)[1:].reshape(self.shape)
        return self.C * total + self.strong_convexity * theta + self.linear

    def slope(self, z: Array, z_step: Array) -> float:
        return float(np.vdot(self._value_and_gradient(z)[1:], z_step))

    @property
    def has_matrix(self) -> bool:
        return self._without_rows.has_matrix

    def newton_solver(self, z: Array) -> Callable[[Array], Array]:
        second = self._sum(partial(_second, z)) if self.has_matrix else None
        return self._without_rows.solver_of(second, lambda direction: self._sum(partial(_second_along, z, direction)))

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        return self._without_rows.certified(theta, self._sum(methodcaller("gradient_of_losses", theta)))

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        return self._without_rows.precise(theta, self._sum(methodcaller("precise_blocks", theta)))


def _applied(task: Callable[..., Any], of_part: Callable[[Any], Objective], ratio: int, part: Any, rows: None) -> Any:
    objective = of_part(part)
    if ratio > 1:
        objective = objective.subsample(ratio)
        objective.C = 1.0
    return task(objective)


def _count(objective: Objective) -> Array:
    return np.array([float(objective.n_rows)])


def _value_and_gradient(theta: Array, objective: Objective) -> Array:
    z = objective.predictor(theta)
    return np.append(objective.value(theta, z), objective.gradient(theta, z))


def _second(theta: Array, objective: Objective) -> Array:
    return objective.second(_bends(theta, objective))


def _second_along(theta: Array, direction: Array, objective: Objective) -> Array:
    return objective.second_along(_bends(theta, objective), direction)


def _bends(theta: Array, objective: Objective) -> Array:
    # Conjugate gradients need them many times. Kept objects remember them.
    known: tuple[bytes, Array] = vars(objective).get("bends_at", (b"", np.empty(0)))
    if known[0] != theta.tobytes():
        known = theta.tobytes(), objective.bends(objective.predictor(theta))
        vars(objective)["bends_at"] = known
    return known[1]
