r"""Steps without privacy in a searched pipeline: the admitted classes, and their fits without records.

Each of them maps a row separately and by public numbers, and is fitted to a row of zeros (user guide, "Model
selection", theorem 5).

*Separately* means exactly, to the last bit and for any order of memory, because one bit can move a row to another bin
of a later step. `Normalizer` adds up a single row in another order than several rows, so that its division is computed
here. Steps that are not known to be exact receive their rows one at a time.

The admitted transformers are a list of exact classes. The tag ``requires_fit`` of a class is no proof, and a subclass
may do anything. The list does not include `FunctionTransformer` (its function sees all rows), `AdditiveChi2Sampler` (it
refuses negative numbers), `FeatureHasher` and `HashingVectorizer` (they refuse entries that are not text).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..checks.data import FLOATS, LABELS_OF_DATA, NO_NUMBERS, array_quietly, check_quietly, encode_labels, label_array
from ..checks.params import warn
from ..checks.silence import quieten, silence
from ..cluster import DPKMeans, SampleAggKMeans
from ..decomposition import DPPCA, ExpMechPCA
from ..exceptions import PrivacyAssumptionWarning
from ..preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler, NormClipper, PublicBinner, TableEncoder
from ..release.units import Unit
from ..schema.entries import Entries, Rows, entries_of
from ..schema.schema import as_schema
from ._steps import (
    EXACT_IF_NOTHING_IS_LEARNED,
    ONLY_COLUMNS,
    advice,
    has_public_categories,
    is_private,
    is_shared,
    join,
    labels_in,
    learns_nothing,
    schema_of,
    take,
)

_COMPOSED = (Pipeline, ColumnTransformer, FeatureUnion)
# Entries of rows that overflow.
_FAR = 1e300

_STATELESS = (
    *(BoundsScaler, NormClipper, PublicBinner, TableEncoder),
    *(Normalizer, Binarizer, OneHotEncoder, OrdinalEncoder),
)
# No bit of a row of their results depends on other rows.
_EXACT = (
    *(kind for kind in _STATELESS if kind is not Normalizer),
    *(DPStandardScaler, DPQuantileBinner, DPPCA, ExpMechPCA, DPKMeans, SampleAggKMeans),
)

# They follow each row through trees. Threads would add up the trees in an order that depends on time.
_TREES = (
    *(DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor),
    *(RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor),
)

#: Attributes of estimators that predict with another model.
_HELD = ("best_estimator_", "estimator_", "student_", "regressor_")


def is_exact(model: Any) -> bool:
    """Tell whether no bit of what a fitted model makes of a row can depend on other rows."""
    if model is None or isinstance(model, str) or type(model) in _EXACT:
        return True
    if type(model) in _COMPOSED or is_shared(model):
        # The density of all rows decides whether a ColumnTransformer makes sparse rows.
        changes = isinstance(model, ColumnTransformer) and (
            model.sparse_threshold != 0 or not isinstance(model.remainder, str)
        )
        return not changes and all(is_exact(step) for _, step in _children(model))
    if type(model) in _TREES:
        return bool(effective_n_jobs(getattr(model, "n_jobs", 1)) == 1)
    # The estimators of this library are tested for it. A subclass may do anything.
    public = type(model).__module__.partition(".")[0] == __name__.partition(".")[0]
    return public and all(is_exact(getattr(model, name, None)) for name in _HELD)


def check_steps(estimator: Any, name: str = "", *, searched: bool = True, dense: bool = False) -> None:
    """Refuse a step that is neither private, nor a listed stateless transformer, nor composed of these."""
    # If it is not `searched`, a fit may fail on a record that the user declared to be refused, and may have functions.
    # With `dense`, the step is in a ColumnTransformer, which fails on sparse data without rows.
    if estimator is None or isinstance(estimator, str) or (is_private(estimator) and not is_shared(estimator)):
        return
    title = f"step {name!r}, {type(estimator).__name__}," if name else type(estimator).__name__
    if type(estimator) in _COMPOSED or is_shared(estimator):
        _check_composed(estimator, title)
        for child_name, step in _children(estimator):
            inside = dense or isinstance(estimator, ColumnTransformer)
            check_steps(step, join(name, child_name), searched=searched, dense=inside)
    elif not searched and (
        type(estimator) is FunctionTransformer
        or (type(estimator) in EXACT_IF_NOTHING_IS_LEARNED and learns_nothing(estimator))
    ):
        return
    elif type(estimator) not in _STATELESS:
        # No parameters make a search accept an imputer, or a private pipeline accept random features.
        refused = searched or (type(estimator) in ONLY_COLUMNS and type(estimator) not in EXACT_IF_NOTHING_IS_LEARNED)
        raise ValueError(
            f"{title} is not private, and not known to map each row by itself: it may learn from the data, choose by "
            f"them, or fail on one record{'' if refused else advice([estimator])}. {_taken(searched)}"
        )
    elif dense and getattr(estimator, "sparse_output", False):
        raise ValueError(
            f"{title} makes sparse rows, which a ColumnTransformer refuses if empty: set sparse_output=False"
        )
    elif isinstance(estimator, OneHotEncoder | OrdinalEncoder):
        _check_encoder(estimator, title, searched)
    elif isinstance(estimator, TableEncoder) and searched:
        _check_table_encoder(estimator, title)
    elif isinstance(estimator, Normalizer | Binarizer) and not estimator.copy:
        raise ValueError(f"{title} changes the data that it is given: leave copy at True")


def _taken(searched: bool) -> str:
    """Return the message about the steps that a search, or a private pipeline, accepts."""
    kinds = ", ".join(kind.__name__ for kind in _STATELESS)
    if searched:
        return (
            "A search takes a private estimator of skdp, or a Pipeline, ColumnTransformer or FeatureUnion of private "
            f"steps and of {kinds} (exactly these classes). Apply what else maps single rows to X before the search; "
            "search the estimator inside a vote, a stack, a calibration or another search"
        )
    exact = ", ".join(kind.__name__ for kind in EXACT_IF_NOTHING_IS_LEARNED)
    return (
        f"A private pipeline takes private steps of skdp, {kinds}, FunctionTransformer, {exact} (with parameters by "
        "which they learn nothing), and Pipeline, ColumnTransformer and FeatureUnion of these (exactly these classes). "
        "For other steps that learn nothing, use a Pipeline of scikit-learn and skdp.allocate"
    )


def _check_composed(estimator: Any, title: str) -> None:
    if getattr(estimator, "memory", None) is not None:
        raise ValueError(f"{title} has a memory, which would keep records on disk: leave memory at None")
    if getattr(estimator, "transformer_weights", None) is not None:
        raise ValueError(f"{title} has transformer_weights, with which numbers could overflow: scale with BoundsScaler")
    if not isinstance(estimator, ColumnTransformer):
        return
    if estimator.sparse_threshold != 0:
        raise ValueError(f"{title} makes sparse or dense rows by how many zeros there are: set sparse_threshold=0")
    if not isinstance(estimator.remainder, str):
        raise ValueError(f"{title} has a step for the remainder: list its columns among the transformers")
    if any(callable(columns) for _, _, columns in estimator.transformers):
        # One entry of text changes the type of a column, and make_column_selector chooses columns by type.
        raise ValueError(f"{title} chooses columns by a function, which sees the data: list them")


def _check_encoder(encoder: Any, title: str, searched: bool) -> None:
    # A search ignores the warnings of its steps.
    public = has_public_categories(encoder.get_params(deep=False)) if searched else learns_nothing(encoder)
    if not public:
        raise ValueError(
            f"{title} learns its categories, or fails on others, or warns of them: give it categories, no "
            "min_frequency or max_categories, no drop, and handle_unknown='ignore' (OneHotEncoder) or "
            "'use_encoded_value' (OrdinalEncoder)"
        )
    fills = () if isinstance(encoder, OneHotEncoder) else (encoder.unknown_value, encoder.encoded_missing_value)
    if not all(isinstance(value, numbers.Real) and math.isfinite(value) for value in fills):
        raise ValueError(
            f"{title} makes NaN of missing entries: give it finite numbers for unknown_value and encoded_missing_value"
        )


def _check_table_encoder(encoder: TableEncoder, title: str) -> None:
    refusing = [
        name
        for name, column in as_schema(encoder.schema).items()
        if "error" in (column.missing, getattr(column, "other", None))
    ]
    if refusing:
        raise ValueError(
            f"{title} fails on single records: its schema refuses missing or other entries of the columns "
            f"{', '.join(map(repr, refusing))}. Declare missing='cell', and other='cell' or other='missing'"
        )


def _children(estimator: Any) -> list[tuple[str, Any]]:
    if isinstance(estimator, ColumnTransformer):
        return [(name, step) for name, step, _ in estimator.transformers]
    return list(estimator.steps if isinstance(estimator, Pipeline) else estimator.transformer_list)


def without_na(X: Any) -> Any:
    """Return rows in which pandas' NA is NaN (in a copy). Encoders of scikit-learn accept NaN in columns of objects."""
    if not hasattr(X, "iloc"):
        return X
    # Only the types of columns are read.
    texts = {
        k: dtype
        for k, dtype in enumerate(X.dtypes)
        if dtype.kind == "O"
        and not hasattr(dtype, "categories")
        and (isinstance(dtype, np.dtype) or type(getattr(dtype, "na_value", None)).__name__ == "NAType")
    }
    if not texts:
        return X
    columns = {k: X.iloc[:, k] for k in range(X.shape[1])}
    for k in texts:
        entries = np.array(columns[k], dtype=object)
        entries[[type(entry).__name__ == "NAType" for entry in entries]] = np.nan
        columns[k] = type(columns[k])(entries, index=X.index, dtype=object)
    clean = type(X)(columns, index=X.index)
    clean.columns = X.columns
    return clean


def check_entries(X: Any) -> None:
    """Refuse entries other than numbers, text and missing values, because encoders could fail on one of them."""
    columns = [X]
    if hasattr(X, "columns"):
        columns = [X.iloc[:, k] if hasattr(X, "iloc") else X[:, k] for k in range(X.shape[1])]
    for column in columns:
        dtype = getattr(column, "dtype", None)
        # Types of Polars have a method, and those of NumPy and pandas a kind.
        of_polars = getattr(dtype, "is_numeric", None)
        numeric = of_polars() if callable(of_polars) else getattr(dtype, "kind", "O") != "O"
        if numeric or hasattr(column, "tocsr"):
            continue
        entries = np.asarray(column, dtype=object).ravel()
        if not all(entry is None or isinstance(entry, str | bytes | numbers.Real) for entry in entries):
            raise TypeError("X must hold numbers, text, or None or NaN for what is missing")


def takes_text(estimator: Any) -> bool:
    """Tell whether an estimator accepts columns of text."""
    return is_private(estimator) and bool(get_tags(estimator).input_tags.string)


def rows_for_steps(estimator: Any, X: Any) -> Any:
    """Return rows in a form that the steps of an estimator accept. Refuse numbers that are not finite."""
    if schema_of(estimator) is not None:
        # The first step accepts missing values, too. Other candidates for it are tried on the rows later.
        return array_quietly(entries_of(X))
    # If the estimator reads columns of text itself, entries of lists are not changed.
    array = without_na(array_quietly(entries_of(X) if takes_text(estimator) else X))
    if getattr(getattr(array, "dtype", None), "kind", None) == "S":
        # Encoders would use the width of the longest entry for their categories.
        raise TypeError(
            "X holds bytes, whose width depends on single entries: decode them to text, as X.astype(str) does"
        )
    made_text = not hasattr(X, "dtype") and getattr(getattr(array, "dtype", None), "kind", None) == "U"
    # If one entry is text, NumPy converts all entries to text, including those of other records.
    if made_text and not all(isinstance(entry, str) for entry in entries_of(X).ravel()):
        raise TypeError("X is a list with text and numbers: pass a dataframe, or an array with dtype=object")
    numeric = array
    if hasattr(array, "select_dtypes"):
        numeric = array.select_dtypes("number")
    elif hasattr(array, "columns"):
        numeric = array[:, [name for name, dtype in array.schema.items() if dtype.is_numeric()]]
    if min(np.shape(numeric), default=0) and getattr(getattr(numeric, "dtype", None), "kind", "f") in "fiub":
        check_quietly(numeric, dtype=list(FLOATS), accept_sparse=True, ensure_min_samples=0, ensure_min_features=0)
    check_entries(array)
    return array


def column_of(y: Any) -> Any:
    """Return a column as a vector, with the warning of scikit-learn."""
    return column_or_1d(y, warn=True) if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1 else y


def numbers_in(y: Any) -> NDArray:
    text = NO_NUMBERS.format("targets")
    array = check_quietly(column_of(y), text, ensure_2d=False, dtype=list(FLOATS), ensure_min_samples=0)
    if array.ndim != 1:
        raise ValueError("y must be a 1d array")
    return array


def occurring_labels(y: NDArray) -> NDArray:
    """Return the labels that occur, with a warning that they are declared public."""
    if len(y) == 0:
        raise ValueError("0 samples hold no labels; declare them with classes=... on the estimator")
    labels = label_array(y)
    with silence():
        # scikit-learn may warn about the number of distinct labels.
        check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError("y must hold at least 2 classes, got 1 class; declare them with classes=... on the estimator")
    warn(LABELS_OF_DATA, PrivacyAssumptionWarning)
    return classes


def with_one_other_label(codes: NDArray[np.intp], classes: NDArray) -> NDArray:
    """Return the labels of positions, and one label of the same type for all that are not declared."""
    # A part of the records may hold undeclared labels of another type only, which a fit would refuse.
    labels = classes.tolist()
    one: Any = "?" if isinstance(labels[0], str) else b"?" if isinstance(labels[0], bytes) else 1
    other = next(label for k in range(1, len(labels) + 2) if (label := one * k) not in labels)
    return np.array([*labels, other])[codes]


def read_targets(
    estimator: Any, classes: NDArray | None, y: Any, n_rows: int, unit: Unit, numbers: Any
) -> tuple[NDArray, NDArray, NDArray[np.intp] | None, NDArray | None]:
    """Return targets for scores, the same for fits, the groups of the rows, and the label set, all validated."""
    labelled = is_classifier(estimator)
    targets = labels_in(schema_of(estimator), classes, column_of(y)) if labelled else numbers_in(y)
    if n_rows != len(targets):
        raise ValueError("X and y must have the same number of rows")
    members = unit.members(numbers, targets)[2]
    if not labelled:
        return targets, targets, members, None
    if classes is None:
        classes = occurring_labels(targets)
    codes = encode_labels(targets, classes)
    return codes, with_one_other_label(codes, classes), members, classes


def check_rows(model: Any, X: Any) -> None:
    """Refuse rows that the first private step, or an earlier step, does not accept, before anything is charged."""
    # Later steps receive the output of this private step.
    with silence(), np.errstate(all="ignore"):
        try:
            _before_private(model, X)
            return
        except (ValueError, TypeError, OverflowError, AttributeError):
            pass
    # The original message is left out, because it may quote an entry.
    raise ValueError(
        "X holds entries that the first private step, or a step before it, does not accept. Private "
        "estimators, and transformers of numbers, need columns of finite numbers"
    )


def _before_private(step: Any, X: Any) -> Any:
    """Return the output of a step without noise, or None if it contains a private step."""
    if step is None or step == "passthrough":
        return X
    if step == "drop":
        return None
    if is_private(step):
        step._check_rows(X)
        return None
    if not _has_private(step):
        return without_records(clone(step)).fit(X).transform(X)
    if isinstance(step, Pipeline):
        for _, child in step.steps:
            X = _before_private(child, X)
            if X is None:
                return None
        return X
    if isinstance(step, FeatureUnion):
        for _, child in step.transformer_list:
            _before_private(child, X)
        return None
    for _, child, columns in step.transformers:
        _before_private(child, columns_of(X, columns))
    return None


def _has_private(step: Any) -> bool:
    if step is None or isinstance(step, str):
        return False
    return is_private(step) or (type(step) in _COMPOSED and any(_has_private(child) for _, child in _children(step)))


def columns_of(X: Any, columns: Any) -> Any:
    """Return columns as a ColumnTransformer reads them."""
    columns = columns(X) if callable(columns) else columns
    if not hasattr(X, "iloc"):
        return X[:, columns] if not np.isscalar(columns) else X[:, [columns]]
    if np.isscalar(columns):
        columns = [columns]
    if isinstance(columns, slice):
        named = isinstance(columns.start, str) or isinstance(columns.stop, str)
        return X.loc[:, columns] if named else X.iloc[:, columns]
    keys = list(columns)
    return X.loc[:, keys] if all(isinstance(key, str) for key in keys) else X.iloc[:, keys]


def _transformed(transformer: Any, X: Any) -> Any:
    """Transform rows so that each has the same bits as alone."""
    rows = transformer.transform(X)
    if type(transformer) in _EXACT or hasattr(X, "tocsr"):
        return rows
    if type(transformer) is Normalizer:
        return _like(rows, _normalized(check_quietly(X, dtype=list(FLOATS)), transformer.norm))
    return _like(rows, np.vstack([transformer.transform(take(X, np.array([i]))) for i in range(X.shape[0])]))


def _normalized(X: NDArray, norm: str) -> NDArray:
    """Divide rows by their norms as `Normalizer` does, column by column."""
    length = np.zeros(len(X), dtype=X.dtype)
    for column in X.T:
        if norm == "max":
            np.maximum(length, np.abs(column), out=length)
        else:
            length += np.abs(column) if norm == "l1" else column * column
    if norm == "l2":
        np.sqrt(length, out=length)
    length[length < 10 * np.finfo(X.dtype).eps] = 1.0
    return X / length[:, None]


def _like(rows: Any, values: NDArray) -> Any:
    """Return values in the container of the rows."""
    if hasattr(rows, "iloc"):
        return type(rows)(values, index=rows.index, columns=rows.columns)
    return type(rows)(values, schema=rows.columns) if hasattr(rows, "columns") else values


class _AcceptsNoRows(TransformerMixin, BaseEstimator):
    """A transformer around another one, which has a row of zeros for data without rows."""

    def transform(self, X: Any) -> Any:
        """Transform each row separately. There may be none."""
        if X.shape[0] == 0:
            return take(self.transformer_.transform(self.row_), np.arange(0))
        return self._transformed(X)

    def _transformed(self, X: Any) -> Any:
        return _transformed(self.transformer_, X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the transformer's names."""
        return self.transformer_.get_feature_names_out(input_features)


class WithoutRecords(_AcceptsNoRows):
    """A stateless transformer that is fitted to one row of zeros, and accepts data without rows."""

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to a row of zeros with the columns and types of X, and read nothing else of X."""
        self.row_ = _row_of_zeros(X)
        self.transformer_ = clone(self.transformer).fit(self.row_)
        return self


class FiniteRows(_AcceptsNoRows):
    """A private transformer with finite output, also without rows, for later steps."""

    # Projections of rows of nearly the largest numbers overflow, and the next step would fail on that record.

    def __init__(self, transformer: Any, groups: NDArray[np.intp] | None = None) -> None:
        self.transformer = transformer
        self.groups = groups

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer."""
        self.row_ = _row_of_zeros(X)
        # The transformer itself is fitted, not a clone, because it has its own guarantee and noise.
        self.transformer_ = self.transformer.fit(X, y, **_given(self.groups))
        return self

    def _transformed(self, X: Any) -> Any:
        with np.errstate(all="ignore"):
            rows = super()._transformed(X)
        return _like(rows, np.nan_to_num(np.asarray(rows, dtype=np.float64), posinf=_FAR, neginf=-_FAR))


class OfGroups(BaseEstimator):
    """A private estimator at the end of the steps, with the groups of the rows of its next fit."""

    def __init__(self, estimator: Any, groups: NDArray[np.intp]) -> None:
        self.estimator = estimator
        self.groups = groups

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the estimator with its groups."""
        self.estimator.fit(X, y, **_given(self.groups))
        return self


def _given(groups: NDArray[np.intp] | None) -> dict[str, Any]:
    return {} if groups is None else {"groups": groups}


def with_groups(model: Any, groups: NDArray[np.intp] | None) -> Any:
    """Set the groups of rows, in place, for the private steps of a model from `without_records`."""
    # Steps map rows one by one. Therefore each step sees the rows that the model is fitted to, in their order.
    # `restore_steps` removes the groups.
    if groups is None:
        return model

    def grouped(leaf: Any) -> Any:
        if isinstance(leaf, FiniteRows):
            leaf.groups = groups
            return leaf
        return OfGroups(leaf, groups) if is_private(leaf) else leaf

    return _changed(model, grouped)


def _row_of_zeros(X: Any) -> Any:
    if isinstance(X, Rows):
        return Rows(X.names, tuple(Entries(np.zeros(1), name=name) for name in X.names))
    if hasattr(X, "iloc"):
        row = type(X)({k: [_zero(dtype)] for k, dtype in enumerate(X.dtypes)}).astype(dict(enumerate(X.dtypes)))
        row.columns = X.columns
        return row
    if hasattr(X, "columns"):
        return type(X)({name: [_zero(dtype)] for name, dtype in X.schema.items()}, schema=X.schema)
    if hasattr(X, "tocsr"):
        return type(X)((1, X.shape[1]), dtype=X.dtype)
    return np.zeros((1, X.shape[1]), dtype=X.dtype)


def _zero(dtype: Any) -> Any:
    if hasattr(dtype, "categories"):
        return dtype.categories[0] if len(dtype.categories) else None
    if hasattr(dtype, "kind"):
        return 0 if dtype.kind in "fiub" else ""
    # A type of Polars.
    return 0 if dtype.is_numeric() else False if str(dtype) == "Boolean" else "" if str(dtype) == "String" else None


def _changed(model: Any, change: Callable[[Any], Any]) -> Any:
    """Change the leaves of a tree of steps, in place if they are parts."""

    def changed(step: Any) -> Any:
        return step if step is None or isinstance(step, str) else _changed(step, change)

    if type(model) is Pipeline:
        model.steps = [(name, changed(step)) for name, step in model.steps]
    elif type(model) is FeatureUnion:
        model.transformer_list = [(name, changed(step)) for name, step in model.transformer_list]
    elif type(model) is ColumnTransformer:
        model.transformers = [(name, changed(step), columns) for name, step, columns in model.transformers]
        if hasattr(model, "transformers_"):
            model.transformers_ = [(name, changed(step), columns) for name, step, columns in model.transformers_]
    else:
        return change(model)
    return model


def without_records(model: Any) -> Any:
    """Change an unfitted estimator, in place, so that its stateless steps see no records when they are fitted."""

    def wrapped(leaf: Any) -> Any:
        if type(leaf) in _STATELESS:
            return WithoutRecords(leaf)
        return FiniteRows(leaf) if hasattr(leaf, "transform") and is_private(leaf) else leaf

    quieten(model)
    return _changed(model, wrapped)


def restore_steps(model: Any) -> Any:
    """Restore, in place, the user's own steps in a fitted model from `without_records`.

    Seeds of private steps are removed, because a person who knows them can remove the noise.
    """

    def plain(leaf: Any) -> Any:
        if isinstance(leaf, WithoutRecords | FiniteRows):
            leaf = getattr(leaf, "transformer_", leaf.transformer)
        elif isinstance(leaf, OfGroups):
            leaf = leaf.estimator
        if is_private(leaf) and "random_state" in leaf.get_params(deep=False):
            leaf.set_params(random_state=None)
        return leaf

    return _changed(model, plain)
