"""Models that are fitted to a noisy histogram in place of the data: M-estimation as in Lei (2011), for any model."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import has_fit_parameter

from ..checks.params import Bounds, Checked, Rules, anything
from ..checks.silence import quieten, silence
from ..release.blocks import InnerScores, check_inner
from ..release.estimator import LabelsMixin, Shape
from ._base import Array, Axes, HistogramBase, made_up_rows


def weight_parameter(estimator: Any) -> str | None:
    """Return the name of the parameter of `fit` for weights of rows, or None if there is none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        below = None if isinstance(last, str) else weight_parameter(last)
        # With metadata routing, the steps request the weights themselves.
        return below if below is None or get_config()["enable_metadata_routing"] else f"{name}__{below}"
    return None


def fitted(estimator: Any, rows: Array, targets: Any, weights: Array) -> Any:
    """Fit an estimator with weights."""
    return estimator.fit(rows, targets, **{str(weight_parameter(estimator)): weights})


class HistogramModel(InnerScores, HistogramBase):
    """A histogram with a model that is fitted to its cells."""

    _parameter_rules: ClassVar[Rules] = {"estimator": anything}

    def _check_together(self, parameters: Checked) -> None:
        super()._check_together(parameters)
        estimator = parameters.estimator
        if estimator is None:
            return
        check_inner(estimator, "estimator", "model, or None", "the fit to released cells uses no budget")
        if weight_parameter(estimator) is None:
            name = type(estimator).__name__
            raise TypeError(f"{name}.fit does not take sample_weight: fit it to rows from NoisyHistogram.sample")

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        self._fit(X, y, groups, sample_weight=sample_weight)
        rows, targets, weights = self._complete_cells()
        if self.estimator is not None:
            self.estimator_ = fitted(clone(self.estimator), rows, targets, weights)
            return self
        # Some versions of scikit-learn warn about their own calls of SciPy in the default model.
        with config_context(enable_metadata_routing=False), silence():
            self.estimator_ = fitted(encoded(self._axes, clone(self._inner_default)), rows, targets, weights)
        return self

    def _rehearse(self, parameters: Checked, shape: Shape, axes: Axes) -> None:
        """Fit a clone of the estimator to made-up rows, to find errors before any charge."""
        if self.estimator is None:
            return
        trial = clone(self.estimator)
        # Callbacks must receive the fit only.
        quieten(trial)
        values, classes = made_up_rows(axes), shape.classes
        targets = values[:, -1] if classes is None else classes[values[:, -1].astype(np.intp)]
        weights = np.full(len(values), 100.0)
        try:
            # `silence` is not used, because workers of the estimator may have to wait for it. The rows are public.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted(trial, values[:, :-1], targets, weights)
        except Exception as error:
            error.add_note("The estimator was fitted to made-up rows, as a rehearsal: nothing has been spent.")
            raise

    def _complete_cells(self) -> tuple[Array, Any, Array]:
        """Return the cells, with at least one row and one record of each label, which models need."""
        y: Any
        X, y, weights = self.cells()
        axes = self._axes
        if axes.target is not None:
            if len(X):
                return X, y, weights
            middle = axes.centres(np.array([axes.size // 2]))[:, : self._n_columns]
            return middle, axes.target.centre, np.ones(1)
        missing = np.setdiff1d(self.classes_, y)
        if len(missing) == 0:
            return X, y, weights
        # There is no information on these labels. They get the distribution of all records, or the middle without any.
        shares = self.weights_.sum(axis=-1).ravel()
        if not shares.any():
            shares[len(shares) // 2] = 1.0
        occupied = np.flatnonzero(shares)
        centres = axes.centres(occupied * axes.n_targets)[:, : self._n_columns]
        return (
            np.concatenate([X, np.tile(centres, (len(missing), 1))]),
            np.concatenate([y, np.repeat(missing, len(occupied))]),
            np.concatenate([weights, np.tile(shares[occupied] / shares.sum(), len(missing))]),
        )


def encoded(axes: Axes, model: Any) -> Any:
    """Return a pipeline that encodes categories, scales numbers, and ends in `model`."""
    c = axes.columns
    if not c.categorical:
        return make_pipeline(StandardScaler(), model)
    codes = [np.arange(c.sizes[j]) for j in c.categorical]
    one_hot = OneHotEncoder(categories=codes, handle_unknown="ignore")
    columns = ColumnTransformer([("categories", one_hot, list(c.categorical))], remainder=StandardScaler())
    return make_pipeline(columns, model)


class HistogramClassifier(ClassifierMixin, HistogramModel):
    r"""Classifier that is fitted to a differentially private histogram (use `DPAdditiveClassifier` instead).

    Records are counted in the cells of a public grid over all columns and labels, and the counts are released once,
    with noise. A classifier is then fitted to the cells. This class is for few columns, for teaching and comparison.

    Parameters
    ----------
    estimator : estimator, default=None
        Classifier that is fitted to the centres of the cells. Its `fit` must accept `sample_weight`, or it is a
        pipeline that ends in such a classifier. If None, it is logistic regression of scaled columns and one-hot
        categories.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the noise is discrete Laplace noise, which is smaller for one fit,
        because a record is in one cell. Otherwise, the noise is Gaussian, and many fits together cost less.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column. Values beyond count in the outer bins.
    categorical_features : array-like, default=None
        Categorical columns, coded 0, 1, ..., given by positions, names, or a mask. Rows with other values are left out.
    n_categories : int or array-like of int, default=None
        Public numbers of categories of these columns. Required with `categorical_features`.
    n_bins : int, default=None
        Number of bins of each numeric column, of equal width. If None, it follows from public numbers: `expected_n`,
        the budget and the number of columns.
    bin_edges : dict, default=None
        Edges of the bins of single columns, by position or name.
    expected_n : int, default=None
        Publicly known, approximate number of records, for the number of bins. If None, it is 10,000.
    classes : array-like, default=None
        Public label set, of at least two labels. Other rows are left out. If None, the labels in `y` count as public,
        with a warning.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for the whole group, with `rows_per_group` times the noise. If None, it is for one row.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels, by which records are kept at random (see :ref:`weights`). Labels
        that are not in the dict have weight 1. If None, all weights are 1. If ``"balanced"``, they are inversely
        proportional to noisy counts of the labels, which take 4 % of the budget.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of the table X, which may hold text and missing values, in place of `bounds`,
        `classes`, `rows_per_group`, `categorical_features` and `n_categories`. A parameter that is set takes
        precedence.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. It is not
        passed on to `estimator`.

    Attributes
    ----------
    estimator_ : estimator
        Fitted classifier.
    counts_ : ndarray of shape (n_bins, ..., n_classes)
        Noisy counts, which may be negative, with an axis for each column and one for labels.
    weights_ : ndarray of shape (n_bins, ..., n_classes)
        Non-negative counts. Counts that noise alone can explain are 0, and the others are scaled so that the sum stays.
    bin_edges_ : list of ndarray
        Public edges of the bins of each column. None for categories.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    skdp.additive.DPAdditiveClassifier : Use this class instead. It is more accurate in most cases.

    Notes
    -----
    **Privacy.** The release is that of :class:`NoisyHistogram` (:ref:`histograms, theorem 1 <histograms-theorem-1>`).
    The model is post-processing. Therefore any number of further models use no more of the budget. A label without
    cells gets the weight of one record, with the distribution of all records. The guarantee covers neither an error
    for values that are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] J. Lei, "Differentially Private M-Estimators", NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.synthetic import HistogramClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HistogramClassifier(
    ...     DecisionTreeClassifier(max_depth=3),
    ...     bounds=([1, 0], [7, 3]),
    ...     classes=[0, 1, 2],
    ...     n_bins=6,
    ...     random_state=0,
    ... )
    >>> model.fit(X[:, 2:], y).predict([[1.4, 0.2]])
    array([0])
    """

    _inner_default = LogisticRegression(max_iter=1000)

    def _check_together(self, parameters: Checked) -> None:
        super()._check_together(parameters)
        parameters.kind = LabelsMixin

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        n_bins: int | None = None,
        bin_edges: Any = None,
        expected_n: int | None = None,
        classes: Any = None,
        rows_per_group: int | None = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.n_bins = n_bins
        self.bin_edges = bin_edges
        self.expected_n = expected_n
        self.classes = classes
        self.rows_per_group = rows_per_group
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state


class HistogramRegressor(RegressorMixin, HistogramModel):
    r"""Regressor that is fitted to a differentially private histogram (use `DPAdditiveRegressor` instead).

    Records are counted in the cells of a public grid over all columns and the target, and the counts are released once,
    with noise. A regressor is then fitted to the cells. This class is for few columns, for teaching and comparison.

    Parameters
    ----------
    estimator : estimator, default=None
        Regressor that is fitted to the centres of the cells. Its `fit` must accept `sample_weight`, or it is a pipeline
        that ends in such a regressor. If None, it is linear regression of scaled columns and one-hot categories.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the noise is discrete Laplace noise, which is smaller for one fit,
        because a record is in one cell. Otherwise, the noise is Gaussian, and many fits together cost less.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column. Values beyond count in the outer bins.
    bounds_y : tuple (lower, upper)
        Public bounds of the target. Predictions are within the bounds. The bins divide the released range of the
        target, so that the bounds may be generous (see :ref:`regression`). Targets beyond count in the outermost bins.
    categorical_features : array-like, default=None
        Categorical columns, coded 0, 1, ..., given by positions, names, or a mask. Rows with other values are left out.
    n_categories : int or array-like of int, default=None
        Public numbers of categories of these columns. Required with `categorical_features`.
    n_bins : int, default=None
        Number of bins of each numeric column, of equal width. If None, it follows from public numbers: `expected_n`,
        the budget and the number of columns.
    n_bins_y : int, default=None
        Number of bins of the target. If None, it is that of the columns.
    bin_edges : dict, default=None
        Edges of the bins of single columns, by position or name.
    expected_n : int, default=None
        Publicly known, approximate number of records, for the number of bins. If None, it is 10,000.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows are left out at random. The guarantee is
        then for the whole group, with `rows_per_group` times the noise. If None, it is for one row.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of the table X, which may hold text and missing values, in place of `bounds`,
        `bounds_y`, `rows_per_group`, `categorical_features` and `n_categories`. A parameter that is set takes
        precedence.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. It is not
        passed on to `estimator`.

    Attributes
    ----------
    estimator_ : estimator
        Fitted regressor.
    counts_ : ndarray of shape (n_bins, ..., n_bins_y)
        Noisy counts, which may be negative, with an axis for each column and one for the target.
    weights_ : ndarray of shape (n_bins, ..., n_bins_y)
        Non-negative counts. Counts that noise alone can explain are 0, and the others are scaled so that the sum stays.
    bin_edges_ : list of ndarray
        Public edges of the bins of each column. None for categories.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    skdp.additive.DPAdditiveRegressor : Use this class instead. It is more accurate in most cases.

    Notes
    -----
    **Privacy.** A range of the target and its mean in it are released first (:ref:`regression, theorem 1
    <regression-theorem-1>`). The counts are those of :class:`NoisyHistogram` (:ref:`histograms, theorem 1
    <histograms-theorem-1>`). The model is post-processing. Therefore any number of further models use no more of the
    budget. The guarantee covers neither an error for values that are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] J. Lei, "Differentially Private M-Estimators", NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp.synthetic import HistogramRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HistogramRegressor(
    ...     bounds=(-0.2, 0.2), bounds_y=(25, 346), n_bins=8, random_state=0
    ... )
    >>> model.fit(X[:, [2]], y).predict([[0.0]]).shape
    (1,)
    """

    _parameter_rules: ClassVar[Rules] = {"bounds_y": Bounds("the target")}
    _regresses = True
    _inner_default = LinearRegression()
    _released = HistogramModel._released | {"_axes"}
    _public = HistogramModel._public - {"_axes"}

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        bounds_y: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        n_bins: int | None = None,
        n_bins_y: int | None = None,
        bin_edges: Any = None,
        expected_n: int | None = None,
        rows_per_group: int | None = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.n_bins = n_bins
        self.n_bins_y = n_bins_y
        self.bin_edges = bin_edges
        self.expected_n = expected_n
        self.rows_per_group = rows_per_group
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def predict(self, X: Any) -> NDArray:
        predictions, target = super().predict(X), self._axes.target
        return np.clip(predictions, target.lower[0], target.upper[0])
