r"""Naive Bayes from randomised reports. Label and features of each row are randomised before anyone else sees them.

A row reports one of the tables of label and feature, drawn at random, or a few. For each, it reports the *pair* of
label and category as one symbol. Separate reports of label and feature would have half of the budget each.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..checks.data import NUMBERS, check_quietly, labelled_data, validate_quietly
from ..checks.params import Checked, Integer, Real, Rules, anything, check_classes, check_integer, check_parameters
from ..mechanisms import UNKNOWN, CategoryChannel, HadamardChannel, KaryChannel, LocalMechanism
from ..release.session import PrivacyGuarantee
from ..schema.columns import COLUMN_RULES, Columns, Encoder, check_columns
from ..schema.declared import MOST_CELLS
from ..schema.entries import encode_labels
from ..solvers.tables import (
    NaiveBayesPrediction,
    by_column,
    check_priors,
    exponent,
    table_information,
    table_probabilities,
)
from ._base import REPORTS, Array, Integers, LocalMixin, mechanism_for


def best_channel(epsilon: Any, n_categories: int) -> CategoryChannel:
    """Return the channel with the least error, of the channels that report one symbol."""
    options: list[CategoryChannel] = [KaryChannel(epsilon, n_categories), HadamardChannel.best(epsilon, n_categories)]
    return min(options, key=lambda channel: channel.mean_square)


# Cells of so many rows are computed at once.
_BLOCK_ROWS = 4096


def tables_mechanism(epsilon: float, columns: Columns, n_classes: int, n_reported: Any) -> LocalMechanism:
    """Return the mechanism: one column for each table of label and feature, and a last one for the label only."""
    sizes = [int(size) * n_classes for size in columns.table_sizes] + [n_classes]
    return mechanism_for(epsilon, sizes, n_reported, best_channel)


def pair_codes(X: NDArray, codes: NDArray[np.integer], columns: Columns) -> Integers:
    """Return the cell of each row in each table, and then its label, or `UNKNOWN` for a label that is not declared."""
    out = np.empty((len(X), len(columns.table_sizes) + 1), dtype=np.int64)
    encoder = Encoder(columns)
    for start in range(0, len(X), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        with np.errstate(all="ignore"):
            out[rows, :-1] = codes[rows, None] * columns.table_sizes + encoder.cells(X[rows])
    out[:, -1] = codes
    out[codes < 0] = UNKNOWN
    return out


def _postprocess_reports(
    reports: NDArray, mechanism: LocalMechanism, columns: Columns, n_classes: int, parameters: Checked
) -> dict[str, Any]:
    """Return the fitted attributes for reports, which are public, as is their number."""
    n = len(reports)
    estimates, noises = [], []
    for channel, column in zip(mechanism.channels, reports.T, strict=True):
        assert isinstance(channel, CategoryChannel)
        reported = column[column != UNKNOWN]
        n_reports = max(len(reported), 1)
        scores = channel.scores(channel.counts(reported), len(reported))
        # The estimates are for the number of rows.
        estimates.append((scores * (n / n_reports)).reshape(n_classes, -1))
        spread = channel.mean_square
        if mechanism.n_reported == len(mechanism.channels):
            # The rows are fixed, so that only noise remains.
            spread = max(spread - 1 / channel.n_categories, 0.0)
        noises.append(n * (spread / n_reports) ** 0.5)
    counts = _label_counts(estimates, np.array(noises))
    tables, information = [], []
    categorical = len(columns.categorical)
    for t, (estimate, deviation) in enumerate(zip(estimates[:-1], noises, strict=False)):
        probabilities = table_probabilities(estimate[None], counts, deviation, t >= categorical, parameters.alpha)
        information.append(table_information(probabilities, counts))
        tables.append(np.log(probabilities[0]))
    return {
        "class_count_": counts,
        "feature_log_prob_": by_column(columns, tables),
        "exponent_": exponent(np.concatenate(information), parameters.dependence),
    }


def _label_counts(estimates: list[Array], noise: Array) -> Array:
    """Combine the estimates of the labels from all tables, by the variances of their noise."""
    variances = noise**2 * [estimate.shape[1] for estimate in estimates]
    if not np.all(variances > 0):
        return np.maximum(estimates[-1][:, 0], 1.0)
    weights = 1 / variances
    counts = sum(weight * estimate.sum(axis=1) for weight, estimate in zip(weights, estimates, strict=True))
    return np.maximum(counts / weights.sum(), max(1.0, float(1 / np.sqrt(weights.sum()))))


class LocalDPNaiveBayes(NaiveBayesPrediction, ClassifierMixin, LocalMixin, BaseEstimator):
    r"""Naive Bayes from randomised reports (local differential privacy).

    Each row, with its label, is randomised by its owner with `randomize`. The reports are collected, and `fit_reports`
    learns from them, so that nobody has to be trusted with the rows. `fit` does both, for rows in one place.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one row with its label. Must be strictly positive. Smaller values add more noise. ``inf``
        gives no privacy.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `classes`, `categorical_features` and `n_categories`.
        Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `fit` or `randomize` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    n_bins : int, default=8
        Number of bins of numeric columns, of equal width within the bounds.
    n_reported : "all", "auto" or int, default="auto"
        Number of tables that each row reports, with an equal part of `epsilon` for each. There is one table of the
        label and each feature, and one of the label only. ``"auto"`` has the least error.
    alpha : float, default=1.0
        Number of records that are added to each category and bin of each class.
    dependence : float, default=0.15
        Assumed correlation of the features' evidence within a class, in [0, 1] (see ``exponent_``).
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes, in sorted order. If None, they are estimated.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features. Values beyond are clipped.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, coded 0, 1, ... Required with `categorical_features`. Any other value is
        unknown, and is reported like a category.
    bin_edges : dict, default=None
        Edges of the bins of single columns, by position or name.
    classes : array-like, default=None
        Public label set. Required by `randomize` and `fit_reports`. Rows with other labels are reported as well, and do
        not affect the estimates. If None, `fit` declares the labels in `y` public, with a `PrivacyAssumptionWarning`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Estimates of the numbers of rows.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    feature_log_prob_ : list of length n_features
        For each column, logarithms of estimated probabilities of its categories or bins, of shape (n_classes,
        n_categories).
    bin_edges_ : list of length n_features
        Public edges of the bins of each binned column. None for other columns.
    exponent_ : float
        Power to which the joint evidence of the features is raised, in (0, 1].
    privacy_ : PrivacyGuarantee
        Guarantee of the report of each row.
    feature_importances_ : ndarray of shape (n_features,)
        Mutual information of each column and the label under the model, divided by the sum over columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    skdp.naive_bayes.DPNaiveBayes : Far more accurate, if the rows may be collected without noise.
    RandomizedResponse : Reports for any other purpose.

    Notes
    -----
    The pair of a label and a feature's category is reported as one symbol, by the one of randomised response and
    Hadamard response with less error. Unbiased estimates of the counts of pairs give the model.

    **Privacy.** The report of a row is epsilon-DP with respect to that row and its label (:ref:`local privacy, theorem
    1 <local-theorem-1>`): with any other row in its place, no report is more than :math:`e^\varepsilon` times as
    likely. The number of rows is public. The rest is post-processing of reports. A label is never refused, because an
    error for a single row would disclose its label. Features that are not finite numbers are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LocalDPNaiveBayes, Schema
    >>> k = np.arange(20_000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = LocalDPNaiveBayes(epsilon=2.0, schema=schema, random_state=0)
    >>> reports = model.randomize({"age": age, "smokes": smokes}, ill)
    >>> model = model.fit_reports(reports)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.8])
    """

    _released = frozenset({"class_count_", "class_prior_", "feature_log_prob_", "exponent_"})
    _public = frozenset({"bin_edges_", "_columns"})

    _parameter_rules: ClassVar[Rules] = {
        **COLUMN_RULES,
        "n_bins": Integer(2, MOST_CELLS),
        "bin_edges": anything,
        "alpha": Real(1e-10),
        "dependence": Real(0.0, 1.0),
        "priors": anything,
        "classes": check_classes,
    }
    _schema_form = "cells"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        n_bins: int = 8,
        n_reported: Any = "auto",
        alpha: float = 1.0,
        dependence: float = 0.15,
        priors: Any = None,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        bin_edges: Any = None,
        classes: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_bins = n_bins
        self.n_reported = n_reported
        self.alpha = alpha
        self.dependence = dependence
        self.priors = priors
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.bin_edges = bin_edges
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Randomise rows, learn from the reports only, and spend epsilon.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        return self._learn(*self._randomize(X, y, "fit", reset=True))

    def randomize(self, X: Any, y: Any) -> Integers:
        """Randomise rows separately, and spend epsilon. Each call is a further release of its rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features. There is a single row if each owner calls this method.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        reports : ndarray of int64, of shape (n_samples, n_tables)
            Reports for `fit_reports`, which accepts those of several calls together. -1 if a table is not reported.
        """
        self._declared_classes()
        return self._randomize(X, y, "randomize", reset=not hasattr(self, "classes_"))[0]

    def fit_reports(self, reports: Any) -> Self:
        """Learn from reports, which are public. This is post-processing and does not use any budget.

        Parameters
        ----------
        reports : array-like of shape (n_samples, n_tables)
            Output of `randomize`, of this estimator or of others with the same parameters.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        classes, parameters = self._declared_classes(), self._check_parameters()
        table = check_quietly(reports, dtype=np.float64, ensure_min_samples=0)
        if table.shape[1] < 2:
            raise ValueError("reports must have a column for each feature, and one for the label")
        n_features = table.shape[1] - 1
        names = self._names()
        if names is not None and len(names) != n_features:
            raise ValueError(f"reports are of {n_features} features, and X had {len(names)}")
        if names is None and any(isinstance(name, str) for name in parameters.columns.named):
            raise ValueError(
                "categorical_features or bin_edges name columns, and reports have no names: give positions, or use an "
                "estimator whose randomize has seen a data frame with these columns"
            )
        columns = parameters.columns.resolve(n_features, names)
        mechanism = tables_mechanism(parameters.epsilon, columns, len(classes), self.n_reported)
        with np.errstate(all="ignore"):
            codes = table.astype(np.int64)
        limits = [getattr(channel, "n_reports", 0) for channel in mechanism.channels]
        if not np.all((codes == table) & (codes >= UNKNOWN) & (codes < limits)):
            raise ValueError("reports must be as randomize returns them, with the same parameters")
        self.n_features_in_ = n_features
        self._keep(self._encoding())
        return self._learn(codes, classes, columns)

    def _randomize(self, X: Any, y: Any, label: str, reset: bool) -> tuple[Integers, NDArray, Columns]:
        parameters = self._check_parameters()
        classes = parameters.classes
        if classes is None:
            X, codes, classes = labelled_data(self, X, y, None, NUMBERS)
        else:
            X, codes = self._rows(X, y, classes, reset)
        check_priors(self.priors, len(classes))
        columns = parameters.columns.resolve(X.shape[1], self._names())
        mechanism = tables_mechanism(parameters.epsilon, columns, len(classes), self.n_reported)
        session = self._session(mechanism, label)
        reports = session.release(REPORTS, pair_codes(X, codes, columns))
        return reports.astype(np.int64, copy=False), classes, columns

    def _rows(self, X: Any, y: Any, classes: NDArray, reset: bool) -> tuple[NDArray, Integers]:
        """Validate rows, but not their labels, because an exception for a single row would disclose its label."""
        if y is None:
            validate_quietly(self, X, y)
        X = validate_quietly(self, X, dtype=list(NUMBERS), ensure_min_samples=0, reset=reset)
        codes = encode_labels(y, classes)
        if len(X) != len(codes):
            raise ValueError("X and y must have the same number of rows")
        return X, codes

    def _learn(self, reports: Integers, classes: NDArray, columns: Columns) -> Self:
        parameters = self._check_parameters()
        priors = check_priors(self.priors, len(classes))
        mechanism = tables_mechanism(parameters.epsilon, columns, len(classes), self.n_reported)
        fitted = _postprocess_reports(reports, mechanism, columns, len(classes), parameters)
        counts = fitted["class_count_"]
        fitted["class_prior_"] = counts / counts.sum() if priors is None else priors
        fitted |= {"bin_edges_": columns.bin_edges(), "privacy_": self._guarantee(mechanism), "_columns": columns}
        self.__dict__.update(fitted, classes_=classes)
        return self

    def _declared_classes(self) -> NDArray:
        classes = check_classes(self._declared("classes"))
        if classes is None:
            raise ValueError("classes must be given: the label set, from public knowledge")
        return classes

    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        parameters = self._check_parameters()
        if parameters.classes is not None:
            n_classes = len(parameters.classes)
        elif n_classes is None:
            raise ValueError("n_classes must be given, since classes is None")
        n_classes = check_integer(n_classes, "n_classes", least=2)
        check_priors(self.priors, n_classes)
        n_features = self._planned_features(n_features)
        columns = parameters.columns.resolve(n_features, None, named=False)
        return self._guarantee(tables_mechanism(parameters.epsilon, columns, n_classes, self.n_reported))

    def _check_parameters(self) -> Checked:
        parameters = check_parameters(self, ("classes",))
        parameters.columns = check_columns(self, n_bins=parameters.n_bins)
        return parameters
