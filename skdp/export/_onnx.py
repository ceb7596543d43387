"""ONNX graphs of fitted estimators, from their twins in scikit-learn. All numbers are doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.pipeline import Pipeline

from ._twins import to_sklearn


@dataclass
class _Indicators:
    """Indicators of codes of shape (n_rows, n_columns). Codes from `sizes` on have none."""

    codes: str
    sizes: NDArray[np.intp]


class _Graph:
    """The nodes and constants of a graph. Tensors are names. Columns of a table are a dict of tensors."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants = onnx, list[Any](), list[Any]()

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node, and return its output. Inputs that are no names are constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, value: ArrayLike) -> str:
        array, name = np.asarray(value), f"constant_{len(self.constants)}"
        array = array.astype(object) if array.dtype.kind == "U" else array
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, tensor: str, kind: str = "DOUBLE") -> str:
        return self("Cast", tensor, to=getattr(self.onnx.TensorProto, kind))

    def dense(self, x: Any) -> str:
        if isinstance(x, _Indicators):
            pairs = [(self.columns(x.codes, [j]), np.arange(float(n))[None]) for j, n in enumerate(x.sizes)]
            return self.joined(self.cast(self("Equal", *pair)) for pair in pairs)
        return self.joined(x.values()) if isinstance(x, dict) else str(x)

    def joined(self, tensors: Iterable[Any]) -> str:
        every = [self.dense(tensor) for tensor in tensors]
        return every[0] if len(every) == 1 else self("Concat", *every, axis=1)

    def columns(self, x: Any, indices: ArrayLike) -> str:
        return self("Gather", self.dense(x), np.asarray(indices, dtype=np.int64), axis=1)

    def sums(self, x: str) -> str:
        return self("ReduceSum", x, np.array([1]), keepdims=1)

    def clip(self, x: str, a_min: Any = None, a_max: Any = None) -> str:
        # Missing numbers stay missing.
        for comparison, bound in (("Less", a_min), ("Greater", a_max)):
            if bound is not None:
                bound = np.asarray(bound, dtype=np.float64)
                x = self("Where", self(comparison, x, bound), bound, x)
        return x

    def codes(self, x: str, values: NDArray, unknown: float) -> str:
        """Return the positions of the entries of a column among numbers, and a number for others."""
        found = self.cast(self("Equal", x, values.astype(np.float64)[None]))
        return self("Add", self("MatMul", found, np.arange(float(len(values)))[:, None] - unknown), float(unknown))

    def product(self, x: Any, weights: NDArray, bias: ArrayLike = 0.0) -> str:
        """Return rows @ weights + bias."""
        if isinstance(x, _Indicators):
            # A table has a row for each indicator, and one of zeros for no indicator of a column.
            ends = np.cumsum(x.sizes)
            firsts = ends - x.sizes + np.arange(len(ends))
            places = self("Add", self.cast(self.clip(x.codes, None, x.sizes), "INT64"), firsts[None].astype(np.int64))
            rows = self("Gather", np.insert(weights, ends, 0.0, axis=0), places, axis=0)
            result = self("ReduceSum", rows, np.array([1]), keepdims=0)
        else:
            result = self("MatMul", self.dense(x), weights)
        return self("Add", result, np.asarray(bias, dtype=np.float64))

    def convert(self, step: Any, x: Any) -> Any:
        """Add the nodes of a step."""
        name = type(step).__name__
        return _CLASSES[name](self, step, x) if name in _CLASSES else _refuse(name)

    def apply(self, function: Any, x: Any, arguments: Any) -> Any:
        if function not in _FUNCTIONS:
            _refuse(getattr(function, "__name__", "a function"))
        return _FUNCTIONS[function](self, x if function is None else self.dense(x), **(arguments or {}))


def _arcsinh(g: _Graph, x: str) -> str:
    size = g("Abs", x)
    root = g("Sqrt", g("Add", g("Mul", x, x), 1.0))
    return g("Mul", g("Sign", x), g("Log", g("Add", size, root)))


def _interp(g: _Graph, x: str, xp: NDArray, fp: NDArray) -> str:
    if len(xp) == 2:
        return g("Add", g("Mul", g("Sub", g.clip(x, *xp), xp[0]), (fp[1] - fp[0]) / (xp[1] - xp[0])), fp[0])
    # The points are consecutive whole numbers, and so are the entries.
    return g("Gather", fp.astype(np.float64), g.cast(g.clip(g("Sub", x, xp[0]), 0.0, len(xp) - 1), "INT64"))


def _digitize(g: _Graph, x: str, bins: NDArray, right: bool) -> str:
    # A missing number is beyond all edges.
    return g.sums(g.cast(g("Not", g("LessOrEqual" if right else "Less", x, np.append(bins, np.inf)[None]))))


def _log_expit(g: _Graph, x: str) -> str:
    return g("Sub", g.clip(x, None, 0.0), g("Log", g("Add", g("Exp", g("Neg", g("Abs", x))), 1.0)))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    None: lambda g, x: x,
    np.asarray: lambda g, x, dtype: x,
    np.clip: lambda g, x, **bounds: g.clip(x, **bounds),
    np.isnan: lambda g, x: g.cast(g("IsNaN", x)),
    np.nan_to_num: lambda g, x, nan: g("Where", g("IsNaN", x), float(nan), x),
    np.interp: _interp,
    np.digitize: _digitize,
    np.take: lambda g, x, indices, axis: g.columns(x, indices),
    np.sum: lambda g, x, axis, keepdims: g.sums(x),
    np.dot: lambda g, x, b: g("MatMul", x, b),
    np.square: lambda g, x: g("Mul", x, x),
    np.linalg.norm: lambda g, x, axis, keepdims: g("Sqrt", g.sums(g("Mul", x, x))),
    np.arcsinh: _arcsinh,
    np.log: lambda g, x: g("Log", x),
    np.sqrt: lambda g, x: g("Sqrt", x),
    np.tanh: lambda g, x: g("Tanh", x),
    np.reciprocal: lambda g, x: g("Reciprocal", x),
    special.expit: lambda g, x: g("Sigmoid", x),
    special.log_expit: _log_expit,
    special.softmax: lambda g, x, axis: g("Softmax", x, axis=axis),
    special.log_softmax: lambda g, x, axis: g("LogSoftmax", x, axis=axis),
}


def _pipeline(g: _Graph, step: Any, x: Any) -> Any:
    for _, part in step.steps:
        x = g.convert(part, x)
    return x


def _by_column(g: _Graph, step: Any, x: Any) -> str:
    outputs = []
    for _, part, columns in step.transformers_:
        if part != "drop":
            some = {name: x[name] for name in columns} if isinstance(x, dict) else g.columns(x, columns)
            outputs.append(some if part == "passthrough" else g.convert(part, some))
    return g.joined(outputs)


def _union(g: _Graph, step: Any, x: Any) -> Any:
    outputs = [g.convert(part, x) for _, part in step.transformer_list]
    return outputs[0] if len(outputs) == 1 else g.joined(outputs)


def _ordinal(g: _Graph, step: Any, x: Any) -> str:
    (values,), unknown, tensor = step.categories_, step.unknown_value, g.dense(x)
    if values.dtype == object:
        places = {"values_int64s": range(len(values)), "default_int64": unknown, "keys_strings": values.tolist()}
        return g.cast(g("LabelEncoder", tensor, domain="ai.onnx.ml", **places))
    return g("Where", g("IsNaN", tensor), float(step.encoded_missing_value), g.codes(tensor, values, unknown))


def _one_hot(g: _Graph, step: Any, x: Any) -> _Indicators:
    tensor, sizes = g.dense(x), np.array([len(values) for values in step.categories_])
    if not all(np.array_equal(values, np.arange(len(values))) for values in step.categories_):
        tensor = g.joined(g.codes(g.columns(tensor, [j]), v, len(v)) for j, v in enumerate(step.categories_))
    return _Indicators(tensor, sizes)


def _components(g: _Graph, step: Any, x: Any) -> str:
    weights = step.components_.T / (np.sqrt(step.explained_variance_) if step.whiten else 1.0)
    return g.product(x, weights, -step.mean_ @ weights)


def _products(g: _Graph, step: Any, x: str) -> str:
    first, second = np.array([np.flatnonzero(row) for row in step.powers_[step.n_features_in_ :]]).T
    return g.joined([x, g("Mul", g.columns(x, first), g.columns(x, second))])


def _clusters(g: _Graph, step: Any, x: Any) -> dict[str, str]:
    rows, centres = g.dense(x), step.cluster_centers_
    products = g.product(rows, -2 * centres.T, (centres**2).sum(axis=1))
    squares = g.clip(g("Add", products, g.sums(g("Mul", rows, rows))), 0.0)
    return {"label": g("ArgMin", squares, axis=1, keepdims=0), "scores": g("Sqrt", squares)}


def _labels(g: _Graph, step: Any, x: Any) -> dict[str, str]:
    scores = g.product(x, step.coef_.T, step.intercept_)
    several = len(step.classes_) > 2
    scores = scores if several else g.joined([g("Neg", scores), scores])
    outputs = {"label": g("Gather", step.classes_, g("ArgMax", scores, axis=1, keepdims=0))}
    if hasattr(step, "predict_proba"):
        outputs["probabilities"] = g("Softmax", scores, axis=1) if several else g("Sigmoid", scores)
    return outputs


_CLASSES: dict[str, Callable[..., Any]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _by_column,
    "FeatureUnion": _union,
    "FunctionTransformer": lambda g, step, x: g.apply(step.func, x, step.kw_args),
    "OrdinalEncoder": _ordinal,
    "OneHotEncoder": _one_hot,
    "StandardScaler": lambda g, step, x: g("Div", g("Sub", g.dense(x), step.mean_), step.scale_),
    "TruncatedSVD": lambda g, step, x: g.product(x, step.components_.T),
    "PCA": _components,
    "PolynomialFeatures": _products,
    "KMeans": _clusters,
    "LinearRegression": lambda g, step, x: g.product(x, np.atleast_2d(step.coef_).T, step.intercept_),
    "LinearSVC": _labels,
    "LogisticRegression": _labels,
}


def _refuse(name: str) -> Any:
    raise TypeError(
        f"the model has no ONNX form here, because it contains {name}. Convert the result of skdp.export.to_sklearn "
        "with the package skl2onnx, or save the model with skops"
    )


def _inputs(g: _Graph, twin: Any, fitted: Any) -> tuple[list[Any], Any]:
    """Return the inputs of the graph: one for each column of a table with names, or one array."""
    info, types, first = g.onnx.helper.make_tensor_value_info, g.onnx.TensorProto, twin
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    kinds: dict[str, int] = {}
    for _, part, columns in getattr(first, "transformers_", ()):
        step = part.steps[0][1] if isinstance(part, Pipeline) else part
        kind = types.STRING if getattr(step, "kw_args", None) == {"dtype": "str"} else types.DOUBLE
        kinds |= {name: kind for name in columns if isinstance(name, str)}
    if not kinds:
        return [info("X", types.DOUBLE, [None, fitted.n_features_in_])], "X"
    return [info(name, kind, [None, 1]) for name, kind in kinds.items()], {name: name for name in kinds}


def to_onnx(fitted: Any) -> Any:
    """Return an ONNX model that predicts the same as a fitted estimator of skdp, up to rounding.

    .. versionadded:: 0.2

    Parameters
    ----------
    fitted : estimator
        A fitted estimator of skdp, or a pipeline or search that holds some.

    Returns
    -------
    model : onnx.ModelProto
        ``model.SerializeToString()`` returns the bytes of a file. If `fitted` has a schema, there is an input of shape
        (n_rows, 1) for each column, by its name: texts for a column of texts, and doubles for others. A missing entry
        is an empty text, or NaN. Otherwise, the input ``X`` has doubles of shape (n_rows, n_features). Outputs are
        ``label`` and ``probabilities`` of classifiers, ``label`` and ``scores`` of clusters (distances), and
        ``variable`` of others. A TypeError says that there is no such model (:ref:`export_table`).

    Notes
    -----
    The package onnx is needed: ``pip install onnx``. All computations are in double precision.

    **Privacy.** As for :func:`to_sklearn`: steps of other packages keep what they have learned, and labels that were
    not declared are those of the records. No budget is used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp import DPKMeans
    >>> from skdp.export import to_onnx
    >>> model = DPKMeans(
    ...     n_clusters=3, epsilon=1.0, bounds=(0, 8), random_state=0
    ... ).fit(load_iris().data)
    >>> [output.name for output in to_onnx(model).graph.output]  # doctest: +SKIP
    ['label', 'scores']
    """
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        raise ImportError("skdp.export.to_onnx needs the package onnx: pip install onnx") from error
    twin, g = to_sklearn(fitted), _Graph(onnx)
    inputs, x = _inputs(g, twin, fitted)
    result, outputs = g.convert(twin, x), []
    for name, tensor in (result if isinstance(result, dict) else {"variable": g.dense(result)}).items():
        g.nodes.append(onnx.helper.make_node("Identity", [tensor], [name]))
        dtype = getattr(fitted, "classes_", np.zeros(0, np.int64)).dtype if name == "label" else np.dtype(np.float64)
        kind = onnx.TensorProto.STRING if dtype.kind in "UO" else onnx.helper.np_dtype_to_tensor_dtype(dtype)
        outputs.append(onnx.helper.make_tensor_value_info(name, kind, [None] if name == "label" else [None, None]))
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    body = onnx.helper.make_graph(g.nodes, "skdp", inputs, outputs, g.constants)
    model = onnx.helper.make_model(body, opset_imports=opsets, producer_name="skdp", ir_version=8)
    onnx.checker.check_model(model)
    return model
