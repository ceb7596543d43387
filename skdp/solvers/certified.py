r"""A minimiser with a proof that the norm of the true gradient at the returned point is at most tau.

The objective is :math:`J(\theta) = C \sum_i \ell(\theta x_i; y_i) + \frac{\lambda}{2}\|\theta\|^2 + \langle b,
\theta\rangle`. Privacy depends only on the proof, and not on how the point is found. Therefore the search uses fast
methods: Newton's method, started from a solution for a part of the rows, with second derivatives that are reused while
they help. The proof is one more pass over the rows at the end, which also bounds the rounding error of the gradient.

If doubles cannot give the proof, the search continues in extended precision (pairs of doubles). Apart from its running
time, nothing visible depends on a private quantity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from ..exceptions import CertificateError
from ..parts.arrays import charge
from ..sensitivity import ClippedRows, sum_over_rows
from .losses import SmoothLoss

Array = NDArray[np.float64]

_UNIT = 2.0**-53
INNER_ROWS = 128
_BLOCK_ROWS = 8192
_PRECISE_ROWS = 2048
_SMALL, DENSE_LIMIT = 100, 2500
_COARSE_RATIO = 16

# The shortest part of a Newton step. If the loss is nearly linear, as far inside a margin, a full step is too long by
# the ratio of the largest curvature to the curvature at this point.
_LEAST_STEP = 2.0**-40

# Number of steps of the searches in extended precision. Newton's search has `max_iter` steps if that is larger.
# Gradient descent needs about 16 times the root of the condition number.
_PRECISE_STEPS = 100
_DESCENT_STEPS = 100_000


class Objective:
    """Sum the losses of clipped rows, plus a regulariser and a linear term of shape (outputs, n_columns)."""

    # The number of rows for each parameter from which a matrix takes less time than products with directions.
    _rows_of_matrix = 25

    def __init__(
        self,
        rows: ClippedRows,
        codes: NDArray[np.intp],
        loss: SmoothLoss,
        C: float,
        strong_convexity: float,
        linear: Array,
    ) -> None:
        self.rows = rows
        self.codes = codes
        self._prepare(loss.encode(codes), rows.norm, loss, C, strong_convexity, linear)

    def _prepare(
        self, target: NDArray, norm: float, loss: SmoothLoss, C: float, strong_convexity: float, linear: Array
    ) -> None:
        """Set everything except the rows, whose norms are at most `norm`."""
        self.target = target
        #: Number of rows. Private.
        self.n_rows = len(target)
        self.norm = norm
        self.loss = loss
        self.C = C
        self.strong_convexity = strong_convexity
        self.linear = linear
        self.shape = linear.shape

    def subsample(self, ratio: int) -> Objective:
        """Return the weighted objective of every `ratio`-th row, to compute a starting point."""
        sample = ClippedRows(self.rows[::ratio], self.norm)
        return Objective(sample, self.codes[::ratio], self.loss, self.C * ratio, self.strong_convexity, self.linear)

    def predictor(self, theta: Array) -> Array:
        """Return the predictors of all rows, of shape (n_rows, outputs)."""
        out = np.empty((self.n_rows, len(theta)))
        columns = np.ascontiguousarray(theta[:, : self.rows.source.shape[1]].T)
        for block, rows in self._blocks():
            np.dot(rows, columns, out=out[block])
        if self.rows.factors is not None:
            out *= self.rows.factors[:, None]
        if self.rows.constant:
            out += self.rows.constant * theta[:, -1]
        return out

    def adjoint(self, weights: Array) -> Array:
        """Return the sums of rows, weighted by each column of `weights`."""
        total = np.zeros((weights.shape[1], self.rows.shape[1]))
        if self.rows.constant:
            total[:, -1] = self.rows.constant * weights.sum(axis=0)
        of_source = total[:, : self.rows.source.shape[1]]
        for block, rows in self._blocks():
            of_block = weights[block]
            of_source += (of_block if self.rows.factors is None else of_block * self.rows.factors[block, None]).T @ rows
        return total

    def gram(self, weights: Array, positive: bool) -> Array:
        """Return the sum of weighted products of rows with themselves, for non-negative weights or for any weights."""
        if positive:
            return self.rows.weighted_gram(weights)
        return sum_over_rows(lambda rows, w: rows.T @ (rows * w[:, None]), self.rows, weights)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of the rows before they are scaled, in doubles."""
        for block in self._ranges():
            yield block, np.asarray(self.rows.source[block], dtype=np.float64)

    def _ranges(self) -> list[slice]:
        return [slice(start, start + _BLOCK_ROWS) for start in range(0, max(self.n_rows, 1), _BLOCK_ROWS)]

    def dense(self, block: slice) -> Array:
        """Return some of the rows."""
        return self.rows[block]

    def value(self, theta: Array, z: Array) -> float:
        cost = sum(float(np.sum(self.loss.value(z[block], self.target[block]))) for block in self._ranges())
        ridge = 0.5 * self.strong_convexity * float(np.vdot(theta, theta))
        return self.C * cost + ridge + float(np.vdot(self.linear, theta))

    def gradient(self, theta: Array, z: Array) -> Array:
        return self.C * self.adjoint(self._derivative(z)) + self.strong_convexity * theta + self.linear

    def slope(self, z: Array, z_step: Array) -> float:
        """Return how the losses change at predictors `z` along `z_step`."""
        return float(np.vdot(self._derivative(z), z_step))

    def _derivative(self, z: Array) -> Array:
        out = np.empty(z.shape)
        for block in self._ranges():
            out[block] = self.loss.derivative(z[block], self.target[block])
        return out

    def newton_solver(self, z: Array) -> Callable[[Array], Array]:
        """Return a map from a gradient to the Newton step, for the second derivative at `z`."""
        bends = self.bends(z)
        return self.solver_of(self.second(bends) if self.has_matrix else None, lambda v: self.second_along(bends, v))

    @property
    def has_matrix(self) -> bool:
        """Whether second derivatives are computed as matrices."""
        # With few rows, second derivatives are well conditioned by the ridge, and few products of them are enough. A
        # small matrix takes little time, and its steps hardly depend on the order of additions.
        size = math.prod(self.shape)
        return size <= _SMALL or (size <= DENSE_LIMIT and self.n_rows >= self._rows_of_matrix * size)

    def bends(self, z: Array) -> Array:
        """Return the numbers that determine the second derivative of each row's loss."""
        return np.concatenate([self.loss.bends(z[block], self.target[block]) for block in self._ranges()])

    def second(self, bends: Array) -> Array:
        """Return the second derivative of the sum of losses."""
        q, p = self.shape
        hessian = np.zeros((q, p, q, p))
        for a, output in enumerate(np.eye(q)):
            weights = self.loss.bend_along(bends, np.broadcast_to(output, (self.n_rows, q)))
            for b in range(a, q):
                gram = self.gram(weights[:, b], a == b)
                hessian[a, :, b, :] = gram
                hessian[b, :, a, :] = gram
        return hessian.reshape(q * p, q * p)

    def second_along(self, bends: Array, direction: Array) -> Array:
        """Return the product of the second derivative of the sum of losses and a direction."""
        u = self.predictor(direction)
        for block in self._ranges():
            u[block] = self.loss.bend_along(bends[block], u[block])
        return self.adjoint(u)

    def solver_of(self, second: Array | None, along: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return the solver for a second derivative of the losses plus the ridge, or for its products if it is None."""
        factor = None if second is None else self.factor_of(second)
        if factor is None:
            return self._iterative_solver(along)
        return lambda g: linalg.cho_solve(factor, g.ravel(), check_finite=False).reshape(self.shape)

    def factor_of(self, second: Array) -> Any:
        """Return the Cholesky factor of a second derivative of the losses plus the ridge, or None if there is none."""
        # The trace term only prevents errors of the factorisation. The certificate verifies the result.
        matrix = self.C * second
        matrix[np.diag_indices(len(matrix))] += self.strong_convexity + 1e-14 * np.trace(matrix)
        try:
            # The transposed matrix is in the order of LAPACK, and is not copied.
            return linalg.cho_factor(matrix.T, lower=False, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            # Rounding may exceed the trace term. An exception would disclose a bit about the data.
            return None

    def _iterative_solver(self, along: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return the Newton step of a gradient by conjugate gradients, for the curvature `along` a direction."""
        size = math.prod(self.shape)

        def product(flat: Array) -> Array:
            direction = flat.reshape(self.shape)
            return (self.C * along(direction) + self.strong_convexity * direction).ravel()

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        largest = self.C * self.norm * max(self.n_rows, 1)

        def step(g: Array) -> Array:
            # Far from the minimum, a precise step is no better (Dembo, Eisenstat and Steihaug 1982).
            precision = min(max(math.sqrt(float(np.linalg.norm(g)) / largest), 1e-3), 0.1)
            return cg(operator, g.ravel(), rtol=precision, atol=0.0, maxiter=200)[0].reshape(self.shape)

        return step

    def certified_gradient(self, theta: Array) -> tuple[Array, float]:
        """Return the gradient in double precision and a bound on the norm of its error."""
        return self.certified(theta, self.gradient_of_losses(theta))

    def gradient_of_losses(self, theta: Array) -> Array:
        """Return the sum of the gradients of the losses, in double precision."""

        def block(rows: NDArray, target: NDArray) -> NDArray:
            derivative = self.loss.derivative(rows @ theta.T, target)
            whole = len(rows) // INNER_ROWS * INNER_ROWS
            d = derivative[:whole].reshape(-1, INNER_ROWS, self.shape[0]).transpose(0, 2, 1)
            x = rows[:whole].reshape(-1, INNER_ROWS, self.shape[1])
            return (d @ x).sum(axis=0) + derivative[whole:].T @ rows[whole:]

        return sum_over_rows(block, self.rows, self.target)

    def certified(self, theta: Array, total: Array) -> tuple[Array, float]:
        """Return the gradient, and a bound on its error, from the sum of the gradients of the losses."""
        # A sum of p products makes a predictor, and sums of q of those make the q + 1 logits.
        q, p = self.shape
        margin_error = (p + 2 + q**1.5) * self.norm * float(np.linalg.norm(theta))
        return self._finish(theta, total, self.loss.curvature * margin_error, INNER_ROWS + 64)

    def precise_gradient(self, theta: Array) -> tuple[Array, float]:
        """Return the gradient from pairs of doubles, and a bound on the norm of its error."""
        return self.precise(theta, self.precise_blocks(theta))

    def precise_blocks(self, theta: Array) -> list[Array]:
        """Return the sums of the gradients of the losses of each block of rows, from pairs of doubles."""

        def block(rows: NDArray, target: NDArray) -> NDArray:
            high, low = _precise_product(rows, theta)
            derivative = self.derivative_of_pairs(high, low, target)
            return np.stack([_precise_sum(derivative[:, [k]], rows) for k in range(self.shape[0])])

        return [
            block(self.dense(slice(start, start + _PRECISE_ROWS)), self.target[start : start + _PRECISE_ROWS])
            for start in range(0, max(self.n_rows, 1), _PRECISE_ROWS)
        ]

    def derivative_of_pairs(self, high: Array, low: Array, target: NDArray) -> Array:
        """Return the derivative at predictors that are unevaluated sums of two doubles."""
        # One step of Taylor's series includes the low part. The rest is of second order.
        return self.loss.derivative(high, target) + self.loss.bend_along(self.loss.bends(high, target), low)

    def precise(self, theta: Array, blocks: list[Array]) -> tuple[Array, float]:
        """Return the gradient, and a bound on its error, from the sums of blocks of rows."""
        total = np.array([math.fsum(entry) for entry in zip(*(b.ravel() for b in blocks), strict=True)])
        return self._finish_precise(theta, total.reshape(self.shape))

    def _finish_precise(self, theta: Array, total: Array) -> tuple[Array, float]:
        # The series ignores a kink within the low part of a predictor. Logits are as for doubles.
        margin_error = (self.shape[0] ** 1.5 + 1) * self.norm * float(np.linalg.norm(theta))
        return self._finish(theta, total, 1 + self.loss.curvature * margin_error, 4)

    def _finish(self, theta: Array, total: Array, per_row: float, terms: int) -> tuple[Array, float]:
        """Add the regulariser, and bound the error of the sum."""
        # For each row, the derivative is off by `per_row` units through its predictor, and by at most ``4 (q + 3)``
        # through its evaluation (a few roundings and one exponential for each class; q + 1 numbers of size at most 16
        # are added to logits, whose curvature is 1/2). Addition adds one unit for each of the `terms` that a row's
        # total passes through, relative to the sum of norms. The bound is doubled for terms of second order.
        gradient = self.C * total + self.strong_convexity * theta + self.linear
        n_rows, q = self.n_rows, self.shape[0]
        units = per_row + 4 * (q + 3) + (8 * math.sqrt(q + 1) if q > 1 else 0.0) + terms * self.loss.lipschitz
        error = self.C * n_rows * self.norm * units
        error += 8 * self.strong_convexity * float(np.linalg.norm(theta))
        error += 8 * float(np.linalg.norm(self.linear))
        return gradient, 2 * _UNIT * error


def two_sum(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    """Knuth's error-free sum: a + b = s + e."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: NDArray, b: NDArray | float) -> tuple[NDArray, NDArray]:
    """Dekker's error-free product, away from overflow: a * b = p + e."""

    def split(x: NDArray | float) -> tuple[NDArray, NDArray]:
        c = 134217729.0 * np.asarray(x)
        high = c - (c - x)
        return high, np.asarray(x - high)

    p = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _precise_product(rows: Array, theta: Array) -> tuple[Array, Array]:
    """Return rows times theta transposed, as an unevaluated sum of two doubles."""
    high = np.zeros((len(rows), len(theta)))
    low = np.zeros_like(high)
    for k in range(len(theta)):
        for j in range(rows.shape[1]):
            product, product_error = two_product(rows[:, j], theta[k, j])
            high[:, k], sum_error = two_sum(high[:, k], product)
            low[:, k] += product_error + sum_error
    # The errors of many sums may add up. Therefore the part above half a unit is moved into the high part.
    return two_sum(high, low)


def _precise_sum(weights: Array, rows: Array) -> Array:
    """Return the sum of weighted rows, by error-free products and sums over a binary tree."""
    high, low = two_product(rows, weights)
    while len(high) > 1:
        half = len(high) // 2
        rest = high[2 * half :], low[2 * half :]
        high, error = two_sum(high[:half], high[half : 2 * half])
        low = low[:half] + low[half : 2 * half] + error
        high, low = np.vstack([high, rest[0]]), np.vstack([low, rest[1]])
    return high.sum(axis=0) + low.sum(axis=0)


def certified_minimizer(objective: Objective, tau: float, max_iter: int) -> Array:
    """Return a point at which the norm of the gradient is proved to be at most `tau`, a public number."""
    # The message of a CertificateError is fixed, because it must not depend on the data.
    with np.errstate(all="ignore"):
        theta = _newton(objective, tau / 16, max_iter)
        gradient, error = objective.certified_gradient(theta)
        if np.linalg.norm(gradient) + error <= tau:
            return theta
        return _precise_search(objective, theta, tau, max_iter)


def _newton(objective: Objective, goal: float, max_iter: int, coarse: bool = False) -> Array:
    """Minimise by Newton's method with backtracking. The factor of a matrix is reused while it helps."""
    n_rows, p = objective.n_rows, objective.shape[1]
    theta = np.zeros(objective.shape)
    if n_rows > _COARSE_RATIO * max(2000, 4 * p):
        theta = _newton(objective.subsample(_COARSE_RATIO), goal, max_iter, coarse=True)
    z = objective.predictor(theta)
    cost = objective.value(theta, z)
    gradient = objective.gradient(theta, z)
    norm = float(np.linalg.norm(gradient))
    if coarse:
        # The sampling error of a part of the rows is far larger than this.
        goal = max(goal, 1e-3 * norm)
    solver = None
    for _ in range(max_iter):
        if norm <= goal:
            break
        fresh = solver is None
        if solver is None:
            solver = objective.newton_solver(z)
        step = solver(gradient)
        trial, trial_z, trial_cost, t = _line_search(objective, theta, z, cost, gradient, step, fresh)
        if t == 0.0:
            if fresh:
                break
            solver = None
            continue
        theta, z, cost = trial, trial_z, trial_cost
        gradient = objective.gradient(theta, z)
        previous, norm = norm, float(np.linalg.norm(gradient))
        if norm > 0.1 * previous or not objective.has_matrix:
            if fresh and t == 1.0 and norm > 0.9 * previous and norm < 1e-3 * objective.C * objective.norm:
                break
            solver = None
    return theta


def _line_search(
    objective: Objective, theta: Array, z: Array, cost: float, gradient: Array, step: Array, fresh: bool
) -> tuple[Array, Array, float, float]:
    """Take all of minus `step` if the objective decreases by a tenth of its slope's promise, or else the best part."""
    slope = float(np.vdot(gradient, step))
    z_step = objective.predictor(step)

    def tried(t: float) -> tuple[Array, Array, float, float]:
        trial, trial_z = theta - t * step, -t * z_step
        trial_z += z
        return trial, trial_z, objective.value(trial, trial_z), t

    whole = tried(1.0)
    # Near the minimum, rounding hides the decrease, and the gradient is more precise.
    if cost - whole[2] >= 0.1 * slope or abs(slope) < 1e-9 * abs(cost):
        return whole
    if not fresh:
        return theta, z, cost, 0.0
    # The slope along the step increases. It is halved until it is negative, and then its sign change is bisected.
    low, high = 0.0, 1.0
    while high > _LEAST_STEP and high - low > 0.1 * high:
        middle = (low + high) / 2
        rise = objective.C * objective.slope(z - middle * z_step, z_step)
        rise += float(np.vdot(objective.strong_convexity * (theta - middle * step) + objective.linear, step))
        low, high = (middle, high) if rise > 0 else (low, middle)
    best = tried(low)
    return best if low > 0 and best[2] < cost else (theta, z, cost, 0.0)


def _precise_newton(
    objective: Objective, theta: Array, tau: float, n_steps: int, whole: bool
) -> tuple[Array, float, float]:
    """Take Newton steps on precise gradients. Return the best point, its gradient's norm, and a bound on the error."""
    # With `whole`, all steps have full length. Such steps find the minimum of a piecewise quadratic loss from a
    # distance, but they may diverge. Otherwise, steps far beyond the minimum of the objective are shortened.
    gradient, error = objective.precise_gradient(theta)
    norm, length, solver = float(np.linalg.norm(gradient)), 1.0, None
    best = theta, norm, error
    for _ in range(n_steps):
        if norm + error <= tau:
            break
        if solver is None:
            solver = objective.newton_solver(objective.predictor(theta))
        step = solver(gradient)
        trial = theta - length * step
        trial_gradient, trial_error = objective.precise_gradient(trial)
        # The slope along a step increases, from minus this product to 0 at the minimum and above 0 beyond it.
        if not whole and not np.vdot(trial_gradient, step) >= -0.5 * np.vdot(gradient, step):
            length, solver = length / 4, None
            continue
        theta, gradient, error = trial, trial_gradient, trial_error
        previous, norm = norm, float(np.linalg.norm(gradient))
        if norm < best[1]:
            best = theta, norm, error
        if not norm < 0.5 * previous:
            solver = None
        length = min(1.0, 2 * length)
    return best


def _precise_search(objective: Objective, theta: Array, tau: float, max_iter: int) -> Array:
    """Use Newton's method on precise gradients, then accelerated gradient descent. Public numbers bound all steps."""
    for whole in (True, False):
        theta, norm, error = _precise_newton(objective, theta, tau, max(max_iter, _PRECISE_STEPS), whole)
        if norm + error <= tau:
            return theta
    strong = objective.strong_convexity
    smooth = strong + objective.C * objective.loss.curvature * objective.norm**2 * objective.n_rows
    momentum = (math.sqrt(smooth) - math.sqrt(strong)) / (math.sqrt(smooth) + math.sqrt(strong))
    ahead = theta
    for _ in range(_DESCENT_STEPS):
        gradient, error = objective.precise_gradient(ahead)
        if np.linalg.norm(gradient) + error <= tau:
            return ahead
        if not error < 0.9 * tau:
            break
        previous, theta = theta, ahead - gradient / smooth
        ahead = theta + momentum * (theta - previous)
    raise CertificateError(
        "the tolerance of the solver cannot be certified for this number of rows. Choose a larger tol or "
        f"a smaller C, if the estimator has these parameters. {charge()}"
    )
