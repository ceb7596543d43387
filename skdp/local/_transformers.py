"""Local reports: randomised response, unary encoding, Hadamard response, Laplace noise and the piecewise mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from ..mechanisms import (
    UNKNOWN,
    CategoryChannel,
    HadamardChannel,
    KaryChannel,
    LatticeLaplaceChannel,
    LocalMechanism,
    NumberChannel,
    UnaryChannel,
    WindowChannel,
)
from ._base import CategoryTransformer, NumberTransformer

_CATEGORIES = """    categories : int, array-like or list of array-like
        Public categories: their number, if they are coded 0, 1, ...; or a list of numbers or texts; or a list with one
        of these for each column. Required. Other and missing values are reported like any other value, and do not
        affect the estimates.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy. Above about 40 for one column, it has the effect of
        40."""

_BOUNDS = """    bounds : tuple (lower, upper)
        Public bounds of the columns: numbers, or one for each column. Values beyond are clipped, without a warning.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy."""

_REPORTED = """    n_reported : "all", "auto" or int, default="auto"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, they
        are drawn at random for each row. The other columns have the middle of their bounds, and the reported numbers
        are moved away from it by a factor that keeps them unbiased. ``"auto"`` has the least error."""

_OTHERS = """    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise."""

_ATTRIBUTES = """    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings."""

_PRIVACY = """\
    **Privacy.** The report of each row is epsilon-DP with respect to that row, in each call of `transform`, also within
    a pipeline (:ref:`local privacy, theorem 1 <local-theorem-1>`). The number of rows and the index of a data frame are
    public. A ``Pipeline`` with `memory` would repeat the report of an equal row."""


class RandomizedResponse(OneToOneFeatureMixin, CategoryTransformer):
    __doc__ = rf"""Report a category either as it is or at random.

    Parameters
    ----------
{_CATEGORIES}
    schema : Schema, default=None
        Public facts about the columns of the table X, all declared as `Category`, in place of `categories`.
{_OTHERS}
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, they
        are drawn at random for each row, and its other columns are missing (NaN for numbers, None for text). ``"auto"``
        has the least error.

{_ATTRIBUTES}

    See Also
    --------
    UnaryEncoder : Less error for many categories. Reports a bit for each category.
    HadamardResponse : Nearly the same error, with a single number.

    Notes
    -----
    Of k categories, the row's own is reported with probability :math:`e^\varepsilon/(e^\varepsilon + k - 1)`, and each
    other one with :math:`1/(e^\varepsilon + k - 1)`. For two categories, no other mechanism has less error. Up to
    :math:`k \approx 3e^\varepsilon + 2`, it has less error than the other two transformers.

{_PRIVACY} Draws are exact.

    Examples
    --------
    >>> from skdp import Schema
    >>> from skdp.local import RandomizedResponse
    >>> schema = Schema({{"smokes": ["no", "yes"]}})
    >>> answers = {{"smokes": ["yes"] * 3000 + ["no"] * 7000}}
    >>> survey = RandomizedResponse(epsilon=1.0, schema=schema, random_state=0)
    >>> reports = survey.fit_transform(answers)
    >>> survey.frequencies(reports, project=True)[0].round(1)
    array([0.7, 0.3, 0. , 0. ])
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
    __doc__ = rf"""Report a bit for each category: one-hot encoding with bits flipped at random.

    Parameters
    ----------
{_CATEGORIES}
    schema : Schema, default=None
        Public facts about the columns of the table X, all declared as `Category`, in place of `categories`.
{_OTHERS}
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, they
        are drawn at random for each row, and its other columns are missing (-1 in each of their bits). ``"auto"`` has
        the least error.

{_ATTRIBUTES}

    See Also
    --------
    RandomizedResponse : Less error for few categories.
    HadamardResponse : About the same error, with a single number.
    sklearn.preprocessing.OneHotEncoder : The same encoding without noise.

    Notes
    -----
    The bit of the row's own category is set with probability 1/2, and each other bit with probability
    :math:`1/(e^\varepsilon + 1)`, independently. The error does not depend on the number of categories.

{_PRIVACY} Draws are exact.

    Examples
    --------
    >>> from skdp import Schema
    >>> from skdp.local import UnaryEncoder
    >>> schema = Schema({{"smokes": ["no", "yes"]}})
    >>> answers = {{"smokes": ["yes"] * 3000 + ["no"] * 7000}}
    >>> encoder = UnaryEncoder(epsilon=1.0, schema=schema, random_state=0)
    >>> reports = encoder.fit_transform(answers)
    >>> encoder.frequencies(reports, project=True)[0].round(1)
    array([0.7, 0.3, 0. , 0. ])
    """

    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        return UnaryChannel(epsilon, n_categories)

    def encode(self, X: Any) -> NDArray[np.int8]:
        """Return the bits without noise, which are not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        bits : ndarray of int8, of shape (n_samples, n_features_out)
            A single 1 for each column, and no 1 for a value in no category. The owners of rows can apply a model that
            was fitted to reports to them.
        """
        X = self._rows(X, reset=False)
        sizes = [column.size for column in self._categories(X.shape[1])]
        out = np.zeros((len(X), sum(sizes)), dtype=np.int8)
        for start, codes in zip(np.cumsum(sizes) - sizes, self._codes(X).T, strict=True):
            rows = np.flatnonzero(codes != UNKNOWN)
            out[rows, start + codes[rows]] = 1
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
    __doc__ = rf"""Report one number for a category, with about the error of a bit for each category.

    Parameters
    ----------
{_CATEGORIES}
    schema : Schema, default=None
        Public facts about the columns of the table X, all declared as `Category`, in place of `categories`.
{_OTHERS}
    n_reported : "all", "auto" or int, default="all"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, they
        are drawn at random for each row, and its other columns are missing (-1). ``"auto"`` has the least error.

{_ATTRIBUTES}

    See Also
    --------
    RandomizedResponse : Less error for few categories.
    UnaryEncoder : About the same error, with reports that a model can be fitted to.

    Notes
    -----
    Each category has the half of a block of positions at which its row of a Hadamard matrix is 1. The report is one of
    these positions, or any position. A report has a few bits for any number of categories, and estimates take a fast
    transform.

    **Privacy.** The report of each row is epsilon-DP with respect to that row, in each call of `transform`, also within
    a pipeline (:ref:`local privacy, theorems 1 <local-theorem-1>` and :ref:`2 <local-theorem-2>`). The number of rows
    and the index of a data frame are public. A ``Pipeline`` with `memory` would repeat the report of an equal row.
    Draws are exact.

    Examples
    --------
    >>> from skdp import Schema
    >>> from skdp.local import HadamardResponse
    >>> schema = Schema({{"smokes": ["no", "yes"]}})
    >>> answers = {{"smokes": ["yes"] * 3000 + ["no"] * 7000}}
    >>> response = HadamardResponse(epsilon=1.0, schema=schema, random_state=0)
    >>> reports = response.fit_transform(answers)
    >>> response.frequencies(reports, project=True)[0].round(1)
    array([0.7, 0.3, 0. , 0. ])
    """

    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        return HadamardChannel.best(epsilon, n_categories)


class LocalLaplace(NumberTransformer):
    __doc__ = rf"""Add Laplace noise to the numbers of each row.

    Parameters
    ----------
{_BOUNDS}
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`. Explicit parameters override it. All columns must be
        declared as `Number`, with ``missing="error"``.
{_OTHERS}
{_REPORTED}

{_ATTRIBUTES}

    See Also
    --------
    PiecewiseMechanism : Less error, and bounded reports.

    Notes
    -----
    The scale of the discrete Laplace noise is the distance of the bounds over epsilon, for all values.

{_PRIVACY} Values and reports are rounded to
    lattices, so that low-order bits disclose nothing.

    Examples
    --------
    >>> from skdp import Number, Schema
    >>> from skdp.local import LocalLaplace
    >>> schema = Schema({{"age": Number(0, 100, missing="error")}})
    >>> ages = {{"age": [20 + k % 60 for k in range(10_000)]}}
    >>> laplace = LocalLaplace(epsilon=1.0, schema=schema, random_state=0)
    >>> reports = laplace.fit_transform(ages)
    >>> means, std = laplace.means(reports, return_std=True)
    >>> means.round(), std.round(1)
    (array([51.]), array([1.4]))
    """

    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        return LatticeLaplaceChannel(epsilon, largest)


class PiecewiseMechanism(NumberTransformer):
    __doc__ = rf"""Report a number near the row's own number, or anywhere in a bounded range.

    Parameters
    ----------
{_BOUNDS}
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`. Explicit parameters override it. All columns must be
        declared as `Number`, with ``missing="error"``.
{_OTHERS}
{_REPORTED}

{_ATTRIBUTES}

    See Also
    --------
    LocalLaplace : Noise with the same distribution for all values.

    Notes
    -----
    For values scaled to [-1, 1], reports lie in :math:`[-C, C]`, where :math:`C = (u+1)/(u-1)` and :math:`u =
    e^{{\varepsilon/2}}`. With probability :math:`u/(u+1)`, a report comes from a window of length :math:`C - 1` that
    moves with the value, and otherwise from the rest.

{_PRIVACY} Values and reports are rounded to
    lattices, so that low-order bits disclose nothing.

    Examples
    --------
    >>> from skdp import Number, Schema
    >>> from skdp.local import PiecewiseMechanism
    >>> schema = Schema({{"age": Number(0, 100, missing="error")}})
    >>> ages = {{"age": [20 + k % 60 for k in range(10_000)]}}
    >>> piecewise = PiecewiseMechanism(epsilon=1.0, schema=schema, random_state=0)
    >>> reports = piecewise.fit_transform(ages)
    >>> means, std = piecewise.means(reports, return_std=True)
    >>> means.round(), std.round(1)
    (array([50.]), array([1.]))
    """

    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        return WindowChannel.best(epsilon, largest)
