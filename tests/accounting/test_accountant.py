"""The budget accountant as an object: what it takes, refuses, records, shows, and how it is shared."""

import copy
import itertools
import math
import operator
import os
import pickle
import re
import sys
import threading
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdp.accounting import (
    Budget,
    BudgetAccountant,
    ParallelEvent,
    PrivacyCost,
    PureEvent,
    RecordedRelease,
    RepeatedSelectionEvent,
    check_delta,
    check_epsilon,
    gaussian_mu,
)
from skdp.exceptions import BudgetError
from tests.accounting.costs import gaussian_cost, pure_cost

# Several tests exceed what warnings are about; test_late_settling looks at these.
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.BudgetWarning")

# ---------------------------------------------------------------- decimal numbers


def test_ten_tenths_fill_a_budget_of_one():
    accountant = BudgetAccountant(1.0)
    for i in range(10):
        accountant.spend(0.1, label=f"part {i}")
    assert len(accountant) == 10
    assert accountant.total() == Budget(1.0, 0.0)
    with pytest.raises(BudgetError):
        accountant.spend(1e-6)


def test_a_tenth_and_two_tenths_fit_into_three_tenths():
    assert 0.1 + 0.2 > 0.3
    accountant = BudgetAccountant(0.3)
    accountant.spend(0.1)
    accountant.spend(0.2)
    assert accountant.remaining() == Budget(0.0, 0.0)


def test_deltas_are_decimal_numbers_too():
    accountant = BudgetAccountant(1.0, 3e-6, composition="basic")
    for _ in range(3):
        accountant.spend(0.1, 1e-6)
    with pytest.raises(BudgetError):
        accountant.spend(0.1, 1e-9)
    assert accountant.total() == Budget(0.3, 3e-6)


@pytest.mark.parametrize("epsilon", [np.float64(0.1), np.float32(0.5), Fraction(1, 4), np.int64(1), 1, 0.1])
def test_numbers_of_other_kinds(epsilon):
    accountant = BudgetAccountant(epsilon)
    accountant.spend(epsilon)
    assert accountant.total().epsilon == float(epsilon)
    assert type(accountant.epsilon) is float


def test_charge_of_a_numpy_number():
    accountant = BudgetAccountant(1.0)
    accountant.charge(PrivacyCost(np.float64(0.1), 0.0, (PureEvent(0.1),)))
    assert accountant.total() == Budget(0.1, 0.0)


# ---------------------------------------------------------------- pairs


@pytest.mark.parametrize("pair", [(-1, 0), (0, 1.1), (0, -1e-9), (math.nan, 0), (0, math.nan), (-math.inf, 0)])
def test_pairs_out_of_range_are_no_budget(pair):
    with pytest.raises(ValueError, match=r"must lie in \[0, "):
        Budget(*pair)
    with pytest.raises(ValueError, match=r"must lie in \[0, "):
        Budget(1.0, 0.0)._replace(epsilon=pair[0], delta=pair[1])


@pytest.mark.parametrize("pair", [("0", 0), (0, "0"), (None, 0), (True, 0), (1j, 0)])
def test_pairs_that_are_no_numbers_are_no_budget(pair):
    with pytest.raises(TypeError, match="must be a real number"):
        Budget(*pair)


def test_budgets_are_compared_as_guarantees():
    small, large = Budget(3, 0.1), Budget(4, 0.1)
    before, after = (operator.le, operator.lt), (operator.ge, operator.gt)
    for compare in before:
        assert compare(small, large)
        assert not compare(large, small)
    for compare in after:
        assert compare(large, small)
        assert not compare(small, large)
    assert [compare(small, Budget(3, 0.1)) for compare in (*before, *after)] == [True, False, True, False]
    # Neither of these implies the other.
    for one, other in itertools.permutations([Budget(4, 0.02), Budget(3, 0.1)]):
        assert not any(compare(one, other) for compare in (*before, *after))
    assert Budget(4, 0.1) >= (3, 0.1)
    assert not Budget(4, 0.02) >= (3, 0.1)
    assert Budget(3, 0.1) <= (4, 0.1)
    assert not Budget(3, 0.1) <= (4, 0.02)
    with pytest.raises(TypeError):
        _ = small <= 3.0
    assert pickle.loads(pickle.dumps(small)) == small == copy.copy(small)
    assert repr(small) == "Budget(epsilon=3.0, delta=0.1)"
    assert small._asdict() == {"epsilon": 3.0, "delta": 0.1}


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("bad", [math.nan, -1.0, -math.inf, 0.0, -0.0, 1e-7])
def test_ceilings_that_are_no_epsilon(bad):
    with pytest.raises(ValueError, match="epsilon"):
        BudgetAccountant(bad)


@pytest.mark.parametrize("bad", [True, False, "1", None, 1j, [1.0], np.array([1.0])])
def test_ceilings_that_are_no_number(bad):
    with pytest.raises(TypeError, match="epsilon must be a real number"):
        BudgetAccountant(bad)
    with pytest.raises(TypeError, match="delta must be a real number"):
        BudgetAccountant(1.0, bad)


@pytest.mark.parametrize("bad", [math.nan, -1e-9, 1.0, 1.5, math.inf])
def test_ceilings_that_are_no_delta(bad):
    with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
        BudgetAccountant(1.0, bad)


@pytest.mark.parametrize("bad", [math.nan, -1.0, -math.inf, 1e-7, 1e-300])
@pytest.mark.parametrize("method", ["spend", "check"])
def test_charges_that_are_no_epsilon(bad, method):
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="epsilon"):
        getattr(accountant, method)(bad)
    assert accountant.records == ()


@pytest.mark.parametrize("bad", [True, "0.1", None])
@pytest.mark.parametrize("method", ["spend", "check"])
def test_charges_that_are_no_number(bad, method):
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(TypeError, match="must be a real number"):
        getattr(accountant, method)(bad)
    with pytest.raises(TypeError, match="must be a real number"):
        getattr(accountant, method)(0.1, bad)
    assert accountant.records == ()


@pytest.mark.parametrize("bad", [math.nan, -1e-9, 1.0, math.inf])
@pytest.mark.parametrize("method", ["spend", "check"])
def test_charges_that_are_no_delta(bad, method):
    with pytest.raises(ValueError, match="delta"):
        getattr(BudgetAccountant(1.0, 1e-5), method)(0.1, bad)


@pytest.mark.parametrize("rule", ["auto", "basic", "gdp", "rdp"])
def test_an_infinite_charge_fits_into_no_finite_budget(rule):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    with pytest.raises(BudgetError):
        accountant.spend(math.inf)
    with pytest.raises(BudgetError):
        accountant.charge(PrivacyCost(math.inf, 0.0, (PureEvent(math.inf),)))
    assert len(accountant) == 0
    accountant.spend(0.5)


@pytest.mark.parametrize("bad", [-5.0, math.nan])
def test_charge_of_a_cost_that_is_none(bad):
    accountant = BudgetAccountant(1.0)
    with pytest.raises(ValueError, match="epsilon"):
        accountant.charge(PrivacyCost(bad, 0.0, (PureEvent(bad),)))
    assert accountant.remaining() == Budget(1.0, 0.0)


@pytest.mark.parametrize("method", ["spend", "check"])
def test_a_charge_of_nothing_is_refused(method):
    accountant = BudgetAccountant(1.0, 1e-5)
    for zero in (0.0, 0, -0.0):
        with pytest.raises(ValueError, match="must not both be 0"):
            getattr(accountant, method)(zero, 0)
    assert len(accountant) == 0
    # Fits that release nothing have a cost without events, and a failure probability alone is a cost.
    accountant.charge(PrivacyCost(0.0, 0.0, ()))
    accountant.check(0.0, 1e-6)
    assert accountant.total() == Budget(0.0, 0.0)


@pytest.mark.parametrize("rule", ["zcdp", "", None, "GDP"])
def test_unknown_rule(rule):
    with pytest.raises(ValueError, match="composition must be one of auto, basic, gdp, rdp"):
        BudgetAccountant(1.0, 1e-5, composition=rule)


def test_parameters_cannot_be_changed_afterwards():
    accountant = BudgetAccountant(1.0, 1e-5)
    for name, value in (("epsilon", 100.0), ("delta", 0.5), ("composition", "gdp"), ("records", ())):
        with pytest.raises(AttributeError):
            setattr(accountant, name, value)


@pytest.mark.parametrize("rule", ["basic", "gdp", "rdp", "auto"])
def test_a_refusal_records_nothing_and_costs_nothing(rule):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    accountant.charge(gaussian_cost(0.1, 1e-6))
    before = accountant.records, accountant.total(), accountant.remaining(), accountant.composition
    for _ in range(3):
        with pytest.raises(BudgetError):
            accountant.charge(gaussian_cost(3.0))
        with pytest.raises(BudgetError):
            accountant.spend(5.0)
    assert (accountant.records, accountant.total(), accountant.remaining(), accountant.composition) == before
    accountant.charge(gaussian_cost(0.01, 1e-6))


@pytest.mark.parametrize("rule", ["basic", "auto"])
def test_check_records_nothing(rule):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    for _ in range(50):
        accountant.check(0.9, 1e-6)
    with pytest.raises(BudgetError):
        accountant.check(1.1)
    assert accountant.records == ()
    assert accountant.total() == Budget(0.0, 0.0)
    assert accountant.composition == rule


def test_check_agrees_with_spend():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.7)
    accountant.check(0.3)
    with pytest.raises(BudgetError):
        accountant.check(0.300001)


def test_refusal_says_what_was_asked_and_what_is_left():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.75)
    with pytest.raises(BudgetError) as caught:
        accountant.spend(0.5)
    message = str(caught.value)
    for part in ("(epsilon=1, delta=0)", "(epsilon=0.5, delta=0)", "'basic'", "(epsilon=0.25, delta=0) remains"):
        assert part in message
    assert "composition=" not in message


def test_refusal_says_of_what_the_rest_is():
    # Another release with the same epsilon and delta may cost more, and be refused.
    accountant = BudgetAccountant(1.0, 1e-5, composition="gdp")
    accountant.spend(0.5)
    with pytest.raises(BudgetError, match=r"; epsilon=0\.\d+ remains for a charge without delta$"):
        accountant.spend(0.999)
    with pytest.raises(BudgetError, match=r"\) remains for a Gaussian release$"):
        accountant.charge(gaussian_cost(2.0))


def test_refusal_points_to_basic_composition_where_it_would_help():
    accountant = BudgetAccountant(1.0, 1e-5, composition="gdp")
    with pytest.raises(BudgetError, match=r"a budget with composition=.basic."):
        accountant.spend(0.1, 1e-6)
    with pytest.raises(BudgetError) as caught:
        accountant.charge(gaussian_cost(2.0))
    assert "bare" not in str(caught.value)
    with pytest.raises(BudgetError) as caught:
        BudgetAccountant(1.0, 1e-5, composition="basic").spend(1.1, 1e-6)
    assert "bare" not in str(caught.value)


def test_refusal_tells_what_remains_without_delta():
    accountant = BudgetAccountant(3.0, 1e-6, composition="gdp")
    accountant.charge(gaussian_cost(0.1))
    with pytest.raises(BudgetError, match="without delta") as caught:
        accountant.spend(2.9)
    pure = float(re.search(r"epsilon=(\S+) remains for a charge without delta", str(caught.value))[1])
    with pytest.raises(BudgetError):
        accountant.spend(pure * (1 + 1e-4))
    accountant.spend(pure * (1 - 1e-4))


# ---------------------------------------------------------------- records


def test_labelled_charges_the_same_budget_and_says_what_for():
    budget = BudgetAccountant(1.0)
    readmission = budget.labelled("readmission")
    readmission.spend(0.25)
    budget.spend(0.25, label="fit")
    readmission.charge(pure_cost(0.125), label="fit")
    readmission.labelled("2026").spend(0.125, label="counts")
    assert [record.label for record in budget.records] == [
        "readmission",
        "fit",
        "readmission",
        "readmission: 2026: counts",
    ]
    assert budget.total() == readmission.total() == Budget(0.75, 0.0)
    with pytest.raises(BudgetError):
        readmission.spend(0.5)


def test_records_have_the_numbers_of_their_cost():
    budget = BudgetAccountant(1.0, 1e-5)
    budget.spend(0.25, 1e-6)
    assert (budget.records[0].epsilon, budget.records[0].delta) == (0.25, 1e-6)


def test_labels_cross_copies_pickles_and_parts(tmp_path):
    budget = BudgetAccountant(1.0, ledger=tmp_path / "budget.db").labelled("survey")
    clone(budget).spend(0.125)
    pickle.loads(pickle.dumps(budget)).spend(0.125)
    with budget.parallel(by=["n", "s"], parts=["n", "s"]) as parts:
        parts["s"].accountant.spend(0.125, label="south")
    assert [record.label for record in budget.records] == ["survey", "survey", "survey: south"]


@pytest.mark.parametrize("label", [None, 3, b"survey"])
def test_labels_are_text(label):
    with pytest.raises(TypeError, match="label must be text"):
        BudgetAccountant(1.0).labelled(label)


def test_labels_can_be_encoded():
    with pytest.raises(ValueError, match="UTF-8"):
        BudgetAccountant(1.0).labelled("\ud800")


def test_records_say_what_happened_in_order():
    accountant = BudgetAccountant(1.0, 1e-5)
    cost = gaussian_cost(0.1)
    before = datetime.now(UTC)
    release = RecordedRelease("coef", "Gaussian", "L2", 1.0, 2.5)
    accountant.charge(cost, label="fit", estimator="Model", releases=[release])
    accountant.spend(0.01, label="a histogram")
    first, second = accountant.records
    assert (first.label, first.cost, first.estimator, first.releases) == ("fit", cost, "Model", (release,))
    assert (second.label, second.estimator, second.releases) == ("a histogram", "", ())
    assert second.cost == PrivacyCost(0.01, 0.0, (PureEvent(0.01),))
    assert before <= first.time <= second.time <= datetime.now(UTC)
    with pytest.raises(AttributeError):
        first.label = "changed"
    assert isinstance(accountant.records, tuple)


def test_an_empty_accountant_is_something():
    accountant = BudgetAccountant(1.0)
    assert len(accountant) == 0
    assert bool(accountant) is True
    assert (accountant or None) is accountant


def test_repr():
    accountant = BudgetAccountant(2, 1e-5, composition="basic")
    accountant.spend(0.5, 1e-6)
    assert repr(accountant) == (
        "BudgetAccountant(epsilon=2, delta=1e-05, composition='basic'): 1 charge, spent (epsilon=0.5, delta=1e-06)"
    )


def test_html_lists_records_and_escapes_what_users_wrote():
    accountant = BudgetAccountant(1.0)
    accountant.charge(PrivacyCost(0.5, 0.0, (PureEvent(0.5),)), label="<script>&", estimator="<b>Model</b>")
    accountant.spend(0.25)
    page = accountant._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;&amp;" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 3
    assert page.count("<td>") == page.count("</td>") == 2 * 8
    assert "0.25" in page


# ---------------------------------------------------------------- no ceiling


def test_without_a_ceiling_everything_pure_is_admitted():
    accountant = BudgetAccountant(math.inf)
    for epsilon in (0.1, 1e6, math.inf, 1.0):
        accountant.spend(epsilon)
    assert len(accountant) == 4
    assert accountant.total().epsilon == math.inf
    assert accountant.remaining().epsilon == math.inf
    assert accountant.composition == "basic"
    assert "epsilon=inf" in repr(accountant)
    assert "inf" in accountant._repr_html_()


def test_without_a_ceiling_finite_charges_are_summed_exactly():
    accountant = BudgetAccountant(math.inf)
    for _ in range(3):
        accountant.spend(0.1)
    assert accountant.total() == Budget(0.3, 0.0)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_without_a_ceiling_deltas_are_admitted_too(delta):
    accountant = BudgetAccountant(math.inf, delta)
    accountant.spend(1.0, 1e-5)
    accountant.charge(gaussian_cost(0.3))
    assert len(accountant) == 2
    assert accountant.total().delta == pytest.approx(2e-5)


def test_a_ceiling_that_is_as_good_as_none():
    BudgetAccountant(1e9, 1e-5).spend(1.0)


# ---------------------------------------------------------------- sharing


def test_copies_are_the_same_object():
    accountant = BudgetAccountant(1.0)
    assert copy.copy(accountant) is accountant
    assert copy.deepcopy(accountant) is accountant
    assert clone(accountant) is accountant
    assert copy.deepcopy({"inside": [accountant]})["inside"][0] is accountant


def test_clones_of_estimators_share_it():
    # Any estimator will do: what counts is how scikit-learn clones a parameter.
    accountant = BudgetAccountant(1.0)
    pipeline = make_pipeline(LogisticRegression(class_weight=accountant))
    assert clone(pipeline)[-1].class_weight is accountant
    assert clone(clone(pipeline))[-1].get_params()["class_weight"] is accountant


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_accountant_spends_from_the_same_budget(protocol):
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.25, label="before")
    other = pickle.loads(pickle.dumps([accountant], protocol=protocol))[0]
    other.spend(0.5, label="there")
    accountant.spend(0.25, label="here")
    for one in (accountant, other):
        assert [record.label for record in one.records] == ["before", "there", "here"]
        assert one.total() == Budget(1.0, 0.0)
        with pytest.raises(BudgetError):
            one.spend(1e-6)
    assert accountant.ledger is None


def test_a_second_pickle_goes_to_the_same_place():
    accountant = BudgetAccountant(1.0)
    first, second = (pickle.loads(pickle.dumps(accountant)) for _ in range(2))
    first.spend(0.5)
    second.spend(0.5)
    third = pickle.loads(pickle.dumps(second))
    assert third.remaining() == Budget(0.0, 0.0)
    assert len(accountant) == 2


def test_threads_that_hold_an_accountant_while_it_moves_lose_nothing():
    accountant = BudgetAccountant(1000.0)
    stop = threading.Event()
    counts = []

    def spend():
        count = 0
        while not stop.is_set():
            accountant.spend(0.001)
            count += 1
        counts.append(count)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    pickle.dumps(accountant)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(accountant) == sum(counts) > 0


def test_initialising_again_is_refused():
    accountant = BudgetAccountant(1.0)
    accountant.spend(1.0)
    with pytest.raises(RuntimeError, match="again"):
        accountant.__init__(2.0)
    assert accountant.remaining() == Budget(0.0, 0.0)


def test_charges_of_other_kinds_are_refused():
    accountant = BudgetAccountant(1.0)
    with pytest.raises(TypeError, match="PrivacyCost"):
        accountant.charge(0.5)
    with pytest.raises(TypeError, match="text"):
        accountant.spend(0.5, label=3)
    assert len(accountant) == 0


class UnknownEvent(PureEvent):
    """An event of a class that ledgers have no name for."""


def test_events_that_no_ledger_could_keep_are_refused():
    accountant = BudgetAccountant(1.0)
    unknown = UnknownEvent(0.1)
    for event in (
        unknown,
        ParallelEvent(((PureEvent(0.1),), (unknown,))),
        RepeatedSelectionEvent((unknown,), 2.0, 1.0),
    ):
        with pytest.raises(TypeError, match="cannot keep an event of class UnknownEvent"):
            accountant.charge(PrivacyCost(0.5, 0.0, (event,)))
    assert len(accountant) == 0


def race(accountant, charge, threads=16, tries=20):
    """Number of charges admitted when that many threads start at once."""
    barrier = threading.Barrier(threads)
    admitted, errors = [], []

    def work():
        barrier.wait()
        for _ in range(tries):
            try:
                charge()
            except BudgetError:
                continue
            except BaseException as error:
                errors.append(error)
                raise
            admitted.append(1)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    interval = sys.getswitchinterval()
    # Threads are switched as often as can be: without the lock, the tests below fail.
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert len(accountant) == len(admitted)
    return len(admitted)


@pytest.mark.parametrize("repetition", range(3))
def test_threads_never_exceed_the_ceiling(repetition):
    accountant = BudgetAccountant(1.0)
    assert race(accountant, lambda: accountant.spend(0.01)) == 100
    assert accountant.total() == Budget(1.0, 0.0)


@pytest.mark.parametrize(("rule", "settled", "part"), [("gdp", "gdp", 1.0), ("auto", "mixed", 0.9)])
@pytest.mark.sample(every=3)
def test_threads_never_exceed_the_gaussian_ceiling(rule, settled, part):
    accountant = BudgetAccountant(1.0, 1e-5, composition=rule)
    cost = gaussian_cost(gaussian_mu(1.0, part * 1e-5) / 10 * (1 - 1e-12))
    assert race(accountant, lambda: accountant.charge(cost)) == 100
    assert accountant.composition == settled
    assert accountant.total().epsilon <= 1.0


def test_the_race_has_teeth():
    # The broken twin: check first, charge later, with a ledger that does not check.
    accountant = BudgetAccountant(1.0)
    unchecked = BudgetAccountant(math.inf)
    gate = threading.Barrier(16)

    def twin():
        accountant.check(0.5)
        gate.wait()
        unchecked.spend(0.5)

    assert race(unchecked, twin, tries=1) == 16
    assert unchecked.total().epsilon > accountant.epsilon


# ---------------------------------------------------------------- checks of what users pass


def test_checks_return_floats():
    assert check_epsilon(1) == 1.0
    assert type(check_epsilon(np.float32(2))) is float
    assert check_epsilon(math.inf) == math.inf
    assert check_epsilon(0, allow_zero=True) == 0.0
    assert check_epsilon(2.0**-20) == 2.0**-20
    assert check_delta(0) == 0.0
    assert type(check_delta(np.float64(1e-5))) is float
    assert check_delta(0.999) == 0.999


@pytest.mark.parametrize("bad", [0, -0.0, 2.0**-21, math.nan])
def test_check_epsilon_refuses(bad):
    with pytest.raises(ValueError, match="epsilon"):
        check_epsilon(bad)


def test_a_fork_is_refused(monkeypatch):
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.5)
    elsewhere = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: elsewhere)
    with pytest.raises(BudgetError, match="process"):
        accountant.spend(0.25)
    assert len(accountant) == 1
