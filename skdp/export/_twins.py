"""Plain scikit-learn twins of fitted estimators: pipelines of public classes that hold released and public numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ..schema.columns import Columns
from ..schema.declared import Category, Number, cells_of, grid_of, limits, read_cells
from ..schema.encoding import Encoding
from ..schema.entries import MISSING_TEXTS, Categories, meaning_of, read_column
from ..schema.schema import as_frame
from ..solvers.calibration import powers_of_probabilities

Array = NDArray[np.float64]
Steps = list[Any]

# Largest number of joint cells of a group of trees.
_MOST_CELLS = 2**18

# Spellings of missing entries that are read as numbers, or are those of Python.
_NOT_A_NUMBER = ("nan", "NaN", "NAN", "-nan", "None")

#: A column of cells: its position, and the inner edges of its bins or its number of categories. A value that is equal
#: to an edge is in the bin above, or below.
Axis = tuple[int, Array | int, bool]

#: A table over axes: their positions, for each axis the part of each cell and of none, and the values of joint cells.
Term = tuple[Sequence[int], Sequence[NDArray], Array]


def _with(estimator: Any, **fitted: Any) -> Any:
    """Return an estimator with fitted attributes."""
    vars(estimator).update(fitted)
    return estimator


def _call(function: Callable[..., Any], **arguments: Any) -> FunctionTransformer:
    return FunctionTransformer(function, kw_args=arguments or None)


def _clip(lower: Any, upper: Any) -> FunctionTransformer:
    return _call(np.clip, a_min=lower, a_max=upper)


_NUMBERS, _NORM = _call(np.asarray, dtype="float64"), _call(np.linalg.norm, axis=1, keepdims=True)


def _shift(mean: Any, scale: Any, size: int) -> StandardScaler:
    """Return the map of x to (x - mean) / scale."""
    mean, scale = (np.array(np.broadcast_to(value, size), dtype=np.float64) for value in (mean, scale))
    return _with(StandardScaler(), mean_=mean, scale_=scale, var_=scale**2, n_samples_seen_=1, n_features_in_=size)


def _linear(weights: Array, bias: Any) -> Steps:
    """Return steps that map rows, which may be sparse, to rows @ weights + bias."""
    size, outputs = weights.shape
    rotation = _with(TruncatedSVD(outputs), components_=weights.T.copy(), n_features_in_=size)
    return [rotation, _shift(-np.asarray(bias), 1.0, outputs)]


def _labels(weights: Array, bias: Any, classes: NDArray, proba: bool = True) -> Any:
    """Return the classifier whose scores are rows @ weights + bias, with one score or one for each class."""
    bias = np.broadcast_to(np.asarray(bias, dtype=np.float64), weights.shape[1]).copy()
    if weights.shape[1] == len(classes) == 2:
        weights, bias = weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1]
    fitted = {"coef_": weights.T.copy(), "intercept_": bias, "classes_": classes, "n_features_in_": len(weights)}
    return _with(LogisticRegression() if proba else LinearSVC(), n_iter_=np.zeros(1, dtype=np.int32), **fitted)


def _targets(size: int = 1, flat: bool = True, width: Any = 1.0, start: Any = 0.0) -> LinearRegression:
    """Return the regressor whose predictions are start + width * rows."""
    coef = np.array([width]) if flat else width * np.eye(size)
    return _with(LinearRegression(), coef_=coef, intercept_=start, n_features_in_=size)


def _by_column(parts: Sequence[tuple[str, Any, Any]], rows: Any) -> ColumnTransformer:
    # No part learns from the made-up rows.
    return ColumnTransformer(list(parts), sparse_threshold=0).fit(rows)


def _one_hot(sizes: Sequence[int], sparse: bool = True) -> OneHotEncoder:
    every = [np.arange(float(size)) for size in sizes]
    return OneHotEncoder(categories=every, handle_unknown="ignore", sparse_output=sparse).fit(np.zeros((1, len(sizes))))


def _ordinal(categories: NDArray, unknown: int) -> OrdinalEncoder:
    """Return the map of entries to their positions, and of NaN to -2 if it is the last category."""
    settings = {"handle_unknown": "use_encoded_value", "unknown_value": unknown, "encoded_missing_value": -2}
    return OrdinalEncoder(categories=[categories], **settings).fit(categories[:1, None])


def _category(column: Category) -> tuple[Steps, int]:
    """Return steps that map the entries of a column to the numbers of their cells, and the number of cells."""
    # Entries that the column refuses are in the cell of missing ones, or in none.
    other = "missing" if column.other == "error" else column.other
    values = list(column.values)
    if text := isinstance(values[0], str):
        # A number is spelled as a double, or as an integer.
        spelled = [number for number in map(meaning_of, values) if isinstance(number, float) and abs(number) < 2**53]
        numbers = [str(kind(number)) for number in spelled for kind in (float, int) if kind(number) == number]
        known: list[Any] = list(dict.fromkeys([*values, *numbers, *sorted(MISSING_TEXTS), *_NOT_A_NUMBER]))
        categories, unknown = np.array(known, dtype=object), "\x00"
    else:
        known = sorted(map(float, values))
        categories, unknown = np.array([*known, np.nan]), known[-1] + 1.0
    entries = read_column([None, unknown, *known], "")
    cells = read_cells(replace(column, missing="cell", other=other), entries).astype(np.float64)
    first = _call(np.asarray, dtype="str") if text else _NUMBERS
    as_cells = _call(np.interp, xp=np.arange(-2.0, len(known)), fp=cells)
    return [first, _ordinal(categories, -1), as_cells], len(cells_of(column))


def _number(encoding: Encoding, name: str, column: Number, upper: float) -> Steps:
    """Return steps that map the entries of a column to numbers on the scale of an encoding."""
    grid, form, (low, high) = grid_of(column), encoding.form, (float(column.low), float(column.high))
    steps: Steps = [_NUMBERS, _clip(low, high)]
    if form == "cells":
        edges = encoding.edges[name]
        steps.append(_clip(float(edges[0]), float(np.nextafter(edges[-1], -np.inf))))
        upper = float(encoding.bins()[name][-1])
    elif form != "values" and grid.scale != "linear":
        steps += [_call(np.dot, b=np.array([[1 / grid.unit]]))] if grid.scale == "symlog" else []
        low, high = limits(column)
        steps += [_call(np.log if grid.scale == "log" else np.arcsinh), _clip(low, high)]
    missing = upper if form in ("ends", "cells") else low / 2 + high / 2
    if form == "linear":
        steps, missing = [*steps, _call(np.interp, xp=np.array([low, high]), fp=np.array([-1.0, 1.0]))], 0.0
    return [*steps, _call(np.nan_to_num, nan=missing)]


def _table(encoding: Encoding) -> ColumnTransformer:
    """Return the step that encodes a table, whose columns are found by name."""
    parts: list[tuple[str, Any, Any]] = []
    bounds, form, example = encoding.bounds, encoding.form, {}
    tops = iter([] if bounds is None or form == "linear" else bounds[1].tolist())
    for name, column in encoding.schema.items():
        if isinstance(column, Number):
            every, example[name] = [_number(encoding, name, column, next(tops, 0.0))], [float(column.low)]
            every += [[_NUMBERS, _call(np.isnan)]] * (column.missing == "cell" and form in ("linear", "codes"))
        else:
            steps, size = _category(column)
            every, example[name] = [steps + [_one_hot([size], False)] * (form == "linear")], [column.values[0]]
        # Names of parts are different, and without two underscores.
        named = enumerate(every, start=len(parts))
        parts += [(f"{k} {name}".replace("__", "_"), make_pipeline(*part), [name]) for k, part in named]
    rows = as_frame(example)
    if not hasattr(rows, "columns"):
        raise ImportError("the columns of a schema are found by name, which needs pandas or polars: pip install pandas")
    return _by_column(parts, rows)


def _looked_up(axes: Sequence[Axis], terms: Sequence[Term], n_columns: int) -> tuple[Steps, Array]:
    """Return steps that map rows to indicators of the joint cells of terms, and the values of all joint cells."""
    parts: list[tuple[str, Any, Any]] = []
    for k, (column, kind, above) in enumerate(axes):
        if isinstance(kind, np.ndarray):
            cells: Any = _call(np.digitize, bins=kind, right=not above)
        else:
            cells = _ordinal(np.arange(float(kind)), kind)
        parts.append((str(k), cells, [column]))
    tables: list[tuple[str, Any, Any]] = []
    for t, (positions, maps, values) in enumerate(terms):
        step: Any = FunctionTransformer()
        if len(maps) > 1 or not np.array_equal(maps[0], np.arange(len(values) + 1)):
            factors = np.cumprod([1, *(int(places[-1]) for places in maps[:0:-1])])[::-1]
            # If a column has no cell, the sum is beyond the last joint cell.
            numbers = [
                np.where(m < m[-1], m * float(f), float(len(values))) for m, f in zip(maps, factors, strict=True)
            ]
            joined = [(str(k), _call(np.interp, xp=np.arange(float(len(f))), fp=f), [k]) for k, f in enumerate(numbers)]
            total = _call(np.sum, axis=1, keepdims=True)
            step = make_pipeline(_by_column(joined, np.zeros((1, len(maps)))), total)
        tables.append((str(t), step, list(positions)))
    found = [_by_column(parts, np.zeros((1, n_columns))), _by_column(tables, np.zeros((1, len(axes))))]
    return [*found, _one_hot([len(values) for _, _, values in terms])], np.vstack([values for _, _, values in terms])


def _axis(columns: Columns, j: int) -> Axis:
    kind = columns.kinds[j]
    if isinstance(kind, Categories):
        if not kind.coded:
            _refuse("some of its categories are not coded. Declare them in a schema, and fit the model with it")
        return j, kind.size, True
    if kind is not None:
        return j, kind[1:-1], True
    # Rounding may put an edge of even bins into the bin below. A bin begins with the first double in it.
    k, n = int(np.searchsorted(columns.numeric, j)), columns.grid.n_cells
    grid = replace(columns.grid, lower=columns.grid.lower[k : k + 1], upper=columns.grid.upper[k : k + 1])
    cuts, width = np.linspace(grid.lower[0], grid.upper[0], n + 1)[1:-1], (grid.upper[0] - grid.lower[0]) / n
    below, cuts = cuts - width / 2, cuts + width / 2
    for _ in range(128):
        middle = below / 2 + cuts / 2
        inside = grid.cells(middle[:, None])[:, 0] >= np.arange(1, n)
        below, cuts = np.where(inside, below, middle), np.where(inside, middle, cuts)
    return j, cuts, True


def _additive(model: Any) -> tuple[Steps, Array]:
    columns = model._fitted_columns()
    axes = [_axis(columns, j) for j in range(columns.n_features)]
    pairs = zip(model._all_terms, model._tables(), strict=True)
    steps, values = _looked_up(axes, [(t.columns, t.maps, values[:-1]) for t, values in pairs], len(axes))
    return steps, values


def _additive_classifier(model: Any) -> Steps:
    steps, values = _additive(model)
    bias, link, classes = np.ravel(model.intercept_), model._link, model.classes_
    power, outputs = link.power, values.shape[1]
    if not link.most < np.inf:
        return [*steps, _labels(power * values, power * bias, classes)]
    if outputs == 1:
        # The logarithms of max(p, most), for both labels.
        clipped = make_pipeline(_call(special.log_expit), _clip(float(np.log(link.most)), None))
        steps += _linear(np.hstack([values, -values]), np.append(bias, -bias))
        of_labels = power * np.array([[1.0], [0.0], [-1.0], [1.0]])
        return [*steps, make_union(FunctionTransformer(), clipped), _labels(of_labels, 0.0, classes)]
    # The square of the length of a label's derivative is the sum of the squares of p, + 1 - 2 p.
    squares = _linear(np.vstack([np.ones((outputs, outputs)), -2 * np.eye(outputs)]), 1.0)
    both = make_union(_call(np.square), FunctionTransformer())
    roots = [_clip(0.0, None), _call(np.sqrt), _clip(link.most, None), _call(np.log)]
    lengths = make_pipeline(_call(special.softmax, axis=1), both, *squares, *roots)
    union = make_union(_call(special.log_softmax, axis=1), lengths)
    return [*steps, *_linear(values, bias), union, _labels(power * np.vstack([np.eye(outputs)] * 2), 0.0, classes)]


def _additive_regressor(model: Any) -> Steps:
    steps, values = _additive(model)
    steps += _linear(values, model.intercept_)
    if model.link_ == "sqrt":
        steps += [_clip(0.0, None), _call(np.square), _shift(-model.offset_, 1.0, 1)]
    return [*steps, _clip(model._targets.range.lower, model._targets.range.upper), _targets()]


def _naive_bayes(model: Any) -> Steps:
    columns, power, parts, weights = model._columns, model.exponent_, [], []
    with np.errstate(divide="ignore"):
        bias = np.log(model.class_prior_)
    if axes := [_axis(columns, int(j)) for j in columns.tables]:
        tables = [power * model.feature_log_prob_[j].T for j, _, _ in axes]
        terms: list[Term] = [((k,), [np.arange(len(t) + 1)], t) for k, t in enumerate(tables)]
        steps, values = _looked_up(axes, terms, columns.n_features)
        parts, weights = [make_pipeline(*steps)], [values]
    if len(g := columns.unbinned):
        for k, (mean, var) in enumerate(zip(model.theta_[:, g], model.var_[:, g], strict=True)):
            clipped = [_call(np.take, indices=g, axis=1), _clip(columns.grid.lower, columns.grid.upper)]
            parts.append(make_pipeline(*clipped, _shift(mean, np.sqrt(var), len(g)), _call(np.square)))
            weights.append(-power / 2 * np.eye(len(bias))[k] * np.ones((len(g), 1)))
            bias[k] -= power / 2 * np.log(2 * np.pi * var).sum()
    return [make_union(*parts), _labels(np.vstack(weights), bias, model.classes_)]


def _trees(
    model: Any, features: NDArray, thresholds: Array, sizes: dict[int, int], score: Callable[[list[int], Array], Array]
) -> tuple[Steps, Array]:
    """Return steps that find the cells of rows in trees, from the nodes of each tree, and the values of all cells."""
    # Trees that split the same columns have one table.
    groups: dict[tuple[int, ...], list[int]] = {}
    for t, finite in enumerate(np.isfinite(thresholds)):
        groups.setdefault(tuple(np.unique(features[t][finite]).tolist()), []).append(t)
    axes: list[Axis] = []
    terms: list[Term] = []
    for columns, trees in groups.items():
        ends = []
        for f in columns:
            cuts = np.unique(thresholds[trees][(features[trees] == f) & np.isfinite(thresholds[trees])])
            axes.append((f, sizes.get(f, cuts), False))
            # Each number stands for the cell of which it is the largest. The last category stands for other entries.
            ends.append(np.arange(sizes[f] + 1.0) if f in sizes else np.append(cuts, np.nextafter(cuts[-1], np.inf)))
        if not columns or np.prod([float(len(numbers)) for numbers in ends]) > _MOST_CELLS:
            _refuse("its trees split no column, or have too many combinations of cells")
        cells = np.array(list(product(*ends)))
        rows = np.zeros((len(cells), model._n_columns))
        rows[:, list(columns)] = cells
        positions = range(len(axes) - len(columns), len(axes))
        terms.append((positions, [np.arange(len(numbers) + 1) for numbers in ends], score(trees, rows)))
    steps, values = _looked_up(axes, terms, model._n_columns)
    return steps, values


def _forest(model: Any) -> Steps:
    forest, regresses = model.structure_, hasattr(model, "_shares")
    shares = model._shares if regresses else (model.leaf_proba_, model.inner_proba_, model.class_prior_)

    def scores(trees: list[int], rows: Array) -> Array:
        some = copy(model)
        some.tree_weights_ = np.where(np.isin(np.arange(forest.n_trees), trees), model.tree_weights_, 0.0)
        logs = np.log(some._probabilities(rows, *shares, np.atleast_1d(model.intercept_))).T
        return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)

    level = scores([], np.zeros((1, model._n_columns)))
    split = np.take_along_axis(forest.features, forest.slots, axis=1)
    sizes = {f: places.shape[1] - 1 for f, places in forest.places.items()}
    steps, values = _trees(model, split, forest.thresholds, sizes, lambda trees, rows: scores(trees, rows) - level)
    if not regresses:
        return [*steps, _labels(values, level[0], model.classes_)]
    ends = model._targets.scaling
    last = _targets(width=ends.upper - ends.lower, start=ends.lower)
    return [*steps, *_linear(values, level[0]), _call(special.expit), last]


def _greedy_tree(model: Any) -> Steps:
    nodes, coded = model.structure_, model.structure_.categories >= 0
    sizes = {f: int(nodes.categories[nodes.features == f].max()) + 1 for f in nodes.features[coded].tolist()}

    def scores(trees: list[int], rows: Array) -> Array:
        return np.log(np.maximum(model._proba(rows), np.finfo(np.float64).tiny))

    steps, values = _trees(model, nodes.features[None], np.where(coded, 0.0, nodes.thresholds)[None], sizes, scores)
    return [*steps, _labels(values, 0.0, model.classes_)]


def _times(rows: Steps, factor: Any, size: int) -> Steps:
    """Return steps that multiply the columns of `rows` by a factor, which is computed from the same numbers."""
    every = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit(np.zeros((1, size + 1)))
    chosen = np.flatnonzero((every.powers_[:, -1] == 1) & (every.powers_.sum(axis=1) == 2))
    return [make_union(make_pipeline(*rows), factor), every, _call(np.take, indices=chosen, axis=1)]


def _linear_classifier(model: Any) -> Steps:
    weights, bias, powers = np.atleast_2d(model.coef_).T, model.intercept_, getattr(model, "_powers", None)
    if powers is None or not hasattr(model, "predict_proba"):
        return [_labels(weights, bias, model.classes_, hasattr(model, "predict_proba"))]
    # The power of the probabilities of a row is linear in one over the length of the row, up to a largest value.
    low, middle, high = powers_of_probabilities(np.array([0.0, 0.125, 8.0]), powers.n_classes, powers.evidence)
    ends = np.array([0.0, 0.125 * (high - low) / (middle - low) / powers.clip])
    squares = [_NORM, _clip(None, powers.data_norm), _call(np.square), _shift(-(powers.constant**2), 1.0, 1)]
    power = [_call(np.sqrt), _call(np.reciprocal), _call(np.interp, xp=ends, fp=np.array([low, high]))]
    scores = _times(_linear(weights, bias), make_pipeline(*squares, *power), weights.shape[1])
    return [*scores, _labels(np.eye(weights.shape[1]), 0.0, model.classes_)]


def _linear_regressor(model: Any) -> Steps:
    weights = np.atleast_2d(model.coef_).T
    features = [model._units.features] if hasattr(model, "_units") else []
    targets = model._range if hasattr(model, "_range") else model._targets
    steps = [*(_clip(bounds.lower, bounds.upper) for bounds in features), *_linear(weights, model.intercept_)]
    return [*steps, _clip(targets.lower, targets.upper), _targets(weights.shape[1], np.ndim(model.coef_) == 1)]


def _network(model: Any) -> Steps:
    *hidden, (weights, bias) = zip(model.coefs_, model.intercepts_, strict=True)
    steps = [step for layer in hidden for step in (*_linear(*layer), _call(np.tanh))]
    if hasattr(model, "classes_"):
        return [*steps, _labels(model._power * weights, model._power * bias, model.classes_)]
    clipped = _clip(model._range.lower, model._range.upper)
    return [*steps, *_linear(weights, bias), clipped, _targets(weights.shape[1], model._flat)]


def _clusters(model: Any) -> Steps:
    centres = model.cluster_centers_
    with warnings.catch_warnings():
        # Centres may be equal.
        warnings.simplefilter("ignore")
        return [_with(KMeans(len(centres), init=centres, n_init=1, max_iter=1).fit(centres), cluster_centers_=centres)]


def _components(model: Any) -> Steps:
    (size, width), whiten = model.components_.shape, model._whiten
    variances = model._deviations() ** 2 if whiten else np.ones(size)
    fitted = {"components_": model.components_, "mean_": model.mean_, "explained_variance_": variances}
    return [_with(PCA(size, whiten=whiten), n_components_=size, n_features_in_=width, **fitted)]


def _bounds_scaler(model: Any) -> Steps:
    lower, upper, low, high = model._check(size := model._n_columns)
    shares, scaled = _shift(lower, upper - lower, size), _shift(-low / (high - low), 1 / (high - low), size)
    return [_clip(lower, upper), shares, scaled, _clip(low, high)]


def _binner(model: Any) -> Steps:
    edges = model._edges(model._n_columns)
    bins = [(str(j), _call(np.digitize, bins=e[1:-1], right=False), [j]) for j, e in enumerate(edges)]
    indicators = [] if model._is_ordinal() else [_one_hot([len(e) - 1 for e in edges], sparse=False)]
    return [_by_column(bins, np.zeros((1, len(edges)))), *indicators]


_TWINS: dict[str, Callable[[Any], Steps]] = {
    name: twin
    for names, twin in (
        ("DPAdditiveClassifier", _additive_classifier),
        ("DPAdditiveRegressor", _additive_regressor),
        ("DPNaiveBayes LocalDPNaiveBayes", _naive_bayes),
        ("DPRandomTree DPRandomTreeRegressor", _forest),
        ("DPGreedyTree", _greedy_tree),
        ("ObjPertLogReg OutputPertLogReg FunctionalMechLogReg DPSGDClassifier", _linear_classifier),
        ("FunctionalMechLinReg DPSGDRegressor", _linear_regressor),
        ("ExpMechERM", lambda model: (_linear_classifier if hasattr(model, "classes_") else _linear_regressor)(model)),
        ("DPMLPClassifier DPMLPRegressor", _network),
        ("DPKMeans SampleAggKMeans", _clusters),
        ("DPPCA ExpMechPCA", _components),
        ("DPStandardScaler", lambda m: [_shift(m.mean_, m.scale_, len(m.mean_)), _clip(-float(m.clip), float(m.clip))]),
        ("BoundsScaler", _bounds_scaler),
        ("DPQuantileBinner PublicBinner", _binner),
        ("TableEncoder", lambda model: []),
        ("HistogramClassifier SampleAggregate", lambda model: [model.estimator_ or _refuse("it holds a statistic")]),
    )
    for name in names.split()
}


def _refuse(why: str) -> Any:
    raise TypeError(
        f"the model has no twin in scikit-learn, because {why}. Save the model with skops or joblib, or use its method "
        "to_json if it has one"
    )


def _steps_of(model: Any) -> Steps:
    """Return the steps of the twin of a fitted estimator."""
    if isinstance(model, Pipeline):
        return [s for _, part in model.steps if part not in (None, "passthrough") for s in _steps_of(part)]
    if isinstance(model, ColumnTransformer):
        parts = [(name, _twin(t), c) for name, t, c in model.transformers_]
        # Whether the outputs were sparse depends on the records.
        whole = {"remainder": "drop", "sparse_threshold": 0, "sparse_output_": False}
        return [_with(copy(model), transformers=parts, transformers_=parts, **whole)]
    if isinstance(model, FeatureUnion):
        return [_with(copy(model), transformer_list=[(name, _twin(t)) for name, t in model.transformer_list])]
    if not type(model).__module__.startswith("skdp."):
        return [model]
    if hasattr(model, "best_estimator_"):
        return _steps_of(model.best_estimator_)
    if type(model).__name__ not in _TWINS:
        _refuse(f"scikit-learn has no estimator like {type(model).__name__}")
    encoding = model._used() if hasattr(model, "_used") else model._encoding()
    return [_NUMBERS if encoding is None else _table(encoding), *_TWINS[type(model).__name__](model)]


def _twin(model: Any) -> Any:
    steps = [model] if isinstance(model, str) else _steps_of(model)
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


def to_sklearn(fitted: Any) -> Any:
    """Return an estimator of scikit-learn that predicts the same as a fitted estimator of skdp, up to rounding.

    .. versionadded:: 0.2

    Parameters
    ----------
    fitted : estimator
        A fitted estimator of skdp, or a pipeline or search that holds some.

    Returns
    -------
    twin : estimator
        Fitted, with public classes and functions of scikit-learn, NumPy and SciPy only. A TypeError says that there is
        none (:ref:`export_table`). If the model has a schema, rows are a DataFrame: columns of numbers hold numbers,
        and columns of texts hold texts or numbers. Entries that the schema refuses are missing, or in no category.

    Notes
    -----
    **Privacy.** The twin is computed from released and public numbers, and uses no budget. Steps of other packages keep
    what they have learned, and labels that were not declared are those of the records, as in the fitted model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp import ObjPertLogReg
    >>> from skdp.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ObjPertLogReg(
    ...     epsilon=5.0,
    ...     delta=1e-6,
    ...     data_norm=12.0,
    ...     classes=[0, 1, 2],
    ...     random_state=0,
    ... ).fit(X, y)
    >>> to_sklearn(model).steps[-1][1]
    LogisticRegression()
    """
    check_is_fitted(fitted)
    return _twin(fitted)
