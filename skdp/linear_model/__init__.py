"""Linear models."""

from ._functional import FunctionalMechLinReg
from ._functional_logistic import FunctionalMechLogReg
from ._objective_perturbation import ObjPertLogReg
from ._output_perturbation import OutputPertLogReg

__all__ = ["FunctionalMechLinReg", "FunctionalMechLogReg", "ObjPertLogReg", "OutputPertLogReg"]
