"""Linear classifiers by output and objective perturbation.

Of output perturbation, the one release is measured. Objective perturbation has a density that is known in closed form:
that of the noise which makes a point the minimiser, times the determinant of the second derivative there. Its reading
takes the problems that a fit solved, and the scale of the noise that was drawn.
"""

import math
from contextlib import contextmanager
from dataclasses import replace as changed
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.optimize import brentq

from skdp import ObjPertLogReg, OutputPertLogReg
from skdp.accounting import binary_log_loss, gaussian_epsilon, huber_hinge, multinomial_log_loss
from skdp.linear_model import _perturbation
from skdp.mechanisms import GammaMechanism
from skdp.solvers import regularised
from skdp.solvers.losses import LogLoss, MultinomialLogLoss
from skdp.solvers.regularised import Geometry
from tests.trust.measured import gamma_scale, gaussian_scale, loss_of
from tests.trust.subjects import (
    ERROR,
    FIRST_SEED,
    RUNS_AT_1,
    RUNS_AT_3,
    Reading,
    Subject,
    recorded_epsilon,
    replaced,
)
from tests.trust.transcripts import transcript


def classifier(kind, epsilon, delta, **parameters):
    common = {"data_norm": 1.0, "fit_intercept": False, "classes": [0, 1]}
    return kind(epsilon=epsilon, delta=delta, **{**common, **parameters})


def machine(kind, epsilon, delta, **parameters):
    """One problem for each of three classes; a record alone has the largest gradient in all of them."""
    return classifier(kind, epsilon, delta, loss="huber", fit_intercept=True, **{"classes": [0, 1, 2], **parameters})


def alone(model, norm=1.0, n_columns=4):
    """Nobody, and one record."""
    X = np.eye(1, n_columns) * norm
    return (X[:0], np.zeros(0, dtype=int)), (X, np.zeros(1, dtype=int))


def pushed(model, norm=1.0, push=10.0, short=0.01, n_columns=2):
    """Many short rows drive scores so far that the record's gradient is as long as one can be, and hardly bends."""
    C = model.fit(np.zeros((0, n_columns)), np.zeros(0, dtype=int)).C_
    count = math.ceil(2 * push / (C * short))
    X = np.zeros((count + 1, n_columns))
    X[:, 0] = short
    y = np.ones(count + 1, dtype=int)
    X[-1, 0], y[-1] = norm, 0
    return (X[:-1], y[:-1]), (X, y)


def unclipped():
    def without(clip):
        return lambda X, norm, constant: changed(clip(X, 1e6 * norm, constant), norm=clip(X, norm, constant).norm)

    return replaced(regularised, "clip_rows", without)


def residual(factor):
    """Take solutions that are so much worse than certified ones."""
    return replaced(
        regularised,
        "certified_minimizer",
        lambda true: lambda objective, tau, max_iter: true(objective, factor * tau, max_iter),
    )


def norm_without_intercept():
    def forgetful(of):
        def without(parameters, *sizes):
            true = of(parameters, *sizes)
            return Geometry(true.loss, true.n_problems, true.n_columns, parameters.data_norm, true.constant)

        return without

    return replaced(Geometry, "of", forgetful)


@contextmanager
def one_problem():
    with (
        patch.object(Geometry, "joint_lipschitz", property(lambda geometry: geometry.lipschitz)),
        patch.object(regularised, "huber_hinge", lambda kappa, curvature, n: huber_hinge(kappa, curvature, 1)),
    ):
        yield


def gradient_of_one():
    """As for two classes."""
    return patch.object(MultinomialLogLoss, "lipschitz", 1.0)


# --- output perturbation --------------------------------------------------------------------------------------------


def sensitivity_as(change):
    return lambda: replaced(_perturbation, "minimizer_sensitivity", change)


def on_the_edge(model):
    """Solvers that stop early have done nothing without the record, and more than it may move with it."""
    X, y = np.full((601, 1), 0.01), np.ones(601, dtype=int)
    X[-1] = 1.0
    return (X[:-1], y[:-1]), (X, y)


OUTPUT = {
    "half of the sensitivity": sensitivity_as(lambda true: lambda *args: true(*args) / 2),
    "C forgotten": sensitivity_as(lambda true: lambda C, *args: true(1.0, *args)),
    # 50 times what a record may change: Newton's method begins at 3.1 times.
    "no certificate": (partial(residual, 5e7), {"pair": on_the_edge}),
}

# 60 columns for factors of 4 %.
WIDE = {"pair": partial(alone, n_columns=60), "fits": 200}

# --- objective perturbation -----------------------------------------------------------------------------------------


def problems(model, data):
    """The problems that a fit solves."""
    found = []

    def noted(minimise):
        def minimizer(objective, *rest):
            found.append(objective)
            return minimise(objective, *rest)

        return minimizer

    with replaced(regularised, "certified_minimizer", noted):
        model.fit(*data)
    return found


class Along:
    """A problem whose rows all have one direction, as a function of the coefficients along it."""

    def __init__(self, objective, direction):
        self.loss, self.C, self.ridge = objective.loss, objective.C, objective.strong_convexity
        rows = objective.dense(slice(None))
        length = rows @ direction
        assert np.abs(rows - np.outer(length, direction)).max(initial=0.0) < 1e-9
        self.cases, self.counts = np.unique(np.column_stack([length, objective.codes]), axis=0, return_counts=True)

    def noise(self, s):
        """The noise that makes each row of `s` the minimiser, and how it changes there."""
        q = s.shape[1]
        noise, bend = -self.ridge * s, np.tile(self.ridge * np.eye(q), (len(s), 1, 1))
        for (length, code), count in zip(self.cases, self.counts, strict=True):
            target = self.loss.encode(np.full(len(s), int(code)))
            noise -= count * self.C * length * self.loss.derivative(length * s, target)
            bends = self.loss.bends(length * s, target)
            for a, output in enumerate(np.eye(q)):
                bend[:, a] += count * self.C * length**2 * self.loss.bend_along(bends, np.tile(output, (len(s), 1)))
        return noise, bend

    def centre(self):
        """Where it is without noise."""
        s = np.zeros((1, self.loss.outputs))
        for _ in range(200):
            noise, bend = self.noise(s)
            s = s + np.linalg.solve(bend[0], noise[0])
        return s[0]

    def squares_and_determinant(self, s):
        noise, bend = self.noise(s)
        return (noise**2).sum(axis=1), np.linalg.slogdet(bend)[1]


def pure_ratio(pair, scale, code):
    """The largest ratio of densities on lines, for noise whose density falls with its norm over all problems."""
    loss = pair[0][0].loss
    ways = np.array([[1.0]])
    if isinstance(loss, MultinomialLogLoss):
        ways = (loss.basis[:, None] - loss.basis).reshape(-1, loss.outputs)
    sizes = np.concatenate([np.linspace(-4, 4, 4001), np.linspace(-60, 60, 1201)])
    largest = 0.0
    for way in ways:
        squares, bends = [0.0, 0.0], [0.0, 0.0]
        for k, own in enumerate(zip(*pair, strict=True)):
            sign = 1.0 if len(pair[0]) == 1 or k == code else -1.0
            for which, problem in enumerate(own):
                more = problem.squares_and_determinant(sign * sizes[:, None] * way)
                squares[which] = squares[which] + more[0]
                bends[which] = bends[which] + more[1]
        loss_there = (np.sqrt(squares[0]) - np.sqrt(squares[1])) / scale + bends[1] - bends[0]
        largest = max(largest, float(np.abs(loss_there).max()))
    return largest


def gaussian_epsilon_of(pair, scale, delta):
    """Epsilon of Gaussian noise, by sums over all points of a grid."""
    n_points = {1: 4001, 2: 151, 3: 101}[len(pair[0]) * pair[0][0].loss.outputs]
    logs, volume = [np.zeros(1), np.zeros(1)], np.ones(1)
    for own in zip(*pair, strict=True):
        q = own[0].loss.outputs
        centres = [problem.centre() for problem in own]
        low, high = np.minimum(*centres) - 7 * scale, np.maximum(*centres) + 7 * scale
        # Closer where the second derivative changes.
        near = np.linspace(-4, 4, n_points // 2)
        axes = [np.union1d(np.linspace(a, b, n_points // 2), near) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, q)
        cells = math.prod(np.meshgrid(*map(_widths, axes), indexing="ij")) / (2 * math.pi * scale**2) ** (q / 2)
        volume = np.multiply.outer(volume, cells).ravel()
        for which, problem in enumerate(own):
            squares, bend = problem.squares_and_determinant(grid)
            logs[which] = np.add.outer(logs[which], bend - squares / (2 * scale**2)).ravel()
    laws = [np.exp(log) * volume for log in logs]
    assert all(abs(law.sum() - 1) < 0.02 for law in laws), "the densities are known"
    ratio = logs[1] - logs[0]
    return max(_epsilon(laws[1], laws[0], ratio, delta), _epsilon(laws[0], laws[1], -ratio, delta))


def _widths(axis):
    """Of the trapezoidal rule."""
    steps = np.diff(axis, prepend=axis[0], append=axis[-1])
    return (steps[1:] + steps[:-1]) / 2


def _epsilon(law, other, ratio, delta):
    order = np.argsort(-ratio)
    above, below = np.cumsum(law[order]), np.cumsum(other[order])
    ordered = -ratio[order]

    def excess(epsilon):
        last = np.searchsorted(ordered, -epsilon) - 1
        return (above[last] - math.exp(epsilon) * below[last] if last >= 0 else 0.0) - delta

    return brentq(excess, 0.0, max(float(ratio.max()), 1e-9)) if excess(0.0) > 0 else 0.0


def perturbed(subject, epsilon, delta):
    """Objective perturbation by its density, and the slack of the solver by what it moves.

    Each of the two is a lower limit by itself.
    """
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    recorded = recorded_epsilon(model, pair[0], delta)
    noises, some = {}, []
    for k in range(subject.taken(subject.fits)):
        model.set_params(random_state=FIRST_SEED + k)
        found = transcript(model, pair[k % 2])
        some += [found] * (k < 4)
        for release in found.values():
            noises.setdefault(release.label, []).append((release.out - release.value).ravel())
    objective, solution = list(found.values())[-2:]

    solved = [problems(model, data) for data in pair]
    row = solved[1][0].dense(slice(-1, None))[0]
    lines = [[Along(problem, row / np.linalg.norm(row)) for problem in of_one] for of_one in solved]
    noise = np.array(noises[objective.label])
    if isinstance(objective.mechanism, GammaMechanism):
        epsilons = [pure_ratio(lines, scale, pair[1][1][-1]) for scale in gamma_scale(noise, ERROR / 2)]
    else:
        epsilons = [gaussian_epsilon_of(lines, scale, delta) for scale in gaussian_scale(noise, ERROR / 2)]

    moves = [unsolved(model, pair[1 - k % 2], solved[1 - k % 2], kept) for k, kept in enumerate(some)]
    move = max(moves, key=np.linalg.norm)
    slack = loss_of(solution.mechanism, np.array(noises[solution.label]), move, ERROR / 2)[1]
    slack = gaussian_epsilon(min(slack, 100.0), delta) if delta else slack
    return Reading(max(epsilons[1], slack), epsilons[0], recorded)


def unsolved(model, data, solved, found):
    """What the solver's slack moves: solve on other data, with the noise for which the minimiser is the same."""
    (place, objective), (_, solution) = list(found.items())[-2:]
    parts = zip(solved, solution.value.reshape(len(solved), *solved[0].shape), strict=True)
    needed = [problem.linear - problem.gradient(part, problem.predictor(part)) for problem, part in parts]
    moved = list(transcript(model, data, {place: changed(objective, out=np.ravel(needed))}).values())[-1]
    return moved.value - solution.value


def plan_of(change):
    """Plan for another weight than the one that problems are solved with."""

    @contextmanager
    def broken():
        true = ObjPertLogReg._plan_of
        with patch.object(
            ObjPertLogReg,
            "_plan_of",
            staticmethod(lambda parameters, geometry, C: true(parameters, geometry, change(C))),
        ):
            yield

    return broken


@contextmanager
def price_forgotten():
    """Forget what the record bends."""

    def flat(geometry, C):
        if isinstance(geometry.loss, LogLoss):
            return binary_log_loss(0.0)
        if isinstance(geometry.loss, MultinomialLogLoss):
            return multinomial_log_loss(0.0, geometry.loss.n_classes)
        return huber_hinge(0.0, geometry.loss.curvature, geometry.n_problems)

    with (
        patch.object(regularised, "pure_price", lambda geometry, C, epsilon: 0.0),
        patch.object(regularised, "gaussian_curve", flat),
    ):
        yield


@contextmanager
def any_weight():
    """Take the weight that is asked for, and forget its price."""
    with (
        patch.object(_perturbation, "largest_kappa", lambda *args: math.inf),
        price_forgotten(),
    ):
        yield


def bent(model):
    """The record bends most where its margin is 0, which for pure claims may be far from where scores are pushed to."""
    return alone(model) if model.delta else pushed(model, push=40.0)


def objective_mutants(make, C, pair=bent):
    return {
        "half of the sensitivity": plan_of(lambda C: C / 2),
        "any weight": (any_weight, {"make": partial(make, C=C), "pair": pair}),
    }


def first_coefficient(model):
    return model.coef_[0, 0]


def steps_short(model, **options):
    """Gaussian noise spreads scores so far that the push has to be long; for pure claims, all scores count."""
    return pushed(model, short=0.02 if model.delta else 0.1, **options)


BINARY = partial(classifier, ObjPertLogReg)
MULTINOMIAL = partial(classifier, ObjPertLogReg, classes=[0, 1, 2])
MACHINE = partial(machine, ObjPertLogReg)
LOOSE = "delta of several problems is bounded by a sum, which leaves more than this unused"

SUBJECTS = [
    Subject(
        "OutputPertLogReg",
        partial(classifier, OutputPertLogReg, C=2.0),
        pushed,
        fits=120,
        floor=0.85,
        statistic=first_coefficient,
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.1},
        mutants={**OUTPUT, "no clip": (unclipped, {"pair": partial(pushed, norm=4.0, push=20.0)})},
    ),
    Subject(
        "OutputPertLogReg-multinomial",
        partial(classifier, OutputPertLogReg, C=2.0, classes=[0, 1, 2]),
        partial(pushed, n_columns=8),
        fits=80,
        floor=0.8,
        runs={},
        mutants={"gradient of one class": gradient_of_one},
    ),
    Subject(
        "OutputPertLogReg-hinge",
        partial(machine, OutputPertLogReg, C=0.4),
        alone,
        fits=80,
        floor=0.9,
        runs={(1.0, 0.0): RUNS_AT_1},
        mutants={
            "half of the sensitivity": OUTPUT["half of the sensitivity"],
            "number of problems forgotten": one_problem,
            "intercept forgotten": (norm_without_intercept, WIDE),
            "no clip": (
                unclipped,
                {"make": partial(machine, OutputPertLogReg, C=0.1), "pair": partial(alone, norm=2.0)},
            ),
        },
    ),
    Subject(
        "ObjPertLogReg",
        BINARY,
        steps_short,
        reading=perturbed,
        fits=120,
        floor=0.85,
        statistic=first_coefficient,
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.1},
        mutants={
            **objective_mutants(BINARY, 30.0),
            "no clip": (unclipped, {"pair": partial(steps_short, norm=4.0)}),
            "no certificate": partial(residual, 3e6),
        },
    ),
    Subject(
        "ObjPertLogReg-multinomial",
        MULTINOMIAL,
        partial(steps_short, n_columns=8),
        reading=perturbed,
        fits=40,
        floor=0.8,
        runs={},
        mutants={**objective_mutants(MULTINOMIAL, 10.0), "gradient of one class": gradient_of_one},
    ),
    Subject(
        "ObjPertLogReg-hinge",
        MACHINE,
        alone,
        reading=perturbed,
        fits=80,
        floor=0.85,
        runs={(1.0, 0.0): RUNS_AT_1},
        mutants={
            **objective_mutants(MACHINE, 2.0, alone),
            "price forgotten": (price_forgotten, WIDE),
            "number of problems forgotten": one_problem,
            "intercept forgotten": (norm_without_intercept, WIDE),
        },
        survives={("price forgotten", (1.0, 1e-5)): LOOSE, ("intercept forgotten", (1.0, 1e-5)): LOOSE},
    ),
]
