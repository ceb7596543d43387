"""Any interleaving of what can be done to an accountant leaves one budget; what a file keeps comes back as it was."""

import copy
import itertools
import math
import pickle
import sqlite3
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone

from skdp import BudgetAccountant
from skdp.accounting import (
    ApproximateEvent,
    Budget,
    GaussianEvent,
    ObjectiveEvent,
    PrivacyCost,
    PureEvent,
    _sqlite,
    binary_log_loss,
    gaussian_epsilon,
    gaussian_mu,
    huber_hinge,
    multinomial_log_loss,
    pure_dp_mu,
)
from skdp.accounting._record import (
    record_from_row,
    record_to_row,
    rule_from_json,
    rule_to_json,
    state_from_json,
    state_to_json,
)
from skdp.accounting._sqlite import _Home
from skdp.exceptions import BudgetError, LedgerError
from tests.accounting.costs import approximate_cost, gaussian_cost, objective_cost, pure_cost

#: Names of files; the address of an object may be that of an earlier one.
NUMBERS = itertools.count()


class OneBudget(RuleBasedStateMachine):
    """Accountants that came from one another, against a list of what was admitted."""

    durable = False

    def __init__(self):
        super().__init__()
        self.admitted = []
        self.spent = Fraction(0)
        self.parts = None

    @initialize(directory=st.just(None))
    def open(self, directory):
        self.path = Path(self.directory, f"{next(NUMBERS)}.db") if self.durable else None
        self.accountants = [BudgetAccountant(1.0, ledger=self.path)]

    def one(self, data):
        return data.draw(st.sampled_from(self.accountants))

    @rule(data=st.data(), cents=st.integers(1, 40), label=st.text(max_size=5))
    def spend(self, data, cents, label):
        accountant, epsilon = self.one(data), cents / 100
        fits = self.spent + Fraction(cents, 100) <= 1
        try:
            accountant.spend(epsilon, label=label)
        except BudgetError:
            assert not fits
        else:
            assert fits
            self.spent += Fraction(cents, 100)
            self.admitted.append((epsilon, label))

    @rule(data=st.data(), cents=st.integers(1, 40))
    def check(self, data, cents):
        try:
            self.one(data).check(cents / 100)
        except BudgetError:
            assert self.spent + Fraction(cents, 100) > 1
        else:
            assert self.spent + Fraction(cents, 100) <= 1

    @rule(data=st.data(), how=st.sampled_from([clone, copy.copy, copy.deepcopy]))
    def share(self, data, how):
        accountant = self.one(data)
        assert how(accountant) is accountant

    @precondition(lambda self: len(self.accountants) < 6)
    @rule(data=st.data(), protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
    def pickle(self, data, protocol):
        self.accountants.append(pickle.loads(pickle.dumps(self.one(data), protocol=protocol)))

    @precondition(lambda self: self.path is not None and len(self.accountants) < 6)
    @rule(restated=st.booleans())
    def reopen(self, restated):
        again = BudgetAccountant(1.0, ledger=self.path) if restated else BudgetAccountant.from_ledger(self.path)
        self.accountants.append(again)

    @precondition(lambda self: self.path is not None)
    @rule(epsilon=st.sampled_from([0.5, 2.0]))
    def reopen_with_another_ceiling(self, epsilon):
        with pytest.raises(LedgerError, match="was made with"):
            BudgetAccountant(epsilon, ledger=self.path)

    @precondition(lambda self: len(self.accountants) > 1)
    @rule(data=st.data())
    def forget(self, data):
        self.accountants.remove(self.one(data))

    @invariant()
    def all_tell_the_same(self):
        for accountant in getattr(self, "accountants", []):
            assert accountant.total() == Budget(float(self.spent), 0.0)
            assert accountant.total().epsilon <= 1.0
            assert len(accountant) == len(self.admitted)
            assert [(r.cost.epsilon, r.label) for r in accountant.records] == self.admitted
            assert accountant.remaining().epsilon == float(1 - self.spent)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.sample(every=6)
def test_any_interleaving_leaves_one_budget(durable, tmp_path):
    from hypothesis.stateful import run_state_machine_as_test

    machine = type("Machine", (OneBudget,), {"durable": durable, "directory": tmp_path})
    limits = settings(
        max_examples=25,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


def test_the_property_has_teeth(tmp_path):
    # The broken twin: pickles carry a budget of their own.
    class Twin(BudgetAccountant):
        def __reduce__(self):
            return _copy_of, (1.0, [(r.cost.epsilon, r.label) for r in self.records])

    class Machine(OneBudget):
        directory = tmp_path

        @initialize()
        def open(self):
            self.path = None
            self.accountants = [Twin(1.0)]

    from hypothesis.stateful import run_state_machine_as_test

    limits = settings(
        max_examples=50,
        # A failure is enough; nobody reads the smallest one.
        phases=[Phase.generate],
        report_multiple_bugs=False,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Machine, settings=limits)


def _copy_of(epsilon, spent):
    accountant = BudgetAccountant(epsilon)
    for amount, label in spent:
        accountant.spend(amount, label=label)
    return accountant


# ---------------------------------------------------------------- what is written comes back

COSTS = [
    gaussian_cost(0.1),
    pure_cost(1 / 3),
    approximate_cost(0.1, 1e-6),
    objective_cost(0.3, 0.08),
    PrivacyCost(2.0, 1e-5, (ObjectiveEvent(multinomial_log_loss(0.1, 4), 0.05), GaussianEvent(1e-3))),
    PrivacyCost(2.0, 1e-5, (ObjectiveEvent(huber_hinge(0.1, 0.5, 3), 0.05),)),
    PrivacyCost(float("inf"), 0.0, (PureEvent(float("inf")),)),
    PrivacyCost(0.0, 0.0, ()),
]


@pytest.mark.parametrize("cost", COSTS, ids=range(len(COSTS)))
def test_records_come_back_as_they_were(cost, tmp_path):
    accountant = BudgetAccountant(float("inf"), ledger=tmp_path / "budget.db")
    accountant.charge(cost, label='a "label"; DROP TABLE record; -- \N{SNOWMAN}\0\n', estimator="Modèle")
    kept = BudgetAccountant.from_ledger(tmp_path / "budget.db").records
    assert kept == accountant.records
    assert kept[0].cost == cost
    assert record_from_row(record_to_row(kept[0])) == kept[0]


@pytest.mark.parametrize("composition", ["auto", "basic", "gdp", "rdp"])
def test_sums_and_rules_come_back_exactly(composition):
    accountant = BudgetAccountant(8.0, 1e-4, composition=composition)
    for cost in (COSTS[0], COSTS[1], objective_cost(0.05, 0.02)):
        accountant.charge(cost)
    accountant.parallel(by=[1, 2], parts=[1, 2])[1].accountant.spend(0.01)
    state = accountant._store.state()
    assert state_from_json(state_to_json(state)) == state
    assert rule_from_json(rule_to_json(accountant._rule)) == accountant._rule


def test_plans_come_back(tmp_path):
    plan = COSTS[:4]
    accountant = BudgetAccountant(3.0, 1e-5, plan=plan, ledger=tmp_path / "budget.db")
    accountant.charge(plan[3])
    again = BudgetAccountant(3.0, 1e-5, plan=plan, ledger=tmp_path / "budget.db")
    assert again.planned == tuple(plan[:3])
    with pytest.raises(BudgetError):
        again.charge(plan[3])
    for other in (None, plan[:3], [*plan[:3], pure_cost(0.1)]):
        with pytest.raises(LedgerError, match="was made with"):
            BudgetAccountant(3.0, 1e-5, plan=other, ledger=tmp_path / "budget.db")


def test_numbers_that_follow_from_the_ceiling_are_kept(tmp_path, monkeypatch):
    # Another SciPy might find another order, and sums at one order say nothing about another.
    path = tmp_path / "budget.db"
    BudgetAccountant(1.0, 1e-5, composition="rdp", ledger=path).charge(gaussian_cost(0.1))
    monkeypatch.setattr("skdp.accounting._composition.renyi_budget", lambda epsilon, delta: (3.0, 0.01))
    again = BudgetAccountant(1.0, 1e-5, composition="rdp", ledger=path)
    assert again._rule.orders[0] == pytest.approx(17.8, rel=0.01)
    assert again.remaining().epsilon > 0.5


def test_numbers_of_numpy_are_kept(tmp_path):
    accountant = BudgetAccountant(3.0, 1e-5, composition="basic", ledger=tmp_path / "budget.db")
    accountant.charge(PrivacyCost(np.float32(0.5), 0, (PureEvent(np.float32(0.5)),)))
    accountant.charge(PrivacyCost(np.int64(1), 0.0, (PureEvent(np.int64(1)),)))
    assert [record.cost for record in accountant.records] == [pure_cost(0.5), pure_cost(1.0)]


@pytest.mark.parametrize("durable", [False, True])
def test_an_event_of_an_unknown_class_is_refused_before_it_is_charged(durable, tmp_path):
    class Strange(PureEvent):
        pass

    accountant = BudgetAccountant(1.0, ledger=tmp_path / "budget.db" if durable else None)
    with pytest.raises(TypeError, match="Strange"):
        accountant.charge(PrivacyCost(0.5, 0.0, (Strange(0.5),)))
    assert len(accountant) == 0
    accountant.spend(1.0)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.BudgetWarning")
def test_a_move_to_a_file_keeps_everything():
    accountant = BudgetAccountant(3.0, 1e-5, composition="gdp")
    for cost in (COSTS[0], COSTS[1], COSTS[0]):
        accountant.charge(cost, label="x")
    parts = accountant.parallel(by=["a"], parts=["a", "b"])
    parts["b"].accountant.charge(COSTS[0])
    before = accountant.records, accountant.total(), accountant.remaining(), parts["a"].accountant.total()
    pickle.dumps(accountant)
    assert isinstance(accountant._store._successor, _sqlite.SQLiteLedger)
    assert (accountant.records, accountant.total(), accountant.remaining(), parts["a"].accountant.total()) == before
    parts.close()


# ---------------------------------------------------------------- versions

#: A ledger as version 1 wrote it; later versions of skdp have to open it, with the same totals.
VERSION_1 = Path(__file__).with_name("ledger_version_1.sql")


def test_a_ledger_of_version_1_is_opened(tmp_path):
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1.read_text())
    connection.close()
    accountant = BudgetAccountant.from_ledger(path)
    assert (accountant.epsilon, accountant.delta, accountant.composition) == (3.0, 1e-5, "rdp")
    assert [record.label for record in accountant.records] == ["histogram", "fit", "count"]
    assert [type(event) for event in accountant.records[1].cost.events] == [ObjectiveEvent, GaussianEvent]
    assert accountant.records[1].cost.events[0].curve == binary_log_loss(0.5)
    assert accountant.records[2].part == "north"
    total = accountant.total()
    assert total == (pytest.approx(0.75, rel=1e-12), 1e-5)
    accountant.spend(0.01)
    assert len(accountant) == 4


def test_a_ledger_of_version_3_goes_on_with_its_rule(tmp_path):
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1.with_name("ledger_version_3.sql").read_text())
    connection.close()
    accountant = BudgetAccountant.from_ledger(path, moved=True)
    assert (accountant.epsilon, accountant.delta, accountant.composition) == (3.0, 1e-5, "gdp")
    assert accountant.total() == (pytest.approx(0.85, rel=1e-12), 1e-5)
    # Its limit: the rest of epsilon after a pure charge of 0.25, less the two later charges.
    spent = gaussian_mu(0.5, 1e-6) ** 2 + pure_dp_mu(0.1) ** 2
    left = gaussian_epsilon(math.sqrt(gaussian_mu(2.75, 1e-5) ** 2 - spent), 1e-5)
    assert accountant.remaining() == (pytest.approx(left, rel=1e-6), 1e-5)
    accountant.charge(gaussian_cost(0.1))
    assert BudgetAccountant.from_ledger(path).total() == accountant.total()
    # Earlier versions of skdp must not open what this one has written.
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    connection.close()


def test_approximate_and_gaussian_epsilons_are_what_the_costs_say():
    assert COSTS[0].epsilon == gaussian_epsilon(0.1, 1e-5)
    assert COSTS[2].events == (ApproximateEvent(0.1, 1e-6),)


# ---------------------------------------------------------------- copies that were put back


def overtaking(path, tmp_path):
    """An accountant that has seen one charge, and a file that never held it but has gone further."""
    accountant = BudgetAccountant(1.0, ledger=path)
    copy_ = tmp_path / "copy.db"
    copy_.write_bytes(path.read_bytes())
    accountant.spend(0.5)
    path.write_bytes(copy_.read_bytes())
    other = BudgetAccountant(1.0, ledger=path)
    for _ in range(3):
        other.spend(0.01)
    return accountant


@pytest.mark.parametrize("through_pickle", [False, True])
def test_an_older_copy_that_overtook_the_ledger_is_refused(tmp_path, through_pickle):
    accountant = overtaking(tmp_path / "budget.db", tmp_path)
    if through_pickle:
        with pytest.raises(LedgerError, match="older copy"):
            pickle.loads(pickle.dumps(accountant)).spend(0.1)
    with pytest.raises(LedgerError, match="older copy"):
        accountant.spend(0.1)
    with pytest.raises(LedgerError, match="older copy"):
        accountant.total()


# ---------------------------------------------------------------- what no ledger could keep


@pytest.mark.parametrize("durable", [False, True])
def test_nothing_is_taken_that_could_not_be_handed_over(tmp_path, durable):
    accountant = BudgetAccountant(1.0, ledger=tmp_path / "budget.db" if durable else None)
    with pytest.raises(ValueError, match="UTF-8"):
        accountant.spend(0.1, label="\ud800")
    with pytest.raises(ValueError, match="UTF-8"):
        accountant.charge(pure_cost(0.1), estimator="\udfff")
    with pytest.raises(TypeError, match="RecordedRelease"):
        accountant.charge(pure_cost(0.1), releases=["release"])
    assert len(accountant) == 0
    assert accountant.total() == Budget(0.0, 0.0)
    assert len(pickle.loads(pickle.dumps(accountant))) == 0


def test_directories_with_the_same_number_are_not_the_same_place(tmp_path):
    # Numbers of directories are unique in one file system only.
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    home = _Home(str(own / "budget.db"), other.stat().st_ino)
    assert home.is_at(own / "budget.db")
    assert not home.is_at(other / "budget.db")
    own.rmdir()
    assert home.is_at(other / "budget.db")
