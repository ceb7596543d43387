"""Naive Bayes from reports: what is reported, what it depends on, and what is learned from it.

A stochastic test refuses right code with probability 1e-6 at most, over the choice of its seed, which is fixed.
"""

import math
from collections import UserList, deque

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import CategoricalNB

from skdp import BudgetAccountant, DPNaiveBayes, LocalDPNaiveBayes, UnaryEncoder
from skdp.accounting import Relation
from skdp.exceptions import BudgetError
from skdp.local._naive_bayes import best_channel, pair_codes
from skdp.mechanisms import HadamardChannel, KaryChannel
from tests.local.test_transformers import Odd, OddText
from tests.naive_bayes.test_nursery import CATEGORIES, nursery

__all__ = ["nursery"]

BEYOND = float(stats.norm.isf(0.5e-6))
NAN = float("nan")


def survey(n=4000, seed=0):
    """Three classes, a column that tells them, one that does not, and one of numbers."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    told = np.where(rng.uniform(size=n) < 0.8, y, rng.choice(3, n))
    return np.column_stack([told, rng.choice(4, n), rng.normal(y, 0.7)]), y


def model(**parameters):
    defaults = {
        "categorical_features": [0, 1],
        "n_categories": [3, 4],
        "bounds": (-2.0, 4.0),
        "classes": [0, 1, 2],
        "epsilon": 3.0,
    }
    return LocalDPNaiveBayes(**{**defaults, **parameters})


def test_a_row_reports_one_pair_or_a_few():
    X, y = survey(500)
    reports = model(epsilon=1.0).randomize(X, y)
    assert reports.shape == (500, 4)
    assert reports.dtype == np.int64
    assert np.all((reports >= 0).sum(axis=1) == 1)
    assert np.all(model(n_reported="all").randomize(X, y) >= 0)
    # The same rows, one by one, where they are.
    apart = np.vstack([model(epsilon=1.0).randomize(X[i : i + 1], y[i : i + 1]) for i in range(5)])
    assert apart.shape == (5, 4)


def test_fit_is_randomize_and_fit_reports():
    X, y = survey(800)
    whole = model(random_state=4).fit(X, y)
    reports = model(random_state=4).randomize(X, y)
    for form in (reports, reports.tolist(), pd.DataFrame(reports), reports.astype(float)):
        server = model().fit_reports(form)
        np.testing.assert_array_equal(server.predict_proba(X), whole.predict_proba(X))
        assert server.privacy_ == whole.privacy_
        assert server.n_features_in_ == 3


def test_what_is_charged():
    X, y = survey(100)
    accountant = BudgetAccountant(7.0)
    local = model(accountant=accountant)
    reports = local.randomize(X, y)
    local.fit_reports(reports)
    assert [(record.label, record.cost.epsilon) for record in accountant.records] == [("randomize", 3.0)]
    local.fit(X, y)
    assert accountant.records[1].label == "fit"
    with pytest.raises(BudgetError):
        local.randomize(X, y)
    assert local.privacy_.relation == Relation.REPLACE_RECORD
    assert local.privacy_.replace_one == (3.0, 0.0)


@pytest.mark.parametrize("n_reported", [1, 2, "all"])
def test_a_report_depends_on_its_own_row_alone(n_reported):
    X, y = survey(200)
    local = model(n_reported=n_reported, random_state=9)
    before = local.randomize(X, y)
    for row, label in (([2, 3, -9.0], 1), ([77, -1, 1e300], 2), ([0, 0, 0], 5), ([0.5, 0, 0], "x"), ([0, 0, 0], 1j)):
        changed, labels = X.copy(), y.astype(object)
        changed[17], labels[17] = row, label
        after = local.randomize(changed, labels)
        np.testing.assert_array_equal(np.delete(before, 17, axis=0), np.delete(after, 17, axis=0))


class Closed:
    def __getattribute__(self, name):
        raise ValueError("patient-7731")


def object_array(entries):
    return np.fromiter(entries, dtype=object, count=len(entries))


#: Labels that a central classifier would refuse; for one row on a phone, the error would be the answer.
ODD_LABELS = (
    *("1", b"1", 0.5, 1j, 2**63, 10**400, math.inf, None, NAN, pd.NA, pd.NaT, np.datetime64("2020"), [], [1, 2]),
    *(np.timedelta64(1, "ns"), np.datetime64(1, "ns"), {1: 1}, (1, 2), object(), Odd(), OddText("a")),
)


@pytest.mark.parametrize("which", range(len(ODD_LABELS)))
@pytest.mark.parametrize(
    "form", [list, object_array, pd.Series, lambda y: pd.Series(y).to_frame()], ids=["list", "array", "series", "frame"]
)
def test_one_records_label_is_never_refused_and_does_not_decide_how_others_are_read(which, form):
    X, y = survey(50)
    odd = ODD_LABELS[which]
    local = model(random_state=9, n_reported="all")
    before = local.randomize(X, y)
    np.testing.assert_array_equal(local.randomize(X, form([*y[:-1].tolist(), odd]))[:-1], before[:-1])
    accountant = BudgetAccountant(10.0)
    alone = model(accountant=accountant).randomize(X[:1], form([odd]))
    assert alone.shape == (1, 4)
    assert len(accountant) == 1
    model().fit(X[:1], form([odd]))


@pytest.mark.parametrize("classes", [[0, 1, 2], [0.5, 1.0, 7.0], [False, True], ["a", "b"], [b"a", b"b"], ["1", "02"]])
def test_one_text_does_not_decide_how_other_rows_of_an_array_are_read(classes):
    X, _ = survey(40)
    y = np.resize(np.array(classes), 40)
    local = model(classes=classes, random_state=9, n_reported="all")
    before = local.randomize(X, y)[:-1]
    numbers = [float(label) if label in ("1", "02") else label for label in y.tolist()[:-1]]
    for odd in ("x", "1", ""):
        for labels in (np.array([*y.tolist()[:-1], odd]), np.array([*numbers, odd]), np.array([*numbers, numbers[-1]])):
            np.testing.assert_array_equal(local.randomize(X, labels)[:-1], before)
    rows = X.astype(str)
    rows[-1, 0] = " 2.5"
    np.testing.assert_array_equal(local.randomize(rows, y)[:-1], before)


@pytest.mark.parametrize("kind", [tuple, deque, UserList])
def test_labels_in_any_sequence_are_read_one_by_one(kind):
    X, _ = survey(40)
    local = model(classes=["7", "08"], random_state=9, n_reported="all")
    labels = [7, "08"] * 20
    np.testing.assert_array_equal(local.randomize(X, kind(labels)), local.randomize(X, labels))


@pytest.mark.parametrize("classes", [[0, 1, 2], ["a", "b", "c"], [b"a", b"b"], [False, True]])
def test_labels_are_read_as_they_are(classes):
    X, _ = survey(6)
    y = np.resize(np.array(classes), 6)
    plain = model(classes=classes, random_state=0).randomize(X, y)
    for form in (y.tolist(), pd.Series(y), y[:, None], y[:, None].tolist(), y.astype(object)):
        np.testing.assert_array_equal(model(classes=classes, random_state=0).randomize(X, form), plain)
    for kind in {"text": ["x"], "number": [7], "bytes": [b"x"], "time": np.array(["2020"], "M8[D]")}.values():
        for form in (np.resize(np.array(kind), 6), np.resize(np.array(kind), 6).tolist()):
            assert model(classes=classes).randomize(X, form).shape == (6, 4)


def test_objects_that_do_not_even_tell_their_class_are_labels_and_categories():
    X, y = survey(5)
    labels = [*y[:-1].tolist(), Closed()]
    for form in (labels, object_array(labels)):
        assert model().randomize(X, form).shape == (5, 4)
    for form in ([[0], [Closed()]], object_array([0, Closed()])[:, None]):
        assert UnaryEncoder(2, epsilon=math.inf).fit_transform(form).tolist() == [[1, 0], [0, 0]]


def test_labels_that_one_entry_may_be_are_refused():
    accountant = BudgetAccountant(1.0)
    with pytest.raises(ValueError, match="classes must not hold two texts that spell the same number"):
        model(classes=["7", "007"], accountant=accountant).fit(np.zeros((4, 3)), ["7", "007", "7", "x"])
    assert len(accountant) == 0


def test_labels_of_another_shape_are_refused():
    X, y = survey(6)
    for bad in (y[:-1], np.stack([y, y], axis=1), 1, "abcdef"):
        with pytest.raises(ValueError, match="y"):
            model().randomize(X, bad)


def test_undeclared_labels_are_no_cell_of_any_table():
    X, y = survey(40)
    y[5] = y[17] = -1
    columns = model()._check_parameters().columns.resolve(3, None)
    codes = pair_codes(X, y, columns)
    assert np.all((codes == -1) == (y == -1)[:, None])


def test_undeclared_labels_are_reported_uniformly():
    # Without noise, a declared label is reported as it is; another is spread over all reports.
    n = 12_000
    local = model(epsilon=math.inf, n_reported="all", random_state=0)
    X = np.tile([1.0, 2.0, 0.0], (n, 1))
    reports = local.randomize(X, np.full(n, 7))
    for channel, column in zip(local.privacy_plan(n_features=3).releases[0].mechanism.channels, reports.T, strict=True):
        counts = np.bincount(column, minlength=channel.n_reports)
        assert stats.chisquare(counts).pvalue > 1e-6 / 4
    assert len(np.unique(local.randomize(X, np.ones(n)), axis=0)) == 1


def test_unknown_labels_are_reported_like_others():
    X, _ = survey(300)
    reports = model(n_reported=1).randomize(X, np.full(300, 9))
    assert reports.shape == (300, 4)
    assert np.all((reports >= 0).sum(axis=1) == 1)


@pytest.mark.sample(every=3)
def test_pairs_are_estimated_without_bias():
    X, y = survey(3000)
    truth = np.array([[np.mean((y == c) & (X[:, 0] == v)) for v in (*range(3), 9)] for c in range(3)])
    means = []
    for seed in range(150):
        local = model(epsilon=2.0, random_state=seed)
        reports = local.randomize(X, y)
        channel = local.privacy_plan(n_features=3).releases[0].mechanism.channels[0]
        own = reports[reports[:, 0] >= 0, 0]
        means.append(channel.scores(channel.counts(own), len(own)).reshape(3, 4) / len(own))
    means = np.array(means)
    error = means.std(axis=0, ddof=1) / math.sqrt(150)
    # With the t distribution of 149 degrees of freedom, of twelve cells.
    assert np.abs((means.mean(axis=0) - truth) / error).max() < float(stats.t.isf(0.5e-6 / 12, 149))


@pytest.mark.sample(every=2)
def test_class_counts_are_right_on_average():
    X, y = survey(3000)
    counts = [model(epsilon=3.0, random_state=seed).fit(X, y).class_count_ for seed in range(100)]
    error = np.std(counts, axis=0, ddof=1) / 10
    assert np.abs((np.mean(counts, axis=0) - np.bincount(y)) / error).max() < float(stats.t.isf(0.5e-6 / 3, 99))


def test_without_noise_it_is_naive_bayes():
    X, y = survey(2000)
    X = X[:, :2]
    local = model(epsilon=math.inf, dependence=0.0, bounds=None).fit(X, y)
    reference = CategoricalNB(alpha=1.0, min_categories=[3, 4]).fit(X.astype(int), y)
    np.testing.assert_allclose(local.predict_proba(X), reference.predict_proba(X.astype(int)), atol=1e-6)
    np.testing.assert_allclose(local.class_count_, reference.class_count_)
    central = DPNaiveBayes(
        epsilon=math.inf, categorical_features=[0, 1], n_categories=[3, 4], classes=range(3), dependence=0.0
    ).fit(X, y)
    np.testing.assert_allclose(local.predict_proba(X), central.predict_proba(X), atol=1e-6)


def test_one_symbol_for_a_pair_has_less_error_than_two():
    # Sizes of Nursery: five labels, five categories and unknown.
    for epsilon in (0.5, 1.0, 3.0):
        joint = best_channel(epsilon, 30).mean_square
        apart = best_channel(epsilon / 2, 5).mean_square * best_channel(epsilon / 2, 6).mean_square
        assert joint < apart / 2


def test_channels_are_chosen_by_their_error():
    assert isinstance(best_channel(1.0, 3), KaryChannel)
    assert isinstance(best_channel(1.0, 100), HadamardChannel)
    assert isinstance(best_channel(6.0, 100), KaryChannel)


def test_column_names():
    X, y = survey(300)
    frame = pd.DataFrame(X, columns=["told", "other", "size"])
    local = model(categorical_features=["told", "other"], random_state=2)
    reports = local.randomize(frame, y)
    np.testing.assert_array_equal(reports, model(random_state=2).randomize(X, y))
    assert local.fit_reports(reports).predict(frame).shape == (300,)
    with pytest.raises(ValueError, match="reports have no names"):
        model(categorical_features=["told", "other"]).fit_reports(reports)


def test_bad_reports_and_missing_classes():
    X, y = survey(50)
    reports = model().randomize(X, y)
    for bad in (reports + 500, reports - 1, reports + 0.5, reports[:, :1], np.full(reports.shape, 1e300)):
        with pytest.raises(ValueError, match=r"reports|features"):
            model().fit_reports(bad)
    with pytest.raises(ValueError, match="NaN"):
        model().fit_reports(np.full((3, 4), NAN))
    undeclared = model(classes=None)
    for call in (lambda: undeclared.randomize(X, y), lambda: undeclared.fit_reports(reports)):
        with pytest.raises(ValueError, match="classes"):
            call()
    with pytest.raises(NotFittedError):
        model().predict(X)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_reports(n_rows):
    X, y = survey(100)
    local = model(epsilon=0.1).fit_reports(model(epsilon=0.1).randomize(X, y)[:n_rows])
    assert np.all(np.isfinite(local.predict_proba(X)))


def test_accuracy_grows_with_epsilon():
    X, y = survey(8000)
    reached = [
        np.mean([model(epsilon=e, random_state=s).fit(X, y).score(X, y) for s in range(3)]) for e in (0.05, 1.0, 6.0)
    ]
    assert reached[0] < reached[1] < reached[2]
    assert reached[2] > 0.8


@pytest.mark.nursery
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.5), (3.0, 0.85), (10.0, 0.88)])
def test_accuracy_on_nursery(nursery, epsilon, least):
    X, y = nursery
    reached = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [round(0.8 * len(y))])
        local = LocalDPNaiveBayes(
            epsilon=epsilon,
            categorical_features=range(8),
            n_categories=[len(names.split()) for names in CATEGORIES[:8]],
            classes=range(5),
            random_state=seed,
        )
        reached.append(local.fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(reached) >= least, np.mean(reached)
