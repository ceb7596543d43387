"""Local reports of categories: randomised response, unary encoding and Hadamard response."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.params import OneOf, Rules, anything, check_boolean
from ..mechanisms import UNKNOWN, CategoryChannel, HadamardChannel, KaryChannel, LocalMechanism, UnaryChannel
from ..schema.entries import Categories, check_categories, read_entries
from ..solvers.tables import onto_simplex
from ._base import Integers, LocalTransformer, mechanism_for


class CategoryTransformer(LocalTransformer):
    """Randomise categories, and estimate their frequencies."""

    _schema_form = "categories"

    _parameter_rules: ClassVar[Rules] = {"categories": anything}

    def __init__(
        self,
        categories: Any = None,
        *,
        epsilon: float = 1.0,
        n_reported: Any = "all",
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.categories = categories
        self.epsilon = epsilon
        self.n_reported = n_reported
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        return read_entries(self, X, reset=reset)

    @abstractmethod
    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        """Return the channel of a column."""

    def _categories(self, n_features: int) -> tuple[Categories, ...]:
        return check_categories(self._declared("categories"), n_features)

    def _mechanism(self, n_features: int) -> LocalMechanism:
        sizes = [column.size for column in self._categories(n_features)]
        return mechanism_for(self._checked().epsilon, sizes, self.n_reported, self._channel)

    def _codes(self, X: NDArray) -> Integers:
        columns = self._categories(X.shape[1])
        return np.column_stack([column.encode(X[:, j]) for j, column in enumerate(columns)])

    def _reports(self, released: NDArray, mechanism: LocalMechanism) -> NDArray:
        return released

    def _symbols(self, Z: NDArray, mechanism: LocalMechanism) -> list[NDArray]:
        """Return the reports of each column, without missing ones."""
        starts, symbols = mechanism.starts, []
        for j, channel in enumerate(mechanism.channels):
            reports = Z[:, starts[j] : starts[j + 1]]
            reports = reports[reports[:, 0] != UNKNOWN]
            limit = 2 if channel.width > 1 else getattr(channel, "n_reports", 2)
            try:
                with np.errstate(all="ignore"):
                    whole = reports.astype(np.int64)
                good = bool(np.all(whole == reports) and np.all((whole >= 0) & (whole < limit)))
            except (TypeError, ValueError, OverflowError):
                whole, good = np.zeros(reports.shape, dtype=np.int64), False
            if not good:
                raise ValueError("Z must hold reports as transform returns them")
            symbols.append(whole if channel.width > 1 else whole[:, 0])
        return symbols

    def frequencies(self, Z: Any, *, project: bool = False, return_std: bool = False) -> Any:
        """Estimate the frequencies of the categories of each column from reports.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features_out)
            Reports of this transformer, or of others with the current parameters. Reports with other parameters, such
            as another epsilon, give wrong estimates.
        project : bool, default=False
            If False, the estimates are unbiased, and some may be negative. If True, they are the nearest probabilities,
            which have less error, but are biased.
        return_std : bool, default=False
            Whether to return standard errors as well.

        Returns
        -------
        frequencies : list of ndarray of shape (n_categories,)
            For each column, in the order of its categories. Values in no category do not contribute. Without any report
            of a column, its frequencies are 0.
        std : list of ndarray of shape (n_categories,)
            Standard errors of the unbiased estimates for the population that the rows are drawn from. They cover noise
            and sampling. Only if `return_std` is True.
        """
        check_boolean(project, "project")
        check_boolean(return_std, "return_std")
        check_is_fitted(self, "n_features_in_")
        mechanism = self._mechanism(self._n_columns)
        every = self._symbols(self._read(Z, mechanism), mechanism)
        frequencies, errors = [], []
        for channel, reports in zip(mechanism.channels, every, strict=True):
            assert isinstance(channel, CategoryChannel)
            n = len(reports)
            if n == 0:
                frequencies.append(np.zeros(channel.n_categories))
                errors.append(np.full(channel.n_categories, np.inf))
                continue
            counts = channel.counts(reports)
            estimate = channel.scores(counts, n) / n
            spread = np.maximum(channel.squares(counts, n) / n - estimate**2, 0.0)
            frequencies.append(onto_simplex(estimate[None], np.ones(1))[0] if project else estimate)
            errors.append(np.sqrt(spread / n))
        return (frequencies, errors) if return_std else frequencies


class RandomizedResponse(OneToOneFeatureMixin, CategoryTransformer):
    r"""Report a category either as it is or at random.

    Parameters
    ----------
    categories : int, array-like or list of array-like
        Public categories: their number, if they are coded 0, 1, ...; or a list of numbers or texts; or a list with one
        of these for each column. Required. Other and missing values are neither refused nor dropped. They are reported
        like any other value, and do not affect the estimates.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy. Above about 40 for one column, it has the effect of 40.
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, the
        columns of each row are drawn at random, and its other columns are missing (NaN for numbers, None for text).
        Estimates have less error if each row reports few columns with more of `epsilon`. ``"auto"`` has the least
        error.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `categories`. X is then the table. All of its columns
        must be declared as `Category`.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    UnaryEncoder : Less error for many categories. Reports a bit for each category.
    HadamardResponse : Nearly the same error, with a single number.

    Notes
    -----
    With k categories, the row's own category is reported with probability :math:`e^\varepsilon/(e^\varepsilon + k -
    1)`, and each other one with :math:`1/(e^\varepsilon + k - 1)`. For two categories, and for a large epsilon, no
    other mechanism has less error. Up to :math:`k \approx 3e^\varepsilon + 2`, it has less error than the other two
    transformers.

    **Privacy.** The report of each row is epsilon-DP with respect to that row (:ref:`local privacy, theorem 1
    <local-theorem-1>`). With any other row in its place, no report is more than :math:`e^\varepsilon` times as likely.
    The number of rows is public. `fit` learns nothing. Each call of `transform` is a release of its rows and is
    charged, also within a pipeline. Draws are exact.

    The index of a data frame is not randomised, and is part of the output if the output is pandas. Do not use a
    ``Pipeline`` with `memory`, because it would return the same report again for an equal row.

    References
    ----------
    .. [1] S. L. Warner, "Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias", Journal of the
       American Statistical Association 60, 1965.
    .. [2] P. Kairouz, S. Oh and P. Viswanath, "Extremal Mechanisms for Local Differential Privacy", Journal of Machine
       Learning Research 17, 2016.

    Examples
    --------
    >>> from skdp.local import RandomizedResponse
    >>> survey = RandomizedResponse(["no", "yes"], epsilon=1.0, random_state=0)
    >>> reports = survey.fit_transform([["yes"]] * 300 + [["no"]] * 700)
    >>> frequencies, std = survey.frequencies(reports, return_std=True)
    >>> frequencies[0].round(2), std[0].round(2)
    (array([0.69, 0.31]), array([0.03, 0.03]))
    """

    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        return KaryChannel(epsilon, n_categories)

    def _reports(self, released: NDArray, mechanism: LocalMechanism) -> NDArray:
        columns = self._categories(released.shape[1])
        text = any(column.values.dtype.kind == "U" for column in columns)
        partial = mechanism.n_reported < len(columns)
        kinds = [column.values.dtype for column in columns]
        out = np.empty(released.shape, dtype=object if text else np.result_type(*kinds, *([np.float64] * partial)))
        for j, column in enumerate(columns):
            out[:, j] = column.values[released[:, j]]
            if partial:
                out[released[:, j] == UNKNOWN, j] = None if text else np.nan
        return out

    def _symbols(self, Z: NDArray, mechanism: LocalMechanism) -> list[NDArray]:
        numbers = [column.values.dtype.kind != "U" for column in self._categories(Z.shape[1])]
        if (Z.dtype.kind == "U" and any(numbers)) or (Z.dtype.kind in "biuf" and not all(numbers)):
            raise TypeError("Z must hold reports as transform returns them, and is of another type than categories")
        codes = self._codes(Z)
        return [column[column != UNKNOWN] for column in codes.T]


class UnaryEncoder(CategoryTransformer):
    r"""Report a bit for each category: one-hot encoding with bits flipped at random.

    Parameters
    ----------
    categories : int, array-like or list of array-like
        Public categories: their number, if they are coded 0, 1, ...; or a list of numbers or texts; or a list with one
        of these for each column. Required. Other and missing values are neither refused nor dropped. They are reported
        like any other value, and do not affect the estimates.
    kind : {"optimized", "symmetric"}, default="optimized"
        If ``"optimized"``, ones are kept with probability 1/2, and zeros are rarely changed (optimised unary encoding).
        If ``"symmetric"``, both are changed with the same probability. ``"optimized"`` is better for many categories.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy. Above about 40 for one column, it has the effect of 40.
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, the
        columns of each row are drawn at random, and its other columns are missing (-1 in each of their bits). Estimates
        have less error if each row reports few columns with more of `epsilon`. ``"auto"`` has the least error.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `categories`. X is then the table. All of its columns
        must be declared as `Category`.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    RandomizedResponse : Less error for few categories.
    HadamardResponse : About the same error, with a single number.
    sklearn.preprocessing.OneHotEncoder : The same encoding without noise.

    Notes
    -----
    The bit of the row's own category is set with probability p, and each other bit with probability q, independently.
    Two categories differ in two bits, so that :math:`p(1-q) = e^\varepsilon q(1-p)`. Optimised encoding has :math:`p =
    1/2` and :math:`q = 1/(e^\varepsilon + 1)`. Symmetric encoding has :math:`q = 1 - p = 1/(e^{\varepsilon/2} + 1)`.
    The error does not depend on the number of categories, but the number of bits of a report does.

    **Privacy.** The report of each row is epsilon-DP with respect to that row (:ref:`local privacy, theorem 1
    <local-theorem-1>`). With any other row in its place, no report is more than :math:`e^\varepsilon` times as likely.
    The number of rows is public. `fit` learns nothing. Each call of `transform` is a release of its rows and is
    charged, also within a pipeline. Draws are exact.

    The index of a data frame is not randomised, and is part of the output if the output is pandas. Do not use a
    ``Pipeline`` with `memory`, because it would return the same report again for an equal row.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha, "Locally Differentially Private Protocols for Frequency Estimation",
       USENIX Security 2017.
       CCS 2014.

    Examples
    --------
    >>> from skdp.local import UnaryEncoder
    >>> encoder = UnaryEncoder(4, epsilon=3.0, random_state=0).fit([[0]])
    >>> encoder.transform([[0], [3]]).shape
    (2, 4)
    >>> reports = encoder.transform([[k % 4] for k in range(10_000)])
    >>> encoder.frequencies(reports)[0].round(1)
    array([0.3, 0.2, 0.3, 0.3])
    """

    _parameter_rules: ClassVar[Rules] = {"kind": OneOf(("optimized", "symmetric"))}

    def __init__(
        self,
        categories: Any = None,
        *,
        kind: str = "optimized",
        epsilon: float = 1.0,
        n_reported: Any = "all",
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.categories = categories
        self.kind = kind
        self.epsilon = epsilon
        self.n_reported = n_reported
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        return UnaryChannel(epsilon, n_categories, self._checked().kind == "optimized")

    def encode(self, X: Any) -> NDArray[np.int8]:
        """Return the bits without noise. They are not private, and are for rows that stay with their owner.

        The owners of rows can apply a model that was fitted to reports to these bits.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        bits : ndarray of int8, of shape (n_samples, n_features_out)
            A single 1 for each column, and no 1 for a value in no category.
        """
        X = self._rows(X, reset=False)
        sizes = [column.size for column in self._categories(X.shape[1])]
        out = np.zeros((len(X), sum(sizes)), dtype=np.int8)
        for start, codes in zip(np.cumsum(sizes) - sizes, self._codes(X).T, strict=True):
            known = np.flatnonzero(codes != UNKNOWN)
            out[known, start + codes[known]] = 1
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the bits.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. If None, those seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            Name of the column and category of each bit.
        """
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        columns = self._categories(len(names))
        pairs = [f"{name}_{value}" for name, column in zip(names, columns, strict=True) for value in column.values]
        return np.array(pairs, dtype=object)


class HadamardResponse(OneToOneFeatureMixin, CategoryTransformer):
    r"""Report one number for a category, with about the error of a bit for each category.

    Parameters
    ----------
    categories : int, array-like or list of array-like
        Public categories: their number, if they are coded 0, 1, ...; or a list of numbers or texts; or a list with one
        of these for each column. Required. Other and missing values are neither refused nor dropped. They are reported
        like any other value, and do not affect the estimates.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy. Above about 40 for one column, it has the effect of 40.
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, the
        columns of each row are drawn at random, and its other columns are missing (-1). Estimates have less error if
        each row reports few columns with more of `epsilon`. ``"auto"`` has the least error.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `categories`. X is then the table. All of its columns
        must be declared as `Category`.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    RandomizedResponse : Less error for few categories.
    UnaryEncoder : About the same error, with reports that a model can be fitted to.

    Notes
    -----
    Each category has the half of a block of positions at which its row of a Hadamard matrix is 1. The report is one of
    these positions, or any position. Two categories of a block share half of their positions, which makes the estimate
    unbiased. The size of blocks follows from epsilon and the number of categories. A report has a few bits for any
    number of categories, and estimates take a fast transform.

    **Privacy.** The report of each row is epsilon-DP with respect to that row (:ref:`local privacy, theorems 1
    <local-theorem-1>` and :ref:`2 <local-theorem-2>`). With any other row in its place, no report is more than
    :math:`e^\varepsilon` times as likely. The number of rows is public. `fit` learns nothing. Each call of `transform`
    is a release of its rows and is charged, also within a pipeline. Draws are exact.

    The index of a data frame is not randomised, and is part of the output if the output is pandas. Do not use a
    ``Pipeline`` with `memory`, because it would return the same report again for an equal row.

    References
    ----------
    .. [1] J. Acharya, Z. Sun and H. Zhang, "Hadamard Response: Estimating Distributions Privately, Efficiently, and
       with Little Communication", AISTATS 2019.

    Examples
    --------
    >>> from skdp.local import HadamardResponse
    >>> response = HadamardResponse(1000, epsilon=2.0, random_state=0)
    >>> reports = response.fit_transform([[k % 10] for k in range(100_000)])
    >>> frequencies = response.frequencies(reports)[0]
    >>> frequencies.shape, frequencies[:10].sum().round(1)
    ((1000,), np.float64(1.0))
    """

    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        return HadamardChannel.best(epsilon, n_categories)
