"""Additive models: cells are counted; then steps are taken, if there is a delta, and tables are chosen and released."""

import math
from dataclasses import replace as changed
from functools import partial

import numpy as np

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.additive import _classifier, _curves, _plans, _regressor, _stages
from skdp.additive._features import CellGradients
from skdp.mechanisms import ExponentialMechanism, GroupChoices, PermuteAndFlip
from skdp.release import reserve
from skdp.solvers.target_range import RANGE
from tests.trust.choices import choosing, epsilon_of_laws, log_law
from tests.trust.gradients import clip_of_the_largest, one_noise_for_all, steps_and_their_noise
from tests.trust.measured import loss_of
from tests.trust.subjects import (
    APPROXIMATE,
    ERROR,
    FIRST_SEED,
    PURE,
    RUNS_AT_1,
    Reading,
    Subject,
    recorded_epsilon,
    replaced,
    replayed,
)
from tests.trust.transcripts import transcript

# Two columns, of two categories and of three: four features and the constant.
COMMON = {"categories": {0: 2, 1: 3}}


def classifier(epsilon, delta, **parameters):
    return DPAdditiveClassifier(**{"epsilon": epsilon, "delta": delta, "classes": [0, 1], **COMMON, **parameters})


def curves(epsilon, delta, **parameters):
    return classifier(epsilon, delta, **{"interactions": None, **parameters})


def of_bins(epsilon, delta, **parameters):
    """Two columns of numbers, whose cells are merged."""
    return curves(epsilon, delta, categories=None, bounds=(0, 3), n_bins=3, **parameters)


def regressor(epsilon, delta, **parameters):
    common = {"bounds_y": (-1, 1), "interactions": None, **COMMON}
    return DPAdditiveRegressor(**{"epsilon": epsilon, "delta": delta, **common, **parameters})


def few_steps(read):
    """Return the reading of fits with few gradient steps."""

    def of_few(*args):
        with replaced(_curves, "N_STEPS", lambda true: 5):
            return read(*args)

    return of_few


def alone(model, label=0):
    X = np.zeros((1, 2))
    return (X[:0], np.zeros(0, dtype=int)), (X, np.full(1, label))


def rare(model, n=20_000):
    """A record in rare cells. If it moves the centre, all others, whose targets are larger, move in its direction."""
    X, y = np.zeros((n + 1, 2)), np.ones(n + 1)
    X[-1], y[-1] = (1, 2), -1.0
    return (X[:-1], y[:-1]), (X, y)


def minority(model, n=3000, label=1, n_columns=2):
    """A fifth of the records are in rare cells, where scores are those of their label; one among them has another."""
    X, y = np.zeros((n + 1, n_columns)), np.ones(n + 1, dtype=int)
    X[: n // 5], y[: n // 5] = 1, 0
    X[-1], y[-1] = 1, label
    return (X[:-1], y[:-1]), (X, y)


# Three columns of two categories. Residuals have one sign where the first two columns agree and the third does not, and
# the other sign where the first and the third agree and the second does not.
THREE = {"categories": {0: 2, 1: 2, 2: 2}}


def chooser(epsilon, delta, **parameters):
    return regressor(epsilon, delta, **{"interactions": "auto", **THREE, **parameters})


def chooser_of_labels(epsilon, delta, **parameters):
    return classifier(epsilon, delta, **{"interactions": "auto", **THREE, **parameters})


def rivals(model):
    """Two pairs have nearly the same score, and one more record raises one of them and lowers the other."""
    n = math.ceil(12_000 / min(model.epsilon, 1.0))
    sides = np.arange(n) // 2 % 2
    X = np.where(np.arange(n)[:, None] % 2 == 0, [[0, 0, 1]], [[0, 1, 0]])
    X = np.where(sides[:, None] == 1, 1 - X, X).astype(float)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X, y = np.vstack([X, [[0, 0, 0]]]), np.append(y, 1.0)
    return (X[:-1], y[:-1]), (X, y)


def minority_of_three(model):
    """So many records drive scores so far that the residual of one more, of the other label, is nearly 1."""
    return minority(model, math.ceil(6_000 / min(model.epsilon, 1.0)), n_columns=3)


def choices_of_pairs(subject, epsilon, delta):
    """What the record moves in noise and in the law of each choice, given all that was released before.

    How sharply choices are made follows from the parameters of the mechanism, whose sampler has tests of its own.
    """
    estimator = subject.make(epsilon, delta)
    pair = subject.pair(estimator)
    recorded = recorded_epsilon(estimator, pair[0], delta)
    noises, replays = {}, []
    places: list[int] = []
    with choosing(lambda mechanism, scores, own: places.append(own()) or places[-1]):
        transcript(estimator.set_params(random_state=FIRST_SEED), pair[0])
    for k in range(subject.taken(subject.fits)):
        estimator.set_params(random_state=FIRST_SEED + k)
        # The same choices in all fits, so that their releases have the same sizes.
        found = _with_choices(places, estimator, pair[k % 2])
        for release in found.values():
            if not isinstance(release.mechanism, GroupChoices):
                noises.setdefault(release.label, []).append(np.ravel(release.out - release.value))
        if k % 2 == 0 and len(replays) < 2:
            # The scores of both pairs are nearly the same if the counts came out as they are.
            exact = {place: changed(own, out=own.value) for place, own in found.items() if place[1] == _plans.COUNTS}
            found = _with_choices(places, estimator, pair[0], exact)
            moves = (subject.moves or replayed)(estimator, pair, found)
            other = transcript(estimator, pair[1], found)
            laws = [
                [
                    log_law(
                        (ExponentialMechanism if m.bounded_range else PermuteAndFlip)(
                            m.epsilon, m.sensitivity, m.monotone
                        ),
                        own[place].value[0],
                    )
                    for own in (found, other)
                ]
                for place, m in ((place, release.mechanism) for place, release in found.items())
                # The range of the targets is audited by itself.
                if isinstance(m, GroupChoices) and place[1] != RANGE
            ]
            replays.append((moves, laws))
    error = ERROR / (1 + len(noises))
    results = []
    for moves, laws in replays:
        assert laws
        for which in range(2):
            losses = []
            for label, own in moves.items():
                if label in noises:
                    rows = np.array(noises[label]).reshape(len(noises[label]), -1)
                    losses += [loss_of(m, rows, np.ravel(move), error)[which] for m, move in own]
            if delta:
                one, two = (sum_of_laws([law[side] for law in laws]) for side in range(2))
                results.append((which, epsilon_of_laws(one, two, 1, math.hypot(*losses), [], delta)))
            else:
                results.append((which, sum(losses) + sum(np.abs(one - two).max() for one, two in laws)))
    return Reading(*(max(value for k, value in results if k == which) for which in (1, 0)), recorded)


def _with_choices(places, *args):
    waiting = iter(places)
    with choosing(lambda mechanism, scores, own: next(waiting, 0)):
        return transcript(*args)


def sum_of_laws(logarithms):
    """Return the law of independent choices."""
    out = np.zeros(1)
    for own in logarithms:
        out = np.add.outer(out, own).ravel()
    return out


# --- mutants --------------------------------------------------------------------------------------------------------


def true_counts(module=_classifier):
    """Centre features by the counts before their noise."""

    def raw(true):
        def release_cells(session, columns, X, *rest):
            cells = true(session, columns, X, *rest)
            codes = columns.codes(X)
            counts = [np.bincount(own, minlength=n + 1)[:n] + 0.0 for own, n in zip(codes, columns.sizes, strict=True)]
            return changed(cells, counts=counts)

        return release_cells

    return replaced(module, "release_cells", raw)


def counts_not_paid():
    """Release the counts as if nothing else were."""

    def whole(mechanism):
        def of_all(cls, epsilon, delta, *rest):
            true = mechanism(epsilon, delta, *rest)
            size, moved = true.releases[0].mechanism.size, true.releases[0].mechanism.sensitivity
            full = _plans.l2_mechanism(epsilon, delta, 1.0, moved, size)[0] if delta else None
            full = full or _plans.l1_mechanism(epsilon, moved, size)
            return changed(true, releases=(changed(true.releases[0], mechanism=full),))

        return classmethod(of_all)

    return replaced(_plans.CountsPlan, "of", whole)


def steps_forgotten():
    def of_one(true):
        return lambda mu, sensitivity, size, n_steps: true(mu * math.sqrt(n_steps), sensitivity, size, n_steps)

    return replaced(_curves, "SampledGaussianMechanism", of_one)


def half_of_the_clip():
    """Noise for gradients of half the length."""
    return replaced(
        _curves,
        "SampledGaussianMechanism",
        lambda true: lambda mu, sensitivity, size, n_steps: true(mu, sensitivity / 2, size, n_steps),
    )


def long_gradients():
    return replaced(
        CellGradients,
        "__init__",
        lambda init: (
            lambda self, features, loss, norm, codes, targets: init(self, features, loss, 10 * norm, codes, targets)
        ),
    )


def lengths_forgotten():
    """Clip all records by the root of the mean square of their lengths."""

    def whole(true):
        return lambda self, lengths, max_norm: true(self, np.full(len(lengths), self._layout.data_norm), max_norm)

    return replaced(CellGradients, "_bounds_of", whole)


def choice_not_paid():
    """Choose as if each choice had more than the whole budget."""

    def whole(true):
        return lambda mu: true(12 * mu)

    return replaced(reserve, "bounded_range_epsilon", whole)


def pure_choice_not_paid():
    def whole(true):
        return lambda epsilon, *rest, **options: true(12 * epsilon, *rest, **options)

    return replaced(reserve, "GroupChoices", whole)


def quarter_of_the_table(kind="GaussianMechanism"):
    """Release tables with noise for a quarter of the contributions."""

    def quarter(true):
        return lambda budget, sensitivity, size: true(budget, sensitivity / 4, size)

    return replaced(reserve, kind, quarter)


def long_residuals():
    """Score and release residuals of forty times the length, which nothing clips."""

    def longer(true):
        return lambda self, scores, targets: 40 * true(self, scores, targets)

    return replaced(_stages.SquaredLoss, "contributions", longer)


def long_residuals_of_labels():
    def longer(true):
        return lambda self, scores, targets: 40 * true(self, scores, targets)

    return replaced(_stages.LabelLoss, "contributions", longer)


COURSE = {
    "square root of steps forgotten": steps_forgotten,
    "half of the sensitivity": half_of_the_clip,
    "one noise for all steps": one_noise_for_all,
    "counts not paid": counts_not_paid,
    "no clip": long_gradients,
    "lengths of records forgotten": lengths_forgotten,
}

STEPS = {
    "claims": APPROXIMATE,
    "reading": few_steps(steps_and_their_noise),
    "fits": 40,
    "floor": 0.8,
}

SUBJECTS = [
    Subject(
        "DPAdditiveClassifier",
        chooser_of_labels,
        minority_of_three,
        claims=PURE,
        reading=choices_of_pairs,
        fits=60,
        floor=0.45,
        runs={},
        mutants={
            "quarter of the sensitivity": partial(quarter_of_the_table, "l1_mechanism"),
            "residuals not clipped": long_residuals_of_labels,
            "counts not paid": counts_not_paid,
        },
    ),
    Subject(
        "DPAdditiveClassifier-steps",
        curves,
        minority,
        runs={(1.0, 1e-5): RUNS_AT_1},
        mutants=COURSE,
        **STEPS,
    ),
    Subject(
        "DPAdditiveClassifier-bins",
        of_bins,
        minority,
        runs={},
        # With less of the budget or other counts, the number of bins varies.
        mutants={name: mutant for name, mutant in COURSE.items() if name != "counts not paid"},
        **(STEPS | {"claims": APPROXIMATE[1:]}),
    ),
    Subject(
        "DPAdditiveClassifier-steps-multinomial",
        partial(curves, classes=[0, 1, 2]),
        partial(minority, label=2),
        runs={},
        mutants={**COURSE, "clip of one class": clip_of_the_largest},
        **STEPS,
    ),
    Subject(
        "DPAdditiveClassifier-pairs",
        chooser_of_labels,
        minority_of_three,
        # At a smaller epsilon, it takes so many records that fits are slow.
        claims=APPROXIMATE[1:],
        reading=choices_of_pairs,
        fits=24,
        floor=0.6,
        runs={},
        mutants={
            "quarter of the sensitivity of tables": quarter_of_the_table,
            "residuals not clipped": long_residuals_of_labels,
        },
    ),
    Subject(
        "DPAdditiveRegressor",
        regressor,
        partial(alone, label=1),
        runs={(1.0, 1e-5): RUNS_AT_1},
        mutants={**COURSE, "true counts": (partial(true_counts, _regressor), {"pair": rare})},
        **STEPS,
    ),
    Subject(
        "DPAdditiveRegressor-pairs",
        chooser,
        rivals,
        claims=APPROXIMATE[:2],
        reading=few_steps(choices_of_pairs),
        fits=24,
        floor=0.6,
        runs={},
        mutants={
            "choice not paid": choice_not_paid,
            "quarter of the sensitivity of tables": quarter_of_the_table,
            "residuals not clipped": long_residuals,
        },
    ),
    Subject(
        "DPAdditiveRegressor-pure",
        chooser,
        rivals,
        claims=PURE,
        reading=choices_of_pairs,
        fits=60,
        floor=0.6,
        runs={},
        mutants={
            "choice not paid": pure_choice_not_paid,
            "quarter of the sensitivity": partial(quarter_of_the_table, "l1_mechanism"),
            "residuals not clipped": long_residuals,
        },
    ),
]
