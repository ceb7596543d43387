"""Encoding of tables with declared columns as numbers. Each entry is read separately."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ..checks.data import check_quietly
from ..checks.params import check_boolean, check_choice
from ..checks.silence import DiscreetMethods
from ..release.mixin import all_or_nothing
from ..schema.encoding import Encoding, declared_target, store_columns
from ..schema.schema import as_frame, as_schema, columns_in_order

FORMS = ("linear", "codes")


class TableEncoder(DiscreetMethods, TransformerMixin, BaseEstimator):
    """Encode a table with declared columns as numbers for estimators.

    The table may hold text, missing values and columns of any type. It is a DataFrame of pandas or polars, a Table of
    pyarrow, a dict of columns, or an array or a list of rows with the schema's columns in order.

    Parameters
    ----------
    schema : Schema
        Public facts about each column.
    form : {"linear", "codes"}, default="linear"
        ``"linear"`` is for linear models, networks, PCA and k-means. Numbers are mapped to [-1, 1], and each category
        has an indicator. ``"codes"`` is for naive Bayes, trees, additive models and histograms. Numbers are clipped to
        their bounds, and categories are coded 0, 1, ...
    sparse_output : bool, default=False
        Whether rows are returned as a SciPy array in CSR format, with one stored entry for each column of the schema.
        Only for ``form="linear"``.

    Attributes
    ----------
    data_norm_ : float
        Same as `data_norm`.
    n_features_in_ : int
        Number of columns of the schema.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of the schema.

    See Also
    --------
    skdp.schema.Schema : Public facts about the columns of a table.
    BoundsScaler : Clips and scales arrays of numbers.

    Notes
    -----
    A missing number becomes the middle of its bounds. If the schema has ``missing="cell"`` for the column, an indicator
    behind it is 1 for a missing number and 0 otherwise; with ``form="codes"``, the indicator is a categorical feature
    with two categories. The cells of a categorical column are its categories in the order of the schema, then a cell
    for other entries (``other="cell"``) and a cell for missing ones (``missing="cell"``). Numbers with
    ``scale="log"`` are mapped to logarithms first, also with ``form="codes"``.

    With ``form="linear"``, each column of the schema contributes at most 1 to the square of a row's L2 norm, because a
    number and its indicator are never both different from 0. Text that spells a number counts as that number, and a
    number as the category of text that spells it. An empty text, and ``"nan"``, ``"None"``, ``"<NA>"`` and ``"NaT"``,
    are missing values unless they are declared as categories.

    **Privacy.** Each entry is mapped separately by public numbers. Therefore neighbouring data sets stay neighbours,
    and no budget is used. Nothing is learned from values. The types of the table's columns have no influence, because
    one record can change them.

    Examples
    --------
    >>> from skdp import Schema
    >>> from skdp.preprocessing import TableEncoder
    >>> encoder = TableEncoder(
    ...     Schema({"age": (20, 80), "work": ["private", "state"]})
    ... )
    >>> encoder.get_feature_names_out()[:4].tolist()
    ['age', 'age_missing', 'work_private', 'work_state']
    >>> encoder.fit_transform(
    ...     {"age": [65, None], "work": ["state", "church"]}
    ... ).tolist()
    [[0.5, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]
    """

    # Whether numbers beyond their bounds are marked for the step behind, which a pipeline sets for a fit.
    _marks = False

    def __init__(self, schema: Any = None, form: str = "linear", sparse_output: bool = False) -> None:
        self.schema = schema
        self.form = form
        self.sparse_output = sparse_output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _encoding(self) -> Encoding:
        form = check_choice(self.form, "form", FORMS)
        if check_boolean(self.sparse_output, "sparse_output") and form == "codes":
            raise ValueError('sparse_output=True needs form="linear", because most codes are not 0')
        return Encoding(as_schema(self.schema), form)

    @property
    def data_norm(self) -> float:
        """Bound on the L2 norm of encoded rows, from the schema only."""
        return self._encoding().data_norm

    @property
    def data_norm_(self) -> float:
        """Same as `data_norm`."""
        return self.data_norm

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Bounds of the encoded columns that are numbers. None if there are none."""
        bounds = self._encoding().bounds
        if self.form == "codes" or bounds is None:
            return bounds
        numbers = [size == 0 for _, size in self._encoding().layout]
        return (bounds[0][numbers], bounds[1][numbers]) if any(numbers) else None

    @property
    def categorical_features(self) -> list[int]:
        """Positions of the encoded columns that hold codes or indicators."""
        return [j for j, (_, size) in enumerate(self._encoding().layout) if size]

    @property
    def n_categories(self) -> list[int]:
        """Number of codes of each of these columns."""
        return list(self._encoding().categories.values())

    def parameters(self, estimator: Any = None) -> dict[str, Any]:
        """Return the public parameters of an estimator that follow from the schema.

        Parameters
        ----------
        estimator : estimator class, estimator or None, default=None
            Estimator for the encoded rows. Only its parameters are returned. If None, these are `data_norm` for
            ``form="linear"``, and `bounds`, `categorical_features` and `n_categories` for ``form="codes"``.

        Returns
        -------
        parameters : dict
            Some of `data_norm`, `bounds`, `categorical_features`, `n_categories`, `classes` and `bounds_y`.
        """
        schema, codes = as_schema(self.schema), self.form == "codes"
        declared: dict[str, Any] = {"data_norm": self.data_norm, "bounds": self.bounds}
        declared |= {"categorical_features": self.categorical_features, "n_categories": self.n_categories}
        if estimator is None:
            wanted = {"bounds", "categorical_features", "n_categories"} if codes else {"data_norm"}
        else:
            model = estimator() if isinstance(estimator, type) else estimator
            wanted = set(model.get_params(deep=False))
            targets = {name: declared_target(schema, name, model) for name in {"classes", "bounds_y"} & wanted}
            declared |= {name: value for name, value in targets.items() if value is not None}
            sizes = zip(self.categorical_features, self.n_categories, strict=True)
            declared["categories"] = {j: list(range(size)) for j, size in sizes}
            if not codes and not {"categories", "categorical_features"} & wanted:
                declared["bounds"] = (-1.0, 1.0)
        return {name: value for name, value in declared.items() if name in wanted}

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the names of the columns. Values are not read.

        Parameters
        ----------
        X : array-like, DataFrame, Table or dict
            A table with the columns of the schema. Columns that have names are found by name.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        schema = self._encoding().schema
        columns_in_order(schema, X)
        store_columns(self, schema)
        return self

    def transform(self, X: Any) -> Any:
        """Encode rows.

        Parameters
        ----------
        X : array-like, DataFrame, Table or dict
            A table with the columns of the schema.

        Returns
        -------
        encoded : ndarray or CSR array of shape (n_samples, n_encoded)
            Finite numbers in double precision.
        """
        return self._encoding().encode(X, sparse_output=self.sparse_output, marked=self._marks)

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows of a table from encoded rows, or from means of encoded rows such as centres of clusters.

        .. versionadded:: 0.2

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_encoded)
            Encoded rows. They must be public, or released. Of a mean, a number is the mean of the numbers that are not
            missing, and a category is the most frequent one. With ``form="codes"``, means of codes are rounded.

        Returns
        -------
        table : DataFrame or ndarray of shape (n_samples, n_columns)
            Columns of the schema. Missing entries are None or NaN, and entries in no category have the name of their
            cell. A DataFrame of pandas, or of Polars if pandas is not installed. Without both, an array of objects.
        """
        encoding = self._encoding()
        rows = check_quietly(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0)
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        if rows.shape[1] != len(encoding.layout):
            raise ValueError(f"X has {rows.shape[1]} columns, and the encoded table has {len(encoding.layout)}")
        return as_frame(encoding.decode(rows))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored, because the names of the schema are used.

        Returns
        -------
        names : ndarray of str objects
            Names of columns. The name of the category is appended for indicators.
        """
        return self._encoding().names
