"""Functions and searches that count groups: what a group moves, who is in which part, what is charged and refused."""

import math
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline

import skdp
from skdp import (
    BoundsScaler,
    BudgetAccountant,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomizedSearchCV,
    DPStandardScaler,
    ObjPertLogReg,
    allocate,
)
from skdp.exceptions import BudgetError, SchemaMismatchWarning
from skdp.mechanisms import NoiseSource
from skdp.model_selection import (
    _evaluation,
    _scoring,
    _search,
    _stateless,
    _strategies,
    private_cross_val_score,
    private_score,
)
from skdp.model_selection._search import PrivateSearch
from skdp.preprocessing import _quantiles, private_bounds
from skdp.release import units as _groups
from skdp.release.session import PrivacyGuarantee, ReleaseSession
from skdp.schema.entries import check_index
from skdp.sensitivity import PARTS
from tests.estimators import BY_GROUP
from tests.model_selection.stubs import NoisyCount
from tests.neighbours import MOVED

LABELS = {"classes": [0, 1]}
DELTA = 1e-5
FITTED = []


class Counted(NoisyCount):
    """Has rows_per_group, and remembers which rows of which groups it was fitted to."""

    def __init__(self, label=0, *, rows_per_group=None, epsilon=1.0, delta=0.0, classes=(0, 1), fail=False,
                 accountant=None, random_state=None):  # fmt: skip
        super().__init__(label, epsilon=epsilon, delta=delta, classes=classes, fail=fail, accountant=accountant,
                         random_state=random_state)  # fmt: skip
        self.rows_per_group = rows_per_group

    def fit(self, X, y, *, groups=None):
        assert (groups is None) == (self.rows_per_group is None)
        assert groups is None or len(groups) == len(X)
        FITTED.append((X[:, 0].tolist(), None if groups is None else groups.tolist()))
        return super().fit(X, y)

    def predict_proba(self, X):
        return np.eye(2)[self.predict(X)]


PUBLIC = LogisticRegression().fit([[-1.0, 0.0], [1.0, 0.0]], [0, 1])

WEIGHTS = {"label_weights": {0: 1.0, 1: 3.0}}
SCORES = {
    "accuracy": {},
    "balanced_accuracy": WEIGHTS,
    "neg_log_loss": {},
    "confusion_matrix": {},
    "histogram": {"n_bins": 3},
}


def scored(metric, X, y, **given):
    return private_score(PUBLIC, X, y, metric=metric, **SCORES[metric], **given)


def bounds_of(X, y, **given):
    return private_bounds(X, exponents=(-3, 3), **given)


def validated(X, y, rows_per_group=None, **given):
    scoring = {"scoring": "balanced_accuracy", **WEIGHTS, "cv": 3}
    return private_cross_val_score(
        Counted(1, rows_per_group=rows_per_group), X, y, rows_per_group=rows_per_group, **scoring, **given
    )


def searched(strategy, X, y, rows_per_group=None, groups=None, refit="auto", scoring="balanced_accuracy", **given):
    search = DPGridSearchCV(
        Counted(rows_per_group=rows_per_group),
        {"label": [0, 1]},
        strategy=strategy,
        rows_per_group=rows_per_group,
        scoring=scoring,
        validation_fraction=0.5,
        refit=refit,
        **WEIGHTS,
        **given,
    )
    return search.fit(X, y, groups=groups)


PLANNED = {}


@pytest.fixture(autouse=True)
def plans_once(monkeypatch):
    """Without what takes the time of a search with quick candidates, and does nothing to what it releases."""
    plan = PrivateSearch._planned

    def once(search, whole, candidates, score):
        names = ("strategy", "epsilon", "delta", "rows_per_group", "scoring", "refit")
        key = str([getattr(search, name) for name in names] + [str(c.estimator.get_params()) for c in candidates])
        if key not in PLANNED:
            PLANNED[key] = plan(search, whole, candidates, score)
        return PLANNED[key]

    monkeypatch.setattr(PrivateSearch, "_planned", once)
    for module in (_scoring, _strategies, _stateless):
        monkeypatch.setattr(module, "silence", nullcontext)


STRATEGIES = ("holdout", "repeat")

FUNCTIONS = {
    **{f"private_score, {metric}": partial(scored, metric) for metric in SCORES},
    "private_bounds": bounds_of,
    "private_cross_val_score": validated,
    **{f"DPGridSearchCV, {strategy}": partial(searched, strategy) for strategy in STRATEGIES},
    "DPGridSearchCV, holdout, f1": partial(searched, "holdout", scoring="f1", refit=False),
}

every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
with_both = pytest.mark.parametrize("delta", [0.0, DELTA])


def data(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, size=(n_rows, 2)), rng.integers(2, size=n_rows), np.arange(n_rows) // 4


# --- what a group moves ----------------------------------------------------------------------------------------------


def inputs(function, X, y, groups, monkeypatch, **given):
    """What goes into the releases of a function itself, and not into those of fits inside."""
    found = {}
    release = ReleaseSession.release

    def note(self, label, value):
        if label != "count":
            found[label] = self._waiting[label], np.array(value, dtype=float)
        return release(self, label, value)

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseSession, "release", note)
        function(X, y, groups=groups, **given)
    return found


def moved(mechanism, difference):
    if mechanism.norm == "score":
        return MOVED["score"](np.atleast_2d(difference))
    if mechanism.name.startswith("best of"):
        # Each run's score has noise of its own.
        return np.abs(difference).max(initial=0.0)
    return MOVED[mechanism.norm](difference)


def largest_move(function, rows, sizes, delta, monkeypatch, n_rows=40, seeds=range(8)):
    most = 0.0
    X, y, groups = data(n_rows)
    for seed in seeds:
        given = {"rows_per_group": rows, "epsilon": 1.0, "delta": delta, "random_state": seed}
        without = inputs(function, X, y, groups, monkeypatch, **given)
        for corner in ([1.0, 1.0], [-50.0, 50.0]):
            for size in sizes:
                for label in (0, 1):
                    # Last, so that the others draw the same.
                    more = (
                        np.concatenate([X, np.tile(corner, (size, 1))]),
                        np.concatenate([y, np.full(size, label)]),
                        np.concatenate([groups, np.full(size, 99)]),
                    )
                    with_it = inputs(function, *more, monkeypatch, **given)
                    for name, (mechanism, value) in without.items():
                        part = moved(mechanism, with_it[name][1] - value) / mechanism.sensitivity
                        most = max(most, part)
    return most


@every_function
@with_both
@pytest.mark.parametrize("rows", [1, 3])
def test_no_release_moves_by_more_than_a_group_may(function, delta, rows, monkeypatch):
    most = largest_move(function, rows, (1, rows, 5 * rows), delta, monkeypatch)
    assert 0.9 <= most <= 1 + 1e-9


def count_all_rows(monkeypatch):
    monkeypatch.setattr(_groups, "drawn_rows", lambda members, most, stream: np.arange(len(members)))


def noise_for_one_row(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PLANNED", {})
    for module in (_evaluation, _search):
        monkeypatch.setattr(module, "group_sensitivity", lambda sensitivity, rows: sensitivity)
    original = _quantiles.quantile_mechanism
    monkeypatch.setattr(_quantiles, "quantile_mechanism", lambda *args: original(*args[:-1], 1))


def parts_by_record(monkeypatch):
    def divide(self, probabilities):
        stream = self.source.stream("membership")
        parts = skdp.mechanisms.draw_parts(probabilities, len(self.y), stream)
        return [np.flatnonzero(parts == part) for part in range(len(probabilities))]

    monkeypatch.setattr(_evaluation.SearchContext, "divide", divide)


@every_function
@pytest.mark.parametrize("broken", [count_all_rows, noise_for_one_row])
def test_what_is_broken_on_purpose_moves_by_more(function, broken, monkeypatch):
    broken(monkeypatch)
    assert largest_move(function, 3, (15,), 0.0, monkeypatch) > 2


@every_function
def test_counts_are_those_of_the_rows_that_count(function, monkeypatch):
    # Five equal rows of each group, of which two count: it does not matter which.
    X, y, _ = data(20)
    X, y, groups = np.repeat(X, 5, axis=0), np.repeat(y, 5), np.repeat(np.arange(20), 5)
    for name, (_, value) in inputs(
        function, X, y, groups, monkeypatch, rows_per_group=2, epsilon=1.0, random_state=0
    ).items():
        # Quantiles count shares of records.
        assert np.all(value * (PARTS if name == "quantiles" else 1) % 2 == 0), name


def test_undeclared_labels_are_among_the_rows_that_count():
    X, y, groups = np.zeros((40, 2)), np.array([0, 7] * 20), np.zeros(40)
    given = {"rows_per_group": 30, "groups": groups, "epsilon": math.inf}
    for metric, weight in (("confusion_matrix", 1.0), ("histogram", 1.0), ("balanced_accuracy", 1365 / 4096)):
        with pytest.warns(SchemaMismatchWarning, match="have a label that is not in classes"):
            assert 10 <= scored(metric, X, y, **given).counts.sum() / weight <= 20
    # They are wrong for these.
    with pytest.warns(SchemaMismatchWarning):
        assert scored("accuracy", X, y, **given).counts.sum() == 30


# --- parts -----------------------------------------------------------------------------------------------------------


def spied(function, monkeypatch, **given):
    """Fits of a function, with the rows that each model was scored on."""
    FITTED.clear()
    tested = []
    for kind, name in [(_scoring.Score, "_gains"), (_scoring.Table, "tally")]:
        count = getattr(kind, name)

        def noted(self, model, X, y, count=count):
            tested.append(X[:, 0].astype(int).tolist())
            return count(self, model, X, y)

        monkeypatch.setattr(kind, name, noted)
    n = 80
    rng = np.random.default_rng(1)
    X, groups = np.column_stack([np.arange(n), np.zeros(n)]).astype(float), rng.integers(15, size=n)
    function(X, np.zeros(n, dtype=int), groups=groups, **given)
    fits = [(np.array(rows).astype(int), of) for rows, of in FITTED if len(rows)]
    return fits, tested, groups


DIVIDED = {name: FUNCTIONS[name] for name in FUNCTIONS if "Grid" in name or "cross" in name}


@pytest.mark.parametrize("function", DIVIDED.values(), ids=DIVIDED.keys())
@pytest.mark.parametrize("rows", [1, 3])
def test_all_rows_of_a_group_are_in_one_part(function, rows, monkeypatch):
    fits, tested, groups = spied(function, monkeypatch, rows_per_group=rows, epsilon=5.0)
    assert fits
    assert tested
    for row_numbers, of in fits:
        # The fit knows whose rows they are.
        assert len(set(zip(of, groups[row_numbers], strict=True))) == len(set(of))
        for group in set(groups[row_numbers]):
            assert set(np.flatnonzero(groups == group)) <= set(row_numbers)
    for test in tested:
        assert np.bincount(groups[test], minlength=1).max(initial=0) <= rows
        assert any(not set(groups[test]) & set(groups[row_numbers]) for row_numbers, _ in fits)


def test_rows_are_scored_once(monkeypatch):
    _, tested, groups = spied(validated, monkeypatch, rows_per_group=3, epsilon=5.0)
    counted = np.concatenate(tested).astype(int)
    assert len(set(counted)) == len(counted)
    np.testing.assert_array_equal(
        np.bincount(groups[counted], minlength=15), np.minimum(np.bincount(groups, minlength=15), 3)
    )


@pytest.mark.parametrize("function", DIVIDED.values(), ids=DIVIDED.keys())
def test_parts_by_record_would_be_seen(function, monkeypatch):
    parts_by_record(monkeypatch)
    fits, _, groups = spied(function, monkeypatch, rows_per_group=3, epsilon=5.0)
    split = [not set(np.flatnonzero(groups == group)) <= set(rows) for rows, _ in fits for group in set(groups[rows])]
    assert any(split)


# --- guarantee, charge, refusals -------------------------------------------------------------------------------------


@every_function
@with_both
def test_it_is_charged_once_for_groups(function, delta, monkeypatch):
    X, y, groups = data()
    accountant = BudgetAccountant(2.0, delta, unit="group", composition="basic")
    given = {"rows_per_group": 3, "groups": groups, "epsilon": 1.0, "delta": delta}
    out = function(X, y, accountant=accountant, **given)
    assert accountant.total() == (1.0, delta)
    (record,) = accountant.records
    alone = BudgetAccountant(2.0, delta, composition="basic")
    function(X, y, epsilon=1.0, delta=delta, accountant=alone)
    assert record.cost == alone.records[0].cost
    for one, other in zip(record.releases, alone.records[0].releases, strict=True):
        # Of small sensitivities, what is allowed for rounding is a part.
        assert 2.4 <= one.sensitivity / other.sensitivity <= 3.001
        assert 2.4 <= one.scale / other.scale <= 3.001
    plan = getattr(out, "privacy_", None) or getattr(out, "privacy", None)
    if plan is not None:
        assert plan.unit == "group"
        assert "of which at most 3 count" in repr(plan)
    if isinstance(out, DPGridSearchCV):
        assert out.privacy_plan() == out.privacy_
        assert out._fixed_cost() == record.cost
    with pytest.raises(BudgetError, match="rows_per_group need BudgetAccountant"):
        function(X, y, accountant=BudgetAccountant(2.0, delta), **given)


@every_function
def test_charge_precedes_the_draw(function, monkeypatch):
    def fail(self, label):
        raise MemoryError

    monkeypatch.setattr(NoiseSource, "stream", fail)
    monkeypatch.setattr(Counted, "fit", lambda self, X, y, *, groups: self)
    X, y, groups = data()
    accountant = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(MemoryError):
        function(X, y, rows_per_group=3, groups=groups, epsilon=1.0, accountant=accountant)
    assert len(accountant) == 1


BAD = [
    ({"groups": None}, ValueError, "groups must be given"),
    ({"rows_per_group": None}, ValueError, "rows_per_group must be set"),
    ({"rows_per_group": 0}, ValueError, "rows_per_group"),
    ({"rows_per_group": 10**7}, ValueError, "rows_per_group"),
    ({"rows_per_group": 2.0}, TypeError, "rows_per_group"),
    ({"rows_per_group": True}, TypeError, "rows_per_group"),
    ({"groups": [1, 2]}, ValueError, "same number of rows"),
    ({"groups": 7}, ValueError, "one-dimensional"),
    ({"groups": [None] * 60}, ValueError, "missing"),
    ({"groups": [[1]] * 60}, TypeError, "numbers or text"),
]


@every_function
@pytest.mark.parametrize(("changed", "error", "match"), BAD, ids=lambda value: str(value)[:30])
def test_bad_groups_cost_nothing(function, changed, error, match):
    X, y, groups = data()
    accountant = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(error, match=match) as failure:
        function(X, y, **{"rows_per_group": 3, "groups": groups, "epsilon": 1.0, "accountant": accountant, **changed})
    assert failure.value.__cause__ is None
    assert len(accountant) == 0


@every_function
def test_little_data_and_many_rows(function):
    X, y, groups = data()
    for n in (0, 1, 60):
        for epsilon in (0.01, 10.0):
            function(X[:n], y[:n], rows_per_group=10**6, groups=groups[:n], epsilon=epsilon, delta=DELTA)
            function(X[:n], y[:n], rows_per_group=10**6, groups=groups[:n], epsilon=epsilon)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.coo_matrix])
def test_rows_in_any_form(form):
    X, y, groups = data()
    given = {"rows_per_group": 4, "groups": groups, "epsilon": math.inf}
    np.testing.assert_array_equal(
        scored("confusion_matrix", form(X), y, **given).counts, scored("confusion_matrix", X, y, **given).counts
    )


# --- messages --------------------------------------------------------------------------------------------------------


@every_function
def test_a_budget_of_groups_says_what_to_do(function):
    X, y, _ = data()
    persons = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(BudgetError, match="rows_per_group") as failure:
        function(X, y, epsilon=1.0, accountant=persons)
    name = persons_name(function)
    assert f"the charge of {name}" in str(failure.value)
    assert len(persons) == 0


def persons_name(function):
    return next(name for name, one in FUNCTIONS.items() if one is function).split(",")[0]


def test_budgets_of_groups_name_the_class_and_the_way_out():
    X, y, _ = data()
    persons = BudgetAccountant(10.0, 1e-3, unit="group")
    with pytest.raises(BudgetError, match="the charge of ObjPertLogReg") as failure:
        ObjPertLogReg(data_norm=1.0, **LABELS, accountant=persons).fit(X, y)
    for part in ("Set rows_per_group, and pass groups", "k * epsilon", "delta=0"):
        assert part in str(failure.value)
    with pytest.raises(
        BudgetError, match=r"the charge of DPNaiveBayes about one record\. Set rows_per_group, and pass"
    ):
        DPNaiveBayes(bounds=(-1, 1), **LABELS, accountant=persons).fit(X, y)
    with pytest.raises(BudgetError, match="Set rows_per_group"):
        BudgetAccountant(
            10.0, unit="group", plan=[ObjPertLogReg(data_norm=1.0).privacy_plan(n_features=2, n_classes=2)]
        )
    pipeline = make_pipeline(DPStandardScaler(bounds=(-1, 1), rows_per_group=2), ObjPertLogReg(data_norm=1.0, **LABELS))
    with pytest.raises(ValueError, match="objpertlogreg would count rows, and dpstandardscaler groups"):
        allocate(pipeline, epsilon=1.0)


@pytest.mark.parametrize("kind", [DPGridSearchCV, DPRandomizedSearchCV])
def test_searches_and_their_estimators_count_the_same(kind):
    X, y, groups = data()
    bayes = DPNaiveBayes(bounds=(-1, 1), **LABELS)
    by_group = clone(bayes).set_params(rows_per_group=2)
    grid = {"alpha": [0.5, 1.0]}

    def search(estimator, rows, grid=grid):
        more = {"n_iter": 2} if kind is DPRandomizedSearchCV else {}
        return kind(estimator, grid, rows_per_group=rows, epsilon=5.0, **more)

    with pytest.raises(ValueError, match="Set rows_per_group of the search as well"):
        search(by_group, None).fit(X, y)
    with pytest.raises(ValueError, match="Set rows_per_group of the search as well"):
        search(by_group, None).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="must be set for DPNaiveBayes as well"):
        search(bayes, 2).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="must be set for DPNaiveBayes as well"):
        search(by_group, 2, {"rows_per_group": [1, None]}).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="ObjPertLogReg, which counts records, has no such parameter"):
        search(ObjPertLogReg(data_norm=1.0, **LABELS), 2, {"C": [0.1, 1.0]}).fit(X, y, groups=groups)
    found = search(by_group, 2, {"rows_per_group": [1, 4]}).fit(X, y, groups=groups)
    assert found.best_estimator_.privacy_.unit == "group"
    with pytest.raises(ValueError, match="Set rows_per_group of the search as well"):
        private_cross_val_score(by_group, X, y)


# --- pipelines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("frame", [False, True])
def test_groups_reach_all_private_steps(routing, frame, monkeypatch):
    X, y, groups = data(120)
    X = pd.DataFrame(X, index=np.arange(120)[::-1]) if frame else X
    groups = pd.Series(groups, index=X.index) if frame else groups
    seen = []
    numbers = _groups.Unit.numbers
    monkeypatch.setattr(
        _groups.Unit, "numbers", lambda self, groups, X: seen.append((len(X), groups)) or numbers(self, groups, X)
    )
    scaler = DPStandardScaler(bounds=(-1, 1), rows_per_group=2)
    inner = make_pipeline(BoundsScaler((-2, 2)), scaler)
    model = make_pipeline(
        FeatureUnion([("one", inner), ("other", clone(scaler))]),
        DPNaiveBayes(bounds=(-3, 3), **LABELS, rows_per_group=3),
    )
    with config_context(enable_metadata_routing=routing):
        search = DPGridSearchCV(model, {"dpnaivebayes__alpha": [0.5, 1.0]}, epsilon=50.0, rows_per_group=2)
        search.fit(X, y, groups=groups)
        scores = private_cross_val_score(model, X, y, cv=2, epsilon=50.0, rows_per_group=2, groups=groups)
    assert scores.shape == (2,)
    assert all(len(of) == n for n, of in seen)
    fitted = search.best_estimator_
    assert isinstance(fitted[-1], DPNaiveBayes)
    assert [type(fitted[0].transformer_list[i][1]) for i in range(2)] == [type(inner), DPStandardScaler]
    assert fitted[-1].privacy_.unit == fitted[0].transformer_list[1][1].privacy_.unit == "group"
    fitted.predict(X)


# --- indexes ---------------------------------------------------------------------------------------------------------


def fitted_by(model, X, y, rows_per_group, groups, epsilon, accountant):
    y = None if isinstance(model, DPStandardScaler | skdp.NoisyHistogram) else y
    model = clone(model).set_params(rows_per_group=rows_per_group, epsilon=epsilon, accountant=accountant)
    return model.fit(X, y, groups=groups)


ALL = FUNCTIONS | {type(model).__name__: partial(fitted_by, model) for model in reversed(BY_GROUP)}


@pytest.mark.parametrize("function", ALL.values(), ids=ALL.keys())
def test_groups_in_another_order_are_refused(function):
    X, y, groups = data()
    names = [f"row {i}" for i in range(60)]
    X, groups = pd.DataFrame(X, columns=["a", "b"], index=names), pd.Series(groups, index=names)
    other = groups.sample(frac=1.0, random_state=0)
    accountant = BudgetAccountant(10.0, 1e-3, unit="group")
    given = {"rows_per_group": 3, "epsilon": 1.0, "accountant": accountant}
    for wrong in (other, groups.reset_index(drop=True), groups.iloc[:-1]):
        with pytest.raises(ValueError, match="different indexes") as failure:
            function(X, y, groups=wrong, **given)
        assert "row 1" not in str(failure.value)
        assert failure.value.__context__ is None
    assert len(accountant) == 0
    if FITTED is not None:
        for right in (
            groups,
            other.loc[X.index],
            other.to_numpy(),
            groups.tolist(),
            groups.reset_index(drop=True).array,
        ):
            function(X.to_numpy(), y, groups=right, **(given | {"accountant": None}))


def test_indexes_that_are_equal():
    X = pd.DataFrame(np.zeros((3, 1)))
    check_index(X, pd.Series([1, 1, 2], index=[0, 1, 2]), "groups")
    check_index(X, pd.DataFrame([1, 1, 2]), "groups")
    check_index(X, pd.Index([1, 1, 2]), "groups")
    check_index(X[0], pd.Series([1, 1, 2]), "groups")
    check_index([[0.0]] * 3, pd.Series([1, 1, 2], index=[5, 6, 7]), "groups")
    with pytest.raises(ValueError, match="different indexes"):
        check_index(X[0], pd.Series([1, 1, 2], index=[0, 2, 1]), "groups")
    check_index({"a": [0, 1, 2]}, pd.Series([1, 1, 2], index=[5, 6, 7]), "groups")
    check_index({"b": [0, 1, 2], "a": X[0]}, pd.Series([1, 1, 2]), "groups")
    with pytest.raises(ValueError, match="different indexes"):
        check_index({"b": [0, 1, 2], "a": X[0]}, pd.Series([1, 1, 2], index=[0, 2, 1]), "groups")


def test_plans_say_where_so_many_rows_count():
    plan = PrivacyGuarantee(1.0, 0.0, (), ())
    assert "at most 2 count in a score" in _groups.Unit.of(2).stated(plan, "a score").limit


@pytest.mark.parametrize(("outer", "inner"), [(3, None), (None, 2)])
def test_allocate_sees_what_the_steps_of_a_search_count(outer, inner):
    # Else the step before the search is charged, and the search refuses after that.
    search = DPGridSearchCV(
        DPNaiveBayes(bounds=(-3, 3), classes=[0, 1], rows_per_group=inner), {"n_bins": [3, 6]}, rows_per_group=outer
    )
    model = make_pipeline(DPStandardScaler(bounds=(0, 1), rows_per_group=outer), search)
    with pytest.raises(ValueError, match="would count rows, and"):
        allocate(model, epsilon=2.0)
    search.set_params(param_grid={"rows_per_group": [outer], "n_bins": [3, 6]})
    allocate(model, epsilon=2.0)
