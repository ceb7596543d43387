"""All rows of a group as the unit of privacy: who counts, what a group moves, what the guarantee and the ledger say."""

import math
import pickle
import sqlite3
import warnings
from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from skdp import (
    BoundsScaler,
    BudgetAccountant,
    DPGridSearchCV,
    DPNaiveBayes,
    DPStandardScaler,
    HistogramClassifier,
    NoisyHistogram,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    allocate,
    make_private_pipeline,
    private_cross_val_score,
    private_score,
    stats,
)
from skdp.accounting import PrivacyCost, Relation, _sqlite
from skdp.exceptions import BudgetError, LedgerError
from skdp.mechanisms import NoiseSource
from skdp.release import counts as _counts
from skdp.release import units as _groups
from skdp.release.session import ReleaseSession
from skdp.release.units import Unit, drawn_rows, group_numbers
from skdp.sensitivity import group_sensitivity
from skdp.solvers import moments
from tests.estimators import BY_GROUP, released
from tests.neighbours import MOVED
from tests.statistics import accept, chi_square

BOX = {"bounds": (-1.0, 1.0)}
LABELS = {"classes": [0, 1]}
BINS = {**BOX, "n_bins": 3}

GROUPED = [clone(model).set_params(delta=delta) for model in BY_GROUP for delta in (0.0, 1e-5)]


def name_of(model):
    variant = [str(getattr(model, name)) for name in ("numeric", "solver") if hasattr(model, name)]
    return "-".join([type(model).__name__, *variant, "gaussian" if model.delta else "pure"])


every_model = pytest.mark.parametrize("model", GROUPED, ids=name_of)
one_each = pytest.mark.parametrize("model", {type(model): model for model in GROUPED}.values(), ids=name_of)


def data(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, size=(n_rows, 2)), rng.integers(2, size=n_rows), np.arange(n_rows) // 4


def targets(model, y):
    return y if is_classifier(model) or is_regressor(model) else None


def grouped(model, rows=3, **parameters):
    return clone(model).set_params(rows_per_group=rows, **parameters)


# --- who counts ------------------------------------------------------------------------------------------------------


class Words:
    """A stream that gives these words."""

    def __init__(self, words):
        self._words = np.asarray(words, dtype=np.uint64)

    def words(self, n):
        assert n == len(self._words)
        return self._words


def test_rows_of_least_priority_count():
    members = np.array([7, 7, 0, 7, 0, 3])
    assert drawn_rows(members, 2, Words([5, 9, 1, 4, 8, 0])).tolist() == [0, 2, 3, 4, 5]
    assert drawn_rows(members, 1, Words([5, 9, 1, 4, 8, 0])).tolist() == [2, 3, 5]
    assert drawn_rows(members, 9, Words([5, 9, 1, 4, 8, 0])).tolist() == list(range(6))
    assert drawn_rows(members[:0], 2, Words([])).tolist() == []


def test_draws_of_one_group_do_not_depend_on_others():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_rows = int(rng.integers(1, 40))
        members, words = rng.integers(6, size=n_rows), rng.integers(2**63, size=n_rows)
        most = int(rng.integers(1, 5))
        counted = set(drawn_rows(members, most, Words(words)).tolist())
        # Without one group, in another order, and with other numbers: the rows of the others are those that were.
        kept = rng.permutation(np.flatnonzero(members != members[0]))
        renamed = rng.permutation(10)[members[kept]]
        again = {int(kept[row]) for row in drawn_rows(renamed, most, Words(words[kept]))}
        assert again == {row for row in counted if members[row] != members[0]}


def test_rows_are_drawn_uniformly():
    source = NoiseSource(0).stream("x")
    hits = np.zeros(10)
    for _ in range(4000):
        rows = drawn_rows(np.repeat([0, 1], [5, 5]), 2, source)
        assert len(rows) == 4
        hits[rows] += 1
    # Each of five rows counts twice in five times; two hits in a group exclude one another, which helps the test.
    accept(chi_square(hits[:5], np.full(5, 0.2)), "rows of the first group")
    accept(chi_square(hits[5:], np.full(5, 0.2)), "rows of the second group")


@pytest.mark.parametrize(
    "groups",
    [
        [3, 3, -1, 3, 10**30, -1],
        ["b", "b", "a", "b", "", "a"],
        [b"b", b"b", b"a", b"b", b"", b"a"],
        np.array(["b", "b", "a", "b", "c", "a"], dtype=object),
        np.array([0.5, 0.5, -0.0, 0.5, 1e15, 0.0]),
        np.array([1, 1, 0, 1, 2, 0], dtype=np.int8),
        pd.Series(["b", "b", "a", "b", "c", "a"], dtype="category"),
        pd.Series([2, 2, 1, 2, 3, 1], dtype="Int64"),
        (1, 1.0, "1", np.int32(1), 1.5, "1"),
        [2**53, 2**53, 2**53 + 1, 2**53, 0.5, 2**53 + 1],
        deque([2**53, 2**53, 2**53 + 1, 2**53, 0.5, 2**53 + 1]),
        UserList([2**53, 2**53, 2**53 + 1, 2**53, 0.5, 2**53 + 1]),
        deque([1, 1, "1", 1, 1.5, "1"]),
        np.ma.array([1, 1, 0, 1, 2, 0]),
        np.ma.array([1, 1, 0, 1, 2, 0], mask=[False] * 6),
    ],
    ids=lambda g: str(type(g).__name__),
)
def test_groups_are_told_apart_each_by_itself(groups):
    numbers = group_numbers(groups)
    same = numbers[:, None] == numbers
    expected = np.array([0, 0, 1, 0, 2, 1])
    np.testing.assert_array_equal(same, expected[:, None] == expected)


@pytest.mark.parametrize(
    ("groups", "error", "match"),
    [
        ([1, 2, None], ValueError, "missing"),
        ([1, 2, float("nan")], ValueError, "missing"),
        (np.array([1, 2, np.nan]), ValueError, "missing"),
        (pd.Series([1, 2, None]), ValueError, "missing"),
        (pd.Series([1, 2, None], dtype="Int64"), ValueError, "missing"),
        (pd.Series(["a", "b", pd.NaT]), ValueError, "missing"),
        (deque([1, 2, None]), ValueError, "missing"),
        (np.ma.array([1, 1, 2], mask=[True, False, False]), ValueError, "missing"),
        (np.ma.array(["a", "b", "c"], mask=True), ValueError, "missing"),
        (np.array([1, 2, 2.0**53]), ValueError, "too large"),
        (np.array([1, 2, -np.inf]), ValueError, "too large"),
        (np.array([1, 2, 2**24], dtype=np.float32), ValueError, "too large"),
        (pd.Series([2**53 + 1, 2, 3], dtype=float), ValueError, "too large"),
        ([1, 2, 2.0**53 + 2], ValueError, "too large"),
        ([1, 2, np.float32(2**24)], ValueError, "too large"),
        ([1, 2, [3]], TypeError, "numbers or text"),
        ([1, 2, (3, 4)], TypeError, "numbers or text"),
        (np.array([1, 2, 3j]), TypeError, "numbers or text"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), TypeError, "numbers or text"),
        ([[1], [2], [3]], TypeError, "numbers or text"),
        (np.ones((3, 1)), ValueError, "one-dimensional"),
        (7, ValueError, "one-dimensional"),
        ([1, 2], ValueError, "same number"),
        (None, ValueError, "groups must be given"),
    ],
    ids=lambda g: str(g)[:20].replace("\n", " "),
)
@one_each
def test_bad_groups_cost_nothing(model, groups, error, match):
    X, y, _ = data(3)
    accountant = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(error, match=match) as failure:
        grouped(model, accountant=accountant).fit(X, targets(model, y), groups=groups)
    assert failure.value.__cause__ is None
    assert len(accountant) == 0


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList])
def test_one_group_does_not_decide_how_others_are_read(kind):
    names = [2**53 + i for i in range(8)]
    X = (np.arange(9)[:, None] + 0.5) / 9
    histogram = NoisyHistogram(epsilon=math.inf, bounds=(0, 1), n_bins=9, rows_per_group=1)
    without = histogram.fit(X[:8], groups=kind(names)).counts_
    np.testing.assert_array_equal(without, np.arange(9) < 8)
    for other in (0.5, "a", b"a", True):
        assert np.all(histogram.fit(X, groups=kind([*names, other])).counts_ == 1)


@one_each
@pytest.mark.parametrize(
    ("rows", "error"), [(0, ValueError), (-1, ValueError), (10**7, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_bad_numbers_of_rows(model, rows, error):
    X, y, groups = data()
    with pytest.raises(error, match="rows_per_group"):
        grouped(model, rows).fit(X, targets(model, y), groups=groups)
    with pytest.raises(error, match="rows_per_group"):
        grouped(model, rows).privacy_plan(n_features=2)


@every_model
def test_groups_without_a_bound_are_refused(model):
    X, y, groups = data()
    with pytest.raises(ValueError, match="rows_per_group must be set"):
        clone(model).fit(X, targets(model, y), groups=groups)


# --- what a group moves ----------------------------------------------------------------------------------------------


def test_sensitivity_of_a_group():
    assert group_sensitivity(1.7, 1) == 1.7
    for rows in (2, 3, 1000):
        assert rows * 1.7 <= group_sensitivity(1.7, rows) <= rows * 1.7 * (1 + 1e-15)


def inputs(model, monkeypatch, *args):
    """What goes into each release, in units of what the mechanism is made for."""
    found = {}
    release = ReleaseSession.release

    def note(self, label, value):
        found[label] = self._waiting[label], np.array(value, dtype=float)
        return release(self, label, value)

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseSession, "release", note)
        X, y, groups = args
        model.fit(X, targets(model, y), groups=groups)
    return found


@every_model
@pytest.mark.parametrize("rows", [1, 3])
def test_no_release_moves_by_more_than_a_group_may(model, rows, monkeypatch):
    # The group comes last, so that the others draw the same.
    model = grouped(model, rows, random_state=3)
    most = {}
    rng = np.random.default_rng(0)
    for n_rows in (0, 40):
        X, y, groups = data(n_rows)
        # A row of norm 1 is as long as rows of the functional mechanism may be.
        corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [1.0, 0.0], [1e300, 1e300], rng.uniform(-1, 1, 2)])
        for corner in corners:
            for size in (1, rows, 5 * rows):
                for label in (0, 1):
                    more = (
                        np.concatenate([X, np.tile(corner, (size, 1))]),
                        np.concatenate([y, np.full(size, label)]),
                        np.concatenate([groups, np.full(size, 99)]),
                    )
                    without, with_it = (inputs(model, monkeypatch, *d) for d in ((X, y, groups), more))
                    for name, (mechanism, value) in without.items():
                        part = MOVED[mechanism.norm](with_it[name][1] - value) / mechanism.sensitivity
                        most[name] = max(most.get(name, 0.0), part)
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) >= 0.9, most


def count_all_rows(monkeypatch):
    monkeypatch.setattr(_groups, "drawn_rows", lambda members, most, stream: np.arange(len(members)))


def noise_for_one_row(monkeypatch):
    for module in (_counts, moments):
        monkeypatch.setattr(module, "group_sensitivity", lambda sensitivity, rows: sensitivity)


@every_model
@pytest.mark.parametrize("broken", [count_all_rows, noise_for_one_row])
def test_what_is_broken_on_purpose_moves_by_more(model, broken, monkeypatch):
    X, y, groups = np.tile([1.0, -1.0], (15, 1)), np.ones(15, dtype=int), np.zeros(15)
    broken(monkeypatch)
    model = grouped(model)
    without, with_it = (inputs(model, monkeypatch, X[:n], y[:n], groups[:n]) for n in (0, 15))
    moved = [
        MOVED[mechanism.norm](with_it[name][1] - value) / mechanism.sensitivity
        for name, (mechanism, value) in without.items()
    ]
    assert max(moved) > 2


@every_model
@pytest.mark.parametrize("rows", [2, 3])
def test_from_two_rows_on_single_records_are_protected_as_well(model, rows, monkeypatch):
    # A further row of a group may take the place of one that counted: one addition and one removal.
    X, y, groups = data(40)
    replaced = False
    for seed in range(12):
        own = grouped(model, rows, random_state=seed)
        with_it = np.vstack([X, [1.0, -1.0]]), np.append(y, 1), np.append(groups, groups[5])
        one, other = (inputs(own, monkeypatch, *d) for d in ((X, y, groups), with_it))
        for name, (mechanism, value) in one.items():
            moved = MOVED[mechanism.norm](other[name][1] - value)
            assert moved <= mechanism.sensitivity * (1 + 1e-9)
            replaced |= bool(moved > 0)
    assert replaced


@every_model
def test_many_rows_a_group_and_little_budget(model):
    X, y, groups = data()
    for epsilon in (1e-3, 10.0):
        own = grouped(model, 10**6, epsilon=epsilon)
        assert np.all(np.isfinite(released(own.fit(X, targets(model, y), groups=groups))))


@every_model
def test_rows_of_one_group_beyond_the_bound_do_not_count(model, monkeypatch):
    # With one row repeated, it does not matter which rows are drawn. Releases follow earlier ones with the same noise.
    model = clone(model).set_params(random_state=0)
    X, y, _ = data(1)
    five, three = (
        inputs(grouped(model), monkeypatch, np.tile(X, (n, 1)), np.repeat(y, n), np.zeros(n)) for n in (5, 3)
    )
    for label in five:
        np.testing.assert_array_equal(five[label][1], three[label][1])
    free = inputs(clone(model), monkeypatch, np.tile(X, (5, 1)), np.repeat(y, 5), None)
    assert any(not np.array_equal(free[label][1], five[label][1]) for label in free)


@every_model
def test_names_of_groups_do_not_matter(model):
    X, y, groups = data()
    fits = [
        released(grouped(model, 2, random_state=5).fit(X, targets(model, y), groups=names))
        for names in (groups, -groups, [f"p{g % 7}{g}" for g in groups], groups.astype(float), pd.Series(groups))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0], other)


def test_all_groups_count_up_to_the_bound():
    X, _, _ = data(200)
    groups = np.random.default_rng(1).integers(30, size=200)
    sizes = np.bincount(groups)
    for rows in (1, 3, 100):
        histogram = NoisyHistogram(epsilon=math.inf, **BINS, rows_per_group=rows).fit(X, groups=groups)
        assert histogram.counts_.sum() == np.minimum(sizes, rows).sum()


def test_rows_with_unknown_labels_take_no_place():
    X = np.array([[0.5, 0.5]] * 3 + [[-0.5, -0.5]] * 300)
    y = np.array([0] * 3 + [7] * 300)
    model = HistogramClassifier(epsilon=math.inf, **BINS, **LABELS, rows_per_group=3)
    assert model.fit(X, y, groups=np.zeros(303)).counts_.sum() == 3
    bayes = DPNaiveBayes(epsilon=math.inf, **BOX, **LABELS, rows_per_group=3).fit(X, y, groups=np.zeros(303))
    assert bayes.class_count_[0] == 3


def test_rows_with_unknown_categories_take_a_place():
    X = np.array([[0.0]] * 3 + [[7.0]] * 300)
    model = NoisyHistogram(epsilon=math.inf, categorical_features=[0], n_categories=2, rows_per_group=3, random_state=0)
    assert model.fit(X, groups=np.zeros(303)).counts_.sum() < 3
    assert model.fit(X[:4], groups=[0, 1, 2, 3]).counts_.tolist() == [3, 0]


# --- what is said ----------------------------------------------------------------------------------------------------


@every_model
def test_guarantee_states_the_unit_and_costs_the_same(model):
    X, y, groups = data()
    plan = grouped(model).privacy_plan(n_features=2)
    alone = clone(model).privacy_plan(n_features=2)
    assert grouped(model).fit(X, targets(model, y), groups=groups).privacy_ == plan
    assert (plan.unit, alone.unit) == ("group", "record")
    assert plan.relation == "add or remove all records of one group"
    assert (plan.limit, plan.rows) == ("of which at most 3 count", 3)
    assert "add or remove all records of one group, of which at most 3 count\n" in repr(plan)
    assert alone.relation == "add or remove one record"
    assert "one group is replaced" in repr(plan)
    assert "one record is replaced" in repr(alone)
    assert plan.cost == grouped(model)._fixed_cost()
    assert (plan.cost.epsilon, plan.cost.delta) == (alone.cost.epsilon, alone.cost.delta)
    for one, other in zip(plan.releases, alone.releases, strict=True):
        if one.mechanism.name == other.mechanism.name:
            # Without delta, the share of the range of targets depends on epsilon for each row of a group.
            assert plan.delta == 0 or one.share == other.share
            assert one.sensitivity == pytest.approx(3 * other.sensitivity, rel=2e-3)
            scale = 3 * other.mechanism.scale * other.share / one.share
            assert one.mechanism.scale == pytest.approx(scale, rel=2e-3)
    single = grouped(model, 1).privacy_plan(n_features=2)
    assert single.unit == "group"
    assert [r.mechanism for r in single.releases] == [r.mechanism for r in alone.releases]
    assert "at most 1 counts" in single.limit
    assert single.rows == 1


@every_model
def test_charge_precedes_the_draw(model, monkeypatch):
    def fail(self, label):
        raise MemoryError

    monkeypatch.setattr(NoiseSource, "stream", fail)
    X, y, groups = data()
    accountant = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(MemoryError):
        grouped(model, accountant=accountant).fit(X, targets(model, y), groups=groups)
    assert len(accountant) == 1


@every_model
def test_rows_have_bits_of_their_own(model, monkeypatch):
    labels = []
    stream = NoiseSource.stream
    monkeypatch.setattr(NoiseSource, "stream", lambda self, label: labels.append(label) or stream(self, label))
    X, y, groups = data()
    fitted = grouped(model).fit(X, targets(model, y), groups=groups)
    assert labels[0] == "rows that count"
    assert sorted(labels[1:]) == sorted(release.label for release in fitted.privacy_.releases)
    labels.clear()
    clone(model).fit(X, targets(model, y))
    assert "rows that count" not in labels


@every_model
def test_empty_data_and_one_row(model):
    X, y, groups = data()
    for n in (0, 1):
        fitted = grouped(model).fit(X[:n], targets(model, y[:n]), groups=groups[:n])
        assert np.all(np.isfinite(released(fitted)))


def test_budgets_of_records_and_of_groups_do_not_mix(tmp_path):
    X, y, groups = data()
    records, persons = BudgetAccountant(4.0), BudgetAccountant(4.0, unit="group")
    by_record, by_group = DPNaiveBayes(**BOX, **LABELS), DPNaiveBayes(**BOX, **LABELS, rows_per_group=3)
    with pytest.raises(BudgetError, match="rows_per_group need"):
        by_group.set_params(accountant=records).fit(X, y, groups=groups)
    with pytest.raises(BudgetError, match="rows_per_group"):
        by_record.set_params(accountant=persons).fit(X, y)
    with pytest.raises(BudgetError, match="rows_per_group"):
        ObjPertLogReg(data_norm=1.0, **LABELS, accountant=persons).fit(X, y)
    assert len(records) == len(persons) == 0
    by_group.set_params(accountant=persons).fit(X, y, groups=groups)
    persons.spend(0.5, label="a count of persons")
    assert persons.total() == (1.5, 0.0)
    assert (records.unit, persons.unit) == ("record", "group")
    assert "unit='group'" in repr(persons)
    assert "unit" not in repr(records)
    assert "per group" in persons.to_text()
    with pytest.raises(ValueError, match="unit"):
        BudgetAccountant(1.0, unit="person")
    with pytest.raises(BudgetError):
        persons.charge(PrivacyCost.of_pair(0.1, 0.0), relation=Relation.ADD_OR_REMOVE_RECORD)


def test_unit_is_kept_with_the_ledger(tmp_path):
    path = tmp_path / "budget.db"
    accountant = BudgetAccountant(4.0, 1e-6, ledger=path, unit="group")
    assert BudgetAccountant.from_ledger(path).unit == "group"
    assert BudgetAccountant(4.0, 1e-6, ledger=path, unit="group").unit == "group"
    with pytest.raises(LedgerError, match="unit='group'"):
        BudgetAccountant(4.0, 1e-6, ledger=path)
    assert pickle.loads(pickle.dumps(accountant)).unit == "group"
    memory = BudgetAccountant(4.0, unit="group")
    assert pickle.loads(pickle.dumps(memory)).unit == "group"


def test_budgets_of_groups_have_no_parts(tmp_path):
    # A group with records in two parts would be exposed to both.
    for ledger in (None, tmp_path / "budget.db"):
        accountant = BudgetAccountant(4.0, unit="group", ledger=ledger)
        with pytest.raises(ValueError, match="about one group"):
            accountant.parallel(by=["a", "b"], parts=["a", "b"])
        accountant.spend(1.0)
        assert accountant.total() == (1.0, 0.0)


def made_before_there_were_places(path, version):
    """Turn a ledger into what an earlier version would have written."""
    connection = sqlite3.connect(path)
    connection.executescript(f"DROP TABLE home; PRAGMA user_version = {version}")
    connection.close()


def test_code_that_knows_no_units_cannot_open_a_ledger_about_groups(tmp_path, monkeypatch):
    plan = [DPNaiveBayes(**BOX, **LABELS, rows_per_group=3).privacy_plan(n_features=2)]
    for number, entries in enumerate([None, plan]):
        path = tmp_path / f"{number}.db"
        BudgetAccountant(4.0, unit="group", ledger=path, plan=entries)
        assert BudgetAccountant.from_ledger(path).unit == "group"
        with monkeypatch.context() as patch:
            patch.setattr(_sqlite, "SCHEMA_VERSIONS", (1,))
            with pytest.raises(LedgerError, match="schema version 4"):
                BudgetAccountant.from_ledger(path)


def test_a_ledger_about_groups_of_the_first_kind_keeps_its_unit(tmp_path):
    path = tmp_path / "budget.db"
    BudgetAccountant(4.0, unit="group", ledger=path)
    made_before_there_were_places(path, 1)
    accountant = BudgetAccountant.from_ledger(path)
    assert accountant.unit == "group"
    with pytest.raises(BudgetError):
        accountant.charge(PrivacyCost.of_pair(0.1, 0.0), relation=Relation.ADD_OR_REMOVE_RECORD)


def test_declared_plans_have_a_unit(tmp_path):
    by_group = DPNaiveBayes(**BOX, **LABELS, rows_per_group=3)
    plan = [by_group.privacy_plan(n_features=2)]
    with pytest.raises(BudgetError, match="group"):
        BudgetAccountant(2.0, plan=plan)

    def declared(ledger=None):
        return BudgetAccountant(2.0, plan=plan, unit="group", ledger=ledger)

    declared(tmp_path / "opened.db")
    X, y, groups = data()
    for accountant in (
        declared(),
        pickle.loads(pickle.dumps(declared())),
        pickle.loads(pickle.dumps(declared(tmp_path / "pickled.db"))),
        BudgetAccountant.from_ledger(tmp_path / "opened.db"),
    ):
        assert accountant.unit == "group"
        with pytest.raises(BudgetError, match="about one group"):
            DPNaiveBayes(**BOX, **LABELS, accountant=accountant).fit(X, y)
        by_group.set_params(accountant=accountant).fit(X, y, groups=groups)
        assert accountant.planned == ()


def test_allocation_is_for_one_unit():
    bayes = DPNaiveBayes(bounds=(-3, 3), **LABELS, rows_per_group=3)
    mixed = make_pipeline(DPStandardScaler(**BOX), bayes)
    with pytest.raises(ValueError, match="in all of them, or in none"):
        allocate(mixed, epsilon=1.0)
    mixed.set_params(dpstandardscaler__rows_per_group=2)
    with pytest.raises(BudgetError, match="group"):
        allocate(mixed, epsilon=1.0, accountant=BudgetAccountant(1.0))
    assert len(allocate(mixed, epsilon=1.0, accountant=BudgetAccountant(1.0, unit="group"))) == 2


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def test_groups_reach_the_steps_of_pipelines_and_searches():
    X, y, groups = data(200)
    accountant = BudgetAccountant(1e4, unit="group")
    parameters = {"rows_per_group": 2, "accountant": accountant, "epsilon": 10.0}
    plain = make_pipeline(BoundsScaler((-2, 2)), DPNaiveBayes(**BOX, **LABELS, **parameters))
    plain.fit(X, y, dpnaivebayes__groups=groups)
    assert plain[-1].privacy_.unit == "group"
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            DPStandardScaler(**BOX, **parameters).set_fit_request(groups=True),
            DPNaiveBayes(bounds=(-3, 3), **LABELS, **parameters).set_fit_request(groups=True),
        )
        routed.fit(X, y, groups=groups)
        assert routed[0].privacy_.unit == routed[1].privacy_.unit == "group"
        search = GridSearchCV(routed, {"dpnaivebayes__alpha": [0.5, 1.0]}, cv=GroupKFold(2))
        search.fit(X, y, groups=groups)
    assert len(accountant) == 1 + 2 + 2 * (2 * 2 + 1)


def test_with_routing_groups_for_the_folds_alone_are_declined():
    X, y, groups = data(200)
    model = DPNaiveBayes(**BOX, **LABELS, epsilon=10.0)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="groups"):
            GridSearchCV(model, {"n_bins": [3, 5]}, cv=GroupKFold(2)).fit(X, y, groups=groups)
        model = clone(model).set_fit_request(groups=False)
        search = GridSearchCV(model, {"n_bins": [3, 5]}, cv=GroupKFold(2)).fit(X, y, groups=groups)
    assert search.best_estimator_.privacy_.unit == "record"


def test_a_further_row_may_take_the_place_of_the_one_that_counted():
    # With one row a group, single records are protected by less: the ratio is (1 + exp(2 eps)) / 2, not exp(eps).
    epsilon = 1.0
    k = np.arange(-40, 41)
    law = np.exp(-epsilon * np.abs(k))
    law /= law.sum()
    # Outcomes: two cells. The group's one row is in the first; the further row would be in the second.
    first, second = np.outer(np.roll(law, 1), law), np.outer(law, np.roll(law, 1))
    inner = np.s_[2:-2, 2:-2]
    ratio = ((first + second) / 2)[inner] / first[inner]
    assert ratio.max() == pytest.approx((1 + math.exp(2 * epsilon)) / 2)
    assert ratio.max() > math.exp(epsilon)


def test_unit_of_one_record_leaves_everything_as_it_was():
    plan = DPNaiveBayes(**BOX, **LABELS).privacy_plan(n_features=2)
    assert Unit.of(None).stated(plan) is plan
    X = np.zeros((3, 1))
    members = Unit.of(None).members(None, X)
    assert members[0] is X
    assert Unit.of(None).counted(NoiseSource(0), None, X)[0] is X


# --- rows that are matched by position ------------------------------------------------------------------------------


def calls_with_y():
    """Functions that take the table and the labels of its rows as objects of pandas, with a budget."""
    schema = Schema({"a": (0, 1)}, {"label": ["no", "yes"]})
    bayes = DPNaiveBayes(schema=schema)
    fitted = clone(bayes).fit({"a": [0.0, 1.0]}, ["no", "yes"])

    def encoded(X, y, accountant):
        steps = TableEncoder(schema), ObjPertLogReg(data_norm=1.0, classes=["no", "yes"])
        make_private_pipeline(*steps, accountant=accountant).fit(X, y)

    def weighted(X, y, accountant):
        weights = (y == "no").astype(float)
        model = DPNaiveBayes(schema=schema, max_weight=1.0, accountant=accountant)
        model.fit(X, y.to_numpy(), sample_weight=weights)

    return {
        "fit": lambda X, y, accountant: clone(bayes).set_params(accountant=accountant).fit(X, y),
        "fit of a dict": lambda X, y, accountant: clone(bayes).set_params(accountant=accountant).fit(dict(X), y=y),
        "weights": weighted,
        "pipeline": encoded,
        "search": lambda X, y, accountant: DPGridSearchCV(bayes, {"n_bins": [2, 4]}, accountant=accountant).fit(X, y),
        "score": lambda X, y, accountant: private_score(fitted, X, y, epsilon=1.0, accountant=accountant),
        "scores": lambda X, y, accountant: private_cross_val_score(bayes, X, y, epsilon=1.0, accountant=accountant),
        "describe": lambda X, y, accountant: stats.describe(X, y, schema=schema, accountant=accountant),
        "group_by": lambda X, y, accountant: stats.group_by(
            X, y, "mean", delta=1e-6, accountant=accountant, schema=schema
        ),
    }


@pytest.mark.parametrize("outer", [False, True])
def test_a_declared_feature_is_no_target(outer):
    """The name of y and the schema are public."""
    table = pd.DataFrame({"a": np.arange(200) / 200, "ill": np.where(np.arange(200) % 3, "no", "yes")})
    schema, budget = Schema({"a": (0, 1), "ill": ["no", "yes"]}), BudgetAccountant(10.0, 1e-3)
    model = ObjPertLogReg(schema=schema, classes=["no", "yes"], delta=1e-6, accountant=None if outer else budget)
    if outer:
        model = DPGridSearchCV(model, {"C": [0.1, 1.0]}, delta=1e-6, accountant=budget)
    with pytest.raises(ValueError, match=r"declares 'ill' as a feature, and y is the column of that name"):
        model.fit(table, table["ill"])
    assert not budget.records
    model.fit(table, table["ill"].rename("other"))
    assert len(budget.records) == 1


@pytest.mark.parametrize("name", sorted(calls_with_y()))
def test_labels_of_another_index_are_refused_before_a_charge(name):
    X = pd.DataFrame({"a": np.arange(200) / 200}, index=np.arange(200) + 7)
    y, act = pd.Series(np.where(X["a"] > 0.5, "yes", "no"), X.index), calls_with_y()[name]
    budget = BudgetAccountant(10.0, 1e-3)
    for other in (y.sample(frac=1, random_state=0), y.reset_index(drop=True)):
        with pytest.raises(
            ValueError, match=r"have different indexes, .*(This fit of \w+ was not|Nothing was) charged"
        ) as failure:
            act(X, other, budget)
        assert failure.value.__cause__ is failure.value.__context__ is None
    assert not budget.records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        act(X, y, budget)
    assert budget.records
