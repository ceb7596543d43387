"""Functional mechanisms: noisy second moments; and the exponential mechanism of linear models, by its exact law."""

import math
from contextlib import contextmanager
from dataclasses import replace as changed
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.special import logsumexp

from skdp import ExpMechERM, FunctionalMechLinReg, FunctionalMechLogReg
from skdp.linear_model import _exponential_mechanism
from skdp.mechanisms import tangent_planes
from skdp.sensitivity import rounded_norm
from skdp.solvers import moments, target_range
from skdp.solvers.losses import AbsoluteError, LogLoss
from skdp.solvers.moments import Geometry
from skdp.solvers.regularised import Scaling
from tests.trust.subjects import ERROR, FIRST_SEED, PURE, RUNS_AT_1, Reading, Subject, recorded_epsilon, replaced
from tests.trust.targets import little_of_the_budget, measure_the_rest
from tests.trust.transcripts import transcript

# --- second moments -------------------------------------------------------------------------------------------------

# The longest row that is not scaled down, with entries of one size: all of its moments count in full.
_COLUMNS = 8
ROW = np.full((1, _COLUMNS), math.sqrt(0.5))


def regression(epsilon, delta):
    return FunctionalMechLinReg(epsilon=epsilon, delta=delta, bounds=(-1, 1), bounds_y=(-1, 1))


def classification(epsilon, delta):
    return FunctionalMechLogReg(epsilon=epsilon, delta=delta, bounds=(-1, 1), classes=[0, 1, 2])


def record(model, size=1.0, target=1.0):
    """Nobody, and one record with two targets, or a label."""
    y = np.full((1, 2), target) if isinstance(model, FunctionalMechLinReg) else np.zeros(1, dtype=int)
    return (np.zeros((0, _COLUMNS)), y[:0]), (size * ROW, y)


def without_clip(apply):
    def scale(self, values, out):
        out[...] = (values - self.centre) / self.half

    return scale


def without_intercept():
    """Rows as long as they are without their constant feature."""
    return patch.object(Geometry, "row_norm", property(lambda g: rounded_norm(g.data_norm, g.n_columns, g.step)))


def one_target():
    return replaced(Geometry, "of", lambda of: lambda *args, **kwargs: changed(of(*args, **kwargs), target_norm=1.0))


def without_cross_moments():
    return replaced(moments, "moments_l2", lambda true: lambda r, t, w, *rest: true(r, t, 0.0))


def half_sensitivity():
    """As if a record counted half: constants for means of a public number of records, or of replaced ones."""
    return replaced(moments, "group_sensitivity", lambda true: lambda s, rows: true(s, rows) / 2)


def moments_mutants(pair):
    return {
        "no clip of targets": (lambda: replaced(Scaling, "apply", without_clip), {"pair": partial(pair, target=4.0)}),
        "rows not scaled down": (lambda: patch.object(Geometry, "reweights", False), {"pair": partial(pair, size=1.4)}),
        "half of the sensitivity": half_sensitivity,
        "number of targets forgotten": one_target,
        "intercept forgotten": (without_intercept, {"fits": 300}),
    }


REGRESSION = moments_mutants(record)

# The runs are for what leaves a fit past its releases: of noise in so many moments, so few see nothing.
GROSS = {(1.0, 0.0): RUNS_AT_1}

MOMENTS = [
    Subject(
        "FunctionalMechLinReg",
        regression,
        record,
        floor=0.95,
        reading=measure_the_rest,
        fits=80,
        runs=GROSS,
        mutants={**REGRESSION, "cross moments forgotten": without_cross_moments},
    ),
    Subject(
        "FunctionalMechLogReg",
        classification,
        record,
        floor=0.95,
        fits=80,
        runs=GROSS,
        mutants={
            name: REGRESSION[name]
            for name in ("rows not scaled down", "half of the sensitivity", "intercept forgotten")
        }
        | {"cross moments forgotten": without_cross_moments},
    ),
]


# --- the exponential mechanism --------------------------------------------------------------------------------------

#: Records that hold the law at the end of the ball where one more record costs most: so many at epsilon 1.
_CROWD = 40


def erm(loss, fit_intercept, epsilon, delta):
    targets = {"classes": [0, 1]} if loss == "log_loss" else {"bounds_y": (-1.0, 1.0)}
    return ExpMechERM(
        loss, epsilon=epsilon, delta=delta, data_norm=1.0, max_score=1.0, fit_intercept=fit_intercept, **targets
    )


def crowd(model, size=1.0):
    n = math.ceil(_CROWD / model.epsilon)
    X = np.ones((n + 1, 1))
    X[-1] *= size
    y = np.full(n + 1, -1.0)
    y[-1] = 1.0
    y = y if model.loss != "log_loss" else (y > 0).astype(int)
    return (X[:-1], y[:-1]), (X, y)


def ball(mechanism):
    """Points of a ball in one dimension or two, and logarithms of their weights."""
    edges = np.linspace(0, 1, 201)
    middle = (edges[1:] + edges[:-1]) / 2
    if mechanism.n_parameters == 1:
        return mechanism.radius * np.concatenate([-middle, middle])[:, None], np.zeros(2 * len(middle))
    angle = np.linspace(-math.pi, math.pi, 61)[:-1]
    points = middle[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return mechanism.radius * points.reshape(-1, 2), np.repeat(np.log(middle), len(angle))


@little_of_the_budget()
def exact_law(subject, epsilon, delta):
    """Return the largest ratio of densities: as stated, or at the lowest temperature that what came out allows.

    The densities are those of the sums of losses that went in. At an inverse temperature t, with a sum of statistics s
    over all draws, the logarithm of the likelihood is -ts less a convex function: it is more than log(1 / error) below
    its maximum, on the one side, with a probability of at most the error (Chernoff).
    """
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    recorded = recorded_epsilon(model, pair[0], delta)
    seen, points = [], ([], [])

    def note(losses, mechanism):
        seen.append(losses)
        return np.zeros(1)

    potentials = []
    for k in range(subject.taken(subject.fits)):
        model.set_params(random_state=FIRST_SEED + k)
        # The range of the targets is audited by itself.
        with patch.object(target_range, "_postprocess", lambda released, ends, bounds, noise: (*bounds, 0, 1, 1, 0, 1)):
            *_, release = transcript(model, pair[k % 2], numbers=note).values()
        points[k % 2].append(release.out)
        if k < 2:
            potentials.append(seen[-1])
    scale = release.mechanism.scale
    grid, weight = ball(release.mechanism)
    energies = [losses.values(grid @ losses.frame) / scale for losses in potentials]

    heat = 2.0 ** np.linspace(-4, 4, 129)
    free = [np.array([logsumexp(weight - t * energy) for t in heat]) for energy in energies]
    spent = [
        float((losses.values(np.array(own) @ losses.frame) / scale).sum())
        for losses, own in zip(potentials, points, strict=True)
    ]
    likelihood = -heat * sum(spent) - sum(len(own) * f for own, f in zip(points, free, strict=True))
    lowest = int(np.argmax(likelihood > likelihood.max() - math.log(1 / ERROR)))

    def largest_ratio(t):
        laws = [-t * energy - logsumexp(weight - t * energy) for energy in energies]
        return float(np.abs(laws[1] - laws[0]).max())

    stated = largest_ratio(1.0)
    # Draws at a lower temperature than stated are the only ones that harm.
    return Reading(max(stated, largest_ratio(heat[max(lowest - 1, 0)])), stated, recorded)


@contextmanager
def cold():
    """Draw as if epsilon were twice as large."""
    true = tangent_planes.sample_ball
    with patch.object(tangent_planes, "sample_ball", lambda potential, rate, *rest: true(potential, 2 * rate, *rest)):
        yield


def erm_subject(name, loss, fit_intercept, kind, mutants):
    exact = {"fits": 4}
    return Subject(
        name,
        partial(erm, loss, fit_intercept),
        crowd,
        claims=PURE,
        reading=exact_law,
        floor=0.9,
        fits=140,
        runs={(1.0, 0.0): RUNS_AT_1},
        mutants={
            # A release without numbers that go in: the common one does not fit.
            "half the noise": cold,
            "half of the spread": (
                lambda: replaced(kind, "spread", lambda true: lambda self, reach: true(self, reach) / 2),
                exact,
            ),
            "no clip": (
                lambda: replaced(
                    _exponential_mechanism, "clip_rows", lambda clip: lambda X, norm, c: clip(X, 1e3 * norm, c)
                ),
                {**exact, "pair": partial(crowd, size=4.0)},
            ),
            **{key: (mutant, exact) for key, mutant in mutants.items()},
        },
    )


def norm_without_intercept():
    return replaced(_exponential_mechanism, "augmented_norm", lambda true: lambda norm, constant: norm)


def spread_of_predictions():
    """As if targets were 0: what a residual may be is more than what a prediction may be."""
    return patch.object(AbsoluteError, "spread", lambda self, reach: reach)


ERM = [
    erm_subject("ExpMechERM", "log_loss", True, LogLoss, {"intercept forgotten": norm_without_intercept}),
    erm_subject(
        "ExpMechERM-absolute_error",
        "absolute_error",
        False,
        AbsoluteError,
        {"targets forgotten": spread_of_predictions},
    ),
]

SUBJECTS = [*MOMENTS, *ERM]
