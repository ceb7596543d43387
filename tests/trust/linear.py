"""Linear classifiers by output and objective perturbation."""

from functools import partial

import numpy as np
from scipy.special import expit

from skdp import ObjPertLogReg, OutputPertLogReg
from skdp.linear_model import _logistic
from skdp.sensitivity import ClippedRows
from tests.linear_model.data import saturating_pair
from tests.trust.subjects import Subject, replaced


def logistic(kind, epsilon, delta):
    return kind(epsilon=epsilon, delta=delta, data_norm=1.0, fit_intercept=False, classes=[0, 1])


def saturated(model, norm=1.0):
    """A record that moves the minimiser almost as far as one can."""
    C = model.fit(np.zeros((0, 1)), np.zeros(0, dtype=int)).C_
    without, (X, y) = saturating_pair(C, 1.0)
    X = X.copy()
    X[-1] *= norm
    return without, (X, y)


def objective_moves(model, pair, found):
    """The linear term that gives the same minimiser with the record is off by the gradient of its loss there."""
    (_, objective), (_, solution) = found.items()
    X, y = pair[1]
    theta = solution.value
    moved = model.C_ * X[-1] * (expit(X[-1] @ theta) - y[-1])
    return {
        objective.label: [(objective.mechanism, moved)],
        solution.label: [(solution.mechanism, np.zeros_like(theta))],
    }


def unclipped():
    return replaced(_logistic, "clip_rows", lambda clip: lambda X, norm, constant: ClippedRows(X.copy(), norm))


SUBJECTS = [
    Subject(
        "OutputPertLogReg",
        partial(logistic, OutputPertLogReg),
        saturated,
        run_floor={(3.0, 0.0): 0.25},
        mutants={"no clip": (unclipped, {"pair": partial(saturated, norm=4.0)})},
    ),
    Subject(
        "ObjPertLogReg",
        partial(logistic, ObjPertLogReg),
        saturated,
        moves=objective_moves,
        floor=0.8,
        run_floor={(3.0, 0.0): 0.25},
        mutants={},
    ),
]
