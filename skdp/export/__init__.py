"""Export of fitted models: plain scikit-learn, and ONNX."""

from ._onnx import to_onnx
from ._twins import to_sklearn

__all__ = ["to_onnx", "to_sklearn"]
