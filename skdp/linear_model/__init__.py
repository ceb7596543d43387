"""Linear models."""

from ._exponential_mechanism import ExpMechERM
from ._functional import FunctionalMechLinReg
from ._functional_logistic import FunctionalMechLogReg
from ._perturbation import ObjPertLogReg, OutputPertLogReg
from ._sgd import DPSGDClassifier
from ._sgd_regressor import DPSGDRegressor

__all__ = [
    "DPSGDClassifier",
    "DPSGDRegressor",
    "ExpMechERM",
    "FunctionalMechLinReg",
    "FunctionalMechLogReg",
    "ObjPertLogReg",
    "OutputPertLogReg",
]
