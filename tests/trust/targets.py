"""The range of targets that a regression chooses first, and their location in it, with nearly all of the budget."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from scipy.special import logsumexp

from skdp import FunctionalMechLinReg
from skdp.solvers import target_range
from tests.trust.choices import choices, half_noise
from tests.trust.subjects import Subject, measure, replaced

CLAIMS = ((1.0, 1e-5), (3.0, 1e-5))


def regression(epsilon, delta):
    return FunctionalMechLinReg(epsilon=epsilon, delta=delta, bounds=(-1, 1), bounds_y=(-1, 1))


def record(model, target=0.75):
    """So many records, and one more, that a range with them is about as likely as one of all others."""
    with most_of_the_budget():
        choice = target_range.TargetRange.of(model.epsilon, model.delta).releases[0].mechanism
        candidates = target_range.Candidates.of(-1.0, 1.0, target_range._UNITS / choice.scale)
    nobody, one = (candidates.scores(np.full(n, target), 0) / choice.scale for n in (0, 1))
    holds = one > nobody
    n = round((logsumexp(nobody[~holds]) - logsumexp(nobody[holds])) / (one - nobody).max()) + 1
    X, y = np.zeros((n, 2)), np.full(n, target)
    X[-1] = np.sqrt(0.5)
    return (X[:-1], y[:-1]), (X, y)


def telling(model):
    return record(model)[0]


@contextmanager
def most_of_the_budget():
    with patch.object(target_range, "_RANGE_SHARE", 0.6), patch.object(target_range, "_LOCATION_SHARE", 0.38):
        yield


def with_most_of_the_budget(subject, epsilon, delta):
    with most_of_the_budget():
        return choices(subject, epsilon, delta, telling=telling, most=1)


@contextmanager
def little_of_the_budget():
    parts = dict.fromkeys(("_RANGE_SHARE", "_LOCATION_SHARE"), 1e-4)
    with patch.multiple(target_range, **parts, _PURE_RANGE_SHARES=(1e-4, 1e-4), _PURE_LOCATION_SHARES=(1e-4, 1e-4)):
        yield


def measure_the_rest(subject, epsilon, delta):
    """Measure releases after the range, which has next to nothing of the budget, and is audited by itself."""
    with little_of_the_budget():
        return measure(subject, epsilon, delta)


def half_sensitivity():
    return replaced(target_range, "group_sensitivity", lambda true: lambda s, rows: true(s, rows) / 2)


def far_too_sharp():
    return replaced(target_range, "bounded_range_epsilon", lambda true: lambda mu: true(4 * mu))


def records_count_twice():
    return replaced(target_range, "weights_in_range", lambda true: lambda *args: 2 * true(*args))


def scores_count_four_times():
    return replaced(target_range, "_in_cells", lambda true: lambda *args: 4 * true(*args))


SUBJECTS = [
    Subject(
        "range of targets",
        regression,
        record,
        claims=CLAIMS,
        reading=with_most_of_the_budget,
        floor=0.6,
        fits=150,
        runs={},
        mutants={
            "half the noise": half_noise,
            "half of the sensitivity": half_sensitivity,
            "far too sharp": far_too_sharp,
            "records count twice": records_count_twice,
            "records count four times in scores": scores_count_four_times,
        },
    )
]
