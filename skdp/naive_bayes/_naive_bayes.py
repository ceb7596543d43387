r"""Naive Bayes for categorical and numeric features (Vaidya, Shafiq, Basu and Hong 2013), from one joint release.

Each class has the counts of all tables, and for each Gaussian column the sums of :math:`v` and of :math:`a(v^2 - 1/2)`,
for values :math:`v` scaled into [-1, 1]. If there is no table, it also has the number of records. A record affects only
the row of its own class. Its values are rounded to a lattice before they are added, so that sums are exact. The model
is computed from the release.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import PrivacyCost
from ..checks.data import NUMBERS
from ..checks.params import Checked, Integer, OneOf, Real, Rules, anything
from ..mechanisms import Mechanism, is_gaussian
from ..release.counts import (
    NOT_RELEASED,
    class_sums_mechanism,
    declared_parts,
    in_real_units,
    label_parts,
    largest_value,
    moment_bits,
    moment_weight,
    noise_scale,
    record_moments,
    warn_of_mismatch,
)
from ..release.estimator import GroupsMixin, LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import ONE_RECORD, Unit
from ..schema.columns import COLUMN_RULES, Columns, Encoder, SparseEncoder, check_columns
from ..schema.declared import MOST_CELLS, scaled
from ..sensitivity import by_entry, sum_over_rows, with_data
from ..solvers.tables import (
    NaiveBayesPrediction,
    by_column,
    check_priors,
    exponent,
    table_information,
    table_probabilities,
)

Array = NDArray[np.float64]

SUMS = "sums by class"

# Entries of a matrix that holds the class of each row of a block.
_MOST_INDICATORS = 2**22

# Rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17

#: The mean and the variance of a class are shrunk to those of all records by the variance of their noise over these
#: numbers, which are squares of typical differences between classes, in units of half the bounds' width.
SPREAD_OF_MEANS = 0.05
SPREAD_OF_VARIANCES = 0.005

#: A class keeps its variance if that differs from the variance of all records by these multiples of the noise and of
#: the largest sampling error.
APART, SAMPLING = 1.0, 2.0

# The least variance of a Gaussian, in the same units.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Layout:
    """Describe the row of a class: its tables, number of records, first moments and second moments."""

    columns: Columns
    n_classes: int

    @property
    def n_moments(self) -> int:
        return len(self.columns.unbinned)

    @property
    def n_table_cells(self) -> int:
        return int(self.columns.table_sizes.sum())

    @property
    def counts_records(self) -> bool:
        """Whether a separate number of records is released. Tables count the records, too."""
        return len(self.columns.table_sizes) == 0

    @property
    def n_counts(self) -> int:
        return self.n_table_cells + self.counts_records

    @property
    def width(self) -> int:
        return self.n_counts + 2 * self.n_moments

    @property
    def size(self) -> int:
        return self.n_classes * self.width

    @property
    def table_starts(self) -> NDArray[np.intp]:
        return np.cumsum(self.columns.table_sizes) - self.columns.table_sizes


def plan(epsilon: float, delta: float, layout: Layout, unit: Unit = ONE_RECORD) -> PrivacyGuarantee:
    """Return the one release."""
    n_counts = len(layout.columns.table_sizes) + layout.counts_records
    mechanism, event = class_sums_mechanism(epsilon, delta, n_counts, layout.n_moments, layout.size, unit.rows)
    release = Release(SUMS, mechanism, 1.0, Theorem("Naive Bayes", 1))
    return unit.stated(PrivacyGuarantee(epsilon, delta, (event,), (release,)))


def sums_by_class(X: Any, codes: NDArray[np.intp], layout: Layout, mechanism: Mechanism) -> Array:
    """Return the sums, of shape (n_classes, width). They lie on the lattice if noise is added."""
    bits = moment_bits(mechanism, layout.n_moments)
    statistic: _Statistic = (_SparseStatistic if issparse(X) else _DenseStatistic)(layout, bits)
    total = sum_over_rows(statistic, X, codes, block_rows=statistic.block_rows)
    return in_real_units(total, layout.n_counts, layout.n_moments, mechanism)


class _Statistic(ABC):
    """Sums of a block of rows, by class: integers, in units of 2**-bits for the moments, or doubles without `bits`."""

    block_rows = _MOST_ROWS

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout, self._bits, self._starts = layout, bits, layout.table_starts

    def __call__(self, X: Any, codes: NDArray[np.intp]) -> NDArray:
        layout, n_classes = self._layout, self._layout.n_classes
        out = np.empty((n_classes, layout.width), dtype=np.float64 if self._bits is None else np.int64)
        records = np.bincount(codes, minlength=n_classes)
        if layout.counts_records:
            out[:, 0] = records
        else:
            out[:, : layout.n_counts] = self._counts(X, codes, records)
        if layout.n_moments:
            sums = self._moments(X, codes, records)
            sums[:, layout.n_moments :] -= largest_value(self._bits) / 2 * records[:, None]
            out[:, layout.n_counts :] = sums
        return out

    @abstractmethod
    def _counts(self, X: Any, codes: NDArray[np.intp], records: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the counts of all tables by class."""

    @abstractmethod
    def _moments(self, X: Any, codes: NDArray[np.intp], records: NDArray[np.intp]) -> Array:
        """Return the sums of values and of their squares by class. They are integers that doubles add exactly."""


class _DenseStatistic(_Statistic):
    def __init__(self, layout: Layout, bits: int | None) -> None:
        super().__init__(layout, bits)
        self._encoder, self._classes = Encoder(layout.columns), np.arange(layout.n_classes)
        # Each block has totals of its own. Therefore blocks are larger if tables are large.
        self.block_rows = min(max(_LEAST_ROWS, layout.size // layout.columns.n_features), _MOST_ROWS)
        if layout.n_moments:
            self.block_rows = max(1, min(self.block_rows, _MOST_INDICATORS // layout.n_classes))

    def _counts(self, X: NDArray, codes: NDArray[np.intp], records: NDArray[np.intp]) -> NDArray[np.intp]:
        n_classes, n_cells = self._layout.n_classes, self._layout.n_table_cells
        cells = self._encoder.cells(X)
        cells += self._starts
        cells += (codes * n_cells)[:, None]
        return np.bincount(cells.ravel(order="K"), minlength=n_classes * n_cells).reshape(n_classes, -1)

    def _moments(self, X: NDArray, codes: NDArray[np.intp], records: NDArray[np.intp]) -> Array:
        values = record_moments(self._encoder.scaled(X, largest_value(self._bits)), self._bits)
        # The products are integers below 2**37 in all.
        return (codes == self._classes[:, None]).astype(np.float64) @ values


class _SparseStatistic(_Statistic):
    """The sums of rows of zeros, plus differences for the stored entries, so that sparse rows give the same numbers."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        super().__init__(layout, bits)
        self._encoder = SparseEncoder(layout.columns)
        self._positions = _gaussian_positions(layout.columns)
        self._zero = self._entry_moments(np.zeros(layout.n_moments), np.arange(layout.n_moments))

    def _counts(self, X: Any, codes: NDArray[np.intp], records: NDArray[np.intp]) -> NDArray[np.intp]:
        n_classes, n_cells, zero_cells = self._layout.n_classes, self._layout.n_table_cells, self._encoder.zero_cells
        entries, tables, cells = self._encoder.cells(X)
        starts = by_entry(X, codes)[entries] * n_cells + self._starts[tables]
        counts = np.bincount(starts + cells, minlength=n_classes * n_cells)
        counts -= np.bincount(starts + zero_cells[tables], minlength=n_classes * n_cells)
        counts = counts.reshape(n_classes, -1)
        counts[:, self._starts + zero_cells] += records[:, None]
        return counts

    def _moments(self, X: Any, codes: NDArray[np.intp], records: NDArray[np.intp]) -> Array:
        n_classes, m = self._layout.n_classes, self._layout.n_moments
        positions = self._positions.take(X.indices)
        entries = np.flatnonzero(positions >= 0)
        positions = positions[entries]
        differences = self._entry_moments(X.data[entries], positions) - self._zero[:, positions]
        starts = by_entry(X, codes)[entries] * m + positions
        sums = [np.bincount(starts, each, minlength=n_classes * m).reshape(n_classes, m) for each in differences]
        return np.hstack([added + records[:, None] * zero for added, zero in zip(sums, self._zero, strict=True)])

    def _entry_moments(self, values: NDArray, positions: NDArray[np.intp]) -> Array:
        """Return values of Gaussian columns, scaled, and their squares, of shape (2, n_values)."""
        grid = self._layout.columns.grid
        first = scaled(values, grid.centre[positions], grid.half[positions], largest_value(self._bits))
        return record_moments(first[:, None], self._bits).T


def _gaussian_positions(columns: Columns) -> NDArray[np.intp]:
    """Return the position of each column among those with Gaussians, or -1."""
    positions = np.full(columns.n_features, -1, dtype=np.intp)
    positions[columns.unbinned] = np.arange(len(columns.unbinned))
    return positions


def log_probabilities(
    sums: Array, layout: Layout, counts: Array, noise: float, alpha: float
) -> tuple[list[Array], list[Array]]:
    """Return the logarithms of the probabilities of each table, and the information in tables of the same shape."""
    sizes, starts = layout.columns.table_sizes, layout.table_starts
    ordered = np.arange(len(sizes)) >= len(layout.columns.categorical)
    tables: list[Array] = [np.empty(0)] * len(sizes)
    information = []
    # Tables of the same shape are treated at once.
    for size, bins in sorted(set(zip(sizes.tolist(), ordered.tolist(), strict=True))):
        group = np.flatnonzero((sizes == size) & (ordered == bins))
        cells = sums[:, starts[group][:, None] + np.arange(size)].swapaxes(0, 1)
        probabilities = table_probabilities(cells, counts, noise, bins, alpha)
        information.append(table_information(probabilities, counts))
        for table, value in zip(group, np.log(probabilities), strict=True):
            tables[table] = value
    return tables, information


def fitted_attributes(sums: Array, layout: Layout, noise: float, weight: float, parameters: Checked) -> dict[str, Any]:
    """Return the attributes of the model for released sums, of shape (n_classes, width)."""
    # `noise` is the standard deviation of the noise in each number, and `weight` the weight of the second moments.
    columns, (counts, deviation) = layout.columns, class_totals(sums, layout, noise)
    counts = np.maximum(counts, max(1.0, deviation))
    tables, information = log_probabilities(sums, layout, counts, noise, parameters.alpha)
    first, second = np.split(sums[:, layout.n_counts :], 2, axis=1)
    means, variances = moments(first, second / weight, counts, noise, noise / weight, parameters.var_smoothing)
    information.append(moment_information(means, variances, counts))
    theta, var = np.full((2, layout.n_classes, columns.n_features), np.nan)
    if layout.n_moments:
        theta[:, columns.numeric] = columns.grid.centre + columns.grid.half * means
        var[:, columns.numeric] = columns.grid.half**2 * variances
    return {
        "class_count_": counts,
        "feature_log_prob_": by_column(columns, tables),
        "theta_": theta,
        "var_": var,
        "exponent_": exponent(np.concatenate(information), parameters.dependence),
    }


def class_totals(sums: Array, layout: Layout, noise: float) -> tuple[Array, float]:
    """Return the noisy number of records of each class, and the standard deviation of the noise in each."""
    if layout.counts_records:
        return sums[:, 0], noise
    # Each table counts every record once. Its row sum has as many terms of noise as cells, so that the best linear
    # combination has weights of one over the number of cells.
    rows = np.add.reduceat(sums[:, : layout.n_table_cells], layout.table_starts, axis=1)
    weights = 1 / layout.columns.table_sizes
    return rows @ weights / weights.sum(), noise / math.sqrt(weights.sum())


def warn_of_declarations(
    sums: Array, layout: Layout, mechanism: Mechanism, classes: NDArray, names: NDArray | None
) -> None:
    """Warn of declared labels and categories that hardly occur, from released sums."""
    noise, n_classes, columns, sizes = noise_scale(mechanism), len(classes), layout.columns, layout.columns.table_sizes
    counts, deviation = class_totals(sums, layout, noise)
    messages = label_parts(classes, counts, deviation)
    total, precision = (float(counts.sum()), deviation**2 * n_classes), float((1 / sizes).sum())
    for j, start, size in zip(columns.tables.tolist(), layout.table_starts, sizes, strict=True):
        if columns.ordered[j] and j not in columns.declared:
            continue
        # The last cell holds unknown categories.
        name, cells = j if names is None else str(names[j]), sums[:, start : start + size].sum(axis=0)
        # The total of the other tables is independent of this one.
        other_precision, others_total = precision - 1 / size, NOT_RELEASED
        if len(sizes) > 1:
            records = (precision * total[0] - cells.sum() / size) / max(other_precision, 1e-9)
            others_total = float(records), noise**2 * n_classes / other_precision
        n_declared = columns.declared.get(j, size - 1)
        variance = noise**2 * n_classes
        messages += declared_parts(name, cells, n_declared, others_total, variance, columns.ordered[j])
    warn_of_mismatch(messages, labels=total, gaussian=is_gaussian(mechanism))


def moments(
    first: Array, second: Array, counts: Array, noise: float, second_noise: float, smoothing: float
) -> tuple[Array, Array]:
    """Return means and variances by class, shrunk to those of all records where a class has few records."""
    n = counts[:, None]
    share = n / counts.sum()
    mean = np.clip(first / n, -1.0, 1.0)
    pooled = (share * mean).sum(axis=0)
    weight = SPREAD_OF_MEANS / (SPREAD_OF_MEANS + (noise / n) ** 2)
    mean = weight * mean + (1 - weight) * pooled
    variance = np.clip(second / n + 0.5 - mean**2, _LEAST_VARIANCE, 1.0)
    error = second_noise / n
    weight = SPREAD_OF_VARIANCES / (SPREAD_OF_VARIANCES + error**2)
    # A difference of variances changes the scores of all rows near the mean. Noise and sampling must not explain it.
    # The fourth moment of values in [-1, 1] is at most their second moment, so that heavy tails are covered.
    by_chance = np.hypot(APART * np.hypot(error, 2 * mean * noise / n), SAMPLING * np.sqrt((variance + mean**2) / n))
    difference = np.abs(variance - (share * variance).sum(axis=0))
    weight = weight * (1 - (by_chance / np.maximum(difference, by_chance + np.finfo(float).tiny)) ** 2)
    # A variance that is too small harms more than one that is too large. Therefore the noise is added.
    variance += np.minimum(error, 1.0)
    pooled = (share * variance).sum(axis=0)
    variance = weight * variance + (1 - weight) * pooled
    return mean, variance + smoothing


def moment_information(means: Array, variances: Array, counts: Array) -> Array:
    """Return the mutual information of Gaussian columns and the class, as if all records together were Gaussian."""
    share = counts / counts.sum()
    variance_of_all = share @ (variances + (means - share @ means) ** 2)
    return np.maximum(np.log(variance_of_all) - share @ np.log(variances), 0.0) / 2


class DPNaiveBayes(NaiveBayesPrediction, ClassifierMixin, GroupsMixin, LabelsMixin, BaseEstimator):
    r"""Differentially private naive Bayes for categorical and numeric features.

    The counts of categories and bins by class, and the moments of Gaussian features by class, are released once, with
    noise. The fit takes one pass over the data, for any number of classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, and the noise grows with
        the number of features. Otherwise, it grows with its square root.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `classes`, `rows_per_group`, `categorical_features` and
        `n_categories`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    numeric : {"binned", "gaussian"}, default="binned"
        Model of numeric columns in each class: a histogram or a Gaussian.
    n_bins : int, default=16
        Number of bins of equal width within the bounds.
    alpha : float, default=1.0
        Number of records that are added to each category and bin of each class.
    var_smoothing : float, default=1e-3
        Number that is added to the variances of Gaussians, as a multiple of the square of half the bounds' width.
    dependence : float, default=0.15
        Assumed correlation of the features' evidence within a class, in [0, 1]. It determines ``exponent_``.
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes, in sorted order. If None, the released frequencies are used.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column of X or each numeric column (with or
        without those in `bin_edges`). Values beyond are clipped.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, coded 0, 1, ... Required with `categorical_features`. Other values are
        unknown: `fit` counts the record without a category in this column, and `predict` ignores the column.
    bin_edges : dict, default=None
        Increasing edges of the bins of single columns, by position or name. Values beyond count in the outer bins.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for all rows of a group, with `rows_per_group` times the noise. If None, it is for one row.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels (see :ref:`weights`). ``"balanced"`` gives all labels the same prior
        probability, unless `priors` is set, and uses no budget.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Private estimates of the numbers of records.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    feature_log_prob_ : list of length n_features
        For each column, logarithms of private probabilities of its categories or bins, of shape (n_classes,
        n_categories). None for a Gaussian column.
    bin_edges_ : list of length n_features
        Public edges of the bins of each binned column. None for other columns.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Private means and variances of Gaussian columns. NaN for other columns.
    exponent_ : float
        Power to which the joint evidence of the features is raised, in (0, 1], because they share evidence.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    feature_importances_ : ndarray of shape (n_features,)
        Mutual information of each column and the label under the model, divided by the sum over columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    skdp.linear_model.ObjPertLogReg : Logistic regression by objective perturbation.

    Notes
    -----
    **Privacy.** One vector is released once: for each class, the counts of all tables, and the sums of :math:`(v, a(v^2
    - 1/2))` for Gaussian columns scaled into [-1, 1]. One record moves it by at most :math:`\sqrt{m + (1 + a^2/4) g}`
    in L2 norm and :math:`m + (1 + a/2) g` in L1 norm, for :math:`m` tables and :math:`g` Gaussian columns (:ref:`naive
    Bayes, theorem 1 <naive-bayes-theorem-1>`). The rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPNaiveBayes, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPNaiveBayes(epsilon=1, delta=1e-6, schema=schema, random_state=0)
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.8])
    """

    _parameter_rules: ClassVar[Rules] = {
        **COLUMN_RULES,
        "numeric": OneOf(("binned", "gaussian")),
        "n_bins": Integer(2, MOST_CELLS),
        "bin_edges": anything,
        "alpha": Real(1e-10),
        "var_smoothing": Real(0.0),
        "dependence": Real(0.0, 1.0),
        "priors": anything,
    }
    _counts_outside = ("numbers", "target")
    _takes_parts = True
    _released = frozenset({"class_count_", "class_prior_", "feature_log_prob_", "theta_", "var_", "exponent_"})
    _public = frozenset({"bin_edges_", "_columns"})
    _dtypes = NUMBERS
    _takes_sparse = True
    _balances_itself = True

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        numeric: str = "binned",
        n_bins: int = 16,
        alpha: float = 1.0,
        var_smoothing: float = 1e-3,
        dependence: float = 0.15,
        priors: Any = None,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        bin_edges: Any = None,
        classes: Any = None,
        rows_per_group: int | None = None,
        class_weight: Any = None,
        max_weight: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.numeric = numeric
        self.n_bins = n_bins
        self.alpha = alpha
        self.var_smoothing = var_smoothing
        self.dependence = dependence
        self.priors = priors
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.bin_edges = bin_edges
        self.classes = classes
        self.rows_per_group = rows_per_group
        self.class_weight = class_weight
        self.max_weight = max_weight

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Layout]:
        check_priors(self.priors, shape.n_classes)
        columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
        layout = Layout(columns, shape.n_classes)
        return plan(parameters.epsilon, parameters.delta, layout, Unit(parameters.rows_per_group)), layout

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, layout: Layout
    ) -> dict[str, Any]:
        shape, mechanism = records.shape, session.mechanism(SUMS)
        sums = session.release(SUMS, sums_by_class(records.X, records.y, layout, mechanism))
        warn_of_declarations(sums, layout, mechanism, shape.classes, shape.names)
        fitted = fitted_attributes(sums, layout, noise_scale(mechanism), moment_weight(mechanism), parameters)
        priors = check_priors(self.priors, shape.n_classes)
        if priors is None and isinstance(self.class_weight, str):
            # Balanced weights are equal priors, and the records of a label stay as they are.
            priors = np.full(shape.n_classes, 1 / shape.n_classes)
        counts = fitted["class_count_"]
        fitted["class_prior_"] = counts / counts.sum() if priors is None else priors
        return {**fitted, "bin_edges_": layout.columns.bin_edges(), "_columns": layout.columns}

    def _form(self) -> str:
        return "cells" if self.numeric == "binned" else "codes"

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # The numbers of columns and of labels change dimensions only.
        epsilon, delta = parameters.epsilon, parameters.delta
        return PrivacyCost(epsilon, delta, (class_sums_mechanism(epsilon, delta, 1, 0, 1)[1],))

    def _check_together(self, parameters: Checked) -> None:
        parameters.columns = check_columns(self, n_bins=parameters.n_bins if parameters.numeric == "binned" else 0)

    def _number_information(self) -> Array:
        information, g = np.zeros(self._columns.n_features), self._columns.unbinned
        information[g] = moment_information(self.theta_[:, g], self.var_[:, g], self.class_prior_)
        return information

    def _number_evidence(self, X: Any) -> Array:
        g, grid, out = self._columns.unbinned, self._columns.grid, np.zeros((X.shape[0], len(self.theta_)))
        if len(g) == 0:
            return out
        if issparse(X):
            positions = _gaussian_positions(self._columns).take(X.indices)
            gaussian = positions >= 0
            positions = np.where(gaussian, positions, 0)
            values = np.clip(X.data, grid.lower[positions], grid.upper[positions])
            zeros, ones = np.clip(0.0, grid.lower, grid.upper), np.ones(X.shape[1])

            def squares(mean: Array, variance: Array) -> Array:
                # Those of a row of zeros, plus differences for the stored entries.
                of_zeros = (zeros - mean) ** 2 / variance
                added = (values - mean[positions]) ** 2 / variance[positions] - of_zeros[positions]
                return of_zeros.sum() + with_data(X, np.where(gaussian, added, 0.0)) @ ones

        else:
            values = np.clip(X[:, g], grid.lower, grid.upper)

            def squares(mean: Array, variance: Array) -> Array:
                return ((values - mean) ** 2 / variance).sum(axis=1)

        for k, (mean, variance) in enumerate(zip(self.theta_[:, g], self.var_[:, g], strict=True)):
            out[:, k] = -squares(mean, variance) / 2 - np.log(2 * np.pi * variance).sum() / 2
        return out
