"""The tools of `redrawn`, by laws that are known. A false alarm has a probability of 1e-6."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate

from skdp.mechanisms import BinghamMechanism, GroupChoices, NoiseSource
from tests.trust import components, ensembles
from tests.trust.redrawn import about_one_direction, choices, factors, led, log_ratio
from tests.trust.subjects import ERROR

SCORES = np.array([[0.0, -1.0, -3.0, 0.0]])


def visit(mechanism, value, n):
    draws = [mechanism.release(value, NoiseSource(k).stream("x")) for k in range(n)]
    return SimpleNamespace(label="x", mechanism=mechanism, value=value, draws=draws)


def test_law_of_permute_and_flip():
    mechanism = GroupChoices(1.0, 1.0)
    accepted = np.exp(SCORES[0] / 2)
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1.0
        for i in order:
            expected[i] += left * accepted[i] / math.factorial(4)
            left *= 1 - accepted[i]
    np.testing.assert_allclose(np.exp(choices(mechanism, SCORES, 1.0))[0], expected, atol=1e-9)


@pytest.mark.parametrize(("d", "kappa"), [(2, 3.0), (5, 0.0), (5, 20.0)])
def test_integral_of_the_density_of_directions(d, kappa):
    def mean(k):
        weight = integrate.quad(lambda a: np.sin(a) ** (d - 2), 0, np.pi)[0]
        return integrate.quad(lambda a: np.exp(k * np.cos(a) ** 2) * np.sin(a) ** (d - 2), 0, np.pi)[0] / weight

    row = np.ones((1, d)) / math.sqrt(d)
    along, found, log_integral = about_one_direction(row.T @ row, kappa)
    assert found == pytest.approx(kappa)
    assert abs(along @ row[0]) == pytest.approx(1)
    assert log_integral == pytest.approx(math.log(mean(kappa)))


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (GroupChoices(2.0, 1.0), SCORES * 2),
        (GroupChoices(2.0, 1.0, bounded_range=True), SCORES * 2),
        (BinghamMechanism(1.0, 1.0), np.diag([20.0, 0, 0, 0])),
    ],
    ids=["permute-and-flip", "exponential", "Bingham"],
)
def test_limit_of_the_exponent(mechanism, value):
    best, limit = factors([visit(mechanism, value, 1000)], ERROR)
    assert limit < 1
    assert limit < best < 1.5
    sharper = visit(mechanism, 2 * value, 1000)
    sharper.value = value
    assert factors([sharper], ERROR)[1] > 1


@pytest.mark.parametrize(
    ("make", "pair", "history"),
    [
        (components.exponential, components.alike, components.orthogonal),
        (ensembles.choices, ensembles.turned, ensembles.all_agree),
    ],
    ids=["directions", "votes"],
)
def test_what_is_given_away_grows_with_the_exponent(make, pair, history):
    model = make(1.0, 0.0)
    fits = [led(model, data, 0, 2, history, side) for side, data in enumerate(pair(model))]
    for visits in zip(*fits, strict=True):
        if visits[0].label != "variances along the components":
            losses = [abs(log_ratio(*visits, factor)) for factor in np.geomspace(0.3, 8, 9)]
            assert np.all(np.diff(losses) > 0)


def test_sides_have_draws_of_their_own():
    model = ensembles.mean(1.0, 0.0)
    (X, y), _ = ensembles.corners(model)
    noise = [np.array(led(model, (X, y), 0, 3, lambda *_: None, side)[0].draws) for side in (0, 1)]
    assert len(np.unique(np.vstack(noise))) == 2 * 3 * X.shape[1]
