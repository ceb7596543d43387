r"""Naive Bayes for categorical and numeric features (Vaidya, Shafiq, Basu and Hong 2013), from one joint release.

Sums by class are released: how often each category and each bin occurs, and first and second moments of Gaussian
features. A record affects only the row of its own class. The model is computed from the release.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import GaussianEvent, PrivacyCost, PureEvent, gaussian_mu
from ..checks.data import NUMBERS
from ..checks.params import Checked, Integer, OneOf, Real, Rules, anything
from ..release.counts import moment_weight, noise_scale
from ..release.estimator import GroupsMixin, LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..release.units import Unit
from ..schema.columns import COLUMN_RULES, Columns, check_columns
from ..schema.declared import MOST_CELLS
from ..solvers.tables import NaiveBayesPrediction, by_column, check_priors
from ._model import (
    SUMS,
    Layout,
    estimate,
    moment_information,
    plan,
    sparse_gaussian_evidence,
    sums_by_class,
    warn_of_declarations,
)

Array = NDArray[np.float64]


class DPNaiveBayes(NaiveBayesPrediction, ClassifierMixin, GroupsMixin, LabelsMixin, BaseEstimator):
    r"""Differentially private naive Bayes for categorical and numeric features.

    The counts of categories and bins by class, and the moments of Gaussian features by class, are released once, with
    noise. The fit takes one pass over the data, for any number of classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, and the Laplace noise grows with the
        number of features. Otherwise, the noise is Gaussian, and grows with the square root of this number. Choose a
        value far below one over the expected number of records.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column of X, or one for each numeric column, or
        one for each numeric column without `bin_edges`. Values beyond are clipped, without a warning. Bounds of other
        columns are ignored, but must be increasing.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, in the same order. Required with `categorical_features`. Categories are
        coded 0, 1, ..., as by :class:`sklearn.preprocessing.OrdinalEncoder` with declared categories. Any other value
        is unknown. In `fit`, the record is counted, but without a category in this column. In `predict`, the column is
        ignored.
    numeric : {"binned", "gaussian"}, default="binned"
        Model of numeric columns in each class: a histogram or a Gaussian.
    n_bins : int, default=16
        Number of bins of equal width within the bounds.
    bin_edges : dict, default=None
        Edges of the bins of single columns, by position or name, in increasing order, including the outer edges. Values
        beyond are counted in the outer bins. Such columns are binned for any value of `numeric`.
    alpha : float, default=1.0
        Number of records that are added to each category and bin of each class, as in
        :class:`sklearn.naive_bayes.CategoricalNB`.
    var_smoothing : float, default=1e-3
        Number that is added to the variances of Gaussians, as a multiple of the square of half the bounds' width.
    dependence : float, default=0.15
        Assumed correlation of the features' evidence within a class, in [0, 1]. Naive Bayes counts evidence that
        features share more than once. Therefore the joint evidence is raised to a power below 1 (see ``exponent_``). If
        0, the evidence is not changed.
    priors : array-like of shape (n_classes,), default=None
        Public probabilities of the classes, in sorted order. If None, the released frequencies are used.
    classes : array-like, default=None
        Public label set, of at least two labels. Rows with other labels are left out. If None, the labels in `y` are
        declared public, with a `PrivacyAssumptionWarning`.
    rows_per_group : int, default=None
        Public limit on the number of rows of one group, such as a person. Further rows of a group are left out at
        random. The guarantee is then for all rows of a group together, and the noise is `rows_per_group` times as
        large. If None, the guarantee is for one row.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not in the dict have weight 1. If None, all weights are 1. If
        ``"balanced"``, all labels have the same prior probability, unless `priors` is set, and no records are left out.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `classes`, `rows_per_group`,
        `categorical_features` and `n_categories`. A parameter that is set takes precedence over the schema. X is then
        the table, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Private estimates of the numbers of records.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes.
    feature_log_prob_ : list of length n_features
        For each categorical or binned column, logarithms of private probabilities of its categories or bins, of shape
        (n_classes, n_categories). None for a Gaussian column.
    bin_edges_ : list of length n_features
        Public edges of the bins of each binned column. None for other columns.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Private means and variances of Gaussian columns. NaN for other columns.
    exponent_ : float
        Power to which the joint evidence of the features is raised, in (0, 1].
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
    skdp.linear_model.FunctionalMechLogReg : A linear classifier from noisy second moments.

    Notes
    -----
    **Privacy.** One vector is released once. For each class, it has the counts of all tables, and the sums of
    :math:`(v, a(v^2 - 1/2))` for Gaussian columns scaled into [-1, 1]. Adding or removing one record changes only the
    row of its class, by at most :math:`\sqrt{m + (1 + a^2/4) g}` in L2 norm and :math:`m + (1 + a/2) g` in L1 norm, for
    :math:`m` tables, :math:`g` Gaussian columns and any number of classes (:ref:`naive Bayes, theorem 1
    <naive-bayes-theorem-1>`). The rest is post-processing. The guarantee covers neither an error for values that are
    not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] J. Vaidya, B. Shafiq, A. Basu and Y. Hong, "Differentially Private Naive Bayes Classification", WI-IAT 2013.
    .. [2] C. Stein, "Estimation of the Mean of a Multivariate Normal Distribution", Annals of Statistics 9, 1981.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.naive_bayes import DPNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> bounds = [4, 2, 1, 0], [8, 5, 7, 3]
    >>> model = DPNaiveBayes(epsilon=5.0, delta=1e-5, bounds=bounds, classes=[0, 1, 2], random_state=0)
    >>> model.fit(X, y).predict_proba(X).shape
    (150, 3)
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
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        numeric: str = "binned",
        n_bins: int = 16,
        bin_edges: Any = None,
        alpha: float = 1.0,
        var_smoothing: float = 1e-3,
        dependence: float = 0.15,
        priors: Any = None,
        classes: Any = None,
        rows_per_group: int | None = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.numeric = numeric
        self.n_bins = n_bins
        self.bin_edges = bin_edges
        self.alpha = alpha
        self.var_smoothing = var_smoothing
        self.dependence = dependence
        self.priors = priors
        self.classes = classes
        self.rows_per_group = rows_per_group
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Layout]:
        check_priors(self.priors, shape.n_classes)
        columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
        layout = Layout(columns, shape.n_classes)
        return plan(parameters.epsilon, parameters.delta, layout, Unit(parameters.rows_per_group)), layout

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, layout: Layout
    ) -> dict[str, Any]:
        columns, shape = layout.columns, records.shape
        mechanism = session.mechanism(SUMS)
        noise = noise_scale(mechanism)
        sums = session.release(SUMS, sums_by_class(records.X, records.y, layout, mechanism))
        warn_of_declarations(sums, layout, mechanism, shape.classes, shape.names)
        model = estimate(sums, layout, noise, moment_weight(mechanism), parameters)
        priors = check_priors(self.priors, shape.n_classes)
        if priors is None and isinstance(self.class_weight, str):
            # With balanced weights, all labels have the same weight, and the records of a label stay as they are.
            priors = np.full(shape.n_classes, 1 / shape.n_classes)
        theta = np.full((shape.n_classes, shape.n_features), np.nan)
        var = theta.copy()
        if layout.n_moments:
            theta[:, columns.numeric] = columns.grid.centre + columns.grid.half * model.means
            var[:, columns.numeric] = columns.grid.half**2 * model.variances
        return {
            "class_count_": model.counts,
            "class_prior_": model.counts / model.counts.sum() if priors is None else priors,
            "feature_log_prob_": by_column(columns, model.log_probabilities),
            "bin_edges_": columns.bin_edges(),
            "theta_": theta,
            "var_": var,
            "exponent_": model.exponent,
            "_columns": columns,
        }

    def _form(self) -> str:
        return "cells" if self.numeric == "binned" else "codes"

    def _fixed_cost(self) -> PrivacyCost | None:
        # The numbers of columns and of labels change dimensions only.
        parameters = self._check_parameters()
        epsilon, delta = parameters.epsilon, parameters.delta
        gaussian = delta > 0 and parameters.private
        event = GaussianEvent(gaussian_mu(epsilon, delta)) if gaussian else PureEvent(epsilon)
        return PrivacyCost(epsilon, delta, (event,))

    def _check_together(self, parameters: Checked) -> None:
        binned = parameters.numeric == "binned"
        parameters.columns = check_columns(self, n_bins=parameters.n_bins if binned else 0)

    def _number_information(self) -> Array:
        information, g = np.zeros(self._columns.n_features), self._columns.unbinned
        information[g] = moment_information(self.theta_[:, g], self.var_[:, g], self.class_prior_)
        return information

    def _number_evidence(self, X: Any) -> Array:
        if issparse(X):
            return sparse_gaussian_evidence(X, self._columns, self.theta_, self.var_)
        return gaussian_evidence(X, self._columns, self.theta_, self.var_)


def gaussian_evidence(X: NDArray, columns: Columns, means: Array, variances: Array) -> Array:
    """Return log densities of the Gaussian columns together, by row and class."""
    g = columns.unbinned
    if len(g) == 0:
        return np.zeros((len(X), len(means)))
    values = np.clip(X[:, g], columns.grid.lower, columns.grid.upper)
    out = np.empty((len(X), len(means)))
    for k, (mean, variance) in enumerate(zip(means[:, g], variances[:, g], strict=True)):
        out[:, k] = -((values - mean) ** 2 / variance).sum(axis=1) / 2 - np.log(2 * np.pi * variance).sum() / 2
    return out
