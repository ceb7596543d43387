"""What noise and choices are made for, and that budgets of fits are divided: arithmetic, without data."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq

from skdp import DPGridSearchCV
from skdp.accounting import BoundedRangeEvent, Budget, GaussianEvent, ParallelEvent
from skdp.model_selection._allocation import make_candidates
from skdp.model_selection._scoring import LEVELS, Score, make_score
from skdp.model_selection._strategies import Prices
from tests.model_selection.stubs import NoisyCount

DELTA = 1e-5
both_deltas = pytest.mark.parametrize("delta", [0.0, DELTA])


def prices(delta, most=LEVELS, settings=({"label": 0}, {"label": 1})):
    return Prices(make_candidates(NoisyCount(), settings, None), Budget(1.0, delta), most)


@both_deltas
@pytest.mark.parametrize("most", [1, LEVELS])
def test_noise_and_choices_are_for_the_largest_gain(delta, most):
    found = prices(delta, most)
    for mechanism, _ in (found.noise(Fraction(1, 2)), found.choice(Fraction(1, 2))):
        # Gaussian noise is for the rounding, too.
        assert most <= mechanism.sensitivity <= 1.1 * most
        assert most == 1 or mechanism.sensitivity <= 1.0001 * most
    # The same cost for any largest gain, and noise in proportion to it.
    one = prices(delta, 1)
    assert found.noise(Fraction(1, 2))[0].scale == pytest.approx(most * one.noise(Fraction(1, 2))[0].scale, rel=0.1)
    assert found.choice(Fraction(1, 2))[1] == one.choice(Fraction(1, 2))[1]


def test_a_later_choice_of_fit_costs_as_its_dearest_candidate():
    class Dear(NoisyCount):
        def _fixed_cost(self):
            cost = super()._fixed_cost()
            return cost if self.label == 0 else None

    candidates = make_candidates(Dear(), [{"label": 0}, {"label": 1}], None)
    found = Prices(candidates, Budget(1.0, DELTA), 1)
    (item,) = found.any_fit(Fraction(1))
    assert {sequence[0].events for sequence in item.sequences} == {found.fit(k, Fraction(1))[0].events for k in (0, 1)}


class Predicts:
    def __init__(self, value):
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"])
@pytest.mark.parametrize(("value", "as_if"), [(math.nan, -1.0), (math.inf, 1.0), (-math.inf, -1.0), (1e300, 1.0)])
def test_predictions_that_are_not_finite_count_as_an_end_of_the_range(scoring, value, as_if):
    score = Score(scoring, LEVELS, 2.0, True, bounds=(-1.0, 1.0))
    y = np.array([-1.0, 0.0, 0.5, 1.0, 1e9])
    gains = score.gains(Predicts(value), np.zeros((5, 1)), y)
    np.testing.assert_array_equal(gains, score.gains(Predicts(as_if), np.zeros((5, 1)), y))
    assert gains.max() == LEVELS


def test_weights_are_of_the_largest():
    weights = make_score("balanced_accuracy", NoisyCount(), np.array([0, 1]), {0: 1e6, 1: 5e5}).weights
    assert weights.tolist() == [LEVELS, LEVELS // 2]


# ---------------------------------------------------------------- plans against another library's accounting


def gaussian_and_choice(events, epsilon):
    """Delta of Gaussian mechanisms and at most one choice of bounded range, at its worst two-point loss."""
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    mu = math.sqrt(math.fsum(event.mu() ** 2 for event in events if isinstance(event, GaussianEvent)))
    (width,) = [event.epsilon for event in events if isinstance(event, BoundedRangeEvent)] or [0.0]

    def gaussian(epsilon):
        if mu == 0:
            return max(0.0, -math.expm1(epsilon))
        return GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)

    worst = gaussian(epsilon)
    for high in np.linspace(0, width, 41)[1:-1] if width else []:
        # Losses high and high - width, with the probabilities under which they are losses.
        p = -math.expm1(width - high) / (math.exp(-high) - math.exp(width - high))
        worst = max(worst, p * gaussian(epsilon - high) + (1 - p) * gaussian(epsilon - high + width))
    return worst


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("strategy", ["holdout", "repeat"])
def test_plans_by_another_accounting(strategy, refit, delta):
    pytest.importorskip("dp_accounting", reason="dp_accounting is not installed")
    if strategy == "repeat" and refit:
        return
    model = DPGridSearchCV(NoisyCount(), {"label": [0, 1, 0]}, strategy=strategy, refit=refit, epsilon=1.0, delta=delta)
    events = model.privacy_plan().events
    if strategy == "repeat":
        (event,) = events
        for run in getattr(event.events[0], "parts", [event.events[:1]]):
            if delta == 0:
                # Liu and Talwar; Papernot and Steinke: three runs' worth at shape 1, two at shape 0.
                assert 2 * math.fsum(part.pure_epsilon() for part in run) <= 1.0 + 1e-9
                continue
            square = math.fsum(part.mu() ** 2 for part in run)
            # Written down anew from the paper.
            gamma = brentq(lambda g: (1 / g - 1) / math.log(1 / g) - event.mean, 1e-9, 1 - 1e-9)
            orders = np.geomspace(1.01, 1000, 4000)
            extra = min((b - 1) * square / 2 + math.log(1 / gamma) / b for b in np.geomspace(1.0, 1000, 4000))
            rdp = orders * square / 2 + extra + math.log(event.mean) / (orders - 1)
            found = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
            assert 0.9 <= found.min() <= 1.001
        return
    # What comes after parts is added to each.
    lists = [[]]
    for event in events:
        more = event.parts if isinstance(event, ParallelEvent) else [(event,)]
        lists = [[*before, *part] for before in lists for part in more]
    for each in lists:
        if delta == 0:
            assert math.fsum(event.pure_epsilon() for event in each) <= 1.0 + 1e-9
        else:
            assert gaussian_and_choice(each, 1.0) <= delta * (1 + 1e-6)
    if delta > 0:
        # It tells plans apart: half of the epsilon is not what they cost.
        assert max(gaussian_and_choice(each, 0.5) for each in lists) > delta
