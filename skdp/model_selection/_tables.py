"""The schema of searches and scores, which may be that of the estimator inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..checks.data import is_sparse, labels_of, refuse_lazy
from ..schema import Schema
from ..schema.entries import labels_by
from ..schema.mixin import declared_target, known_classes
from ..schema.schema import as_schema, read_rows


def declared(estimator: Any, name: str) -> Any:
    """Return a public parameter of an estimator, given or from its schema."""
    return estimator._declared(name) if hasattr(estimator, "_declared") else getattr(estimator, name, None)


def first_step(estimator: Any) -> Any:
    """Return the step that reads a table, inside pipelines and searches."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[0][1]
        elif hasattr(estimator, "_model"):
            # A search passes its schema to its estimator.
            estimator = estimator._model()
        else:
            return estimator


def schema_of(estimator: Any, given: Any = None) -> Schema | None:
    """Return the given schema, or that of the step which reads the table, or None."""
    schema = getattr(first_step(estimator), "schema", None) if given is None else given
    return None if schema is None else as_schema(schema)


def rows_of_table(estimator: Any, X: Any) -> Any:
    """Read a dict of columns or a table of PyArrow by the schema of the estimator. Return other rows as they are."""
    refuse_lazy(X)
    # The result allows selecting rows as arrays do, which these tables do not.
    of_arrow = type(X).__module__.partition(".")[0] == "pyarrow"
    # Sparse rows by keys are mappings, too.
    of_columns = isinstance(X, Mapping) and not is_sparse(X)
    if not (of_arrow or of_columns or getattr(getattr(X, "dtype", None), "names", None)):
        return X
    schema = schema_of(estimator)
    if schema is None:
        raise TypeError(
            f"X is a {type(X).__name__} of columns, which only an estimator or a first step with a schema reads, and "
            f"{type(first_step(estimator)).__name__} has none. Set schema, or pass a DataFrame or an array. The budget "
            "was not charged"
        )
    return read_rows(schema, X)


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, sparse matrix or dataframe, in the form of `X`."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def with_schema(estimator: Any, given: Any) -> Any:
    """Return the estimator with the given schema in the step that reads the table."""
    if given is None:
        return estimator
    estimator = clone(estimator)
    step = first_step(estimator)
    parameters = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    if "schema" not in parameters:
        name = type(step).__name__
        raise ValueError(f"schema is set, and {name}, which reads the table first, has no such parameter")
    if parameters["schema"] is None:
        step.set_params(schema=as_schema(given))
    elif as_schema(parameters["schema"]) != as_schema(given):
        raise ValueError(f"schema is not the same as that of {type(step).__name__}: set one of them to None")
    return estimator


def bounds_of(schema: Schema | None, bounds_y: Any, estimator: Any) -> Any:
    """Return the given range of targets, or that of the schema."""
    return bounds_y if bounds_y is not None or schema is None else declared_target(schema, "bounds_y", estimator)


def labels_in(schema: Schema | None, classes: NDArray | None, y: Any) -> NDArray:
    """Return labels as they are compared with the label set, by the rules of the schema if there is one."""
    if schema is None:
        return labels_of(y)
    return labels_by(known_classes(classes), y)
