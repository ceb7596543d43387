"""ONNX graphs of fitted estimators, from their twins in scikit-learn. All numbers are doubles."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.pipeline import Pipeline

from ._twins import to_sklearn

# Functions of one operator.
_OPERATORS = {"log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "reciprocal": "Reciprocal", "expit": "Sigmoid"}


@dataclass
class _Indicators:
    """Indicators of codes of shape (n_rows, n_columns). Codes from `sizes` on have none."""

    codes: str
    sizes: NDArray[np.intp]


class _Graph:
    """The nodes and constants of a graph, with a method for each function and class of twins.

    Tensors are names. The columns of a table are a dict of tensors of shape (n_rows, 1).
    """

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants = onnx, [], []  # type: ignore[var-annotated]

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node, and return its output. Inputs that are no names are constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        array, name = np.asarray(value), f"constant_{len(self.constants)}"
        array = array.astype(object) if array.dtype.kind == "U" else array
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def double(self, tensor: str) -> str:
        return self.add("Cast", tensor, to=self.onnx.TensorProto.DOUBLE)

    def integer(self, tensor: str) -> str:
        return self.add("Cast", tensor, to=self.onnx.TensorProto.INT64)

    def columns(self, tensor: Any, indices: Any) -> str:
        return self.add("Gather", self.dense(tensor), np.asarray(indices, dtype=np.int64), axis=1)

    def joined(self, tensors: Any) -> str:
        every = [self.dense(tensor) for tensor in tensors]
        return every[0] if len(every) == 1 else self.add("Concat", *every, axis=1)

    def codes(self, x: Any, values: NDArray, unknown: float) -> str:
        """Return the positions of the entries of a column among numbers, and a number for others."""
        places = np.arange(float(len(values)))[:, None] - unknown
        found = self.double(self.add("Equal", self.dense(x), values.astype(np.float64)[None]))
        return self.add("Add", self.add("MatMul", found, places), float(unknown))

    def dense(self, x: Any) -> str:
        if isinstance(x, dict):
            return self.joined(x.values())
        if isinstance(x, _Indicators):
            pairs = [(self.columns(x.codes, [j]), np.arange(float(n))[None]) for j, n in enumerate(x.sizes)]
            return self.joined(self.double(self.add("Equal", *pair)) for pair in pairs)
        return str(x)

    def product(self, x: Any, weights: NDArray, bias: Any = 0.0) -> str:
        """Return rows @ weights + bias."""
        if isinstance(x, _Indicators):
            # A table has a row for each indicator, and one of zeros for no indicator of a column.
            ends = np.cumsum(x.sizes)
            firsts = ends - x.sizes + np.arange(len(ends))
            places = self.add("Add", self.integer(self.clip(x.codes, None, x.sizes)), firsts[None].astype(np.int64))
            rows = self.add("Gather", np.insert(weights, ends, 0.0, axis=0), places, axis=0)
            result = self.add("ReduceSum", rows, np.array([1]), keepdims=0)
        else:
            result = self.add("MatMul", self.dense(x), weights)
        return self.add("Add", result, np.asarray(bias, dtype=np.float64))

    def squared_distances(self, x: Any, centres: NDArray) -> str:
        products = self.product(x, -2 * centres.T, (centres**2).sum(axis=1))
        return self.clip(self.add("Add", products, self.sum(self.square(self.dense(x)))), 0.0)

    # Functions of FunctionTransformer.

    def asarray(self, x: str, dtype: str) -> str:
        return x

    def clip(self, x: str, a_min: Any = None, a_max: Any = None) -> str:
        # Missing numbers stay missing.
        for comparison, bound in (("Less", a_min), ("Greater", a_max)):
            if bound is not None:
                bound = np.asarray(bound, dtype=np.float64)
                x = self.add("Where", self.add(comparison, x, bound), bound, x)
        return x

    def arcsinh(self, x: str) -> str:
        size = self.add("Abs", x)
        root = self.add("Sqrt", self.add("Add", self.square(x), 1.0))
        return self.add("Mul", self.add("Sign", x), self.add("Log", self.add("Add", size, root)))

    def interp(self, x: str, xp: NDArray, fp: NDArray) -> str:
        if len(xp) == 2:
            shares = self.add("Mul", self.add("Sub", self.clip(x, *xp), xp[0]), (fp[1] - fp[0]) / (xp[1] - xp[0]))
            return self.add("Add", shares, fp[0])
        # The points are consecutive whole numbers, and so are the entries.
        places = self.integer(self.clip(self.add("Sub", x, xp[0]), 0.0, len(xp) - 1))
        return self.add("Gather", np.asarray(fp, dtype=np.float64), places)

    def digitize(self, x: str, bins: NDArray, right: bool) -> str:
        # A missing number is beyond all edges.
        below = self.add("LessOrEqual" if right else "Less", x, np.append(bins, np.inf)[None])
        return self.sum(self.double(self.add("Not", below)))

    def isnan(self, x: str) -> str:
        return self.double(self.add("IsNaN", x))

    def nan_to_num(self, x: str, nan: float) -> str:
        return self.add("Where", self.add("IsNaN", x), float(nan), x)

    def dot(self, x: str, b: NDArray) -> str:
        return self.add("MatMul", x, b)

    def sum(self, x: str, axis: int = 1, keepdims: bool = True) -> str:
        return self.add("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))

    def square(self, x: str) -> str:
        return self.add("Mul", x, x)

    def norm(self, x: str, axis: int, keepdims: bool) -> str:
        return self.add("Sqrt", self.sum(self.square(x)))

    def take(self, x: str, indices: NDArray, axis: int) -> str:
        return self.columns(x, indices)

    def log_expit(self, x: str) -> str:
        tail = self.add("Log", self.add("Add", self.add("Exp", self.add("Neg", self.add("Abs", x))), 1.0))
        return self.add("Sub", self.clip(x, None, 0.0), tail)

    def softmax(self, x: str, axis: int) -> str:
        return self.add("Softmax", x, axis=axis)

    def log_softmax(self, x: str, axis: int) -> str:
        return self.add("LogSoftmax", x, axis=axis)

    def applied(self, function: Any, x: Any, arguments: Any) -> Any:
        if function is None:
            return x
        name = function.__name__
        if function not in [getattr(module, name, None) for module in (np, np.linalg, special)]:
            _refuse(name)
        if name in _OPERATORS:
            return self.add(_OPERATORS[name], self.dense(x))
        return getattr(self, name, lambda *_, **__: _refuse(name))(self.dense(x), **(arguments or {}))

    # Classes of scikit-learn.

    def convert(self, step: Any, x: Any) -> Any:
        name = type(step).__name__
        return getattr(self, f"_{name}", lambda *_: _refuse(name))(step, x)

    def _Pipeline(self, step: Any, x: Any) -> Any:
        for _, part in step.steps:
            x = self.convert(part, x)
        return x

    def _ColumnTransformer(self, step: Any, x: Any) -> str:
        outputs = []
        for _, part, columns in step.transformers_:
            some = {name: x[name] for name in columns} if isinstance(x, dict) else self.columns(x, columns)
            if part != "drop":
                outputs.append(some if part == "passthrough" else self.convert(part, some))
        return self.joined(outputs)

    def _FeatureUnion(self, step: Any, x: Any) -> Any:
        outputs = [self.convert(part, x) for _, part in step.transformer_list]
        return outputs[0] if len(outputs) == 1 else self.joined(outputs)

    def _FunctionTransformer(self, step: Any, x: Any) -> Any:
        return self.applied(step.func, x, step.kw_args)

    def _TransformedTargetRegressor(self, step: Any, x: Any) -> str:
        back = step.transformer_
        return self.applied(back.inverse_func, self.convert(step.regressor_, x), back.inv_kw_args)

    def _OrdinalEncoder(self, step: Any, x: Any) -> str:
        (values,), unknown, x = step.categories_, step.unknown_value, self.dense(x)
        if values.dtype == object:
            keys = {"keys_strings": values.tolist(), "values_int64s": range(len(values)), "default_int64": unknown}
            return self.double(self.add("LabelEncoder", x, domain="ai.onnx.ml", **keys))
        codes = self.codes(x, values, unknown)
        return (
            codes
            if step.encoded_missing_value is np.nan
            else self.add("Where", self.add("IsNaN", x), float(step.encoded_missing_value), codes)
        )

    def _OneHotEncoder(self, step: Any, x: Any) -> _Indicators:
        x, sizes = self.dense(x), np.array([len(values) for values in step.categories_])
        if not all(np.array_equal(values, np.arange(len(values))) for values in step.categories_):
            x = self.joined(self.codes(self.columns(x, [j]), v, len(v)) for j, v in enumerate(step.categories_))
        return _Indicators(x, sizes)

    def _StandardScaler(self, step: Any, x: Any) -> str:
        return self.add("Div", self.add("Sub", self.dense(x), step.mean_), step.scale_)

    def _TruncatedSVD(self, step: Any, x: Any) -> str:
        return self.product(x, step.components_.T)

    def _PCA(self, step: Any, x: Any) -> str:
        weights = step.components_.T / (np.sqrt(step.explained_variance_) if step.whiten else 1.0)
        return self.product(x, weights, -step.mean_ @ weights)

    def _PolynomialFeatures(self, step: Any, x: Any) -> str:
        pairs = np.array([np.flatnonzero(row) for row in step.powers_[step.n_features_in_ :]])
        return self.joined([x, self.add("Mul", self.columns(x, pairs[:, 0]), self.columns(x, pairs[:, 1]))])

    def _KMeans(self, step: Any, x: Any) -> dict[str, str]:
        squares = self.squared_distances(x, step.cluster_centers_)
        return {"label": self.add("ArgMin", squares, axis=1, keepdims=0), "scores": self.add("Sqrt", squares)}

    def _LinearRegression(self, step: Any, x: Any) -> str:
        return self.product(x, np.atleast_2d(step.coef_).T, step.intercept_)

    def _LinearSVC(self, step: Any, x: Any) -> dict[str, str]:
        scores = self.product(x, step.coef_.T, step.intercept_)
        both = self.joined([self.add("Neg", scores), scores]) if len(step.classes_) == 2 else scores
        return {
            "label": self.add("Gather", step.classes_, self.add("ArgMax", both, axis=1, keepdims=0)),
            "scores": both,
        }

    def _LogisticRegression(self, step: Any, x: Any) -> dict[str, str]:
        outputs = self._LinearSVC(step, x)
        scores = outputs.pop("scores")
        several = len(step.classes_) > 2
        outputs["probabilities"] = self.softmax(scores, 1) if several else self.add("Sigmoid", scores)
        return outputs


def _refuse(name: str) -> Any:
    raise TypeError(
        f"the model has no ONNX form here, because it contains {name}. Convert the result of skdp.export.to_sklearn "
        "with the package skl2onnx, or save the model with skops. The budget was not charged"
    )


def _inputs(graph: _Graph, twin: Any, fitted: Any) -> tuple[list[Any], Any]:
    """Return the inputs of the graph: one for each column of a table with names, or one array."""
    info, types, first = graph.onnx.helper.make_tensor_value_info, graph.onnx.TensorProto, twin
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    texts: dict[str, bool] = {}
    for _, part, columns in getattr(first, "transformers_", ()):
        step = part.steps[0][1] if isinstance(part, Pipeline) else part
        texts |= {c: getattr(step, "kw_args", None) == {"dtype": "str"} for c in columns if isinstance(c, str)}
    if not texts:
        return [info("X", types.DOUBLE, [None, fitted.n_features_in_])], "X"
    kinds = {name: types.STRING if text else types.DOUBLE for name, text in texts.items()}
    return [info(name, kind, [None, 1]) for name, kind in kinds.items()], {name: name for name in texts}


def to_onnx(fitted: Any) -> Any:
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        raise ImportError("skdp.export.to_onnx needs the package onnx: pip install onnx") from error
    twin, graph = to_sklearn(fitted), _Graph(onnx)
    inputs, x = _inputs(graph, twin, fitted)
    result = graph.convert(twin, x)
    outputs = []
    for name, tensor in (result if isinstance(result, dict) else {"variable": graph.dense(result)}).items():
        graph.nodes.append(onnx.helper.make_node("Identity", [tensor], [name]))
        dtype = getattr(fitted, "classes_", np.zeros(0, np.int64)).dtype if name == "label" else np.dtype(np.float64)
        kind = onnx.TensorProto.STRING if dtype.kind in "UO" else onnx.helper.np_dtype_to_tensor_dtype(dtype)
        outputs.append(onnx.helper.make_tensor_value_info(name, kind, [None] if name == "label" else [None, None]))
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    body = onnx.helper.make_graph(graph.nodes, "skdp", inputs, outputs, graph.constants)
    model = onnx.helper.make_model(body, opset_imports=opsets, producer_name="skdp", ir_version=8)
    onnx.checker.check_model(model)
    return model
