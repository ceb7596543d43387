"""The base of estimators with a parameter `schema`: the public parameters that follow from it, and encoded tables."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..checks.params import check_classes
from ..parts.arrays import rowwise
from ..parts.objects import is_collection
from .columns import check_edges
from .declared import Category
from .encoding import Encoding, Outside, even_edges
from .entries import labels_by, table_columns
from .schema import Schema, as_schema

# If an estimator accepts sparse rows, rows with more encoded columns than this are sparse.
_WIDE = 200

# These parameters describe the coding of columns, which the schema does.
_CODING = ("categories", "categorical_features", "n_categories")


class TakesSchema:
    """Mixin of estimators that accept the public facts about a table as one object."""

    schema: Any

    #: The form of encoded rows (see `Encoding`).
    _schema_form: ClassVar[str] = "linear"

    #: What a fit releases numbers of if it is not declared, because other releases do not show it: entries (or only
    #: numbers beyond bounds), target.
    _counts_outside: ClassVar[tuple[str, ...]] = ()

    #: Whether the estimator computes with sparse rows.
    _takes_sparse: ClassVar[bool] = False

    #: Whether rows that are read without a reset are those of a fit.
    _reads_fit = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # An estimator that computes with dense rows only makes sparse ones dense if they have few columns.
        tags.input_tags.sparse = getattr(self, "schema", None) is None
        if getattr(self, "schema", None) is not None:
            tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _form(self) -> str:
        return self._schema_form

    def _encoding(self) -> Encoding | None:
        """Return the encoding of rows, or None if there is no schema."""
        if getattr(self, "schema", None) is None:
            return None
        schema, form = as_schema(self.schema), self._form()
        for name in _CODING:
            if getattr(self, name, None) is not None:
                raise ValueError(f"{name} follows from the schema: give one of them and not both")
        if schema.group is not None and not hasattr(self, "rows_per_group"):
            raise ValueError(
                f"the schema declares groups of records, and {type(self).__name__} protects single records: it has no "
                "parameter rows_per_group. Limit the table to rows_per_group rows of each group beforehand, and use a "
                "schema without group and a budget for groups"
            )
        edges = {}
        if form == "cells":
            edges = even_edges(schema, self._n_cells())
            for name, given in (getattr(self, "bin_edges", None) or {}).items():
                if name not in edges:
                    raise ValueError(f"bin_edges names {name!r}, which is no column of numbers of the schema")
                edges[name] = check_edges(given, name)
        return Encoding(schema, form, edges)

    def _n_cells(self) -> int:
        """Return the number of cells of numbers, for estimators of tables in cells."""
        return self.n_bins  # type: ignore[attr-defined]

    def _declared(self, name: str) -> Any:
        """Return a public parameter, given or from the schema."""
        given, encoding = getattr(self, name, None), self._encoding()
        if encoding is None:
            return given
        if name == "bin_edges":
            return encoding.bins() if encoding.form == "cells" else given
        if name == "interactions":
            names = list(encoding.schema)
            return given and [[names[c] if isinstance(c, int | np.integer) else c for c in pair] for pair in given]
        if given is not None:
            return given
        if name == "rows_per_group":
            return encoding.schema.rows_per_group
        if name in ("classes", "bounds_y"):
            return declared_target(encoding.schema, name, self)
        if name == "bounds" and encoding.form == "linear" and hasattr(self, "data_norm"):
            return (-1.0, 1.0)
        if name == "categories" and encoding.form == "categories":
            return [list(range(size)) for size in encoding.categories.values()]
        return getattr(encoding, name)

    def _declared_cells(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return for encoded columns the number of first cells that hold declared values, and of possible values."""
        encoding = self._encoding()
        return ({}, {}) if encoding is None else (encoding.declared_cells(), encoding.n_values())

    def _undeclared(self) -> dict[str, list[int]]:
        """Return the positions of indicators of undeclared entries, in units that follow from the schema."""
        encoding = self._encoding()
        return {} if encoding is None or getattr(self, "bounds", None) is not None else encoding.undeclared()

    def _outside(self) -> tuple[dict[str, Outside], bool]:
        """Return columns whose undeclared entries a fit counts, and whether it counts undeclared labels."""
        encoding = self._encoding() if self._counts_outside else None
        if encoding is None or (hasattr(self, "rows_per_group") and self._declared("rows_per_group") is not None):
            return {}, False
        columns = encoding.outside("entries" in self._counts_outside) if self._marks else {}
        return columns, "target" in self._counts_outside and is_classifier(self)

    @property
    def _marks(self) -> bool:
        """Whether a fit counts numbers beyond their bounds."""
        return not {"entries", "numbers"}.isdisjoint(self._counts_outside)

    def _labels(self, y: Any, classes: Any) -> Any:
        """Return labels as they are compared with the label set, for a classifier with a schema."""
        if getattr(self, "schema", None) is None or y is None or not is_classifier(self):
            return y
        if classes is None:
            classes = check_classes(self._declared("classes"))
        return rowwise(partial(labels_by, known_classes(classes)), y)

    def _used(self) -> Encoding | None:
        """Return the encoding of the fit, or before a fit that of the parameters."""
        return getattr(self, "_table", None) if hasattr(self, "n_features_in_") else self._encoding()

    def _reads_table(self, reset: bool) -> bool:
        """Tell whether rows must be encoded."""
        return (self._encoding() if reset else self._used()) is not None

    def _encoded(self, X: Any, *, reset: bool) -> Any:
        """Return the rows as numbers, if there is a schema. Otherwise, return them as they are."""
        encoding = self._encoding() if reset else self._used()
        if encoding is None:
            encoded = X
        else:
            # The number of encoded columns is public.
            wide = encoding.form == "linear" and len(encoding.layout) > _WIDE
            marked = self._marks and (reset or self._reads_fit)
            encoded = encoding.encode(X, sparse_output=wide and self._takes_sparse, marked=marked)
        if reset:
            self._keep(encoding)
        return encoded

    def _column_reader(self, of_fit: bool) -> ColumnReader:
        """Return an object that validates rows elsewhere as this estimator does here, without its parameters."""
        return ColumnReader(self, of_fit)

    def _keep(self, encoding: Encoding | None) -> None:
        """Store the encoding, and the names of the schema's columns."""
        vars(self).pop("_table", None)
        if encoding is not None:
            self._table = encoding
            self.n_features_in_ = len(encoding.schema)
            self.feature_names_in_ = np.array(list(encoding.schema), dtype=object)

    def _names(self) -> NDArray | None:
        """Return the names of the columns that the estimator computes with."""
        encoding = self._used()
        return getattr(self, "feature_names_in_", None) if encoding is None else encoding.names

    @property
    def _n_columns(self) -> int:
        """The number of the columns that the estimator computes with."""
        check_is_fitted(self, "n_features_in_")
        encoding = self._used()
        return self.n_features_in_ if encoding is None else len(encoding.layout)

    def _importances(self, sizes: Any) -> Any:
        """Return importances of the columns of X, which add up to 1, from those of encoded columns."""
        encoding = self._used()
        if encoding is not None:
            sizes = np.bincount(encoding.origins(), sizes, minlength=len(encoding.schema))
        total = sizes.sum()
        return sizes / total if total > 0 else np.zeros(len(sizes))

    def _groups_of(self, X: Any) -> Any:
        """Return the column of groups that the schema declares, or None."""
        return None if getattr(self, "schema", None) is None else groups_column(as_schema(self.schema), X)

    def _target_of(self, X: Any) -> Any:
        """Return the column of X that the schema declares as the target, or None without a schema."""
        return None if getattr(self, "schema", None) is None else target_of(as_schema(self.schema), X)


def declared_target(schema: Schema, name: str, estimator: Any) -> Any:
    """Return `classes` or `bounds_y` as the target declares it, or refuse a target that the estimator cannot have."""
    target, of_labels = schema.target, name == "classes"
    if target is None:
        return None
    if isinstance(target, Category) == of_labels:
        if isinstance(target, Category):
            return list(target.values)
        if target.scale == "log":
            raise ValueError(
                f'the schema declares the target{_named(schema)} with scale="log", which {type(estimator).__name__} '
                "does not take: declare it without scale. If ratios count, pass logarithms of y and declare their "
                "bounds. The budget was not charged"
            )
        return float(target.low), float(target.high)
    if is_classifier(estimator) if of_labels else is_regressor(estimator):
        kind, other = ("classifier", "Regressor") if of_labels else ("regressor", "Classifier")
        raise ValueError(
            f"the schema declares the target{_named(schema)} as a "
            f"{type(target).__name__}, and {type(estimator).__name__} is a {kind}: use another estimator, such as "
            f"DPAdditive{other}, or declare another target. The budget was not charged"
        )
    return None


def _named(schema: Schema) -> str:
    return "" if schema.target_name is None else f" {schema.target_name!r}"


def known_classes(classes: NDArray | None) -> NDArray:
    """Return the label set, or refuse to read it from the data, for an estimator with a schema."""
    if classes is None:
        raise ValueError(
            "the schema declares no target, and labels are never read from the data if there is a schema: use "
            "Schema(..., target=Category([...])), or pass classes=[...]. The budget was not charged"
        )
    return classes


class ColumnReader(TakesSchema, BaseEstimator):
    """Number and names of the columns that an estimator has read, and their encoding: neither budget nor seed."""

    def __init__(self, estimator: Any = None, of_fit: bool = False) -> None:
        for name in ("n_features_in_", "feature_names_in_", "_table", "_counts_outside"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        self._reads_fit = of_fit


def groups_column(schema: Schema, X: Any) -> Any:
    """Return the column of groups that a schema declares, or None."""
    if schema.group is None:
        return None
    in_parts = is_collection(X)
    if in_parts and not hasattr(X, "ndim"):
        # A Bag has no columns. It is refused later.
        return None
    names, columns = (list(getattr(X, "columns", [])), []) if in_parts else table_columns(X)
    if names is None or schema.group not in names:
        raise ValueError(f"the schema declares the column {schema.group!r} of groups: X lacks it, and groups is None")
    return X[schema.group] if in_parts else columns[names.index(schema.group)]


def target_column(schema: Schema, X: Any) -> Any:
    """Return the column of the target that a schema declares, or None if X does not have it."""
    name = schema.target_name
    if name is None:
        return None
    if is_collection(X):
        return X[name] if name in getattr(X, "columns", []) else None
    names, columns = table_columns(X)
    return columns[names.index(name)] if names is not None and name in names else None


def target_of(schema: Schema | None, X: Any) -> Any:
    """Return the column of the target that a schema declares, or refuse a missing y."""
    found = None if schema is None else target_column(schema, X)
    if found is None:
        name = None if schema is None else schema.target_name
        which = (
            "no schema names a column of X as the target: pass y"
            if name is None
            else f"X lacks the column {name!r}, which the schema names as the target: pass a table with this column, "
            "or the targets as y"
        )
        raise ValueError(f"requires y to be passed, but the target y is None, and {which}. The budget was not charged")
    return found


def unit_of(schema: Schema | None, rows_per_group: int | None, groups: Any, X: Any) -> tuple[int | None, Any]:
    """Return `rows_per_group` and `groups`, given or as the schema declares them."""
    if schema is None or schema.group is None:
        return rows_per_group, groups
    rows_per_group = schema.rows_per_group if rows_per_group is None else rows_per_group
    return rows_per_group, groups_column(schema, X) if groups is None else groups
