"""Disjoint parts: what they cost together, that no record is in two, and what an adversary gets."""

import copy
import itertools
import json
import math
import pickle
from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skdp import BudgetAccountant, OutputPertLogReg
from skdp.accounting import Budget, Relation, gaussian_epsilon
from skdp.exceptions import BudgetError
from skdp.local import RandomizedResponse
from tests.accounting.costs import approximate_cost, gaussian_cost, pure_cost

# Several tests exceed what warnings are about; test_late_settling looks at these.
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.BudgetWarning")

REGION = np.array(["north", "south", "north", "east", "south", "north"])
PARTS = ["north", "south"]


@pytest.fixture(params=["memory", "file"])
def accountant_of(request, tmp_path):
    counter = itertools.count()

    def make(*args, **kwargs):
        if request.param == "file":
            kwargs["ledger"] = tmp_path / f"{next(counter)}.db"
        return BudgetAccountant(*args, **kwargs)

    return make


def test_parts_cost_the_dearest_of_them(accountant_of):
    accountant = accountant_of(1.0)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        parts["north"].accountant.spend(0.5, label="a")
        parts["south"].accountant.spend(0.7, label="b")
        parts["north"].accountant.spend(0.1, label="c")
        assert parts["north"].accountant.total() == Budget(0.6, 0.0)
        assert parts["north"].accountant.remaining() == Budget(0.4, 0.0)
        assert accountant.total() == Budget(0.7, 0.0)
    accountant.spend(0.3)
    assert accountant.total() == Budget(1.0, 0.0)
    with pytest.raises(BudgetError):
        accountant.spend(1e-6)
    assert [(r.label, r.division, r.part) for r in accountant.records] == [
        ("a", 0, "north"),
        ("b", 0, "south"),
        ("c", 0, "north"),
        ("", None, ""),
    ]


def test_what_all_records_were_charged_counts_for_every_part(accountant_of):
    accountant = accountant_of(1.0)
    accountant.spend(0.4)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        for part in parts:
            assert part.accountant.remaining() == Budget(0.6, 0.0)
            part.accountant.check(0.6)
            with pytest.raises(BudgetError):
                part.accountant.spend(0.61)
        parts["north"].accountant.spend(0.5)
        # A charge on all records has to fit for the dearest part.
        with pytest.raises(BudgetError):
            accountant.spend(0.2)
        accountant.spend(0.1)
        with pytest.raises(BudgetError):
            parts["north"].accountant.spend(0.01)
        parts["south"].accountant.spend(0.5)
    assert accountant.total() == Budget(1.0, 0.0)


def test_two_divisions_add_up(accountant_of):
    # A record may be in the dearest part of both.
    accountant = accountant_of(1.0)
    for cost in (0.6, 0.4):
        with accountant.parallel(by=REGION, parts=PARTS) as parts:
            parts["north"].accountant.spend(cost)
            parts["south"].accountant.spend(cost / 2)
    assert accountant.total() == Budget(1.0, 0.0)
    with (
        accountant.parallel(by=REGION, parts=["east"]) as parts,
        pytest.raises(BudgetError),
    ):
        parts["east"].accountant.spend(0.1)


def test_two_divisions_that_are_open_at_once(accountant_of):
    # A record of one division's second part may be in the other's first one.
    accountant = accountant_of(1.0)
    with (
        accountant.parallel(by=REGION, parts=PARTS) as first,
        accountant.parallel(by=REGION[::-1], parts=PARTS) as second,
    ):
        second["north"].accountant.spend(0.6)
        with pytest.raises(BudgetError):
            first["south"].accountant.spend(0.5)
        first["south"].accountant.spend(0.4)
        with pytest.raises(BudgetError):
            second["north"].accountant.spend(0.1)
        assert accountant.total() == Budget(1.0, 0.0)


@pytest.mark.parametrize("rule", ["gdp", "rdp", "basic", "auto"])
def test_gaussian_charges_on_parts(accountant_of, rule):
    accountant = accountant_of(1.0, 1e-5, composition=rule)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        for part, mu in zip(parts, (0.1, 0.15), strict=True):
            part.accountant.charge(gaussian_cost(mu, 1e-6))
    assert accountant.total().epsilon <= gaussian_epsilon(0.15, 1e-6) * (1 + 1e-9)
    alone = BudgetAccountant(1.0, 1e-5, composition=accountant.composition)
    alone.charge(gaussian_cost(0.15, 1e-6))
    assert accountant.total() == alone.total()


def test_a_pure_part_and_a_gaussian_one_are_not_taken_for_pure():
    accountant = BudgetAccountant(1.0, 1e-5, composition="gdp")
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        parts["north"].accountant.charge(pure_cost(0.9))
        parts["south"].accountant.charge(gaussian_cost(0.2))
        # North's records have seen pure events only, and go on by their sum.
        parts["north"].accountant.charge(pure_cost(0.1))
        with pytest.raises(BudgetError):
            accountant.charge(pure_cost(0.01))
        with pytest.raises(BudgetError):
            parts["south"].accountant.charge(pure_cost(0.9))


def test_bounds_of_parts_are_taken_one_by_one():
    # Epsilon of one part and delta of the other: no record was exposed to both, and the bound is still a bound.
    accountant = BudgetAccountant(1.0, 1e-5, composition="basic")
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        parts["north"].accountant.charge(approximate_cost(0.5, 1e-6))
        parts["south"].accountant.charge(approximate_cost(0.1, 9e-6))
    assert accountant.total() == Budget(0.5, 9e-6)


def test_a_closed_division_cannot_be_charged(accountant_of):
    accountant = accountant_of(1.0)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        part = parts["north"].accountant
        part.spend(0.1)
    with pytest.raises(BudgetError, match="closed"):
        part.spend(0.1)
    with pytest.raises(BudgetError, match="closed"):
        part.check(0.1)
    assert len(accountant) == len(part) == 1


def test_an_exception_closes_the_division_too():
    accountant = BudgetAccountant(1.0)
    with pytest.raises(ZeroDivisionError), accountant.parallel(by=REGION, parts=PARTS) as parts:
        _ = 1 / 0
    with pytest.raises(BudgetError, match="closed"):
        parts["south"].accountant.spend(0.1)


def test_no_record_is_in_two_parts():
    rng = np.random.default_rng(1)
    for values, names in [
        (rng.integers(0, 6, 500), [3, 1, 5]),
        (rng.integers(0, 6, 500).astype(float), [3, 1, 5]),
        (rng.choice(["a", "b", "c"], 500), ["b", "a"]),
        (rng.choice(["a", "b", None], 500).astype(object), ["b", "a", "z"]),
        (pd.Series(rng.choice(["a", "b"], 500), index=rng.permutation(500)), ["b", "a"]),
        (np.array([True, False, True, True] * 125), [True, False]),
        ([1, True, "1", 1.0, 2] * 100, [1, 2]),
    ]:
        numbers = np.arange(500)
        parts = BudgetAccountant(1.0).parallel(by=values, parts=names)
        taken = [part.take(numbers) for part in parts]
        everything = np.concatenate(taken)
        assert len(everything) == len(set(everything.tolist()))
        for part, rows in zip(parts, taken, strict=True):
            assert all(list(values)[row] == part.name for row in rows)


def test_records_of_no_part_are_left_out():
    parts = BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS)
    assert sorted(np.concatenate([part.take(np.arange(6)) for part in parts])) == [0, 1, 2, 4, 5]


def test_take_cuts_all_kinds_of_data():
    X = np.arange(12.0).reshape(6, 2)
    rows = [0, 2, 5]
    part = BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS)["north"]
    np.testing.assert_array_equal(part.take(X), X[rows])
    one, two = part.take(X.tolist(), list(range(6)))
    np.testing.assert_array_equal(one, X[rows])
    np.testing.assert_array_equal(two, rows)
    frame = pd.DataFrame(X, columns=["a", "b"], index=list("uvwxyz"))
    pd.testing.assert_frame_equal(part.take(frame), frame.iloc[rows])
    for make in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        np.testing.assert_array_equal(part.take(make(X)).toarray(), X[rows])


@pytest.mark.parametrize("data", [np.zeros(5), np.zeros((7, 2)), 3.0])
def test_other_records_are_refused(data):
    part = BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS)["north"]
    with pytest.raises(ValueError, match="as many rows") as caught:
        part.take(data)
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ("north", TypeError),
        (3, TypeError),
        ([], ValueError),
        (["a", "a"], ValueError),
        ([1, True], ValueError),
        ([1, "1"], ValueError),
        ([None], TypeError),
        ([0.5], TypeError),
    ],
)
def test_what_is_no_list_of_parts(parts, kind):
    accountant = BudgetAccountant(1.0)
    with pytest.raises(kind, match="parts"):
        accountant.parallel(by=REGION, parts=parts)
    accountant.spend(1.0)


def test_by_has_one_value_a_record():
    with pytest.raises(ValueError, match="one-dimensional"):
        BudgetAccountant(1.0).parallel(by=np.zeros((6, 2)), parts=[0])


def test_parts_are_not_divided_again():
    part = BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS)["north"]
    with pytest.raises(ValueError, match="divided again"):
        part.accountant.parallel(by=REGION, parts=PARTS)


def test_parts_say_their_names_and_nothing_private():
    parts = BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS)
    assert repr(parts) == "Parts(['north', 'south'])"
    assert repr(parts["north"]) == "Part('north')"
    assert len(parts) == 2
    with pytest.raises(KeyError):
        parts["east"]
    parts["north"].accountant.spend(0.5)
    assert "part 'north'" in repr(parts["north"].accountant)
    assert "1 charge" in repr(parts["north"].accountant)
    assert len(parts["south"].accountant) == 0


def test_accountants_of_parts_are_shared_and_pickled_like_others(accountant_of):
    accountant = accountant_of(1.0)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        part = parts["south"].accountant
        assert copy.deepcopy(part) is part
        other = pickle.loads(pickle.dumps(part))
        other.spend(0.75)
        assert part.total() == other.total() == accountant.total() == Budget(0.75, 0.0)
        assert parts["north"].accountant.total() == Budget(0.0, 0.0)
        parts["north"].accountant.spend(0.25)
    with pytest.raises(BudgetError, match="closed"):
        other.spend(0.1)
    assert [record.part for record in accountant.records] == ["south", "north"]


def test_estimators_are_fitted_to_parts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    by = rng.integers(0, 3, 300)
    accountant = BudgetAccountant(1.0, 1e-5)
    with accountant.parallel(by=by, parts=[0, 1, 2]) as parts:
        models = [
            OutputPertLogReg(epsilon=1.0, delta=1e-5, data_norm=1.5, classes=[0, 1], accountant=part.accountant).fit(
                *part.take(X, y)
            )
            for part in parts
        ]
    assert len(models) == len(accountant) == 3
    assert accountant.total() == (pytest.approx(1.0), 1e-5)
    assert accountant.remaining().epsilon < 1e-3


def test_a_record_is_exposed_to_its_own_part_only():
    # Two noisy counts on disjoint parts: the law of the pair, with and without one record of the first.
    epsilon = 0.5
    noise = np.exp(-epsilon * np.abs(np.arange(-60, 61)))
    noise /= noise.sum()

    def law(first, second):
        one = np.zeros(140)
        two = np.zeros(140)
        one[first : first + 121] = noise
        two[second : second + 121] = noise
        return np.outer(one, two)

    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.log(law(5, 7) / law(4, 7))
        both = np.log(law(5, 7) / law(4, 6))
    inside = (slice(6, 120), slice(8, 120))
    assert np.abs(own[inside]).max() == pytest.approx(epsilon)
    # The broken twin: a record that sits in both parts is exposed to the sum.
    assert np.abs(both[inside]).max() == pytest.approx(2 * epsilon)
    assert math.isfinite(epsilon)


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList])
def test_one_records_value_does_not_decide_on_those_of_others(kind):
    # As an array, [1, 2, "1"] is text and [1, 2, 1.5] is not: one record more would move all others.
    for odd in ("1", None, 1.5, True, (1, 2), [1], math.nan, 10**40, b"1"):
        values = [1, 2, 1, 2]
        without = BudgetAccountant(1.0).parallel(by=kind(values), parts=[1, 2])
        with_it = BudgetAccountant(1.0).parallel(by=kind([*values, odd]), parts=[1, 2])
        for name in (1, 2):
            np.testing.assert_array_equal(with_it[name].take(np.arange(5)), without[name].take(np.arange(4)))


def test_a_truth_value_is_no_number():
    values = [1, True, 0, False, np.True_, np.int8(1), 1.0]
    numbers = BudgetAccountant(1.0).parallel(by=values, parts=[1, 0])
    np.testing.assert_array_equal(numbers[1].take(np.arange(7)), [0, 5, 6])
    truths = BudgetAccountant(1.0).parallel(by=values, parts=[True, False])
    np.testing.assert_array_equal(truths[True].take(np.arange(7)), [1, 4])


def test_what_a_closed_division_cost_stays(accountant_of):
    accountant = accountant_of(1.0)
    for _ in range(3):
        with accountant.parallel(by=REGION, parts=PARTS) as parts:
            for part in parts:
                part.accountant.spend(0.25)
    assert accountant.total() == Budget(0.75, 0.0)
    assert accountant.remaining() == Budget(0.25, 0.0)
    # Not every division that ever was is carried along with each charge.
    assert all(not division.parts for division in accountant._store.state().divisions)
    assert [record.part for record in accountant.records] == list(PARTS) * 3


# ---------------------------------------------------------------- relations


def reports(part, X, **kwargs):
    return RandomizedResponse([["a", "b"]], accountant=part.accountant, **kwargs).fit_transform(part.take(X))


def test_the_size_of_a_private_part_is_not_published(accountant_of):
    # As many reports as rows: nothing may be drawn, nor charged, where the size of the part is private.
    X = np.array([["a"]] * len(REGION))
    accountant = accountant_of(1.0)
    with accountant.parallel(by=REGION, parts=PARTS) as parts:
        for part in (parts["north"], pickle.loads(pickle.dumps(parts["north"]))):
            with pytest.raises(BudgetError, match="the size of a part depends on the records") as caught:
                reports(part, X, epsilon=0.5)
            assert not any(character.isdigit() for character in str(caught.value))
        assert accountant.records == ()
        # What adds or removes a record is admitted, by hand as well.
        parts["north"].accountant.spend(0.5)
    # All records may be randomised, as their number is public then.
    RandomizedResponse([["a", "b"]], epsilon=0.5, accountant=accountant).fit_transform(X)
    assert [record.relation for record in accountant.records] == [
        Relation.ADD_OR_REMOVE_RECORD,
        Relation.REPLACE_RECORD,
    ]


def test_reports_of_parts_that_are_public_are_charged_to_the_dearest(accountant_of):
    X = np.array([["a"]] * len(REGION))
    accountant = accountant_of(1.0)
    with accountant.parallel(by=REGION, parts=PARTS, public=True) as parts:
        assert len(reports(parts["north"], X, epsilon=0.5)) == 3
        assert len(reports(pickle.loads(pickle.dumps(parts["south"])), X, epsilon=0.25)) == 2
    assert accountant.total() == Budget(0.5, 0.0)
    assert {record.relation for record in accountant.records} == {Relation.REPLACE_RECORD}
    assert [record["relation"] for record in json.loads(accountant.to_json())["records"]] == [
        "replace one record; their number is public"
    ] * 2


@pytest.mark.parametrize("bad", [1, "yes", None])
def test_whether_parts_are_public_is_yes_or_no(bad):
    with pytest.raises(TypeError, match="public must be True or False"):
        BudgetAccountant(1.0).parallel(by=REGION, parts=PARTS, public=bad)


@pytest.mark.parametrize("relation", [Relation.REPLACE_RECORD, Relation.ADD_OR_REMOVE_RECORD])
def test_a_budget_about_groups_admits_no_other_relation(relation):
    accountant = BudgetAccountant(1.0, unit="group")
    with pytest.raises(BudgetError, match="about one group"):
        accountant.charge(pure_cost(0.5), relation=relation)
    accountant.charge(pure_cost(0.5))
    pickle.dumps(accountant)
    assert [record.relation for record in accountant.records] == [Relation.ADD_OR_REMOVE_GROUP]
    with pytest.raises(ValueError, match="is not a valid Relation"):
        accountant.charge(pure_cost(0.5), relation="any")
