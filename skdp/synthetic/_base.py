"""The base of the joint histogram and of its models: public axes, the release, and the data set that follows from it.

Each record is read separately. Values beyond the bounds belong to the outermost bins. A record with an unknown category
or an unknown label is in no cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, PrivacyEvent
from ..checks.data import NUMBERS
from ..checks.params import Bounds, Checked, Integer, Or, Rules, anything, check_integer
from ..mechanisms import BitStream, DiscreteLaplaceMechanism, Mechanism, NoiseSource, is_gaussian
from ..release.counts import class_sums_mechanism, label_parts, noise_scale, table_parts, warn_of_mismatch
from ..release.estimator import GroupsMixin, LabelsMixin, OutcomesMixin, Records, RowsMixin, Shape, TargetsMixin
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import Unit
from ..schema.columns import COLUMN_RULES, Columns, Encoder, check_columns
from ..schema.declared import MOST_CELLS as MOST_BINS
from ..schema.declared import Grid
from ..sensitivity import sum_over_rows
from ..solvers.regularised import Scaling
from ..solvers.target_range import TargetRange

Array = NDArray[np.float64]

#: Largest number of cells of a grid.
MOST_CELLS = 2**20

#: Largest number of axes of an array in the oldest NumPy.
_MOST_AXES = 32

#: Expected records for each cell of a grid of equal bins, in units of the noise.
LEAST_PER_CELL = 2.0

#: Factor of the number of bins, relative to the rate at which the two errors of a histogram balance.
BINS = 1.5

# Made-up rows are so many that a model works at all, and not so many that it takes long.
_MADE_UP_ROWS, _ROWS_PER_LABEL = 200, 10
_BINS_OF_TARGET = 20

# Number of rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes of a histogram: the columns of X in their order, then y, if it is counted. All of them are public."""

    columns: Columns
    n_targets: int = 0  # Number of cells of y: labels, or bins of a number.
    target: Grid | None = None  # The bins of a numeric target.

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of each axis."""
        return (*self.columns.sizes, self.n_targets) if self.n_targets else self.columns.sizes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def edges(self) -> list[Array | None]:
        """Edges of the bins of each axis. None for categories and labels."""
        t = self.target
        last = None if t is None else np.linspace(t.lower[0], t.upper[0], t.n_cells + 1)
        return [*self.columns.bin_edges(), *([last] if self.n_targets else [])]

    def first_cells(self, X: NDArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the number of each row's cell, the first of those that differ in y, and whether it is in any cell."""
        c = self.columns
        strides = np.cumprod([1, *self.shape[:0:-1]], dtype=np.intp)[::-1]
        cells = Encoder(c).cells(X)
        n_categorical = len(c.categorical)
        inside = np.all(cells[:, :n_categorical] < c.table_sizes[:n_categorical] - 1, axis=1)
        return np.where(inside, cells @ strides[: c.n_features][c.tables], 0), inside

    def counts(self, X: NDArray, y: NDArray | None) -> Array:
        """Count the records in each cell, in the order of a flattened array."""

        def block(rows: NDArray, *targets: NDArray) -> NDArray:
            cells, inside = self.first_cells(rows)
            if targets:
                cells += targets[0] if self.target is None else self.target.cells(targets[0][:, None])[:, 0]
            return np.bincount(cells[inside], minlength=self.size)

        # Each block has a histogram of its own. Therefore blocks are larger if there are many cells.
        rows = min(max(_LEAST_ROWS, self.size // self.columns.n_features), _MOST_ROWS)
        arrays = (X,) if y is None else (X, y)
        return sum_over_rows(block, *arrays, block_rows=rows).astype(np.float64)

    def centres(self, cells: NDArray[np.intp]) -> Array:
        """Return the centres of cells, of shape (n_cells, n_axes): middles of bins, codes of categories and labels."""
        positions = np.unravel_index(cells, self.shape)
        values = [
            position if edges is None else (edges[:-1] / 2 + edges[1:] / 2)[position]
            for position, edges in zip(positions, self.edges, strict=True)
        ]
        return np.column_stack(values).astype(np.float64)

    def points(self, cells: NDArray[np.intp], stream: BitStream) -> Array:
        """Return a point of each of these cells, uniform within bins."""
        out = np.empty((len(cells), len(self.shape)))
        for axis, (bins, edges) in enumerate(zip(np.unravel_index(cells, self.shape), self.edges, strict=True)):
            if edges is None:
                out[:, axis] = bins
            else:
                share = uniforms(len(cells), stream)
                out[:, axis] = np.clip(edges[bins] * (1 - share) + edges[bins + 1] * share, edges[0], edges[-1])
        return out


def uniforms(n: int, stream: BitStream) -> Array:
    """Return numbers in [0, 1) for synthetic rows."""
    return (stream.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def check_size(axes: Axes) -> Axes:
    """Refuse a histogram that is too large."""
    if len(axes.shape) > _MOST_AXES or axes.size > MOST_CELLS:
        raise ValueError(
            f"the histogram would have {' x '.join(map(str, axes.shape))} cells, and may have {MOST_CELLS}, "
            f"on {_MOST_AXES} axes. Use fewer columns, or lower n_bins and n_categories"
        )
    return axes


def default_bins(expected_n: int, noise: float, n_axes: int, fixed: int) -> int:
    """Return the number of bins of each of `n_axes` numeric axes, from public numbers."""
    # More bins have a higher resolution, and fewer bins hold more records relative to their noise, of standard
    # deviation `noise`. `fixed` is the number of cells of the other axes.
    worth = min(1.0, math.sqrt(2) / noise) if noise > 0 else 1.0
    records = worth * expected_n / fixed
    balanced = round(BINS * records ** (1 / (n_axes + 2)))
    filled = math.floor((records / LEAST_PER_CELL) ** (1 / n_axes))
    return max(2, min(balanced, filled))


def made_up_rows(axes: Axes) -> Array:
    """Return made-up rows of axis values: centres of cells."""
    # A model is tried on them before any charge.
    # All labels have equally many rows. In half of the rows, the target grows with the columns, so that a model can
    # learn something. The other half has the same points, and the target takes its values in turn.
    stream = NoiseSource(0).stream("made-up rows")
    n_targets = axes.n_targets
    n_cells = axes.size // n_targets
    targets = np.arange(n_targets)
    if axes.target is not None:
        targets = np.linspace(0, n_targets - 1, min(n_targets, _BINS_OF_TARGET)).astype(np.intp)
    n_rows = min(n_cells * len(targets), max(_MADE_UP_ROWS, _ROWS_PER_LABEL * len(targets)))
    turns = -(-n_rows // (2 * len(targets)))

    positions = np.argsort(stream.words(n_cells))[np.arange(turns * len(targets)) % n_cells]
    columns = np.unravel_index(positions, axes.shape[:-1])
    height = sum(position / length for position, length in zip(columns, axes.shape[:-1], strict=True))
    positions = positions[np.argsort(height)]
    cells = np.tile(positions * n_targets, 2) + np.concatenate([np.repeat(targets, turns), np.tile(targets, turns)])
    cells = cells[np.argsort(stream.words(len(cells)))]
    return axes.centres(cells)


COUNTS = "counts of cells"
THEOREM = Theorem("Histograms", 1)

#: Assumed number of records for the number of bins, if none is declared.
EXPECTED_N = 10_000

#: The probability that an empty cell counts as occupied is half the number of cells to minus this power.
KEPT_POWER = 0.7


def mechanism_for(parameters: Checked, size: int) -> tuple[Mechanism, PrivacyEvent, float]:
    """Return the mechanism for counts of cells, its event, and its share of the budget."""
    # One record adds 1 to one count, in both norms (see ``class_sums_l1``).
    share = 1.0 if parameters.target_range is None else 1 - parameters.target_range.share
    rows = Unit(parameters.rows_per_group).rows
    return *class_sums_mechanism(parameters.epsilon, parameters.delta, 1, 0, size, rows, share), share


def axes_for(parameters: Checked, shape: Shape) -> Axes:
    """Return the axes for a number of columns and labels."""
    columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
    number, n_classes = parameters.kind is TargetsMixin, shape.n_classes
    n_bins, n_bins_y = parameters.n_bins, parameters.n_bins_y or parameters.n_bins
    if not n_bins or (number and not n_bins_y):
        n_axes = (not n_bins) * len(columns.numeric) + (number and not n_bins_y)
        fixed = [n for n, kind in zip(columns.sizes, columns.kinds, strict=True) if kind is not None]
        product = math.prod(fixed) * (n_classes or 1) * (n_bins_y or 1)
        expected_n = EXPECTED_N if parameters.expected_n is None else parameters.expected_n
        chosen = default_bins(expected_n, noise_scale(mechanism_for(parameters, 1)[0]), max(n_axes, 1), product)
        n_bins, n_bins_y = n_bins or chosen, n_bins_y or chosen
    columns = replace(columns, n_bins=n_bins, grid=replace(columns.grid, n_cells=n_bins))
    if not number:
        return check_size(Axes(columns, n_classes))
    lower, upper = parameters.bounds_y
    return check_size(Axes(columns, n_bins_y, Grid(lower, upper, n_bins_y).of(1)))


def postprocess_weights(counts: Array, mechanism: Mechanism) -> Array:
    """Return non-negative weights of cells from noisy counts. All are 0 if no cell exceeds the noise."""
    # Counts that noise alone can explain are set to 0, and the others are scaled so that the sum stays.
    if noise_scale(mechanism) == 0:
        return counts.copy()
    weights = np.where(counts > threshold(counts.size, mechanism), counts, 0.0)
    total, sum_of_weights = max(float(counts.sum()), 0.0), float(weights.sum())
    return weights * (total / sum_of_weights) if sum_of_weights > 0 else weights


def threshold(n_cells: int, mechanism: Mechanism) -> float:
    """Return a value that noise exceeds with a probability of half of ``n_cells ** -KEPT_POWER``."""
    # For discrete Laplace noise, this is the value of continuous noise, which is close unless the scale is small.
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        return KEPT_POWER * math.log(n_cells) * mechanism.scale
    return float(stats.norm.isf(0.5 * n_cells**-KEPT_POWER)) * mechanism.scale


class HistogramBase(GroupsMixin, OutcomesMixin, BaseEstimator):
    """Count records in the cells of a public grid, with noise, and make data from the counts."""

    _takes_parts = True
    _released = frozenset({"counts_", "weights_", "estimator_"})
    _public = frozenset({"bin_edges_", "_axes"})
    _dtypes = NUMBERS
    #: Whether the range of the targets is released first.
    _regresses: ClassVar[bool] = False

    _parameter_rules: ClassVar[Rules] = {
        **COLUMN_RULES,
        "bounds_y": Or(None, Bounds("the target")),
        "n_bins": Or(None, Integer(2, MOST_BINS)),
        "n_bins_y": Or(None, Integer(2, MOST_CELLS)),
        "bin_edges": anything,
        "expected_n": Or(None, Integer(1)),
    }

    def _check_together(self, parameters: Checked) -> None:
        classes, bounds_y = getattr(parameters, "classes", None), getattr(parameters, "bounds_y", None)
        if bounds_y is not None and bounds_y[0].size != 1:
            raise ValueError("bounds_y must be a pair of numbers: y has one column")
        if classes is not None and bounds_y is not None:
            raise ValueError("y has labels or is a number: only one of classes and bounds_y may be given")
        parameters.kind = TargetsMixin if bounds_y is not None else RowsMixin if classes is None else LabelsMixin
        parameters.columns = check_columns(self, n_bins=parameters.n_bins or 2)
        parameters.n_bins_y = getattr(parameters, "n_bins_y", None)
        parameters.target_range = None
        if self._regresses:
            rows = Unit(parameters.rows_per_group).rows
            parameters.target_range = TargetRange.of(parameters.epsilon, parameters.delta, rows=rows)

    def _kind(self, parameters: Checked) -> Any:
        return parameters.kind

    def _read(self, X: Any, y: Any, parameters: Checked) -> Any:
        if y is None and parameters.kind is not RowsMixin and not get_tags(self).target_tags.required:
            raise ValueError("y must be given to fit, because classes or bounds_y is set")
        return super()._read(X, y, parameters)

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Axes]:
        axes, epsilon, delta = axes_for(parameters, shape), parameters.epsilon, parameters.delta
        mechanism, event, share = mechanism_for(parameters, axes.size)
        guarantee = PrivacyGuarantee(epsilon, delta, (event,), (Release(COUNTS, mechanism, share, THEOREM),))
        guarantee = guarantee if parameters.target_range is None else parameters.target_range.and_then(guarantee)
        return Unit(parameters.rows_per_group).stated(guarantee), axes

    def _measure(self, session: ReleaseSession, records: Records, parameters: Checked, axes: Axes) -> dict[str, Any]:
        mechanism, classes = session.mechanism(COUNTS), records.shape.classes
        if parameters.target_range is not None:
            bounds = parameters.target_range.located(
                session, records.y, Scaling.of_target(parameters.bounds_y, True)
            ).targets
            axes = replace(axes, target=Grid(np.array(bounds.lower), np.array(bounds.upper), axes.n_targets).of(1))
        counts = session.release(COUNTS, axes.counts(records.X, records.y)).reshape(axes.shape)
        variance, total = noise_scale(mechanism) ** 2, None
        messages = table_parts(records.shape.names, counts, axes.columns.declared, variance, axes.columns.ordered)
        if classes is not None:
            by_class = counts.reshape(-1, len(classes)).sum(axis=0)
            messages += label_parts(classes, by_class, math.sqrt(variance * counts.size / len(classes)))
            total = float(by_class.sum()), variance * counts.size
        warn_of_mismatch(messages, labels=total, gaussian=is_gaussian(mechanism))
        return {
            "counts_": counts,
            "weights_": postprocess_weights(counts, mechanism),
            "bin_edges_": axes.columns.bin_edges(),
            "_axes": axes,
        }

    def _form(self) -> str:
        return "codes" if self.n_bins is None else "cells"

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # The number of cells changes dimensions only.
        event = mechanism_for(parameters, 1)[1]
        first = parameters.target_range.events if parameters.target_range is not None and parameters.private else ()
        return PrivacyCost(parameters.epsilon, parameters.delta, (*first, event))

    def _target_values(self, values: Array) -> NDArray | None:
        """Return y for the values of the last axis."""
        if not self._axes.n_targets:
            return None
        last = values[:, -1]
        return last if self._axes.target is not None else self.classes_[last.astype(np.intp)]

    def cells(self) -> tuple[Array, NDArray | None, Array]:
        """Return the synthetic data set: the centres of all cells with positive weight, and their weights.

        Returns
        -------
        X : ndarray of shape (n_cells, n_features)
            Middles of bins, and codes of categories.
        y : ndarray of shape (n_cells,) or None
            Labels, or middles of the bins of a target. None if y was not counted.
        weights : ndarray of shape (n_cells,)
            Positive weights. Their sum is an estimate of the number of records.
        """
        check_is_fitted(self, "privacy_")
        weights = self.weights_.ravel()
        occupied = np.flatnonzero(weights)
        values = self._axes.centres(occupied)
        return values[:, : self._n_columns], self._target_values(values), weights[occupied]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, NDArray | None]:
        """Draw synthetic rows. This is post-processing and does not use any budget.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the rows. It need not be secret, because rows are drawn from released numbers.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Cells are drawn by weight, and points uniformly within bins. If no cell has weight, the whole grid is used.
        y : ndarray of shape (n_samples,) or None
            Labels or targets. None if y was not counted.
        """
        check_is_fitted(self, "privacy_")
        n_samples = check_integer(n_samples, "n_samples", least=1)
        stream = NoiseSource(random_state).stream("synthetic rows")
        weights = self.weights_.ravel()
        if not weights.any():
            weights = np.ones_like(weights)
        cumulative = np.cumsum(weights)
        cells = np.searchsorted(cumulative, uniforms(n_samples, stream) * cumulative[-1], side="right")
        # Rounding may reach the end, beyond the last cell with positive weight.
        values = self._axes.points(np.minimum(cells, np.flatnonzero(weights)[-1]), stream)
        return values[:, : self._n_columns], self._target_values(values)
