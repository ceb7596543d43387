"""The objective of objective perturbation for records with weights, from the cells of the records.

The weight of a record and its offset (its score before the fit) are functions of its own cells and of released numbers.
Features of records are stored only in a search in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special
from scipy.sparse.linalg import LinearOperator, cg

from ..schema.columns import Codes, code_type
from ..sensitivity import sum_over_rows
from ..solvers.certified import INNER_ROWS, Bends, Objective
from ..solvers.losses import SmoothLoss
from ._groups import Centred, Group
from ._terms import sums_of_values

Array = NDArray[np.float64]

# Large groups of indicators are solved by their diagonal and conjugate gradients: groups of more bins than the first
# number, or than the second number if there would otherwise be too many features for a factorisation.
_MOST_BINS = 64, 16

# There are too many features above the second number, and above the first number if the conjugate gradients take less
# time than a factorisation: the product of records and terms, over the cube of the features, is below the third number.
_FEW_FEATURES, _MANY_FEATURES, _TIME = 1000, 2500, 4e-4

# Number of records whose pairs of bins are counted at once.
_PAIR_ROWS = 2**14


class WeightedLogLoss(SmoothLoss):
    r"""The loss :math:`w \log(1 + e^{a - s(z + o)})` of a target with a sign s, a weight w and an offset o."""

    lipschitz = 1.0
    curvature = 0.25

    def __init__(self, margin: float) -> None:
        self.margin = margin

    def encode(self, codes: NDArray[np.intp]) -> Array:
        out = np.zeros((len(codes), 3))
        out[:, 0] = np.where(codes == 1, 1.0, -1.0)
        out[:, 1] = 1.0
        return out

    def _excess(self, z: Array, target: Array) -> Array:
        excess: Array = self.margin - target[:, 0] * (z[:, 0] + target[:, 2])
        return excess

    def value(self, z: Array, target: Array) -> Array:
        x = self._excess(z, target)
        cost: Array = target[:, 1] * (np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0))
        return cost

    def derivative(self, z: Array, target: Array) -> Array:
        slope: Array = -target[:, :1] * target[:, 1:2] * special.expit(self._excess(z, target))[:, None]
        return slope

    def second_derivative(self, z: Array, target: Array) -> Iterator[tuple[int, int, Array]]:
        p = special.expit(self._excess(z, target))
        yield 0, 0, target[:, 1] * (p * (1 - p))


class WeightedObjective(Objective):
    """Sum the weighted losses of the records of an additive model, plus a ridge and a linear term."""

    # Errors are relative to the norms of rows before they are centred, because the computation uses these rows.

    def __init__(
        self,
        features: Centred,
        codes: Codes,
        target: Array,
        loss: WeightedLogLoss,
        C: float,
        ridge: float,
        linear: Array,
        largest_start: float = 0.0,
        count: float = 0.0,
    ) -> None:
        # `largest_start` is a bound on the offsets of records, and `count` is their released number.
        self._features, self._largest_start, self._count = features, largest_start, count
        self._cells = codes
        self._prepare(target, features.raw_norm, loss, C, ridge, linear)

    def subsample(self, ratio: int) -> WeightedObjective:
        part = np.ascontiguousarray(self._cells[:, ::ratio])
        assert isinstance(self.loss, WeightedLogLoss)
        return WeightedObjective(
            self._features,
            part,
            self.target[::ratio],
            self.loss,
            self.C * ratio,
            self.strong_convexity,
            self.linear,
            self._largest_start,
            self._count,
        )

    def predictor(self, theta: Array) -> Array:
        tables, intercept = self._features.tables(theta[0, :-1]), self._features.layout.constant * theta[0, -1]
        return sums_of_values(tables, intercept, self._cells)[:, None]

    def adjoint(self, weights: Array) -> Array:
        sums: list[Any] = [
            np.bincount(own, weights=weights[:, 0], minlength=size + 1)
            for own, size in zip(self._cells, self._features.layout.sizes, strict=True)
        ]
        return self._of_cells(sums, float(weights.sum()))

    def _of_cells(self, sums: list[Array], total: float) -> Array:
        """Return the sum of weighted rows from the sums of weights by term and cell, and over all records."""
        return np.append(self._features.adjoint(sums), self._features.layout.constant * total)[None]

    @cached_property
    def _most_bins(self) -> int:
        groups = self._features.layout.groups
        size = sum(group.width for group in groups if group.rows is not None or group.size <= _MOST_BINS[0])
        work = self._count * len(self._features.layout.terms)
        return _MOST_BINS[size > (_MANY_FEATURES if work > _TIME * size**3 else _FEW_FEATURES)]

    def _is_dense(self, group: Group) -> bool:
        return group.rows is not None or group.size <= self._most_bins

    @cached_property
    def _dense(self) -> list[tuple[NDArray, Array]]:
        """For each term, the bin of each record in the groups without many indicators, and the features of bins."""
        out = []
        layout = self._features.layout
        for t, own in enumerate(self._cells):
            which = [k for k, g in enumerate(layout.groups) if g.term == t and self._is_dense(g)]
            if not which:
                continue
            # All groups of a term but one, that of its cells, have the same bins.
            bins = min((layout.groups[k].bins for k in which), key=lambda own: -int(own.max(initial=-1)))
            n_bins = max(layout.groups[k].size for k in which)
            parts = []
            for k in which:
                group, rows = layout.groups[k], self._features.bin_rows(k)
                parts.append(rows if group.size == n_bins else rows[group.bins])
            width = sum(part.shape[1] for part in parts)
            every = np.append(bins, n_bins).astype(code_type(n_bins))
            # Cells that are bins are not copied.
            in_bins = own if np.array_equal(every, np.arange(len(every))) else every[own]
            out.append((in_bins, np.vstack([np.hstack(parts), np.zeros((1, width))])))
        return out

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the features of dense groups, by term, and of the constant, and positions of other features."""
        layout = self._features.layout
        every = np.arange(layout.n_features)
        pairs = list(zip(layout.groups, layout.slices, strict=True))
        by_term = [
            every[where] for t in range(len(layout.terms)) for g, where in pairs if g.term == t and self._is_dense(g)
        ]
        others = [every[where] for g, where in pairs if not self._is_dense(g)]
        nothing = np.empty(0, dtype=np.intp)
        return np.concatenate([nothing, *by_term, [layout.n_features]]).astype(np.intp), np.concatenate(
            [nothing, *others]
        )

    def _dense_gram(self, weights: Array) -> Array:
        """Return the sum of weighted products of the features of dense groups and the constant."""
        blocks, constant = self._dense, self._features.layout.constant
        starts = np.cumsum([0, *(rows.shape[1] for _, rows in blocks)]).tolist()
        slices = [slice(a, b) for a, b in pairwise(starts)]
        out = np.empty((starts[-1] + 1, starts[-1] + 1))
        joint = {(t, u): np.zeros(len(blocks[t][1]) * len(blocks[u][1])) for u in range(len(blocks)) for t in range(u)}
        for start in range(0, self.n_rows, _PAIR_ROWS):
            part = slice(start, start + _PAIR_ROWS)
            bins = [own[part].astype(np.intp) for own, _ in blocks]
            for (t, u), counts in joint.items():
                places = bins[t] * len(blocks[u][1])
                places += bins[u]
                counts += np.bincount(places, weights=weights[part], minlength=len(counts))
        for (own, rows), where in zip(blocks, slices, strict=True):
            by_bin: Any = np.bincount(own, weights=weights, minlength=len(rows))
            out[where, where] = rows.T @ (rows * by_bin[:, None])
            out[where, -1] = out[-1, where] = constant * (by_bin @ rows)
        for (t, u), counts in joint.items():
            first, second = blocks[t][1], blocks[u][1]
            block = first.T @ counts.reshape(len(first), len(second)) @ second
            out[slices[t], slices[u]], out[slices[u], slices[t]] = block, block.T
        out[-1, -1] = constant**2 * weights.sum()
        return out

    has_matrix = True

    def second(self, bends: Bends) -> Array:
        """Return the entries of the second derivative for dense groups and the constant, and its other diagonal."""
        ((_, _, weights),) = bends
        return np.append(self._dense_gram(weights), self._indicator_diagonal(weights))

    def solver_of(self, second: Array | None, along: Callable[[Array], Array]) -> Callable[[Array], Array]:
        assert second is not None
        dense, others = self._places
        matrix, diagonal = np.split(second, [len(dense) ** 2])
        factor = self.factor_of(matrix.reshape(len(dense), -1))
        if factor is None:
            return super().solver_of(None, along)
        if not len(others):
            order = np.argsort(dense)
            return lambda g: linalg.cho_solve(factor, g[0, dense], check_finite=False)[order][None]
        diagonal = self.strong_convexity + self.C * diagonal
        size = self.shape[1]

        def product(direction: Array) -> Array:
            out: Array = self.C * along(direction[None])[0] + self.strong_convexity * direction
            return out

        def solved_in_part(residual: Array) -> Array:
            out = np.empty(size)
            out[dense] = linalg.cho_solve(factor, residual[dense], check_finite=False)
            out[others] = residual[others] / diagonal
            return out

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        near = LinearOperator((size, size), matvec=solved_in_part, dtype=np.float64)
        return lambda g: cg(operator, g[0], rtol=1e-2, atol=0.0, maxiter=200, M=near)[0][None]

    def _indicator_diagonal(self, weights: Array) -> Array:
        features, layout = self._features, self._features.layout
        out = [np.empty(0)]
        for group, scale, shares in zip(layout.groups, features.scales, features.shares, strict=True):
            if not self._is_dense(group):
                own = np.bincount(self._cells[group.term], weights=weights, minlength=len(group.bins) + 1)
                sums = np.bincount(group.bins, weights=own[:-1], minlength=group.size)
                out.append(scale**2 * (sums * (1 - 2 * shares) + shares**2 * sums.sum()))
        return np.concatenate(out)

    def gradient_of_losses(self, theta: Array) -> Array:
        layout = self._features.layout
        z = self.predictor(theta)

        def block(predictors: NDArray, target: NDArray, cells: NDArray) -> NDArray:
            derivative = self.loss.derivative(predictors, target)[:, 0]
            part = np.arange(len(derivative)) // INNER_ROWS
            n_parts = int(part[-1]) + 1 if len(part) else 1
            sums = []
            for own, size in zip(cells.T, layout.sizes, strict=True):
                by_part = np.bincount(part * (size + 1) + own, weights=derivative, minlength=n_parts * (size + 1))
                sums.append(by_part.reshape(n_parts, size + 1).sum(axis=0))
            by_part = np.bincount(part, weights=derivative, minlength=n_parts)
            sums.append(by_part.sum(keepdims=True))
            return np.concatenate(sums)

        total = sum_over_rows(block, z, self.target, self._cells.T)
        ends = np.cumsum([size + 1 for size in layout.sizes])
        sums = np.split(total, ends)
        return self._of_cells(sums[:-1], float(sums[-1][0]))

    def certified(self, theta: Array, total: Array) -> tuple[Array, float]:
        """Return the gradient, and a bound on its error, from the sum of the gradients of the losses.

        The value of a cell is a sum over the groups of its term. Each summand is a product with a row, or a difference
        of two numbers, whose exact sums are rounded once. Relative to the norms of the coefficients and of the row
        before it is centred, the error of a product is at most as many units as its row has entries. Adding up groups,
        terms and the constant costs one unit for each of them, relative to the largest values. Derivatives are added up
        by cell, some rows at a time. Cells are added up by bin, and bins are multiplied by their rows.
        """
        margin_error, terms = self._features.rounding(theta[0])
        terms += INNER_ROWS + 64
        return self._finish(theta, total, self.loss.curvature * margin_error, terms)

    def _finish(self, theta: Array, total: Array, per_row: float, terms: int) -> tuple[Array, float]:
        # The offset of a record is added to its predictor, and entries of rows are rounded.
        largest = self._largest_start + self.norm * float(np.linalg.norm(theta))
        return super()._finish(theta, total, per_row + 1 + self.loss.curvature * largest, terms)

    def dense(self, part: slice) -> Array:
        features = self._features.features(self._cells[:, part])
        return np.hstack([features, np.full((len(features), 1), self._features.layout.constant)])


def weighted_objective(
    features: Centred,
    loss: WeightedLogLoss,
    starts: list[tuple[list[Array], float]],
    largest_start: float,
    count: float,
    C: float,
    ridge: float,
    linear: Array,
    codes: Codes,
    labels: NDArray[np.intp],
) -> WeightedObjective:
    """Return the objective of records with offsets: scores by the released tables and intercepts of earlier rounds."""
    target = loss.encode(labels)
    target[:, 1] = features.record_weights(codes)
    for tables, intercept in starts:
        target[:, 2] += sums_of_values(tables, intercept, codes)
    return WeightedObjective(features, codes, target, loss, C, ridge, linear, largest_start, count)
