"""Noisy gradient descent: linear models and networks, on all records and on samples."""

import math
from functools import partial
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

from skdp import DPMLPClassifier, DPMLPRegressor, DPSGDClassifier, DPSGDRegressor
from skdp.audit._bounds import proportion_limits
from skdp.mechanisms import PoissonSampler, SampledGaussianMechanism
from skdp.neural_network import _gradients
from skdp.neural_network._gradients import GradientSums
from skdp.solvers import calibration, target_range
from skdp.solvers import linear_descent as _descent
from skdp.solvers.clipped_gradients import ClippedGradients
from skdp.solvers.linear_descent import COUNT_SHARE, GRADIENTS, SamplingSchedule
from tests.trust.measured import HOPELESS, loss_of
from tests.trust.subjects import (
    APPROXIMATE,
    ERROR,
    FIRST_SEED,
    RUNS_AT_1,
    Reading,
    Subject,
    measure,
    recorded_epsilon,
    replaced,
)
from tests.trust.transcripts import transcript


def nobody_and(X, y):
    """A pair for any estimator."""
    X, y = np.array(X, dtype=float), np.array(y)
    return lambda model: ((X[:-1], y[:-1]), (X, y))


# Derivatives are beyond the clip, and steps so short that they stay there.
def sgd(kind, epsilon, delta, **parameters):
    own = {"classes": [0, 1, 2]} if kind is DPSGDClassifier else {"bounds_y": (-1, 1)}
    return kind(
        **{"epsilon": epsilon, "delta": delta, "data_norm": 1.0, "n_steps": 5, "eta0": 1e-3, **own, **parameters}
    )


def network(kind, epsilon, delta, **parameters):
    own = {"classes": [0, 1, 2]} if kind is DPMLPClassifier else {"bounds_y": (-1, 1)}
    common = {"epsilon": epsilon, "delta": delta, "data_norm": 1.0, "n_steps": 4, "batch_size": 1.0}
    return kind((2,), **{**common, "max_grad_norm": 0.1, **own, **parameters})


def steps_and_their_noise(subject, epsilon, delta):
    """The measured reading; noise that comes twice is none, since a difference of two steps is without it."""
    reading = measure(subject, epsilon, delta)
    model = subject.make(epsilon, delta).set_params(random_state=FIRST_SEED)
    found = transcript(model, subject.pair(model)[1]).values()
    noises = [(release.out - release.value).ravel() for release in found if release.label == GRADIENTS]
    twice = any(np.abs(a - b).max() < 1e-3 * np.abs(a).max() for a, b in pairwise(noises))
    return Reading(HOPELESS, HOPELESS, reading.recorded) if twice else reading


# --- mutants --------------------------------------------------------------------------------------------------------


def long_gradients():
    """Clip at ten times the norm that the noise is for."""
    return replaced(
        ClippedGradients,
        "__init__",
        lambda init: (
            lambda self, rows, targets, derivative, norm, *more: init(self, rows, targets, derivative, 10 * norm, *more)
        ),
    )


def clip_of_the_largest():
    """Clip by the largest class alone."""

    def factors(self, z, bounds):
        return np.minimum(bounds / np.maximum(np.abs(z).max(axis=0), 2.0**-10), 1.0)

    return patch.object(ClippedGradients, "_factors", factors)


def steps_forgotten():
    """Noise for one step; the accountant would refuse events of it."""

    def of_one(true):
        return lambda mu, sensitivity, size, n_steps, rate: true(
            mu * math.sqrt(n_steps), sensitivity, size, n_steps, rate
        )

    return replaced(_descent, "SampledGaussianMechanism", of_one)


def count_not_paid():
    """Release the number of records as if nothing else were."""
    return replaced(
        _descent, "GaussianMechanism", lambda true: lambda mu, *rest: true(mu / math.sqrt(COUNT_SHARE), *rest)
    )


def location_not_paid():
    """Release the location of the targets as if nothing else were."""

    def whole(true):
        return lambda e, d, share, *rest: (true(e, d, 1.0, *rest)[0], true(e, d, share, *rest)[1])

    return replaced(target_range, "l2_mechanism", whole)


def half_sensitivity():
    return replaced(
        SamplingSchedule,
        "plan",
        lambda true: lambda self, e, d, sensitivity, *rest: true(self, e, d, sensitivity / 2, *rest),
    )


def one_noise_for_all():
    def repeated(noises):
        def same(self, stream):
            first = next(noises(self, stream))
            for _ in range(self.n_steps):
                yield first.copy()

        return same

    return replaced(SampledGaussianMechanism, "_noises", repeated)


def long_weights():
    """Ten times the weights of predictions and targets that the noise is for."""
    return replaced(calibration, "weights_in_cells", lambda true: lambda f, t: 10 * true(f, t))


def realised_mean():
    """A mean over the batch, times the number that is expected, which is public: one record moves all others."""

    def mean(total):
        def of_rows(self, weights, rows=None, lattice=None):
            return total(self, weights, rows, lattice) * (50 / max(self.n_rows, 1))

        return of_rows

    return replaced(ClippedGradients, "total", mean)


COURSE = {
    "square root of steps forgotten": steps_forgotten,
    "half of the sensitivity": half_sensitivity,
    "one noise for all steps": one_noise_for_all,
    "count not paid": (count_not_paid, {"fits": 80}),
}
#: A regression releases the number of records with the location of its targets.
REGRESSION = {"count not paid": (location_not_paid, {"fits": 80})}


def norms_of_one_layer():
    """Norms without the last layer."""
    return replaced(
        GradientSums, "_squares", lambda true: lambda self, own, *layers: true(self, own, *(a[:-1] for a in layers))
    )


def network_without_clip():
    return patch.object(_gradients, "clipping_factors", lambda squares, max_norm: np.ones_like(squares))


NETWORK = {**COURSE, "no clip": network_without_clip, "a layer forgotten": norms_of_one_layer}

# The runs are for what leaves a fit past its releases: of Gaussian noise, so few see nothing.
FULL = {
    "claims": APPROXIMATE,
    "reading": steps_and_their_noise,
    "floor": 0.93,
    "fits": 40,
    "runs": {(1.0, 1e-5): RUNS_AT_1},
}


# --- samples --------------------------------------------------------------------------------------------------------


def sampled(epsilon, delta):
    return sgd(
        DPSGDClassifier, epsilon, delta, classes=[0, 1], batch_size=0.2, n_steps=5, expected_n=1, fit_intercept=False
    )


def everyone(mechanism, rows, n_rows, number):
    return np.arange(n_rows)


def epsilon_of_samples(mu, rate, n_steps, delta):
    """By dp_accounting, rounded down."""
    if mu >= HOPELESS:
        return HOPELESS
    law = pld.from_gaussian_mechanism(
        1 / mu,
        sampling_prob=rate,
        value_discretization_interval=1e-3,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    return law.self_compose(n_steps).get_epsilon_for_delta(delta) if rate else 0.0


def samples(subject, epsilon, delta):
    """What the record moves where it is in the sample, over the noise; and how often it is.

    A lower limit of the rate over all steps is one if samples are independent and alike. If they are not, the step that
    it is in most often gives a lower limit by itself.
    """
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    recorded = recorded_epsilon(model, pair[0], delta)
    noises, drawn = [], []

    def note(mechanism, rows, n_rows, number):
        drawn.append(rows is None or n_rows - 1 in rows)
        return rows

    for k in range(subject.taken(subject.fits)):
        model.set_params(random_state=FIRST_SEED + k)
        found = transcript(model, pair[1], sample=note)
        noises += [np.ravel(release.out - release.value) for release in found.values()]
    noises, drawn = np.array(noises), np.array(drawn).reshape(-1, len(found))
    moves = []
    for k in range(2):
        model.set_params(random_state=FIRST_SEED + k)
        found = transcript(model, pair[0], sample=everyone)
        other = transcript(model, pair[1], found, sample=everyone)
        moves += [(release.mechanism, other[place].value - release.value) for place, release in found.items()]
    mus = [max(found) for found in zip(*(loss_of(*(m, noises, move), ERROR / 3) for m, move in moves), strict=True)]

    runs, n_steps = drawn.shape
    often = proportion_limits(drawn.sum(), drawn.size, ERROR / 3)[0]
    most = proportion_limits(drawn.sum(axis=0), runs, ERROR / 3 / n_steps)[0].max()
    at_least = max(
        epsilon_of_samples(mus[1], float(often), n_steps, delta), epsilon_of_samples(mus[1], float(most), 1, delta)
    )
    return Reading(at_least, epsilon_of_samples(mus[0], float(drawn.mean()), n_steps, delta), recorded)


def drawn_as(choose):
    def samples_of(self, n_rows, n_samples, stream):
        for step in range(n_samples):
            yield np.arange(n_rows if choose(step) else 0)

    return lambda: patch.object(PoissonSampler, "samples", samples_of)


SUBJECTS = [
    Subject(
        "DPSGDClassifier",
        partial(sgd, DPSGDClassifier),
        nobody_and([[0.6, 0.8]], [1]),
        mutants={
            **COURSE,
            "no clip": long_gradients,
            "clip of one class": clip_of_the_largest,
            "mean over the batch": (
                realised_mean,
                {"make": partial(sgd, DPSGDClassifier, expected_n=50), "pair": nobody_and([[1, 0], [0, 1]], [1, 2])},
            ),
        },
        **FULL,
    ),
    Subject(
        "DPSGDRegressor",
        partial(sgd, DPSGDRegressor),
        nobody_and([[0.6, 0.8]], [1.0]),
        mutants={**COURSE, **REGRESSION, "no clip": long_gradients, "weights of ten": long_weights},
        **FULL,
    ),
    Subject(
        "DPSGDClassifier-samples",
        sampled,
        nobody_and([[1.0]], [1]),
        claims=APPROXIMATE,
        reading=samples,
        floor=0.85,
        fits=300,
        runs={},
        mutants={
            "no clip": long_gradients,
            "everyone in each batch": drawn_as(lambda step: True),
            "batches in order": drawn_as(lambda step: step == 3),
            "number of steps forgotten": steps_forgotten,
        },
    ),
    Subject(
        "DPMLPClassifier",
        partial(network, DPMLPClassifier),
        nobody_and([[0.6, 0.8]], [1]),
        mutants=NETWORK,
        **FULL,
    ),
    Subject(
        "DPMLPRegressor",
        partial(network, DPMLPRegressor),
        nobody_and([[0.6, 0.8]], [[1.0, 1.0]]),
        mutants={**NETWORK, **REGRESSION, "weights of ten": long_weights},
        **{**FULL, "floor": 0.85},
    ),
]
