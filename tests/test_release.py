"""Plans, sessions and the guarantee that becomes privacy_."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from skdp import BudgetAccountant, ObjPertLogReg, OutputPertLogReg
from skdp.accounting import ParallelEvent, PureEvent
from skdp.exceptions import ReleaseError
from skdp.mechanisms import GammaMechanism, NoiseSource
from skdp.release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from tests.estimators import ESTIMATORS, classes_up_to, columns_up_to, name_of, of_many_columns

A_THEOREM = Theorem("Trees", 1)


def plan(*labels):
    releases = tuple(Release(label, GammaMechanism(1.0, 1.0, 2), 1 / len(labels), A_THEOREM) for label in labels)
    return PrivacyGuarantee(1.0, 0.0, (PureEvent(1.0),), releases)


def session(*labels, accountant=None, seed=None):
    return ReleaseSession(plan(*labels), accountant=accountant, source=NoiseSource(seed), estimator="Test")


def test_each_planned_release_happens_once():
    opened = session("a", "b")
    opened.release("a", np.zeros(2))
    opened.release("b", np.zeros(2))
    for label in ("a", "c"):
        with pytest.raises(ReleaseError, match=label):
            opened.release(label, np.zeros(2))


def test_the_whole_plan_is_charged_on_entry():
    accountant = BudgetAccountant(1.0)
    session("a", "b", accountant=accountant)
    assert len(accountant) == 1
    assert accountant.total() == (1.0, 0.0)


def test_releases_have_streams_of_their_own():
    opened = session("a", "b", seed=0)
    assert np.all(opened.release("a", np.zeros(2)) != opened.release("b", np.zeros(2)))


def test_guarantee_is_frozen_and_comparable():
    guarantee = plan("a")
    assert guarantee == plan("a")
    assert guarantee != plan("b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.epsilon = 2.0


def test_replace_one():
    assert plan("a").replace_one == (2.0, 0.0)
    guarantee = dataclasses.replace(plan("a"), delta=1e-6)
    assert guarantee.replace_one == pytest.approx((2.0, (1 + math.e) * 1e-6))


def test_views_name_every_release():
    guarantee = OutputPertLogReg(epsilon=0.7, delta=1e-6, data_norm=2.0, classes=[0, 1]).privacy_plan(n_features=4)
    for text in (repr(guarantee), guarantee._repr_html_()):
        for word in (
            "epsilon=0.7",
            "delta=1e-06",
            "epsilon=1.4",
            "coefficients",
            "Gaussian",
            "add or remove one record",
        ):
            assert word in text


def test_no_privacy_is_said_plainly():
    guarantee = ObjPertLogReg(epsilon=math.inf, data_norm=1.0, classes=[0, 1]).privacy_plan(n_features=4)
    assert "not private" in repr(guarantee)
    assert "not private" in guarantee._repr_html_()
    with pytest.raises(ValueError, match="epsilon=inf"):
        guarantee.privacy_loss_distribution()


@pytest.mark.parametrize("estimator", [OutputPertLogReg, ObjPertLogReg])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-5), (0.3, 1e-6), (3.0, 1e-5)])
def test_privacy_loss_distribution_agrees_with_the_claim(estimator, epsilon, delta):
    guarantee = estimator(epsilon=epsilon, delta=delta, data_norm=1.0, classes=[0, 1]).privacy_plan(n_features=9)
    distribution = guarantee.privacy_loss_distribution()
    from_distribution = distribution.get_epsilon_for_delta(delta)
    if estimator is OutputPertLogReg or delta == 0:
        assert from_distribution == pytest.approx(epsilon, abs=2e-4)
    else:
        # The distribution has to dominate at every epsilon, which costs objective perturbation something.
        assert from_distribution >= epsilon


def test_privacy_loss_distribution_composes_with_others():
    guarantee = OutputPertLogReg(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=[0, 1]).privacy_plan(n_features=9)
    twice = guarantee.privacy_loss_distribution().self_compose(2)
    accountant = BudgetAccountant(10.0, 1e-5, composition="gdp")
    accountant.charge(guarantee.cost)
    accountant.charge(guarantee.cost)
    assert twice.get_epsilon_for_delta(1e-5) == pytest.approx(accountant.total().epsilon, abs=5e-4)


def test_a_release_has_as_many_numbers_as_planned():
    opened = session("sums")
    for size in (1, 3):
        with pytest.raises(ReleaseError, match="planned with 2 numbers"):
            opened.release("sums", np.zeros(size))
    assert opened.release("sums", np.zeros(2)).shape == (2,)


PURE = [estimator for estimator in ESTIMATORS if estimator.get_params().get("delta") == 0]


@pytest.mark.parametrize("estimator", PURE, ids=name_of)
def test_parts_of_a_pure_budget_are_never_more_than_the_whole(estimator):
    """As rational numbers: not even by the last bit."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        epsilon, n_features = rng.uniform(0.5, 5), columns_up_to(estimator, int(rng.integers(4, 12)))
        n_classes = classes_up_to(estimator, 3)
        plan = of_many_columns(estimator, epsilon=epsilon).privacy_plan(n_features=n_features, n_classes=n_classes)
        assert sum(pure_epsilon(event) for event in plan.events) <= epsilon
        mechanisms = [release.mechanism for release in plan.releases]
        assert sum(Fraction(getattr(one, "epsilon", None) or one.event.epsilon) for one in mechanisms) <= epsilon


def pure_epsilon(event):
    if isinstance(event, ParallelEvent):
        return max(sum(pure_epsilon(one) for one in part) for part in event.parts)
    return Fraction(event.epsilon)
