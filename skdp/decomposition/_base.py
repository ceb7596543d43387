"""The base of private principal component analyses: moments of rows, parameters, methods of released components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import check_quietly, of_valid_rows
from ..checks.params import Checked, Integer, Or, Real, Rules, check_boolean, real_numbers, shown
from ..checks.silence import available_if
from ..release.estimator import RowsMixin
from ..sensitivity import (
    BLOCK_ROWS,
    PRODUCT_BLOCKS,
    by_column,
    clip_rows,
    entry_step,
    exact_sum,
    rounded_products,
    sparse_gram,
    sum_over_rows,
    with_data,
)

Array = NDArray[np.float64]

# Sparse rows are summed as integers of 64 bits, so that blocks may be larger.
_SPARSE_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class Sums:
    """Hold second moments, sum and number of the centred and clipped rows, which are private."""

    gram: Array
    total: Array
    count: float


def second_moments(X: Any, centre: Array, norm: float, private: bool) -> Sums:
    """Subtract a public centre from each row, scale it down to `norm`, and add up."""
    d = X.shape[1]
    stays_sparse = issparse(X) and not centre.any()
    blocks = (_SPARSE_ROWS, 1) if stays_sparse else (BLOCK_ROWS, PRODUCT_BLOCKS)
    total, step = _clipped_total(_gram, X, centre, norm, private, *blocks)
    return Sums(total[:d, :d] * step**2, total[:d, d] * step, float(total[d, d]))


def row_sums(X: Any, norm: float, private: bool) -> tuple[Array, float]:
    """Scale each row down to `norm`, and return the sum of the rows and their number."""
    total, step = _clipped_total(_sums, X, None, norm, private, BLOCK_ROWS, PRODUCT_BLOCKS)
    return total[:-1] * step, float(total[-1])


def _clipped_total(
    sums_of: Any, X: Any, centre: Array | None, norm: float, private: bool, block_rows: int, n_blocks: int
) -> tuple[Array, float]:
    """Return sums over centred and clipped rows in steps of a lattice, and the step."""
    step = entry_step(norm) if private else 1.0

    def statistic(rows: Any) -> NDArray:
        return sums_of(
            _in_steps(rows, centre, norm, step) if private else clip_rows(_centred(rows, centre), norm).array
        )

    if not private:
        return sum_over_rows(statistic, X, block_rows=block_rows), step
    # Entries are rounded towards zero to a lattice, so that no norm grows and sums are exact for any number and order
    # of the rows.
    return exact_sum(statistic, X, block_rows=block_rows, n_blocks=n_blocks), step


def _centred(rows: Any, centre: Array | None) -> Any:
    if centre is None or not centre.any():
        return rows
    if issparse(rows):
        # Rows that are centred by a public or released vector are not sparse. Therefore a block of rows is made dense.
        rows = rows.toarray()
    with np.errstate(over="ignore"):
        centred = rows - centre
        if not np.isfinite(centred.sum()):
            # Twice the largest double would be infinite.
            np.clip(centred, -np.finfo(float).max, np.finfo(float).max, out=centred)
    return centred


def _in_steps(rows: Any, centre: Array | None, norm: float, step: float) -> Any:
    """Return rows in steps of the lattice. Sparse rows are integers."""
    clipped = clip_rows(_centred(rows, centre), norm)
    if issparse(clipped.source):
        return with_data(clipped.source, np.trunc(clipped.source.data / step).astype(np.int64))
    return clipped.in_steps(slice(None), step)


def _gram(rows: Any) -> NDArray:
    """Return the sums of products of rows, bordered by the sum of the rows and their number."""
    sums = _sums(rows)
    out = np.empty((len(sums), len(sums)), dtype=sums.dtype)
    if issparse(rows):
        out[:-1, :-1] = sparse_gram(rows)
    else:
        np.matmul(rows.T, rows, out=out[:-1, :-1])
    out[-1] = out[:, -1] = sums
    return out


def _sums(rows: Any) -> NDArray:
    """Return the sum of the rows, followed by their number."""
    sums = rows.sum(axis=0) if issparse(rows) else np.ones(rows.shape[0]) @ rows
    return np.append(sums, np.array(rows.shape[0], dtype=sums.dtype))


#: Smallest standard deviation for whitening, as a part of the norm of the rows.
LEAST_DEVIATION = 1e-3

_VARIANCES = ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_")


def check_center(center: Any, name: str) -> tuple[str, Array | None]:
    """Return the kind of centring, "none", "private" or "public", and the public vector."""
    if isinstance(center, str):
        if center in ("none", "private"):
            return center, None
    elif center is not None:
        vector = real_numbers(center)
        if vector is not None and vector.ndim == 1 and vector.size and np.all(np.abs(vector) <= 1e100):
            return "public", vector
    raise ValueError(f"{name} must be 'none', 'private' or a vector of finite numbers, got {shown(center)}")


def number_of_components(parameters: Checked, n_features: int) -> int:
    """Return the number of components for a number of columns."""
    if parameters.n_components is None:
        return n_features
    if parameters.n_components > n_features:
        raise ValueError(f"n_components must be at most n_features={n_features}, got {shown(parameters.n_components)}")
    return int(parameters.n_components)


def public_centre(parameters: Checked, n_features: int) -> Array:
    """Return the vector that is subtracted from rows before they are clipped."""
    vector = parameters.vector
    if vector is None:
        return np.zeros(n_features)
    if len(vector) != n_features:
        raise ValueError(f"center has {len(vector)} entries, and n_features={n_features}")
    return vector


def norm_of_moments(parameters: Checked) -> float:
    """Return the norm of the rows whose second moments are released."""
    if parameters.center != "private" or parameters.centered_norm is None:
        return parameters.data_norm
    return parameters.centered_norm


def within_ball(vector: Array, norm: float) -> Array:
    """Scale a vector down to a norm."""
    return vector * (norm / max(float(np.linalg.norm(vector)), norm))


def postprocess_components(components: Array) -> Array:
    """Give each component the sign that makes its largest entry positive."""
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
    return components * signs[:, None]


def _non_increasing(values: Array) -> Array:
    """Return the nearest non-increasing numbers. Neighbours in the wrong order are replaced by their mean."""
    # For few numbers, this takes a fraction of the time of scikit-learn's isotonic regression.
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] < mean:
            before = sizes.pop()
            mean = (means.pop() * before + mean * size) / (before + size)
            size += before
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def postprocess_variances(energies: Array, remaining: float, count: float, n_features: int) -> dict[str, Any]:
    """Return the attributes about variances, which decrease, for noisy sums of squares along components and beside."""
    k = len(energies)
    falling = _non_increasing(np.maximum(energies, 0.0))
    remaining = max(remaining, 0.0) if k < n_features else 0.0
    total = falling.sum() + remaining
    return {
        "explained_variance_": falling / count,
        "explained_variance_ratio_": falling / total if total > 0 else np.zeros(k),
        "singular_values_": np.sqrt(falling),
        "noise_variance_": remaining / count / (n_features - k) if k < n_features else 0.0,
    }


def fitted_components(components: Array, mean: Array, parameters: Checked, variances: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes. Without released variances, those that need variances are missing."""
    return variances | {
        "components_": components,
        "mean_": mean.copy(),
        "n_components_": len(components),
        "_whiten": parameters.whiten,
        "_least_deviation": LEAST_DEVIATION * parameters.data_norm,
    }


def _knows_variances(model: Any) -> bool:
    if hasattr(model, "components_"):
        return hasattr(model, "explained_variance_")
    return bool(getattr(model, "variance_share", True))


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowsMixin, BaseEstimator):
    """Base of private principal component analyses."""

    _parameter_rules: ClassVar[Rules] = {
        "n_components": Or(None, Integer(1)),
        "center": check_center,
        "centered_norm": Or(None, Real()),
        "whiten": check_boolean,
        "expected_n": Or(None, Real(1)),
    }
    _counts_outside = ("entries",)
    _takes_parts = True
    _released = frozenset({"components_", "mean_", *_VARIANCES})
    _public = frozenset({"n_components_", "_whiten", "_least_deviation"})
    _takes_sparse = True

    # The methods use the value of `whiten` at the time of the fit, because variances may not have been released, and
    # because `inverse_transform` has to remain the inverse of `transform`.
    components_: Array
    mean_: Array
    _whiten: bool
    _least_deviation: float

    def _check_together(self, parameters: Checked) -> None:
        parameters.center, parameters.vector = parameters.center

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _deviations(self) -> Array:
        """Return the divisors of whitening."""
        return np.maximum(np.sqrt(self.explained_variance_), self._least_deviation)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the coordinates of rows along the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. They are centred, and not clipped.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_components)
            A function of these rows, rounded to about 1e-11 `data_norm`. For private rows, it is as sensitive as
            the rows.
        """
        check_is_fitted(self, "components_")
        matrix, unit = self.components_.T, self._least_deviation / LEAST_DEVIATION
        coordinates: NDArray[np.float64] = of_valid_rows(lambda rows: rounded_products(rows, matrix, unit), self, X)
        by_column(np.subtract, coordinates, self.components_ @ self.mean_, coordinates)
        return coordinates / self._deviations() if self._whiten else coordinates

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return the rows with the given coordinates, without a part orthogonal to the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates along the components.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            In the space of the features.
        """
        check_is_fitted(self, "components_")
        coordinates = check_quietly(X, dtype=[np.float64, np.float32])
        if coordinates.shape[1] != len(self.components_):
            raise ValueError(f"X must have one column for each of {len(self.components_)} components")
        if self._whiten:
            coordinates = coordinates * self._deviations()
        return coordinates @ self.components_ + self.mean_

    @available_if(_knows_variances)
    def get_covariance(self) -> NDArray[np.float64]:
        """Return the covariance of the probabilistic model (Tipping and Bishop 1999), computed from the release.

        Returns
        -------
        covariance : ndarray of shape (n_features, n_features)
            Positive definite. Each variance is at least the square of a thousandth of `data_norm`.
        """
        check_is_fitted(self, "components_")
        noise = max(self.noise_variance_, self._least_deviation**2)
        along = np.maximum(self.explained_variance_, noise)
        covariance: Array = (self.components_.T * (along - noise)) @ self.components_
        covariance.flat[:: len(covariance) + 1] += noise
        return covariance
