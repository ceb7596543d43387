r"""Weights of the trees, by one private step of logistic regression on their scores.

Every tree scores the classes of a record (`_smoothing.scores`). The model is the softmax of the prior's log-odds, plus
a weighted sum of the trees' scores, plus a constant for each class. The first weights are equal, and their scale is
chosen privately. The step :math:`(H + \lambda I)^{-1} g` from there increases the likelihood, for the sums over records
of

.. math:: g_i = Z_i^\top (e_{y_i} - p_i), \qquad H_i = \sum_k a(r_{ik})\, l_{ik} l_{ik}^\top,
   \qquad a(r) = \frac{\tanh(r/2)}{2r} ,

where the rows of :math:`Z_i` hold the factors of the weights, for each class, and :math:`p_i` are the probabilities of
the model at the start. Order the classes by decreasing probability. Then :math:`l_{ik}` is the row of the `k`-th class
minus the mean of the rows before it, weighted by their probabilities, and :math:`r_{ik}` is the logarithm of the ratio
of its probability to theirs together. This :math:`H_i` is not the curvature of the log-likelihood :math:`\ell_i` but
bounds it everywhere:

.. math:: \ell_i(w + d) \ge \ell_i(w) + g_i^\top d - \tfrac12 d^\top H_i d \quad\text{for all } d .

Proof (Jaakkola and Jordan 2000; Jebara and Choromanska 2012). For two terms,
:math:`\log(e^u + e^v) = (u+v)/2 + \log 2\cosh((u-v)/2)`, whose last part is a concave function of :math:`(u-v)^2`, and
lies below its tangent, of slope :math:`a(u-v)/2`. For more, add one class at a time. If
:math:`\log Z_{k-1}(w+d) \le \log Z_{k-1} + \mu^\top d + \tfrac12 d^\top H d` with :math:`H` positive semi-definite,
then :math:`Z_k(w+d) \le e^{d^\top H d/2}(Z_{k-1}e^{\mu^\top d} + e^{u_k + z_k^\top d})`, and the bound for two terms
applies to the bracket, whose difference of exponents moves by :math:`(z_k - \mu)^\top d`.

Hence, for any :math:`\lambda \ge 0` and :math:`0\le t\le2`, the step :math:`d = t(H+\lambda I)^{-1}g` does not lower
the log-likelihood. It gains at least :math:`t(1-t/2)\,g^\top(H+\lambda I)^{-1}g`. The curvature itself has no such
property. If trees repeat each other, probabilities are near 0 and 1, the curvature vanishes, and its step is arbitrary.

The pair :math:`(H_i, g_i)` of a record is scaled down to a public norm as a whole. Such a record has less weight, and
the likelihood that does not decrease is the weighted one.

The contribution of a record is computed by operations on single elements, in a fixed order. Therefore it has the same
bits at every position of the record, and it is rounded to a lattice before it is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..sensitivity import exact_sum
from ._smoothing import LARGEST_LOG_ODDS

Array = NDArray[np.float64]

#: Largest norms of a record's curvature and gradient, by the number of weights and by its square root.
CURVATURE, GRADIENT = 0.125, 0.5

#: The first weights of the trees add up to this for each feature. Shared evidence is then hardly counted twice.
FIRST_WEIGHT = 0.5

#: Curvature, in records, that keeps the weights close to their start, for every amount of noise. With few records and
#: many similar trees, a step without it would lead far beyond the best weights.
RIDGE_RECORDS = 10.0

#: Factors of the first weights, and their odds. With 0, the model is the prior.
SCALES = (1.0, 2.0, 0.5, 0.25, 0.125, 0.0625, 0.0), (0.9, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01)

#: Lengths of the step, relative to the maximum of the bound, and their odds. Up to 2, the bound guarantees that the
#: likelihood does not decrease. With 0, the weights stay at their start, because the noise in the step does harm.
LENGTHS = (1.5, 3.0, 6.0, 0.0), (0.85, 0.05, 0.05, 0.05)

#: Losses are rounded to multiples of this.
_LOSS_STEP = 2.0**-20

_BITS = 20

# Largest number of entries of a block's factors.
_ENTRIES = 2**21


@dataclass(frozen=True)
class Step:
    """Describe the shape of the release, which is public."""

    n_trees: int
    n_classes: int
    #: Typical size of the differences between outcomes and probabilities. It is 1 for labels.
    difference: float = 1.0

    @property
    def n_scores(self) -> int:
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_weights(self) -> int:
        return self.n_trees + self.n_scores

    @property
    def size(self) -> int:
        p = self.n_weights
        return p * (p + 1) // 2 + p

    @property
    def curvature(self) -> float:
        """Norm of a record's curvature that counts as 1."""
        return CURVATURE * self.n_weights * (1 if self.n_classes == 2 else 2)

    @property
    def gradient(self) -> float:
        """Norm of a record's gradient that counts as 1."""
        return self.difference * GRADIENT * math.sqrt(self.n_weights)

    @property
    def _largest(self) -> float:
        """Bound on the entries of the factors of the curvature, and of the gradient."""
        return 2 * LARGEST_LOG_ODDS

    @property
    def factor_step(self) -> float:
        return self._largest * 2.0**-_BITS

    @property
    def sensitivity(self) -> float:
        r"""Bound on the L2 norm of the contribution of one record to the release.

        The contribution is :math:`(\mathrm{svec}(H_i)/a, g_i/b)`, scaled down to norm 1, except for rounding. The
        factor :math:`Q` of :math:`H_i = Q Q^\top` has :math:`\|Q\|_F^2 = \mathrm{tr} H_i`. This trace, which is no less
        than :math:`\|H_i\|_F`, is scaled down to :math:`a`. If the entries, `n_scores` times `n_weights` of them, are
        rounded by half a step, :math:`E` in all, :math:`H_i` moves by at most :math:`2\|Q\|_F\|E\|_F + \|E\|_F^2`, and
        :math:`g_i` by the rounding of its `n_weights` entries. For two classes, :math:`H_i` has rank 1, and a record
        that is scaled down attains the bound, except for rounding.
        """
        moved = self.factor_step / 2 * math.sqrt(self.n_scores * self.n_weights)
        longest = math.sqrt(self.curvature)
        curvature = (2 * longest * moved + moved**2) / self.curvature
        gradient = self.factor_step / 2 * math.sqrt(self.n_weights) / self.gradient
        return (1 + math.hypot(curvature, gradient)) * (1 + 2.0**-40)

    def first_weights(self, coverage: float) -> Array:
        """Return public weights to start from, for trees that use each feature `coverage` times."""
        return np.r_[np.full(self.n_trees, FIRST_WEIGHT / max(coverage, 1.0)), np.zeros(self.n_scores)]

    def pack(self, curvature: Array, gradient: Array) -> Array:
        p = self.n_weights
        upper = math.sqrt(2) * curvature[np.triu_indices(p, 1)]
        return np.concatenate(
            [np.diagonal(curvature) / self.curvature, upper / self.curvature, gradient / self.gradient]
        )

    def unpack(self, released: Array) -> tuple[Array, Array]:
        p = self.n_weights
        diagonal, upper, gradient = np.split(released, [p, p * (p + 1) // 2])
        curvature = np.diag(diagonal)
        rows, columns = np.triu_indices(p, 1)
        curvature[rows, columns] = curvature[columns, rows] = upper / math.sqrt(2)
        return curvature * self.curvature, gradient * self.gradient


def decision(base: Array, leaf_scores: Iterable[Array], weights: Array) -> Array:
    """Return the class scores of rows, of shape (n_scores, n_rows), from the scores of the prior and the trees."""
    constants = weights[len(weights) - len(base) :]
    # With three classes or more, only differences between constants matter.
    level = base + (constants if len(constants) == 1 else constants - constants.mean())
    total = level[:, None]
    for weight, scores in zip(weights.tolist(), leaf_scores, strict=False):
        total = total + weight * scores
    return total


def probabilities(scores: Array) -> Array:
    """Return probabilities of all classes from scores, classes first."""
    if len(scores) == 1:
        return np.concatenate([special.expit(-scores), special.expit(scores)])
    raised = np.exp(scores - scores.max(axis=0))
    return raised / _in_order(raised)


def _in_order(terms: Array) -> Array:
    """Sum over the first axis in a fixed order."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total += term
    return total


def record_terms(step: Step, leaf_scores: Array, base: Array, weights: Array, codes: NDArray) -> tuple[Array, Array]:
    """Return each record's factor of the curvature and its gradient, scaled down to the public norm."""
    # With two classes, `codes` may be shares of the second one, with the mean log-likelihood of the two labels.
    # `leaf_scores` has shape (n_trees, n_scores, n_rows). The curvature of a record is the product of its factor, of
    # shape (n_weights, n_scores), with itself.
    n_rows = len(codes)
    level = decision(base, leaf_scores, weights)
    p = probabilities(level)
    if step.n_scores == 1:
        columns = np.concatenate([leaf_scores, np.ones((1, 1, n_rows))])
        gradients = columns[:, 0] * (codes - p[1])
        factors = columns * np.sqrt(_majorant(p[1] / p[0]))
    else:
        constants = np.broadcast_to(np.eye(step.n_scores)[:, :, None], (step.n_scores, step.n_scores, n_rows))
        columns = np.concatenate([leaf_scores, constants])
        mean = _in_order(columns.transpose(1, 0, 2) * p[:, None])
        gradients = np.take_along_axis(columns, codes[None, None, :], axis=1)[:, 0] - mean
        factors = _factors(columns, p)
    # The trace. For two classes it is the Frobenius norm, and for more it is larger.
    curvature = _in_order(_in_order((factors**2).transpose(1, 0, 2))) / step.curvature
    gradient = np.sqrt(_in_order(gradients**2)) / step.gradient
    margin = max(2.0**-42, len(factors) * factors.shape[1] * 2.0**-50)
    weight = (1 - margin) / np.sqrt(np.maximum(curvature**2 + gradient**2, 1.0))
    return factors * np.sqrt(weight), gradients * weight


def _majorant(odds: Array) -> Array:
    """Return tanh(x / 2) / 2x for the logarithm x of odds, and its limit of one quarter at 0."""
    # Infinite odds would give NaN. SciPy's functions give each number the same value at every position of an array.
    odds = np.minimum(odds, 1e300)
    logs = special.xlogy(1.0, odds)
    near = np.abs(logs) < 1e-5
    return np.where(near, 0.25, (odds - 1) / (odds + 1) / np.where(near, 1.0, 2 * logs))


def _factors(columns: Array, p: Array) -> Array:
    """Return factors of the bound on the curvature from the factors of the weights, class by class."""
    order = np.argsort(-p, axis=0, kind="stable")
    columns, p = np.take_along_axis(columns, order[None], axis=1), np.take_along_axis(p, order, axis=0)
    factors = np.zeros_like(columns)
    mean, total = np.array(columns[:, 0]), np.array(p[0])
    for k in range(1, len(p)):
        apart = columns[:, k] - mean
        factors[:, k - 1] = apart * np.sqrt(_majorant(np.maximum(p[k], 1e-300) / total))
        total += p[k]
        mean += apart * (p[k] / total)
    return factors


@dataclass(frozen=True)
class Line:
    """Public or released weights on a line, of which the mechanism chooses one by `lengths`."""

    start: Array
    direction: Array
    lengths: tuple[float, ...]
    # `odds` are the odds of each candidate if the noise hides all differences.
    odds: tuple[float, ...]

    def at(self, which: int) -> Array:
        return self.start + self.lengths[which] * self.direction


def brier_losses(p: Array, codes: NDArray[np.intp]) -> Array:
    r"""Return :math:`\|p - e_y\|^2/2`, which is at most 1, because both are probability vectors."""
    right = np.take_along_axis(p, codes[None], axis=0)[0]
    return (_in_order(p**2) + 1 - 2 * right) / 2


def squared_losses(p: Array, shares: Array, largest: float = 1.0) -> Array:
    """Return squared differences of the probability of the second of two classes and its share, over the largest."""
    return np.minimum((p[1] - shares) ** 2 / largest, 1.0)


def line_scores(
    line: Line,
    unit: float,
    base: Array,
    looked_up: Callable[[NDArray], Iterable[Array]],
    losses_of: Callable[[Array, NDArray], Array],
    *data: NDArray,
) -> Array:
    r"""Score weights on a line by sums of losses, which one record moves by at most 1, all in one direction.

    The loss of a record lies in [0, 1] for all weights. It is clipped to that range and rounded to a lattice that holds
    both ends, so that sums are exact. One more record lowers each score by its loss. The odds add a public number.
    `unit` is the difference of scores that counts as one in the exponent of the choice.
    """
    k = len(base)

    def block(rows: NDArray, codes: NDArray) -> Array:
        origin, slope = np.zeros((2, k, len(codes)))
        for start, direction, scores in zip(
            line.start.tolist(), line.direction.tolist(), looked_up(rows), strict=False
        ):
            origin += start * scores
            slope += direction * scores
        origin += (base + line.start[-k:])[:, None]
        slope += line.direction[-k:, None]
        losses = []
        for length in line.lengths:
            p = probabilities(origin + length * slope)
            loss = losses_of(p, codes)
            losses.append(np.rint(np.clip(loss, 0.0, 1.0) / _LOSS_STEP).sum())
        return np.array(losses)

    # The sum stays on the lattice of the losses, so that rounding does not add to the sensitivity.
    public = np.rint(unit * np.log(line.odds) / _LOSS_STEP)
    return ((public - exact_sum(block, *data)) * _LOSS_STEP)[None]


def newton_sums(step: Step, terms, *arrays: NDArray) -> Array:  # type: ignore[no-untyped-def]
    """Sum curvature and gradient over records, each rounded before the sum, so that sums are exact."""
    p, unit = step.n_weights, step.factor_step

    def block(*parts: NDArray) -> Array:
        factors, gradients = terms(*parts)
        flat = np.rint(factors / unit).reshape(p, -1)
        return np.hstack([flat @ flat.T, np.rint(gradients / unit).sum(axis=1)[:, None]])

    rows = min(2048, max(16, _ENTRIES // (p * step.n_scores)))
    total = exact_sum(block, *arrays, block_rows=rows)
    return step.pack(total[:, :p] * unit**2, total[:, p] * unit)


def newton_step(step: Step, released: Array, ridge: float, spread: float) -> Array:
    """Return the change of the weights that maximises the bound, from released sums."""
    # `ridge`, with `RIDGE_RECORDS` added, keeps the weights close to their start. `spread`, the standard deviation of
    # the noise in an entry of the gradient, shrinks the gradient as by James and Stein.
    curvature, gradient = step.unpack(released)
    square, by_chance = float(gradient @ gradient), step.n_weights * spread**2
    shrunk = 1 - by_chance / square if square > by_chance else 0.0
    values, vectors = np.linalg.eigh(curvature)
    return shrunk * vectors @ ((vectors.T @ gradient) / (np.maximum(values, 0.0) + ridge + RIDGE_RECORDS))
