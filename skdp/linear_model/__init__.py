"""Linear models."""

from ._objective_perturbation import ObjPertLogReg
from ._output_perturbation import OutputPertLogReg

__all__ = ["ObjPertLogReg", "OutputPertLogReg"]
