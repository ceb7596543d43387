r"""Noisy second moments of features and targets that are scaled by public bounds, for the functional mechanism.

A record is centred and scaled by its public bounds, into the box :math:`[-1, 1]^d`, and gets a constant feature. Rows
that exceed a public norm are scaled down *together with their target and constant feature*, so that the record has less
weight. The Gram matrix and the cross moments are released jointly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..accounting import PrivacyEvent, PureEvent
from ..mechanisms import Mechanism, NoNoise, coordinate_variance, is_gaussian, l2_mechanism, within_reach
from ..release.counts import encoded_parts, warn_of_mismatch
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import ONE_RECORD, Unit
from ..sensitivity import (
    BLOCK_ROWS,
    by_entry,
    entry_step,
    exact_moments,
    group_sensitivity,
    moments_l2,
    pack_symmetric,
    plain_moments,
    rounded_norm,
    sparse_squared_norms,
    squared_norms,
    unpack_symmetric,
    with_constant,
    with_data,
)
from .regularised import Scaling

Array = NDArray[np.float64]
Bounds = tuple[Array, Array]

MOMENTS = "second moments"
THEOREM = Theorem("Functional mechanism", 1)

#: The constant feature, as a multiple of the norm of the scaled rows. The sensitivity of second moments grows with the
#: square of the norm. Therefore 0.25 adds 6 % to it, and the 0.3 of gradients and perturbed minimisers would add 9 %.
INTERCEPT_CONSTANT = 0.25

_SQRT2 = math.sqrt(2)

# Sparse rows are summed as integers of 64 bits, so that blocks may be larger.
_SPARSE_ROWS = 2**16

#: The ridge, as a multiple of the noise's largest eigenvalue.
RIDGE = 0.5


@dataclass(frozen=True)
class Weights:
    """Hold the weights of the parts of the joint release."""

    # `cross` is the weight of the cross moments, in units in which they and the Gram matrix have the same largest norm.
    # The cross moments get cross^2 / (1 + cross^2) of the square of the GDP parameter. `count` and `total` are further
    # weights of the square of the constant feature and of its products with targets, which are few numbers of small
    # size.

    cross: float = 0.6
    count: float = 1.0
    total: float = 1.0


#: The number of records and the sums of targets determine the mean of all predictions.
REGRESSION_WEIGHTS = Weights(cross=0.7, count=3.0, total=1.6)

#: The numbers of records of the classes determine the model without signal.
CLASS_WEIGHTS = Weights(cross=0.7, count=3.0, total=3.0)


@dataclass(frozen=True, eq=False)
class Geometry:
    """Describe the release of the moments by public numbers, without its noise and its data."""

    # Targets have entries in [-1, 1], and an L2 norm of at most `target_norm`.

    n_features: int
    n_targets: int
    data_norm: float
    constant: float
    target_norm: float
    weights: Weights = Weights()

    @classmethod
    def of(
        cls,
        n_features: int,
        n_targets: int,
        data_norm: float | None,
        fit_intercept: bool,
        one_hot: bool,
        private: bool,
        weights: Weights = Weights(),
    ) -> Geometry:
        longest = math.sqrt(n_features)
        if data_norm is None:
            data_norm = longest * math.sqrt(0.5) if private else longest
        data_norm = min(data_norm, longest)
        return cls(
            n_features,
            n_targets,
            data_norm,
            INTERCEPT_CONSTANT * data_norm if fit_intercept else 0.0,
            1.0 if one_hot else math.sqrt(n_targets),
            weights if fit_intercept else replace(weights, count=1.0, total=1.0),
        )

    @property
    def n_columns(self) -> int:
        return self.n_features + 1 if self.constant else self.n_features

    @property
    def size(self) -> int:
        return self.n_columns * (self.n_columns + 1) // 2 + self.n_columns * self.n_targets

    @property
    def longest(self) -> float:
        """Norm to which rows are scaled down, including the constant feature."""
        return math.hypot(self.data_norm, self.constant)

    @property
    def reweights(self) -> bool:
        """Whether a row of the box can exceed the norm."""
        return self.data_norm < math.sqrt(self.n_features) * (1 - 2.0**-40)

    @property
    def step(self) -> float:
        """Lattice step of the rows."""
        return entry_step(max(min(1.0, self.longest), self.constant))

    @property
    def target_step(self) -> float:
        return entry_step(1.0)

    @property
    def row_norm(self) -> float:
        """Bound on the L2 norm of a row that is summed."""
        return rounded_norm(self.longest, self.n_columns, self.step)

    @property
    def largest_constant(self) -> float:
        """Bound on the constant feature of a row that is summed."""
        return self.constant * (1 + 2.0**-40) + self.step / 2 if self.constant else 0.0

    @property
    def cross_weight(self) -> float:
        """Weight of the cross moments, to which the L2 norm of the contribution of a record refers."""
        return self.weights.cross * self.row_norm / self.target_norm

    def pack(self, moments: Array) -> Array:
        """List the moments as one vector, which is released at once."""
        # Entries above the diagonal of the Gram matrix count twice in its norm.
        p = self.n_columns
        moments = moments.copy()
        moments[-1, p - 1] *= self.weights.count
        moments[-1, p:] *= self.weights.total
        return np.concatenate([pack_symmetric(moments[:, :p], _SQRT2), self.cross_weight * moments[:, p:].ravel()])

    def unpack(self, released: Array) -> Array:
        """Return the Gram matrix, followed by the cross moments."""
        p = self.n_columns
        gram, cross = np.split(released, [p * (p + 1) // 2])
        moments = np.hstack([unpack_symmetric(gram, p, _SQRT2), cross.reshape(p, -1) / self.cross_weight])
        moments[-1, p - 1] /= self.weights.count
        moments[-1, p:] /= self.weights.total
        return moments


@dataclass(frozen=True)
class Noise:
    """Describe the noise in a Gram matrix with `size` columns and in the cross moments, by public numbers."""

    # `scale` is the standard deviation on the diagonal. Off the diagonal, it is `scale / sqrt(2)`. `cross` is that of
    # the cross moments. The noise in the last column's square and in its cross moments is divided by the weights.

    scale: float
    size: int
    cross: float
    count: float = 1.0
    total: float = 1.0

    @property
    def largest_eigenvalue(self) -> float:
        return self.scale * math.sqrt(2 * self.size)


def plan(
    epsilon: float, delta: float, geometry: Geometry, unit: Unit = ONE_RECORD, share: float = 1.0
) -> PrivacyGuarantee:
    """Return the one joint release of all moments for a share of the budget."""
    weights = geometry.weights
    sensitivity = moments_l2(
        geometry.row_norm,
        geometry.target_norm,
        geometry.cross_weight,
        geometry.largest_constant,
        weights.count,
        weights.total,
    )
    sensitivity = group_sensitivity(sensitivity, unit.rows)
    event: PrivacyEvent = PureEvent(epsilon)
    mechanism: Mechanism = NoNoise(sensitivity)
    if epsilon < math.inf:
        mechanism, event = l2_mechanism(epsilon, delta, share, sensitivity, geometry.size)
    releases = (Release(MOMENTS, mechanism, share, THEOREM),)
    return unit.stated(PrivacyGuarantee(epsilon, delta, (event,), releases))


def noise_of(mechanism: Mechanism, geometry: Geometry) -> Noise:
    """Return the size of the noise in the moments."""
    variance, weights = coordinate_variance(mechanism), geometry.weights
    scale, cross = math.sqrt(2 * variance) / _SQRT2, math.sqrt(variance) / geometry.cross_weight
    return Noise(scale, geometry.n_columns, cross, weights.count, weights.total)


class Moments:
    """Hold the private totals of one fit until they are released. If `private`, they are exact."""

    def __init__(self, X: Any, y: NDArray, features: Scaling, targets: Any, geometry: Geometry, private: bool) -> None:
        self._geometry = geometry
        d = geometry.n_features
        # Bounds are public, and so is the choice.
        stays_sparse = issparse(X) and features.keeps_zeros

        def scaled(X: Any, y: NDArray) -> tuple[Any, Array]:
            u = targets(y)
            if stays_sparse:
                rows = with_constant(features.apply_sparse(X), geometry.constant)
            else:
                rows = np.empty((X.shape[0], geometry.n_columns))
                features.apply(X.toarray() if issparse(X) else X, rows[:, :d])
                rows[:, d:] = geometry.constant
            if geometry.reweights:
                length = np.sqrt((sparse_squared_norms if stays_sparse else squared_norms)(rows))
                factor = geometry.longest / np.maximum(length, geometry.longest)
                if stays_sparse:
                    rows = with_data(rows, rows.data * by_entry(rows, factor))
                else:
                    rows *= factor[:, None]
                u = u * factor[:, None]
            return rows, u

        def encoded(X: Any, y: NDArray) -> tuple[Any, NDArray]:
            rows, u = scaled(X, y)
            u = np.rint(u / geometry.target_step)
            if stays_sparse:
                return with_data(rows, np.rint(rows.data / geometry.step).astype(np.int64)), u.astype(np.int64)
            rows /= geometry.step
            return np.rint(rows, out=rows), u

        block_rows = _SPARSE_ROWS if stays_sparse else BLOCK_ROWS
        if private:
            totals = exact_moments(encoded, X, y, block_rows=block_rows)
            totals[:, : geometry.n_columns] *= geometry.step**2
            totals[:, geometry.n_columns :] *= geometry.step * geometry.target_step
        else:
            totals = plain_moments(scaled, X, y, block_rows=block_rows)
        self.totals = totals

    def release(self, session: ReleaseSession) -> tuple[Array, Array]:
        """Carry out the joint release, and return the Gram matrix and the cross moments."""
        values = within_reach(session.mechanism(MOMENTS), self._geometry.pack(self.totals))
        gram, cross = np.split(self._geometry.unpack(session.release(MOMENTS, values)), [self._geometry.n_columns], 1)
        return gram, cross


def warn_of_columns(
    undeclared: Mapping[str, Any], gram: Array, constant: float, noise: Noise, mechanism: Mechanism
) -> None:
    """Warn of columns of a schema with hardly any declared entry, by the released squares of their indicators."""
    if undeclared and constant:
        # The square of an indicator, and that of the constant feature, add up the weights of records.
        total = float(gram[-1, -1]) / constant**2, (noise.scale / noise.count / constant**2) ** 2
        parts = encoded_parts(undeclared, np.diagonal(gram), total, noise.scale**2)
        warn_of_mismatch(parts, labels=None, gaussian=is_gaussian(mechanism))


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Hold the eigenvalues and eigenvectors of a released matrix. Noise makes some eigenvalues negative."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, matrix: Array) -> Spectrum:
        return cls(*np.linalg.eigh(matrix))

    @property
    def positive(self) -> Array:
        """Eigenvalues of the nearest positive semi-definite matrix."""
        return np.maximum(self.values, 0.0)

    @cached_property
    def divided(self) -> Array:
        """Divided differences of the positive part of the eigenvalues."""
        values, positive = self.values, self.positive
        gaps = values[:, None] - values
        close = np.abs(gaps) <= 1e-12 * np.abs(values).max()
        return np.where(close, values[:, None] > 0, (positive[:, None] - positive) / np.where(close, 1.0, gaps))

    def solve(self, right: Array, ridge: float = 0.0) -> Array:
        """Return the shortest least-squares solution for the nearest positive semi-definite matrix, plus a ridge."""
        values = self.positive + ridge
        nonzero = values > len(values) * np.finfo(float).eps * values[-1]
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=nonzero)
        return self.vectors @ (inverse[:, None] * (self.vectors.T @ right))


def trimmed(gram: Array) -> Array:
    """Return the nearest positive semi-definite matrix."""
    spectrum = Spectrum.of(gram)
    return gram if spectrum.values[0] >= 0 else (spectrum.vectors * spectrum.positive) @ spectrum.vectors.T
