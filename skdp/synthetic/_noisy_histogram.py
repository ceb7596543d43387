"""A joint histogram of all columns (Lei 2011), released once, which can replace the data."""

from __future__ import annotations

from typing import Any

from ._base import HistogramBase


class NoisyHistogram(HistogramBase):
    r"""Differentially private joint histogram, and synthetic data from it (use `DPTableGenerator` instead).

    Records are counted in the cells of a public grid over all columns, and the counts are released once, with noise.
    The weighted cells, or rows drawn from them, can replace the data without further budget. The number of cells is the
    product over all columns. This class is for teaching and comparison: use :class:`DPTableGenerator` instead.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the noise is discrete Laplace noise, which is smaller for one fit,
        because a record is in one cell. Otherwise, the noise is Gaussian, and many fits together cost less.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column. Values beyond count in the outer bins.
    bounds_y : tuple (lower, upper), default=None
        Public bounds of a numeric target, which is then counted as one more column.
    classes : array-like, default=None
        Public label set of y, which is then counted as one more column. Rows with other labels are left out. If neither
        `classes` nor `bounds_y` is given, y is ignored.
    categorical_features : array-like, default=None
        Categorical columns, coded 0, 1, ..., given by positions, names, or a mask. Rows with other values are left out.
    n_categories : int or array-like of int, default=None
        Public numbers of categories of these columns. Required with `categorical_features`.
    n_bins : int, default=None
        Number of bins of each numeric column, of equal width. If None, it follows from public numbers: `expected_n`,
        the budget and the number of columns.
    n_bins_y : int, default=None
        Number of bins of a numeric target. If None, it is that of the columns.
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
        `bounds_y`, `classes`, `rows_per_group`, `categorical_features` and `n_categories`. A parameter that is set
        takes precedence.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    counts_ : ndarray of shape (n_bins, ..., n_bins)
        Noisy counts, which may be negative, with an axis for each column, and one for y if it is counted.
    weights_ : ndarray of shape (n_bins, ..., n_bins)
        Non-negative counts. Counts that noise alone can explain are 0, and the others are scaled so that the sum stays.
    bin_edges_ : list of ndarray
        Public edges of the bins of each column. None for categories.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted, if labels are counted.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPTableGenerator : Use this class instead. It is for tables with many columns.
    HistogramClassifier : A classifier fitted to the cells.

    Notes
    -----
    **Privacy.** The grid is public. A record adds 1 to one count. This moves all counts together by 1 in L1 norm and in
    L2 norm, for any number of cells (:ref:`histograms, theorem 1 <histograms-theorem-1>`). Weights, cells and synthetic
    rows are post-processing. The guarantee covers neither an error for values that are not finite nor the time that
    `fit` takes.

    References
    ----------
    .. [1] J. Lei, "Differentially Private M-Estimators", NIPS 2011.
    .. [2] L. Wasserman and S. Zhou, "A Statistical Framework for Differential Privacy", Journal of the American
       Statistical Association 105, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.synthetic import NoisyHistogram
    >>> X, y = load_iris(return_X_y=True)
    >>> histogram = NoisyHistogram(
    ...     bounds=([1, 0], [7, 3]), classes=[0, 1, 2], n_bins=4, random_state=0
    ... )
    >>> histogram.fit(X[:, 2:], y).counts_.shape
    (4, 4, 3)
    >>> X_new, y_new = histogram.sample(1000, random_state=0)
    >>> X_new.shape
    (1000, 2)
    """

    _released = frozenset({"counts_", "weights_"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        bounds_y: Any = None,
        classes: Any = None,
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
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.classes = classes
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
