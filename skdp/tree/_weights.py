r"""Weights of the trees, by one private Newton step of logistic regression on their scores.

Every tree scores the classes of a record (`_smoothing.scores`); the model is the softmax of the prior's log-odds, plus
a weighted sum of the trees' scores, plus a constant for each class. From public weights, the step
:math:`(H + \lambda I)^{-1} g` goes towards the most likely ones, for the sums over records of

.. math:: g_i = Z_i^\top (e_{y_i} - p_i), \qquad H_i = Z_i^\top (\mathrm{diag}(p_i) - p_i p_i^\top) Z_i ,

where the columns of :math:`Z_i` hold what the weights are multiplied with, and :math:`p_i` are the model's
probabilities at the public weights. A record's pair :math:`(H_i, g_i)` is scaled down to a public norm as a whole: such
a record counts less, and says the same.

What a record adds is computed by operations on single elements, in a fixed order, so that it is the same to the last
bit wherever the record stands, and rounded to a lattice before it is summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..sensitivity import exact_sum
from ._smoothing import LARGEST_LOG_ODDS

Array = NDArray[np.float64]

#: Norms that a record's curvature and gradient may have, by the number of weights and by its square root.
CURVATURE, GRADIENT = 0.125, 0.5

#: The trees' first weights add up to this for each feature. Evidence that features share is then hardly counted twice,
#: and the step is not too long: from weights that are too large, curvature is too small, and it would be.
FIRST_WEIGHT = 0.5

#: Records' worth of curvature that hold the weights to where they start, whatever the noise. Of few records and many
#: trees that say the same, a step without would lead far beyond the best weights.
HELD = 10.0

_BITS = 20

# Entries of a block's factors, at most.
_ENTRIES = 2**21


@dataclass(frozen=True)
class Step:
    """The shape of the release, all of it public.

    Parameters
    ----------
    n_trees, n_classes : int
        Numbers of both.
    """

    n_trees: int
    n_classes: int

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
        return GRADIENT * math.sqrt(self.n_weights)

    @property
    def _largest(self) -> float:
        """Bound on the entries of the factors of the curvature, and of the gradient."""
        return 2 * LARGEST_LOG_ODDS

    @property
    def factor_step(self) -> float:
        return self._largest * 2.0**-_BITS

    @property
    def sensitivity(self) -> float:
        r"""Bound on the L2 norm of what one record adds to the release.

        It adds :math:`(\mathrm{svec}(H_i)/a, g_i/b)`, scaled down to norm 1, but for rounding. The factor :math:`Q` of
        :math:`H_i = Q Q^\top` has :math:`\|Q\|_F^2 = \mathrm{tr} H_i`, and it is this trace, no less than
        :math:`\|H_i\|_F`, that is scaled down to :math:`a`. If the entries, `n_scores` times `n_weights` of them, are
        rounded by half a step, :math:`E` in all, :math:`H_i` moves by at most :math:`2\|Q\|_F\|E\|_F + \|E\|_F^2`, and
        :math:`g_i` by the rounding of its `n_weights` entries. For two classes, :math:`H_i` has rank 1, and a record
        that is scaled down attains the bound, but for rounding.
        """
        moved = self.factor_step / 2 * math.sqrt(self.n_scores * self.n_weights)
        longest = math.sqrt(self.curvature)
        curvature = (2 * longest * moved + moved**2) / self.curvature
        gradient = self.factor_step / 2 * math.sqrt(self.n_weights) / self.gradient
        return (1 + math.hypot(curvature, gradient)) * (1 + 2.0**-40)

    def first_weights(self, coverage: float) -> Array:
        """Return public weights to start from, for trees of which each feature is seen by so many."""
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
    """Return scores of classes, of shape (n_scores, n_rows).

    Parameters
    ----------
    base : ndarray of shape (n_scores,)
        The prior's.
    leaf_scores : iterable of ndarray of shape (n_scores, n_rows)
        The trees'.
    weights : ndarray of shape (n_weights,)
        Of trees, and constants.
    """
    constants = weights[len(weights) - len(base) :]
    # Of three classes or more, only differences between constants matter.
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
    """Sum over the first axis, one after the other."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total += term
    return total


def record_terms(
    step: Step, leaf_scores: Array, base: Array, weights: Array, codes: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return what records add: a factor of the curvature and the gradient, scaled down to the public norm.

    Parameters
    ----------
    step : Step
        The release.
    leaf_scores : ndarray of shape (n_trees, n_scores, n_rows)
        Scores of the trees.
    base : ndarray of shape (n_scores,)
        The prior's.
    weights : ndarray of shape (n_weights,)
        Where the step starts.
    codes : ndarray of shape (n_rows,)
        Positions of classes.

    Returns
    -------
    factors : ndarray of shape (n_weights, n_scores, n_rows)
        A record's curvature is the product of its factor with itself.
    gradients : ndarray of shape (n_weights, n_rows)
        A record's gradient.
    """
    n_rows = len(codes)
    p = probabilities(decision(base, leaf_scores, weights))
    if step.n_scores == 1:
        centred = np.concatenate([leaf_scores, np.ones((1, 1, n_rows))])
        gradients = centred[:, 0] * ((codes == 1) - p[1])
        factors = centred * np.sqrt(p[0] * p[1])
    else:
        mean = _in_order(leaf_scores.transpose(1, 0, 2) * p[:, None])
        constants = np.eye(step.n_scores)[:, :, None] - p[:, None]
        centred = np.concatenate([leaf_scores - mean[:, None], constants])
        gradients = np.take_along_axis(centred, codes[None, None, :], axis=1)[:, 0]
        factors = centred * np.sqrt(p)
    # The trace, which for two classes is the Frobenius norm, and otherwise more.
    curvature = _in_order(_in_order((factors**2).transpose(1, 0, 2))) / step.curvature
    gradient = np.sqrt(_in_order(gradients**2)) / step.gradient
    margin = max(2.0**-42, len(factors) * factors.shape[1] * 2.0**-50)
    weight = (1 - margin) / np.sqrt(np.maximum(curvature**2 + gradient**2, 1.0))
    return factors * np.sqrt(weight), gradients * weight


def newton_sums(step: Step, terms, *arrays: NDArray) -> Array:  # type: ignore[no-untyped-def]
    """Sum curvature and gradient over records, each rounded before it is summed, so that sums are exact.

    Parameters
    ----------
    step : Step
        The release.
    terms : callable
        Maps blocks of the arrays to factors and gradients.
    *arrays : ndarray
        Data, rows alike.

    Returns
    -------
    packed : ndarray of shape (size,)
        What is released, before noise.
    """
    p, unit = step.n_weights, step.factor_step

    def block(*parts: NDArray) -> Array:
        factors, gradients = terms(*parts)
        flat = np.rint(factors / unit).reshape(p, -1)
        return np.hstack([flat @ flat.T, np.rint(gradients / unit).sum(axis=1)[:, None]])

    rows = min(2048, max(16, _ENTRIES // (p * step.n_scores)))
    total = exact_sum(block, *arrays, block_rows=rows)
    return step.pack(total[:, :p] * unit**2, total[:, p] * unit)


def newton_step(step: Step, released: Array, start: Array, ridge: float, spread: float) -> Array:
    """Return the weights that one step leads to, from released sums.

    Parameters
    ----------
    step : Step
        The release.
    released : ndarray of shape (size,)
        Curvature and gradient.
    start : ndarray of shape (n_weights,)
        Where the step starts.
    ridge : float
        Holds the weights to where they start; `HELD` is added.
    spread : float
        Standard deviation of the noise in an entry of the gradient, which is shrunk as by James and Stein.

    Returns
    -------
    weights : ndarray of shape (n_weights,)
        Of the trees, and constants.
    """
    curvature, gradient = step.unpack(released)
    square, by_chance = float(gradient @ gradient), step.n_weights * spread**2
    shrunk = 1 - by_chance / square if square > by_chance else 0.0
    values, vectors = np.linalg.eigh(curvature)
    return start + shrunk * vectors @ ((vectors.T @ gradient) / (np.maximum(values, 0.0) + ridge + HELD))
