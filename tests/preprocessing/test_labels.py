"""Which labels occur: exact laws, and rules."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdp import BudgetAccountant, DPNaiveBayes, PrivateLabelSet, allocate
from skdp.exceptions import BudgetError, NotEnoughDataError, SeededNoiseWarning
from skdp.mechanisms import NoiseSource

# A label that does not occur, or occurs once, is released with a probability of 1e-10 at most, in every test.
OPEN = {"epsilon": 1.0, "delta": 1e-10}
CLOSED = {"epsilon": 1.0, "universe": ["a", "b", "c", "d"], "false_alarm": 1e-11}

both = pytest.mark.parametrize("parameters", [OPEN, CLOSED], ids=["open", "closed"])


def many(**counts):
    return [label for label, count in counts.items() for _ in range(count)]


# --- what is released ------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_frequent_labels_in_sorted_order(parameters, kind):
    y = kind(many(c=400, a=900, b=1, x=1))
    assert PrivateLabelSet(**parameters, random_state=0).fit(y).classes_.tolist() == ["a", "c"]


@pytest.mark.parametrize("parameters", [{}, {"universe": ["b", "a", "x", "y"]}], ids=["open", "closed"])
def test_without_noise_all_labels_that_occur(parameters):
    labels = PrivateLabelSet(epsilon=math.inf, **parameters).fit(many(b=1, a=3))
    assert labels.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("y", [np.repeat([3, 1], 500), np.repeat([3.0, 1.0], 500), [3, 1] * 500, [1.0, 3.0] * 500])
def test_numbers(y):
    classes = PrivateLabelSet(**OPEN).fit(y).classes_
    np.testing.assert_array_equal(classes, [1, 3])
    assert classes.dtype == np.int64


@both
def test_that_no_label_is_released_is_charged(parameters):
    for y in ([], ["a"]):
        accountant = BudgetAccountant(2.0, 1e-5, composition="basic")
        model = PrivateLabelSet(**parameters, accountant=accountant)
        with pytest.raises(NotEnoughDataError, match="was charged"):
            model.fit(y)
        assert len(accountant) == 1
        assert not hasattr(model, "classes_")


@both
def test_a_second_fit_that_tells_of_nothing_leaves_nothing_of_the_first(parameters):
    accountant = BudgetAccountant(10.0, 1e-4, composition="basic")
    model = PrivateLabelSet(**parameters, accountant=accountant).fit(many(a=500))
    first = model.privacy_
    model.set_params(epsilon=0.5)
    with pytest.raises(NotEnoughDataError):
        model.fit([])
    assert not hasattr(model, "classes_")
    assert model.privacy_ == model.privacy_plan() != first
    assert model.threshold_ == clone(model).fit(many(a=500)).threshold_
    assert accountant.records[1].cost == model.privacy_.cost
    # One that was not admitted cost nothing, and leaves everything.
    model.fit(many(a=500)).set_params(accountant=BudgetAccountant(0.1))
    with pytest.raises(BudgetError):
        model.fit([])
    assert model.classes_.tolist() == ["a"]


def test_a_single_label_is_refused_by_classifiers():
    """As the docstring says."""
    classes = PrivateLabelSet(**OPEN).fit(many(a=500)).classes_
    model = DPNaiveBayes(bounds=(0, 1), classes=classes)
    with pytest.raises(ValueError, match="classes must contain at least 2 labels"):
        model.fit(np.zeros((500, 1)), many(a=500))


def test_type_of_the_array_says_nothing_about_rare_labels():
    plain = PrivateLabelSet(**OPEN, random_state=0)
    for y, rare in [(many(a=500, b=500), "a very long label"), ([1, 2] * 500, 1.5), ([1, 2] * 500, 10**12)]:
        for form in (list, lambda y: np.array(y, dtype=object)):
            one, other = (pickle.dumps(clone(plain).fit(form(labels)).classes_) for labels in (y, [*y, rare]))
            assert one == other


def test_false_alarms_are_as_rare_as_stated():
    universe = np.arange(50)
    alarms = 0
    for seed in range(300):
        model = PrivateLabelSet(epsilon=0.7, universe=universe, false_alarm=0.05, random_state=seed)
        alarms += model.fit([0] * 200).classes_.tolist() != [0]
    # Binomial with probability 0.05 at most: 41 or more have a probability below 1e-6.
    assert alarms <= 40
    assert alarms >= 1


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("size", [2, 30])
def test_closed_law_for_all_counts(epsilon, size):
    """The probability that a candidate is released, for all counts, by the discrete Laplace law."""
    model = PrivateLabelSet(epsilon=epsilon, universe=np.arange(size))
    plan, _, threshold = model._planned()
    a = 1 / plan.releases[0].mechanism.scale

    def tail(k):
        return math.exp(-a * k) / (1 + math.exp(-a)) if k > 0 else 1 - math.exp(-a * (1 - k)) / (1 + math.exp(-a))

    p = np.array([tail(threshold - n) for n in range(3 * threshold)])
    losses = np.abs(np.concatenate([np.diff(np.log(p)), np.diff(np.log1p(-p[: 2 * threshold]))]))
    assert 0.9 * epsilon <= losses.max() <= epsilon * (1 + 1e-9)
    assert size * p[0] <= 0.01
    assert threshold == 1 or size * tail(threshold - 1) > 0.01


# --- rules ------------------------------------------------------------------------------------------------------------


@both
def test_charge_equals_plan_and_precedes_the_data(parameters, monkeypatch):
    accountant = BudgetAccountant(2.0, 1e-5, composition="basic")
    model = PrivateLabelSet(**parameters, accountant=accountant).fit(many(a=500, b=400))
    (record,) = accountant.records
    assert record.cost == model.privacy_plan().cost == model.privacy_.cost == model._fixed_cost()
    assert accountant.total() == (model.epsilon, model.delta)
    assert set(vars(model)) - set(model.get_params()) == {"classes_", "threshold_", "privacy_"}
    small = BudgetAccountant(0.5, 1e-9)
    monkeypatch.setattr(NoiseSource, "stream", lambda self, label: pytest.fail("noise was drawn"))
    with pytest.raises(BudgetError):
        clone(model).set_params(accountant=small).fit(many(a=500))
    assert len(small) == 0


@both
def test_noise_is_new_without_a_seed_and_the_same_with_one(parameters):
    _, _, threshold = PrivateLabelSet(**parameters)._planned()
    y = many(a=threshold, b=threshold, c=threshold, d=threshold) + ["d"] * 200

    def fits(seeds):
        return [tuple(PrivateLabelSet(**parameters, random_state=seed).fit(y).classes_) for seed in seeds]

    assert len(set(fits([3] * 5))) == 1
    assert len(set(fits(range(30)))) > 1
    assert len(set(fits([None] * 30))) > 1
    with pytest.warns(SeededNoiseWarning):
        PrivateLabelSet(**parameters, random_state=0, accountant=BudgetAccountant(2.0, 1e-5, composition="basic")).fit(
            y
        )


def test_universe_is_all_that_is_asked_about():
    model = PrivateLabelSet(**CLOSED, random_state=5)
    y = many(a=300, b=5, c=300)
    np.testing.assert_array_equal(model.fit(y).classes_, clone(model).fit(y + many(x=10**4)).classes_)


@pytest.mark.parametrize("odd", ["1", b"1", 0.5, 2**63, 10**400, math.inf, "x", 1j], ids=str)
def test_one_records_label_does_not_decide_how_others_are_read(odd):
    model = PrivateLabelSet(epsilon=1.0, universe=[0, 1, 2], random_state=5)
    y = [1] * 300 + [2] * 5
    np.testing.assert_array_equal(model.fit(y).classes_, clone(model).fit([*y, odd]).classes_)


def test_budget_is_split_with_a_classifier():
    accountant = BudgetAccountant(1.0, 1e-5, composition="basic")
    labels = PrivateLabelSet(epsilon=0.2, delta=5e-6, accountant=accountant)
    rng = np.random.default_rng(0)
    y = np.array(many(flu=900, cold=900, rare=1))
    X = rng.uniform(-1, 0, (1801, 2)) + (y == "flu")[:, None]
    model = DPNaiveBayes(epsilon=0.8, delta=5e-6, bounds=(-1, 1), accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(classes=labels.fit(y).classes_).fit(X, y)
    assert model.classes_.tolist() == ["cold", "flu"]
    assert model.score(X, y) > 0.9
    assert accountant.total().epsilon == pytest.approx(1.0)
    allocate(clone(labels).set_params(accountant=None), 0.5, 1e-6)


BAD = [
    ({"epsilon": 0}, ValueError, "epsilon"),
    ({"epsilon": 1.0}, ValueError, "delta"),
    ({"epsilon": 1.0, "delta": 2}, ValueError, "delta"),
    ({"epsilon": 1.0, "universe": ["a"]}, ValueError, "universe"),
    ({"epsilon": 1.0, "universe": [0.0, np.nan]}, ValueError, "universe"),
    ({**CLOSED, "false_alarm": 0}, ValueError, "false_alarm"),
    ({**OPEN, "accountant": 1}, TypeError, "accountant"),
    ({**OPEN, "random_state": "x"}, ValueError, "random_state"),
]


@pytest.mark.parametrize(("parameters", "error", "name"), BAD, ids=str)
def test_bad_parameters_are_named(parameters, error, name):
    with pytest.raises(error, match=name):
        PrivateLabelSet(**parameters).fit(["a"] * 100)


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b"], ["a", "7731"]],
        [1.0, np.nan],
        [1.0, np.inf],
        np.array(["a", 7731, None], dtype=object),
        np.array([1, "7731"], dtype=object),
        [1j, 7731],
        "7731",
    ],
    ids=str,
)
@both
def test_bad_labels_cost_nothing_and_are_not_repeated(y, parameters):
    if "universe" in parameters and isinstance(y, np.ndarray) and None not in y:
        pytest.skip("labels that are no candidates are left out")
    accountant = BudgetAccountant(2.0, 1e-5, composition="basic")
    with pytest.raises((ValueError, TypeError)) as failure:
        PrivateLabelSet(**parameters, accountant=accountant).fit(y)
    assert "7731" not in str(failure.value)
    assert len(accountant) == 0


# --- how labels are read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [0.5, 2**63, 2**70, -(2**53), 10**400])
def test_one_record_does_not_decide_how_large_numbers_are_read(odd):
    # As one array, with a double among them, the two would be the same number.
    for pair in ([2**52 + 1, 2**52 + 2], [2**53 + 1, 2**53 - 1], [2**62 + 1, 2**62 + 2]):
        y = [pair[0]] * 500 + [pair[1]] * 500 + [7] * 500
        without, with_it = (PrivateLabelSet(epsilon=5.0, delta=1e-6).fit(rows).classes_ for rows in (y, [*y, odd]))
        np.testing.assert_array_equal(with_it, without)
        assert without.dtype == with_it.dtype


@pytest.mark.parametrize("odd", [2.5, 2.0, True, 2**40])
@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_one_record_does_not_decide_of_which_type_whole_numbers_are(kind, odd):
    y = [0] * 500 + [1] * 500
    found = [PrivateLabelSet(epsilon=5.0, delta=1e-6).fit(kind(rows)).classes_ for rows in (y, [*y, odd])]
    assert [one.dtype for one in found] == [np.int64, np.int64]


def test_the_sign_of_zero_is_not_shown():
    for zero in (0.0, -0.0):
        for place in (0, 500):
            y = np.array([0.0] * 500 + [1.0] * 500)
            y[place] = zero if place == 0 else 1.0
            assert not np.any(np.signbit(PrivateLabelSet(epsilon=5.0, delta=1e-6).fit(y).classes_))


@pytest.mark.parametrize("y", [[1, 2], np.array([1, 2]), np.array([b"a"]), pd.Series([True])])
def test_labels_of_another_type_than_the_universe(y):
    with pytest.raises(TypeError, match="than those in universe"):
        PrivateLabelSet(**CLOSED).fit(y)


@pytest.mark.parametrize("kind", [list, lambda labels: np.array(labels, dtype=object), pd.Series])
def test_a_universe_of_text_in_any_container(kind):
    y = ["a"] * 500 + ["b"] * 500
    for labels in (y, pd.Series(y), np.array(y, dtype=object)):
        model = PrivateLabelSet(epsilon=5.0, universe=kind(["a", "b", "c"])).fit(labels)
        assert model.classes_.tolist() == ["a", "b"]
