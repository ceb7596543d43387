"""Additive models: cells are counted, then an objective is perturbed, or steps are taken, or moments are released."""

import math
from dataclasses import replace as changed
from functools import partial

import numpy as np

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.additive import _engines, _plans
from skdp.additive._gradients import CellGradients
from skdp.solvers import moments
from tests.trust.gradients import clip_of_the_largest, long_weights, one_noise_for_all, steps_and_their_noise
from tests.trust.measured import loss_of
from tests.trust.perturbation import any_weight, perturbed
from tests.trust.subjects import APPROXIMATE, ERROR, FIRST_SEED, PURE, RUNS_AT_1, Reading, Subject, replaced
from tests.trust.transcripts import transcript

# Two columns, of two categories and of three: four features and the constant.
COMMON = {"categories": {0: 2, 1: 3}}


def classifier(epsilon, delta, **parameters):
    return DPAdditiveClassifier(**{"epsilon": epsilon, "delta": delta, "classes": [0, 1], **COMMON, **parameters})


def steps(epsilon, delta, **parameters):
    return classifier(epsilon, delta, solver="gradient", n_steps=5, **parameters)


def regressor(epsilon, delta, **parameters):
    return DPAdditiveRegressor(
        **{"epsilon": epsilon, "delta": delta, "bounds_y": (-1, 1), "n_steps": 5, **COMMON, **parameters}
    )


def crowd(model, n=3000, label=0):
    """So many records drive scores so far that one more, of the other label, has a gradient as long as one can be."""
    X, y = np.zeros((n + 1, 2)), np.ones(n + 1, dtype=int)
    y[-1] = label
    return (X[:-1], y[:-1]), (X, y)


def alone(model, label=0):
    X = np.zeros((1, 2))
    return (X[:0], np.zeros(0, dtype=int)), (X, np.full(1, label))


def counts_and_objective(subject, epsilon, delta):
    """What is seen of the counts, and of the objective; for pure claims both together, since the largest losses add."""
    reading = perturbed(subject, epsilon, delta)
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    noises = []
    for k in range(subject.taken(subject.fits)):
        found = next(iter(transcript(model.set_params(random_state=FIRST_SEED + k), pair[k % 2]).values()))
        noises.append((found.out - found.value).ravel())
    values = [next(iter(transcript(model, data).values())).value for data in pair]
    estimate, limit = loss_of(found.mechanism, np.array(noises), values[1] - values[0], ERROR)
    if delta:
        return reading
    return Reading(reading.at_least + limit, reading.estimate + estimate, reading.recorded)


# --- mutants --------------------------------------------------------------------------------------------------------


def half_sensitivity():
    """Plan for half of the weight that is used."""
    return replaced(
        _engines, "plan", lambda true: lambda parameters, geometry, C, beside: true(parameters, geometry, C / 2, beside)
    )


def long_rows():
    """Rows of cells of twice the length, which nothing scales down."""

    def longer(true):
        def objective(layout, *rest):
            terms = tuple(changed(term, rows=2 * term.rows) for term in layout.terms)
            return true(changed(layout, terms=terms), *rest)

        return objective

    return replaced(_engines, "CellObjective", longer)


def counts_not_paid():
    """Release the counts as if nothing else were."""

    def whole(mechanism):
        def of_all(cls, epsilon, delta, columns):
            true = mechanism(epsilon, delta, columns)
            full = _plans.l2_mechanism(epsilon, delta, 1.0, math.sqrt(3), 6)[0] if delta else None
            full = full or _plans.l1_mechanism(epsilon, 3.0, 6)
            return changed(true, releases=(changed(true.releases[0], mechanism=full),))

        return classmethod(of_all)

    return replaced(_plans.Before, "of", whole)


def steps_forgotten():
    def of_one(true):
        return lambda mu, sensitivity, size, n_steps: true(mu * math.sqrt(n_steps), sensitivity, size, n_steps)

    return replaced(_engines, "SampledGaussianMechanism", of_one)


def half_of_the_clip():
    """Noise for gradients of half the length."""
    return replaced(
        _engines,
        "SampledGaussianMechanism",
        lambda true: lambda mu, sensitivity, size, n_steps: true(mu, sensitivity / 2, size, n_steps),
    )


def long_gradients():
    return replaced(
        CellGradients,
        "__init__",
        lambda init: (
            lambda self, layout, codes, targets, derivative, norm: init(
                self, layout, codes, targets, derivative, 10 * norm
            )
        ),
    )


def half_of_the_moments():
    return replaced(moments, "moments_l2", lambda true: lambda *args: true(*args) / 2)


def half_of_the_sums():
    return replaced(moments, "moments_l1", lambda true: lambda *args: true(*args) / 2)


COURSE = {
    "square root of steps forgotten": steps_forgotten,
    "half of the sensitivity": half_of_the_clip,
    "one noise for all steps": one_noise_for_all,
    "counts not paid": counts_not_paid,
    "no clip": long_gradients,
}

SUBJECTS = [
    Subject(
        "DPAdditiveClassifier",
        classifier,
        crowd,
        reading=counts_and_objective,
        fits=120,
        floor=0.8,
        runs={(1.0, 0.0): RUNS_AT_1},
        mutants={
            "half of the sensitivity": half_sensitivity,
            "long rows": long_rows,
            "counts not paid": counts_not_paid,
            "any weight": (any_weight, {"make": partial(classifier, C=100.0), "pair": alone}),
        },
        survives={("counts not paid", (1.0, 1e-5)): "densities and noise are not read together"},
    ),
    Subject(
        "DPAdditiveClassifier-steps",
        steps,
        partial(crowd, n=1),
        claims=APPROXIMATE,
        reading=steps_and_their_noise,
        fits=40,
        floor=0.8,
        runs={(1.0, 1e-5): RUNS_AT_1},
        mutants=COURSE,
    ),
    Subject(
        "DPAdditiveClassifier-steps-multinomial",
        partial(steps, classes=[0, 1, 2]),
        alone,
        claims=APPROXIMATE,
        reading=steps_and_their_noise,
        fits=40,
        floor=0.8,
        runs={},
        mutants={**COURSE, "clip of one class": clip_of_the_largest},
    ),
    Subject(
        "DPAdditiveRegressor",
        regressor,
        partial(alone, label=1),
        claims=APPROXIMATE,
        reading=steps_and_their_noise,
        fits=40,
        floor=0.8,
        runs={(1.0, 1e-5): RUNS_AT_1},
        mutants=COURSE,
    ),
    Subject(
        "DPAdditiveRegressor-moments",
        regressor,
        partial(alone, label=1),
        claims=PURE,
        fits=100,
        floor=0.6,
        runs={(1.0, 0.0): RUNS_AT_1},
        mutants={
            "half of the sensitivity": half_of_the_moments,
            "half of the L1 sensitivity": half_of_the_sums,
            "weights of ten": long_weights,
        },
    ),
]
