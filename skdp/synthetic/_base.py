"""The base of the histogram and of its models: the release, and the weighted data set that is computed from it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, check_delta, check_epsilon
from ..checks.data import NUMBERS
from ..checks.params import check_bounds, check_integer
from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoiseSource, is_gaussian
from ..release.class_sums import class_sums_mechanism, noise_scale
from ..release.estimator import LabelsMixin, PrivateEstimator, Records, RowsMixin, Shape, TargetsMixin
from ..release.mismatch import label_parts, warn_of_mismatch
from ..release.session import PrivacyGuarantee, Release, ReleaseSession
from ..release.theorems import Theorem
from ..release.units import Unit
from ..schema.columns import ColumnSpec, check_columns
from ..schema.grid import Grid, check_n_bins
from ..solvers.scaling import Scaling
from ..solvers.target_range import TargetRange
from ._axes import MOST_CELLS, Array, Axes, check_size, default_bins, uniforms

COUNTS = "counts of cells"
THEOREM = Theorem("Histograms", 1)

#: Assumed number of records for the number of bins, if none is declared.
EXPECTED_N = 10_000

#: The probability that an empty cell counts as occupied is half the number of cells to minus this power.
KEPT_POWER = 0.7

NONE, LABELS, NUMBER = "none", "labels", "number"


@dataclass(frozen=True)
class Parameters:
    """The checked parameters of a fit, all public. A number of bins of 0 is chosen later."""

    epsilon: float
    delta: float
    columns: ColumnSpec
    n_bins: int
    n_bins_y: int
    target: str
    classes: NDArray | None
    bounds_y: tuple[Array, Array] | None
    expected_n: int
    unit: Unit
    first: TargetRange | None  # The first releases of a regression.

    def mechanism(self, size: int) -> tuple[Mechanism, Any]:
        share = 1.0 if self.first is None else 1 - self.first.share
        return class_sums_mechanism(self.epsilon, self.delta, 1, 0, size, self.unit.rows, share)

    def axes(self, n_features: int, names: NDArray | None, n_classes: int | None, named: bool = True) -> Axes:
        """Return the axes for a number of columns and labels."""
        columns = self.columns.resolve(n_features, names, named)
        number = self.target == NUMBER
        n_bins, n_bins_y = self.n_bins, self.n_bins_y or self.n_bins
        if not n_bins or (number and not n_bins_y):
            n_axes = (not n_bins) * len(columns.numeric) + (number and not n_bins_y)
            fixed = [n for n, kind in zip(columns.sizes, columns.kinds, strict=True) if kind is not None]
            product = math.prod(fixed) * (n_classes or 1) * (n_bins_y or 1)
            chosen = default_bins(self.expected_n, noise_scale(self.mechanism(1)[0]), max(n_axes, 1), product)
            n_bins, n_bins_y = n_bins or chosen, n_bins_y or chosen
        columns = replace(columns, n_bins=n_bins, grid=replace(columns.grid, n_cells=n_bins))
        if not number:
            return check_size(Axes(columns, n_classes or 0))
        assert self.bounds_y is not None
        return check_size(Axes(columns, n_bins_y, Grid(*self.bounds_y, n_bins_y).of(1)))

    def plan(self, axes: Axes) -> PrivacyGuarantee:
        """Return the release of the counts. One record adds 1 to one count, in both norms (see ``class_sums_l1``)."""
        mechanism, event = self.mechanism(axes.size)
        share = 1.0 if self.first is None else 1 - self.first.share
        guarantee = PrivacyGuarantee(self.epsilon, self.delta, (event,), (Release(COUNTS, mechanism, share, THEOREM),))
        return self.unit.stated(guarantee if self.first is None else self.first.and_then(guarantee))


def postprocess_weights(counts: Array, mechanism: Mechanism) -> Array:
    """Return non-negative weights of cells from noisy counts. All are 0 if no cell exceeds the noise."""
    # Counts that noise alone can explain are set to 0, and the others are scaled so that the sum stays.
    if noise_scale(mechanism) == 0:
        return counts.copy()
    kept = np.where(counts > threshold(counts.size, mechanism), counts, 0.0)
    total, sum_kept = max(float(counts.sum()), 0.0), float(kept.sum())
    return kept * (total / sum_kept) if sum_kept > 0 else kept


def threshold(n_cells: int, mechanism: Mechanism) -> float:
    """Return a value that noise exceeds with a probability of half of ``n_cells ** -KEPT_POWER``."""
    # For discrete Laplace noise, this is the value of continuous noise, which is close unless the scale is small.
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        return KEPT_POWER * math.log(n_cells) * mechanism.scale
    return float(stats.norm.isf(0.5 * n_cells**-KEPT_POWER)) * mechanism.scale


class HistogramBase(PrivateEstimator, BaseEstimator):
    """Count records in the cells of a public grid, with noise, and make data from the counts."""

    _takes_parts = True
    _released = frozenset({"counts_", "weights_", "estimator_"})
    _public = frozenset({"bin_edges_", "_axes"})
    _dtypes = NUMBERS
    #: Whether the range of the targets is released first.
    _regresses: ClassVar[bool] = False

    epsilon: float
    delta: float
    bounds: Any
    categorical_features: Any
    n_categories: Any
    n_bins: int | None
    bin_edges: Any
    expected_n: int | None
    rows_per_group: int | None
    accountant: Any
    random_state: Any

    @abstractmethod
    def _target(self) -> tuple[str, NDArray | None, Any]:
        """Return the kind of y, its declared labels, and its bounds."""

    def _check_parameters(self) -> Parameters:
        target, classes, bounds_y = self._target()
        if bounds_y is not None and bounds_y[0].size != 1:
            raise ValueError("bounds_y must be a pair of numbers: y has one column")
        n_bins = 0 if self.n_bins is None else check_n_bins(self.n_bins)
        n_bins_y = getattr(self, "n_bins_y", None)
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        unit = Unit.of(self._declared("rows_per_group"))
        return Parameters(
            epsilon=epsilon,
            delta=delta,
            columns=check_columns(self, n_bins=n_bins or 2),
            n_bins=n_bins,
            n_bins_y=0 if n_bins_y is None else check_integer(n_bins_y, "n_bins_y", least=2, most=MOST_CELLS),
            target=target,
            classes=classes,
            bounds_y=bounds_y,
            expected_n=EXPECTED_N if self.expected_n is None else check_integer(self.expected_n, "expected_n", least=1),
            unit=unit,
            first=TargetRange.of(epsilon, delta, rows=unit.rows) if self._regresses else None,
        )

    def _kind(self, parameters: Parameters) -> type[PrivateEstimator]:
        return {LABELS: LabelsMixin, NUMBER: TargetsMixin, NONE: RowsMixin}[parameters.target]

    def _read(self, X: Any, y: Any, parameters: Parameters) -> Any:
        if y is None and parameters.target != NONE and not get_tags(self).target_tags.required:
            raise ValueError("y must be given to fit, because classes or bounds_y is set")
        return self._kind(parameters)._read(self, X, y, parameters)

    def _declared_shape(self, parameters: Parameters, n_features: int, n_classes: int | None) -> Shape:
        return self._kind(parameters)._declared_shape(self, parameters, n_features, n_classes)

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Axes]:
        axes = parameters.axes(shape.n_features, shape.names, shape.n_classes or None, named=shape.is_read)
        return parameters.plan(axes), axes

    def _measure(self, session: ReleaseSession, records: Records, parameters: Parameters, axes: Axes) -> dict[str, Any]:
        mechanism, classes = session.mechanism(COUNTS), records.shape.classes
        if parameters.first is not None:
            bounds = parameters.first.located(session, records.y, Scaling.of_target(parameters.bounds_y, True)).targets
            axes = replace(axes, target=Grid(np.array(bounds.lower), np.array(bounds.upper), axes.n_targets).of(1))
        counts = session.release(COUNTS, axes.counts(records.X, records.y)).reshape(axes.shape)
        if classes is not None:
            deviation = noise_scale(mechanism) * math.sqrt(counts.size / len(classes))
            by_class = counts.reshape(-1, len(classes)).sum(axis=0)
            parts = label_parts(classes, by_class, deviation)
            spread, gaussian = deviation * math.sqrt(len(classes)), is_gaussian(mechanism)
            warn_of_mismatch(float(by_class.sum()), spread, parts, labels=True, gaussian=gaussian)
        return {
            "counts_": counts,
            "weights_": postprocess_weights(counts, mechanism),
            "bin_edges_": axes.columns.bin_edges(),
            "_axes": axes,
        }

    def _form(self) -> str:
        return "codes" if self.n_bins is None else "cells"

    def _fixed_cost(self) -> PrivacyCost | None:
        # The number of cells changes dimensions only.
        parameters = self._check_parameters()
        event = parameters.mechanism(1)[1]
        first = () if parameters.first is None or parameters.epsilon == math.inf else parameters.first.events
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
        kept = np.flatnonzero(weights)
        values = self._axes.centres(kept)
        return values[:, : self._n_columns], self._target_values(values), weights[kept]

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
        return self._drawn(n_samples, NoiseSource(random_state))

    def _drawn(self, n_samples: int, source: NoiseSource) -> tuple[Array, NDArray | None]:
        stream = source.stream("synthetic rows")
        weights = self.weights_.ravel()
        if not weights.any():
            weights = np.ones_like(weights)
        ends = np.cumsum(weights)
        cells = np.searchsorted(ends, uniforms(n_samples, stream) * ends[-1], side="right")
        # Rounding may reach the end, beyond the last cell with positive weight.
        values = self._axes.points(np.minimum(cells, np.flatnonzero(weights)[-1]), stream)
        return values[:, : self._n_columns], self._target_values(values)


def checked_bounds_y(bounds_y: Any) -> tuple[Array, Array]:
    """Return bounds of a target."""
    return check_bounds(bounds_y, "bounds_y", "the target")
