"""Objective perturbation: what a fit gives away, in its density. For the binary log loss, at every epsilon.

Readings of a single claim (`tests.trust.perturbation`) do not see a curve that is too small at other epsilons. Here the
problems and the noise are those of a real fit. Each delta is that of an event, and so a lower bound. Nothing is random.
"""

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr

from skdp import ObjPertLogReg
from skdp.accounting import GaussianEvent, _objective, gaussian_mu
from skdp.linear_model import _perturbation
from skdp.solvers import regularised
from tests.trust.perturbation import MULTINOMIAL, Along, alone, classifier, plan_of, problems, pure_ratio, pushed

pytestmark = pytest.mark.audit


def recorded_and_reached(model, pair):
    """The GDP parameter that is booked for the objective, and the largest that the densities of the output show."""
    lines = [Along(problems(model, data)[0], np.eye(1, pair[1][0].shape[1])[0]) for data in pair]
    scale = model.privacy_.releases[0].mechanism.scale
    centres = [line.centre()[0] for line in lines]
    s = np.linspace(min(centres) - 9 * scale, max(centres) + 9 * scale, 20_001)[:, None]
    # The noise falls as the solution grows, so that cells of solutions are cells of noise.
    q, p = (-np.diff(ndtr(line.noise(s)[0].ravel() / scale)) for line in lines)
    (event, _), found = model.privacy_.events, []
    assert isinstance(event, GaussianEvent)
    for epsilon in event.mu() * np.linspace(0.1, 4, 40):
        deltas = [np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p))]
        found += [gaussian_mu(epsilon, delta) for delta in deltas if delta > 1e-12]
    return event.mu(), max(found)


def opposed(model, length=0.05, count=200):
    """Short records that agree, and a long one that contradicts them: its derivative grows where it hurts."""
    X = np.zeros((count + 1, 1))
    X[:, 0], X[-1, 0] = length, 1.0
    y = np.ones(count + 1, dtype=int)
    y[-1] = 0
    return (X[:-1], y[:-1]), (X, y)


@pytest.mark.parametrize("C", ["auto", 1e6])
@pytest.mark.parametrize("pair", [opposed, partial(pushed, short=0.02, n_columns=1)], ids=["opposed", "pushed"])
def test_a_fit_gives_away_what_is_booked_and_no_more(C, pair):
    model = classifier(ObjPertLogReg, 1.0, 1e-5, C=C)
    booked, reached = recorded_and_reached(model, pair(model))
    assert 0.9 * booked <= reached <= booked * (1 + 1e-9)


def test_a_ratio_of_6_is_refuted():
    model = classifier(ObjPertLogReg, 1.0, 1e-5, C=1e6)
    with (
        patch.object(_objective, "GAUSSIAN_RATIO", 6.0),
        patch.object(regularised, "GAUSSIAN_RATIO", 6.0),
    ):
        booked, reached = recorded_and_reached(model, opposed(model))
    assert reached > 1.005 * booked


def test_half_of_the_noise_is_refuted():
    model = classifier(ObjPertLogReg, 1.0, 1e-5, C=0.2)
    with plan_of(lambda C: C / 2)():
        booked, reached = recorded_and_reached(model, opposed(model))
    assert reached > 1.5 * booked


@pytest.mark.parametrize("added", [(0.0, 0.0, 0.0), (4.0, -2.0, -2.0), (-8.0, 4.0, 4.0)])
@pytest.mark.parametrize("strength", [1.0, 4.0])
def test_logits_from_counts_and_a_strong_penalty_give_away_no_more(added, strength):
    """Given released counts, the rest of the fit has the rest of the budget. A weak penalty is refuted."""
    for factor, holds in ((1.0, True), (0.02, False)):
        model = MULTINOMIAL(1.0, 0.0, fit_intercept=True)
        pair = alone(model, n_columns=1)
        found = np.array(added), factor * strength if holds else factor
        with patch.object(_perturbation, "shrunk", lambda *args, found=found: found):
            solved = [problems(model, data) for data in pair]
        row = solved[1][0].dense(slice(-1, None))[0]
        lines = [[Along(own[0], row / np.linalg.norm(row))] for own in solved]
        counts, objective, _ = model.privacy_.releases
        rest = 1 - counts.mechanism.epsilon
        ratio = pure_ratio(lines, objective.mechanism.scale, 0)
        assert (0.9 * rest * (added[0] <= 0) <= ratio <= rest) if holds else ratio > rest
