"""Warnings about delta: one that is far too large, one above its budget's, and 0 where the budget has more."""

import re
import warnings

import numpy as np
import pytest

from skdp import BudgetAccountant, DPNaiveBayes, ObjPertLogReg
from skdp.exceptions import BudgetError, BudgetWarning, PrivacyAssumptionWarning
from skdp.release import estimator

X = np.random.default_rng(0).uniform(size=(3000, 10))
Y = (X[:, 0] > 0.5).astype(int)


@pytest.fixture(autouse=True)
def all_warnings(monkeypatch):
    monkeypatch.setattr(estimator, "_REMARKED", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Few records, with much noise.
        warnings.filterwarnings("ignore", message="the released counts")
        yield


def objective(**parameters):
    return ObjPertLogReg(data_norm=4.0, classes=[0, 1], **parameters)


def bayes(**parameters):
    return DPNaiveBayes(bounds=(0, 1), classes=[0, 1], **parameters)


def test_no_delta_where_a_small_one_would_be_far_better():
    budget, wide = BudgetAccountant(9.0, 1e-6), np.tile(X, (1, 10))
    # Second route: the scales of the two plans.
    scales = [
        {release.label: release.mechanism.scale for release in bayes(delta=d).privacy_plan(n_features=100).releases}
        for d in (0.0, 1e-7)
    ]
    ratio = max(scales[0][label] / scales[1][label] for label in scales[0])
    assert ratio > 2
    message = rf"DPNaiveBayes has delta=0, and its budget has delta=1e-06\. With delta=1e-07, .* {ratio:.1f} times"
    # Nothing is charged if the warning is an error.
    with pytest.raises(BudgetWarning, match=message):
        bayes(accountant=budget).fit(wide, Y)
    assert len(budget) == 0
    # It is said once.
    bayes(accountant=budget).fit(wide, Y)
    assert len(budget) == 1


def test_no_remark_where_a_small_delta_would_not_help_or_is_not_to_be_had():
    wide = np.tile(X, (1, 10))
    bayes(accountant=BudgetAccountant(9.0, 1e-6)).fit(X[:, :3], Y)
    bayes(accountant=BudgetAccountant(9.0)).fit(wide, Y)
    bayes().fit(wide, Y)
    bayes(delta=1e-7, accountant=BudgetAccountant(9.0, 1e-6)).fit(wide, Y)


@pytest.mark.parametrize("composition", ["auto", "gdp", "rdp"])
@pytest.mark.parametrize("ceiling", [0.7, 3.0, 100.0])
def test_a_delta_above_that_of_the_budget(composition, ceiling):
    budget = BudgetAccountant(ceiling, 1e-7, composition=composition)
    objective(epsilon=0.1, delta=1e-7, accountant=budget).fit(X, Y)
    other = objective(epsilon=0.3, delta=1e-5, accountant=budget)
    with pytest.raises(BudgetWarning, match=r"^A charge of \(epsilon=0\.3, delta=1e-05\) .*Set delta of") as caught:
        other.fit(X, Y)
    assert len(budget) == 1
    before = f"rises from epsilon={budget.total().epsilon:.3g} to "
    with pytest.warns(BudgetWarning, match="Set delta of"):
        other.fit(X, Y)
    assert f"{before}epsilon={budget.total().epsilon:.3g} at delta=1e-07" in str(caught.value)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.9])
def test_a_large_delta_is_remarked_on(delta):
    with pytest.raises(PrivacyAssumptionWarning, match=rf"^delta={delta:g} admits a mechanism"):
        BudgetAccountant(1.0, delta)
    with pytest.raises(PrivacyAssumptionWarning, match=rf"^delta={delta:g} admits a mechanism"):
        objective(delta=delta).fit(X, Y)
    BudgetAccountant(1.0, 0.001)


def test_a_budget_without_delta_says_how_to_open_one():
    budget = BudgetAccountant(3.0)
    with pytest.raises(BudgetError, match=r"exceeds.*Pass delta=0 .*open another budget with delta=1e-07 or more"):
        objective(delta=1e-7, accountant=budget).fit(X, Y)
    assert len(budget) == 0


@pytest.mark.filterwarnings("ignore:delta=0.1 admits")
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_delta_above_that_of_the_budget_is_named_with_one_that_is_admitted(epsilon):
    budget = BudgetAccountant(1.0, 1e-5)
    model = objective(epsilon=epsilon, delta=0.1, accountant=budget)
    with pytest.raises(BudgetError, match=r"^the delta of .* exceeds the delta of .*Pass delta=1e-06 ") as caught:
        model.fit(X, Y)
    assert "open another" not in str(caught.value)
    admitted = re.search(r"admitted with epsilon=(\S+) or less, and delta=1e-06$", str(caught.value))
    model.set_params(epsilon=float(admitted[1]) * 0.999, delta=1e-6).fit(X, Y)
    assert len(budget) == 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_refusal_of_a_fit_has_one_number_of_what_remains(delta):
    budget = BudgetAccountant(2.0, 1e-6)
    objective(epsilon=1.5, delta=1e-6, accountant=budget).fit(X, Y)
    with pytest.raises(BudgetError) as caught:
        objective(epsilon=1.9, delta=delta, accountant=budget).fit(X, Y)
    message = str(caught.value)
    assert "remains" not in message
    assert len(re.findall("epsilon=", message)) == 3
    with pytest.raises(BudgetError) as caught:
        budget.spend(1.9, delta)
    assert len(re.findall("remains", str(caught.value))) == 1
    assert ("for a charge without delta" in str(caught.value)) == (delta == 0)


@pytest.mark.parametrize("delta", [1e-7, 1e-5])
def test_a_refused_fit_names_no_epsilon_above_the_ceiling_and_no_tiny_one(delta):
    budget = BudgetAccountant(3.0, 1e-5)
    model = objective(epsilon=5.0, delta=delta, accountant=budget)
    with pytest.raises(BudgetError, match=r"admitted with epsilon=3 or less"):
        model.fit(X, Y)
    model.set_params(epsilon=3.0).fit(X, Y)
    budget = BudgetAccountant(3.0, 1e-5)
    budget.spend(2.99999, 1e-5 - 1e-10)
    with pytest.raises(BudgetError, match="Hardly anything is left for such a fit") as caught:
        objective(epsilon=1.0, delta=1e-11, accountant=budget).fit(X, Y)
    assert "admitted with" not in str(caught.value)
    assert str(caught.value).endswith("This fit was not charged")


def test_a_refused_fit_names_a_delta_with_which_it_is_admitted():
    budget = BudgetAccountant(2.0, 1e-6)
    objective(epsilon=1.5, delta=1e-6, accountant=budget).fit(X, Y)
    with pytest.raises(BudgetError, match=r"Or pass delta=1e-07: then epsilon=0\.6 is admitted"):
        objective(epsilon=0.6, accountant=budget).fit(X, Y)
    objective(epsilon=0.6, delta=1e-7, accountant=budget).fit(X, Y)
    assert len(budget) == 2


def test_an_epsilon_above_the_ceiling_is_explained():
    budget = BudgetAccountant(1.0, 1e-5, composition="gdp")
    with pytest.raises(BudgetWarning, match=r"above the ceiling of 1, because its delta is 1e-09"):
        budget.remaining(like=objective(delta=1e-9))
    budget.remaining(like=objective(delta=1e-5))
