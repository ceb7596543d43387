r"""Log-odds of classes and importances of columns from noisy leaf counts, and weights of trees.

Scores of leaves are post-processing. The model is the softmax of the prior's log-odds, plus a weighted sum of the
trees' scores, plus a constant for each class. The first weights are equal, and their scale is chosen privately. The
step :math:`(H + \lambda I)^{-1} g` from there increases the likelihood, for the sums over records of

.. math:: g_i = Z_i^\top (e_{y_i} - p_i), \qquad H_i = \sum_k a(r_{ik})\, l_{ik} l_{ik}^\top,
   \qquad a(r) = \frac{\tanh(r/2)}{2r} ,

where the rows of :math:`Z_i` hold the factors of the weights, for each class, and :math:`p_i` are the probabilities of
the model at the start. Order the classes by decreasing probability. Then :math:`l_{ik}` is the row of the `k`-th class
minus the mean of the rows before it, weighted by their probabilities, and :math:`r_{ik}` is the logarithm of the ratio
of its probability to theirs together. This :math:`H_i` is not the curvature of the log-likelihood :math:`\ell_i` but
bounds it everywhere:

.. math:: \ell_i(w + d) \ge \ell_i(w) + g_i^\top d - \tfrac12 d^\top H_i d \quad\text{for all } d .

The user guide ("Weights" of the trees) has the proof. Hence, for any :math:`\lambda \ge 0` and :math:`0\le t\le2`, the
step :math:`d = t(H+\lambda I)^{-1}g` does not lower the log-likelihood.

The pair :math:`(H_i, g_i)` of a record is scaled down to a public norm as a whole, which gives the record less weight.
It is computed by operations on single elements, in a fixed order. Therefore it has the same bits at every position of
the record, and it is rounded to a lattice before it is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..sensitivity import exact_sum, pack_symmetric, unpack_symmetric
from ._structure import Forest

Array = NDArray[np.float64]

#: Number of records of the parent's distribution that are added to a cell, against sampling error.
PRIOR_RECORDS = 2.0

#: Log-odds are clipped to this. A leaf makes a class at most 20 times as likely, or as unlikely.
LARGEST_LOG_ODDS = 3.0

#: Leaves differ from the prior by more than chance if one level differs by so many standard deviations.
EVIDENCE = 2.0

#: The splits of a column in a level count if they decrease impurity by so many standard deviations of chance. Deep
#: levels have many nodes with few records, and much of their sum is chance.
SPLIT_EVIDENCE = 3.0

#: For labels, this is tested only if sampling has at least this part in the variance of chance. If noise has nearly all
#: of it, the records do not repeat the noise, and the choice of weights detects leaves without information.
_SAMPLING_SHARE = 1 / 6


def totals_of(
    counts: Array, reachable: NDArray[np.bool_], noise: float, first: tuple[Array, float] | None = None
) -> tuple[Array, float]:
    """Return counts of classes over all records, and the standard deviation of the noise in each."""
    # The trees count the same records, so that the mean of their totals has less noise.
    n_trees = len(counts)
    totals = counts.sum(axis=1).mean(axis=0)
    root_noise = noise * np.sqrt(reachable.sum() / n_trees / n_trees)
    if first is not None and root_noise > 0:
        first_totals, spread = first
        share = root_noise**2 / (root_noise**2 + spread**2)
        totals, root_noise = (1 - share) * totals + share * first_totals, root_noise * np.sqrt(1 - share)
    return totals, float(root_noise)


def class_prior(totals: Array, noise: float) -> Array:
    """Return the shares of classes from their noisy counts over all records."""
    totals, flat = np.maximum(totals, 0.0), noise + PRIOR_RECORDS
    return (totals + flat / len(totals)) / (totals.sum() + flat)


def nodes_by_level(counts: Array, reachable: NDArray[np.bool_]) -> Iterator[tuple[Array, NDArray[np.intp]]]:
    """Yield, for each level below the root, the counts of its nodes and the numbers of their reachable leaves."""
    n_trees, width, n_classes = counts.shape
    while width > 1:
        width //= 2
        nodes = counts.reshape(n_trees, -1, width, n_classes).sum(axis=2)
        yield nodes, reachable.reshape(n_trees, -1, width).sum(axis=2)


def class_distributions(
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    few_trees: bool,
    prior: Array,
    dispersion: float = 1.0,
    of_labels: bool = True,
) -> list[Array]:
    """Estimate class distributions in nodes, level by level from the root, from noisy counts of the leaves."""
    # With `dispersion`, the counts of a leaf vary by this multiple of the variance of labels. Unless they are
    # `of_labels`, they are shares of two ends, whose distribution is a mean.
    n_trees, n_leaves, n_classes = counts.shape
    parent = np.broadcast_to(prior, (n_trees, 1, n_classes))
    levels = [parent]
    if not few_trees and only_chance(counts, reachable, noise, prior, dispersion, of_labels):
        # Weights are estimated from the same records, and would trust leaves that overfit.
        return [np.repeat(parent, 2**level, axis=1) for level in range(n_leaves.bit_length())]
    for noisy, leaves in nodes_by_level(counts, reachable):
        parent = np.repeat(parent, 2, axis=1)
        spread = noise * np.sqrt(leaves)[:, :, None]
        # Let N be the total of a node, q the distribution of its parent and s the noise in each of its K counts c. The
        # deviation d = c - Nq is shrunk as by James and Stein, to max(0, 1 - v/|d|^2) d for v = (K-1) s^2 + N(1-|q|^2),
        # whose last part is multiplied by the dispersion, because noise and sampling alone give v. Otherwise, weights
        # that are estimated from the same records would trust leaves that overfit. The weights of few trees are not
        # estimated. Their d is shrunk to |d|^2/(|d|^2 + (K-1) s^2) d, because small deviations still tell the classes
        # apart. With d' for the shrunk d, the distribution is proportional to q (Nq + d' + 2q + s)/(Nq + 2q + s).
        total = np.maximum(noisy.sum(axis=2, keepdims=True), 0.0)
        expected = total * parent
        deviation = np.maximum(noisy, 0.0) - expected
        square = (deviation**2).sum(axis=2, keepdims=True)
        by_chance = (n_classes - 1) * spread**2
        if not few_trees:
            sampling = expected.sum(axis=2, keepdims=True) * (1 - (parent**2).sum(axis=2, keepdims=True))
            by_chance = by_chance + dispersion * sampling
        if not of_labels:
            # This part of the squared deviations in a level of a tree is the variance between the nodes, and the rest
            # is chance. If the nodes differ little, a deviation must be larger to count. This lowers squared errors.
            by_chance = by_chance / between_nodes(square, by_chance, total)
        if few_trees:
            factor = square / np.maximum(square + by_chance, 1e-300)
        else:
            factor = 1 - by_chance / np.maximum(np.maximum(square, by_chance), 1e-300)
        totals = np.maximum(expected + factor * deviation, 0.0)
        # A node has little information on a class that is rarer than the noise. Without this, noise would make it as
        # likely as others.
        pull = PRIOR_RECORDS * parent + spread
        likely = parent * (totals + pull) / (expected + pull)
        parent = likely / likely.sum(axis=2, keepdims=True)
        levels.append(parent)
    return levels


def node_weights(total: Array, by_chance: Array) -> Array:
    """Weight the nodes of a level by their noisy totals."""
    # Many nodes have no record, and a few may have much information. The weights are between these two cases.
    return np.sqrt(total / np.sqrt(np.maximum(by_chance, 1e-300))) * (by_chance > 0)


def between_nodes(square: Array, by_chance: Array, total: Array) -> Array:
    """Return the part of the squared deviations that is more than chance, for each level of each tree, never 0."""
    weight = node_weights(total, by_chance)
    ratio = (weight * square / np.maximum(by_chance, 1e-300)).sum(axis=1, keepdims=True)
    ratio = ratio / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    return np.maximum(1 - 1 / np.maximum(ratio, 1e-9), 1e-9)


def only_chance(
    counts: Array,
    reachable: NDArray[np.bool_],
    noise: float,
    prior: Array,
    dispersion: float = 1.0,
    of_labels: bool = True,
) -> bool:
    """Tell whether noise and sampling explain by how much the nodes of a forest differ from the prior."""
    n_classes, square, evidence = len(prior), float(prior @ prior), -np.inf
    varies = dispersion * (1 - square)
    sampling = max(float(counts.sum()), 0.0) * varies
    of_noise = noise**2 * float(reachable.sum()) * (n_classes - 2 + n_classes * square)
    if of_labels and sampling <= _SAMPLING_SHARE * (sampling + of_noise):
        return False
    for noisy, leaves in nodes_by_level(counts, reachable):
        total = noisy.sum(axis=2)
        # The expected square of the deviation of the counts from the prior times their noisy total.
        by_chance = noise**2 * leaves * (n_classes - 2 + n_classes * square) + np.maximum(total, 0.0) * varies
        counted = (total > 0) & (by_chance > 0)
        if not counted.any():
            continue
        deviation, by_chance = (noisy - total[:, :, None] * prior)[counted], by_chance[counted]
        excess = (deviation**2).sum(axis=1) / by_chance - 1
        weight = node_weights(total[counted], by_chance)
        # An excess has a variance of at most 2. In the worst case, those of the two sides of a split are the same.
        evidence = max(evidence, float(weight @ excess) / (2 * float(np.linalg.norm(weight))))
    return bool(evidence < EVIDENCE)


def scores(distributions: Array, prior: Array) -> Array:
    """Return clipped log-odds of the classes in leaves against the prior: one number for two classes, else one each."""
    ratio = np.log(distributions) - np.log(prior)
    if len(prior) == 2:
        return log_odds(ratio).clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    # Clipping comes before centring, so that a class that is almost absent does not move the others.
    return log_odds(ratio.clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def log_odds(logs: Array) -> Array:
    """Convert log-probabilities to one score for two classes, and to scores of mean 0 for more."""
    if logs.shape[-1] == 2:
        return logs[..., 1:] - logs[..., :1]
    return logs - logs.mean(axis=-1, keepdims=True)


def few_records(counts: Array, noise: float) -> NDArray[np.bool_]:
    """Tell which nodes have noisy counts below twice the noise of one leaf, and include all nodes below them."""
    n_leaves, n_classes = counts.shape
    levels, few = [np.empty(0, dtype=bool)], np.zeros(1, dtype=bool)
    while len(few) < n_leaves:
        totals = counts.reshape(len(few), -1).sum(axis=1)
        levels.append(few | (totals < 2 * noise * np.sqrt(n_classes)))
        few = np.repeat(levels[-1], 2)
    return np.concatenate(levels)


def impurity_decreases(
    forest: Forest, counts: Array, reachable: NDArray[np.bool_], noise: float, n_features: int, dispersion: float = 1.0
) -> Array:
    r"""Return by column the mean decrease of Gini's impurity by its splits in a tree, beyond chance.

    A split of n records into :math:`n_L` and :math:`n_R`, with class distributions :math:`p_L` and :math:`p_R`,
    decreases impurity by :math:`(n_L n_R/n)\lVert p_L-p_R\rVert^2`. The counts are noisy, and noise and sampling alone
    give a positive number. Its expectation follows from the known variances, and is subtracted.
    """
    # `noise` is the standard deviation of the noise in a count. `dispersion` is the ratio of the variance of the
    # counted shares to that of labels.
    n_trees, n_leaves, n_classes = counts.shape
    decreases = np.zeros(n_features)
    for level in range(forest.depth):
        width = n_leaves // 2 ** (level + 1)
        nodes = counts.reshape(n_trees, 2**level, 2, width, n_classes).sum(axis=3)
        variances = noise**2 * reachable.reshape(n_trees, 2**level, 2, width).sum(axis=3)
        totals = nodes.sum(axis=3)
        # Fewer records than this are ignored. A side that no record can reach has neither records nor noise.
        enough = (totals > np.sqrt(n_classes * variances)).all(axis=2)
        splits = np.nonzero(enough & np.isfinite(forest.level(forest.thresholds, level)))
        nodes, variances, totals = nodes[splits], variances[splits], totals[splits]
        n = totals.sum(axis=1)
        # Let a part w of the records be on the left. The left side has (1-w) L - w R more records of each class than it
        # would have with the class shares of the node.
        opposite = totals[:, ::-1] / n[:, None]
        excess = nodes[:, 0] * opposite[:, :1] - nodes[:, 1] * opposite[:, 1:]
        node = np.maximum(nodes.sum(axis=1), 0.0)
        square = ((node / node.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        size = n * opposite[:, 0] * opposite[:, 1]
        by_noise = (opposite**2 * variances).sum(axis=1) * (n_classes - 2 + n_classes * square) / size
        by_sampling = dispersion * (1 - square)
        columns = splits[0], forest.features[splits[0], forest.level(forest.slots, level)[splits]]
        beyond, of_noise, of_sampling = np.zeros((3, n_trees, n_features))
        np.add.at(beyond, columns, (excess**2).sum(axis=1) / size - by_noise - by_sampling)
        # The variance of the square of a normal variable is twice the square of its variance.
        np.add.at(of_noise, columns, 2 * ((by_noise + by_sampling) ** 2 - by_sampling**2))
        np.add.at(of_sampling, columns, 2 * by_sampling**2)
        # Noise is independent in different trees, but the records are the same.
        chance = np.sqrt(of_noise.sum(axis=0) + np.sqrt(of_sampling).sum(axis=0) ** 2)
        beyond = beyond.sum(axis=0)
        decreases += np.where(beyond > SPLIT_EVIDENCE * chance, beyond, 0.0)
    n_trees_of = np.zeros(n_features)
    for features, n_seen in zip(forest.features, forest.n_seen, strict=True):
        n_trees_of[features[:n_seen]] += 1
    return decreases / np.maximum(n_trees_of, 1.0)


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

#: Losses are rounded to multiples of this, and factors of the curvature and the gradient, of at most twice the largest
#: log-odds, to multiples of the other.
_LOSS_STEP = 2.0**-20
FACTOR_STEP = 2 * LARGEST_LOG_ODDS * 2.0**-20

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
    def sensitivity(self) -> float:
        r"""Bound on the L2 norm of the contribution of one record to the release.

        The contribution is :math:`(\mathrm{svec}(H_i)/a, g_i/b)`, scaled down to norm 1, except for rounding. The
        factor :math:`Q` of :math:`H_i = Q Q^\top` has :math:`\|Q\|_F^2 = \mathrm{tr} H_i`. This trace, which is no less
        than :math:`\|H_i\|_F`, is scaled down to :math:`a`. If the entries, `n_scores` times `n_weights` of them, are
        rounded by half a step, :math:`E` in all, :math:`H_i` moves by at most :math:`2\|Q\|_F\|E\|_F + \|E\|_F^2`, and
        :math:`g_i` by the rounding of its `n_weights` entries. For two classes, :math:`H_i` has rank 1, and a record
        that is scaled down attains the bound, except for rounding.
        """
        moved = FACTOR_STEP / 2 * math.sqrt(self.n_scores * self.n_weights)
        longest = math.sqrt(self.curvature)
        curvature = (2 * longest * moved + moved**2) / self.curvature
        gradient = FACTOR_STEP / 2 * math.sqrt(self.n_weights) / self.gradient
        return (1 + math.hypot(curvature, gradient)) * (1 + 2.0**-40)

    def first_weights(self, coverage: float) -> Array:
        """Return public weights to start from, for trees that use each feature `coverage` times."""
        return np.r_[np.full(self.n_trees, FIRST_WEIGHT / max(coverage, 1.0)), np.zeros(self.n_scores)]

    def pack(self, curvature: Array, gradient: Array) -> Array:
        return np.r_[pack_symmetric(curvature, math.sqrt(2)) / self.curvature, gradient / self.gradient]

    def unpack(self, released: Array) -> tuple[Array, Array]:
        p = self.n_weights
        curvature, gradient = np.split(released, [-p])
        return unpack_symmetric(curvature, p, math.sqrt(2)) * self.curvature, gradient * self.gradient


def level_scores(base: Array, constants: Array) -> Array:
    """Return the class scores without trees, from the scores of the prior and the constants of the decision."""
    # With three classes or more, only differences between constants matter.
    return base + (constants if len(constants) == 1 else constants - constants.mean())


def decision(base: Array, leaf_scores: Iterable[Array], weights: Array) -> Array:
    """Return the class scores of rows, of shape (n_scores, n_rows), from the scores of the prior and the trees."""
    total = level_scores(base, weights[len(weights) - len(base) :])[:, None]
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
    """Public or released weights on a line, of choice the mechanism chooses one by `lengths`."""

    start: Array
    direction: Array
    lengths: tuple[float, ...]
    # `odds` are the odds of each candidate if the noise hides all differences.
    odds: tuple[float, ...]

    def at(self, choice: int) -> Array:
        return self.start + self.lengths[choice] * self.direction


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
        losses = (losses_of(probabilities(origin + length * slope), codes) for length in line.lengths)
        return np.array([np.rint(np.clip(loss, 0.0, 1.0) / _LOSS_STEP).sum() for loss in losses])

    # The sum stays on the lattice of the losses, so that rounding does not add to the sensitivity.
    public = np.rint(unit * np.log(line.odds) / _LOSS_STEP)
    return ((public - exact_sum(block, *data)) * _LOSS_STEP)[None]


def newton_sums(step: Step, terms: Callable[..., tuple[Array, Array]], *arrays: NDArray) -> Array:
    """Sum curvature and gradient over records, each rounded before the sum, so that sums are exact."""
    p = step.n_weights

    def block(*arrays_of_block: NDArray) -> Array:
        factors, gradients = terms(*arrays_of_block)
        flat = np.rint(factors / FACTOR_STEP).reshape(p, -1)
        return np.hstack([flat @ flat.T, np.rint(gradients / FACTOR_STEP).sum(axis=1)[:, None]])

    rows = min(2048, max(16, _ENTRIES // (p * step.n_scores)))
    total = exact_sum(block, *arrays, block_rows=rows)
    return step.pack(total[:, :p] * FACTOR_STEP**2, total[:, p] * FACTOR_STEP)


def newton_step(step: Step, released: Array, ridge: float, spread: float) -> Array:
    """Return the change of the weights that maximises the bound, from released sums."""
    # `ridge`, with `RIDGE_RECORDS` added, keeps the weights close to their start. `spread`, the standard deviation of
    # the noise in an entry of the gradient, shrinks the gradient as by James and Stein.
    curvature, gradient = step.unpack(released)
    square, by_chance = float(gradient @ gradient), step.n_weights * spread**2
    shrunk = 1 - by_chance / square if square > by_chance else 0.0
    values, vectors = np.linalg.eigh(curvature)
    return shrunk * vectors @ ((vectors.T @ gradient) / (np.maximum(values, 0.0) + ridge + RIDGE_RECORDS))
