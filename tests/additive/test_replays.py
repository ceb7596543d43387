"""Fits to two data sets with the same released values: what a record adds does not depend on other records.

A release is a sum over the records, whose terms follow from the record and from earlier releases. Hence, for the same
released values, adding a record to any data set changes what goes into each sum by the same numbers. Models are
functions of released values. Both hold exactly, for any released values. Seeds are fixed.
"""

import contextlib
import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skdp import BudgetAccountant, DPAdditiveClassifier, DPAdditiveRegressor
from skdp.additive import _base, _classifier, _curves, _plans, _regressor, _stages
from skdp.additive._features import CellGradients
from skdp.mechanisms import BestChoices, GroupChoices
from skdp.release.session import ReleaseSession
from tests.trust.choices import choosing
from tests.trust.subjects import replaced
from tests.trust.transcripts import Released, transcript

COMMON = {"delta": 1e-5, "bounds": (0, 10), "categories": {1: 3}, "n_bins": 4, "random_state": 0}
KINDS = ("two", "three", "numbers")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
INTERACTIONS = pytest.mark.parametrize(
    "interactions", [None, "auto", [(0, 2), (1, 2)]], ids=["curves", "auto", "pairs"]
)
DELTAS = pytest.mark.parametrize("delta", [1e-5, 0.0])


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(_curves, "N_STEPS", 6)


def model(kind, **parameters):
    if kind == "numbers":
        return DPAdditiveRegressor(**{**COMMON, "epsilon": 2.0, "bounds_y": (-1, 1), **parameters})
    return DPAdditiveClassifier(**{**COMMON, "epsilon": 2.0, "classes": [0, 1, 2][: 3 - (kind == "two")], **parameters})


def table(kind, n, seed):
    """Skewed numbers, categories some of which are unknown, and numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([10 * rng.random(n) ** (2 + seed), rng.integers(4, size=n), rng.integers(11, size=n)])
    score = np.sin(X[:, 0]) + (X[:, 1] == 2) - 0.1 * seed + 0.5 * rng.standard_normal(n)
    if kind == "numbers":
        return X, np.clip(score, -1.5, 1.5)
    return X, np.digitize(score, [0.3] if kind == "two" else [0.0, 0.8])


def with_one(data, record):
    return np.vstack([data[0], record[0]]), np.append(data[1], record[1])


def replayed(make, data, found, seed=5):
    """Fit with the released values and choices of another fit."""
    made = [int(np.ravel(r.out)[0]) for r in found.values() if isinstance(r.mechanism, GroupChoices | BestChoices)]
    with choosing(lambda mechanism, scores, own: made.pop(0)):
        fitted = make().set_params(random_state=seed)
        return fitted, transcript(fitted, data, found)


def moves(make, data, record, found):
    """What a record adds to each sum, for these released values."""
    before, after = replayed(make, data, found)[1], replayed(make, with_one(data, record), found)[1]
    assert before.keys() == after.keys() == found.keys()
    sums = [place for place, own in found.items() if not isinstance(own.mechanism, GroupChoices | BestChoices)]
    return {place: after[place].value - before[place].value for place in sums}


def released(fitted):
    """All attributes that follow from releases, as bytes."""
    names = sorted((fitted._released | {"term_columns_"}) & vars(fitted).keys())
    return [(name, pickle.dumps(getattr(fitted, name))) for name in names]


def leaks(kind, interactions="auto", delta=1e-5):
    """What depends on other records, besides released values."""

    def make():
        return model(kind, interactions=interactions, delta=delta)

    first, second = table(kind, 3000, 0), table(kind, 2500, 3)
    found = transcript(make(), first)
    records = [(own[0][[k]], own[1][[k]]) for own, k in ((first, 0), (second, 17))]
    seen = set()
    for record in records:
        one, other = (moves(make, data, record, found) for data in (first, second))
        seen |= {place[1] for place in one if not np.allclose(one[place], other[place], rtol=0, atol=1e-9)}
    fits = [replayed(make, data, found)[0] for data in (first, second)]
    if released(fits[0]) != released(fits[1]):
        seen.add("model")
    return seen


@EVERY_KIND
@INTERACTIONS
@DELTAS
def test_a_record_adds_the_same_to_any_data_set(kind, interactions, delta):
    assert leaks(kind, interactions, delta) == set()


def true_counts(module):
    """Bins and means by counts without noise."""

    def raw(true):
        def release_cells(session, columns, X, *rest):
            cells = true(session, columns, X, *rest)
            codes = columns.codes(X)
            counts = [np.bincount(own, minlength=n + 1)[:n] + 0.0 for own, n in zip(codes, columns.sizes, strict=True)]
            return replace(cells, counts=counts)

        return release_cells

    return replaced(module, "release_cells", raw)


def true_number(module):
    """Steps divided by the number of records without noise."""

    def raw(true):
        def release_cells(session, columns, X, *rest):
            return replace(true(session, columns, X, *rest), total=float(len(X[0])))

        return release_cells

    return replaced(module, "release_cells", raw)


def residuals_by_their_mean():
    """Residuals without their mean over the records."""

    def raw(true):
        def contributions(self, scores, targets):
            found = true(self, scores, targets)
            found[:, 0] -= found[:, 0].mean()
            return found

        return contributions

    return replaced(_stages.StageLoss, "contributions", raw)


def gradients_by_their_number():
    """Clip by the number of records."""
    return replaced(
        CellGradients,
        "__init__",
        lambda init: (
            lambda self, features, loss, norm, codes, *rest: init(
                self, features, loss, norm * codes.shape[1] / 3000, codes, *rest
            )
        ),
    )


@pytest.mark.parametrize(
    ("breakage", "kind", "delta", "leak"),
    [
        (lambda: true_counts(_classifier), "two", 1e-5, "gradients"),
        (lambda: true_counts(_regressor), "numbers", 1e-5, "gradients"),
        (lambda: true_counts(_classifier), "two", 0.0, "table"),
        (lambda: true_number(_classifier), "three", 1e-5, "gradients"),
        (gradients_by_their_number, "two", 1e-5, "gradients"),
        (residuals_by_their_mean, "two", 1e-5, "table 1"),
        (residuals_by_their_mean, "two", 0.0, "table 1"),
    ],
)
def test_leaks_are_seen(breakage, kind, delta, leak):
    with breakage():
        assert any(leak in place for place in leaks(kind, delta=delta))


# --- any released values ----------------------------------------------------------------------------------------------


def forced_values(found, which):
    """Released values as noise may make them, or as no noise does."""
    rng = np.random.default_rng(1)
    out = {}
    for place, own in found.items():
        values = np.array(own.out, dtype=float)
        if place[1] == _plans.COUNTS:
            values = {
                "zeros": 0 * values,
                "negative": -1e4 + 0 * values,
                "equal": 500.0 + 0 * values,
                "huge": 1e12 + 0 * values,
                "one cell": np.where(np.arange(len(values)) < 2, 1e9, 0.0),
                "wild": rng.choice([-1e9, 0.0, 3.0, 1e9], len(values)),
                "many records in no cell": np.where(np.arange(len(values)) < 1, 1e6, 0.0),
            }.get(which, values)
        elif not isinstance(own.mechanism, GroupChoices | BestChoices) and which == "wild sums":
            values = 1e6 * rng.standard_normal(values.shape)
        elif not isinstance(own.mechanism, GroupChoices | BestChoices) and which == "no sums":
            values = 0 * values
        out[place] = replace(own, out=values)
    return out


@contextlib.contextmanager
def all_forced(which):
    """Replace all released counts and sums by the kind of values that `which` names."""
    release, steps = ReleaseSession.release, ReleaseSession.steps

    def of(mechanism, label, value, own):
        found = {(0, label, 0): Released(label, mechanism, value, np.array(own))}
        return forced_values(found, which)[0, label, 0].out

    def one(session, label, value):
        mechanism = session.mechanism(label)
        return of(mechanism, label, value, release(session, label, value))

    def many(session, label, n_rows, attributes=None):
        mechanism = session.mechanism(label)
        for rows, send in steps(session, label, n_rows, attributes):
            yield rows, lambda total, send=send: of(mechanism, label, total, send(total))

    with (
        replaced(ReleaseSession, "release", lambda true: one),
        replaced(ReleaseSession, "steps", lambda true: many),
    ):
        yield


FORCED = ["zeros", "negative", "equal", "huge", "one cell", "wild", "many records in no cell", "wild sums", "no sums"]


@EVERY_KIND
@INTERACTIONS
@DELTAS
@pytest.mark.parametrize("which", FORCED)
def test_no_released_values_fail_after_the_charge(kind, interactions, which, delta):
    data = table(kind, 800, 0)
    own = model(kind, interactions=interactions, delta=delta)
    with all_forced(which), warnings.catch_warnings(), np.errstate(all="ignore"):
        # Counts that disagree with the declarations are warned of; no other warning is due.
        warnings.filterwarnings("error", category=RuntimeWarning)
        own.fit(*data)
    if which in ("zeros", "equal"):
        counts = set(np.concatenate(own.cell_counts_))
        assert counts == {0.0} if which == "zeros" else len(counts) == 1
    for values in own.terms_:
        assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(own.intercept_))
    assert np.all(np.isfinite(own.noise_std(data[0][:5])))
    assert np.all(np.isfinite(own.feature_importances_))
    own._term_noise()


@EVERY_KIND
@pytest.mark.parametrize("n_rows", [0, 1, 2, 30])
@DELTAS
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, math.inf])
def test_few_records(kind, n_rows, epsilon, delta):
    X, y = table(kind, 30, 0)
    own = model(kind, epsilon=epsilon, delta=delta).fit(X[:n_rows], y[:n_rows])
    assert np.all(np.isfinite(own.contributions(X)))
    assert np.all(own.noise_std(X) >= 0)


@EVERY_KIND
@DELTAS
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_columns_of_one_value_and_one_cell(kind, epsilon, delta):
    X, y = table(kind, 3000, 0)
    X[:, 0], X[:, 1] = 5.0, 1
    own = model(kind, epsilon=epsilon, delta=delta, categories={1: 3, 2: 11}, bin_edges={0: [0, 10]}, bounds=None).fit(
        X, y
    )
    assert own.terms_[0].shape[0] == 1
    assert np.all(np.isfinite(own.contributions(X)))
    only = model(kind, epsilon=epsilon, delta=delta, bin_edges={0: [0, 10]}, categories=None, bounds=None).fit(
        X[:, :1], y
    )
    # There is nothing but the intercept.
    np.testing.assert_array_equal(only.contributions(X[:, :1]), 0)
    assert np.all(np.isfinite(only.noise_std(X[:2, :1])))


# --- stages of named pairs --------------------------------------------------------------------------------------------


@EVERY_KIND
@pytest.mark.parametrize("n_pairs", [1, 3])
def test_named_pairs_are_stages(kind, n_pairs):
    pairs = [(0, 2), (1, 2), (0, 1)][:n_pairs]
    X, y = table(kind, 3000, 0)
    own = model(kind, interactions=pairs)
    plan = own.privacy_plan(n_features=3)
    accountant = BudgetAccountant(2.0, 1e-5)
    spent = {}
    refine = _plans.ReleaseSession.refine

    def noted(session, label, releases, events):
        spent.update({release.label: release.share for release in releases})
        return refine(session, label, releases, events)

    with replaced(_plans.ReleaseSession, "refine", lambda true: noted), pytest.warns(match="random_state"):
        own.set_params(accountant=accountant).fit(X, y)
    assert own.privacy_ == plan
    assert own.term_columns_ == [(0,), (1,), (2,), *sorted(pairs, key=own.term_columns_.index)]
    assert set(own.term_columns_[3:]) == set(pairs)
    shares = [share for label, share in spent.items() if label.startswith("table")]
    assert len(shares) == n_pairs
    assert not any(label.startswith("choice") for label in spent)
    np.testing.assert_allclose(shares, shares[0], rtol=1e-6)
    rest = 0.96 - (0.08 if kind == "numbers" else 0.02)
    assert shares[0] == pytest.approx(rest * 0.15, rel=1e-6)
    assert accountant.total().epsilon <= 2.0 * (1 + 1e-9)
    assert len(accountant) == 1


def test_many_named_pairs_leave_a_part_to_the_curves():
    X, y = table("two", 3000, 0)
    X = np.hstack([X, X])
    pairs = [(0, j) for j in (2, 3, 5)] + [(2, j) for j in (3, 5)] + [(3, 5)]
    own = model("two", interactions=pairs).fit(X, y)
    first = own._engine.engines[0]
    assert 1 - first.reserved == pytest.approx(0.94 * 0.4, rel=1e-6)
    assert len(own.term_columns_) == 12


# --- formats ----------------------------------------------------------------------------------------------------------


@EVERY_KIND
@INTERACTIONS
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_fits_are_stored(kind, interactions, delta):
    X, y = table(kind, 3000, 0)
    own = model(kind, interactions=interactions, delta=delta).fit(X, y)
    score = "predict" if kind == "numbers" else "predict_proba"
    again = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(getattr(again, score)(X), getattr(own, score)(X))
    np.testing.assert_array_equal(again.noise_std(X[:50]), own.noise_std(X[:50]))
    assert again.privacy_ == own.privacy_
    content = json.loads(own.to_json())
    assert len(content["terms"]) == len(own.terms_)
    assert clone(own).get_params()["interactions"] == own.interactions


def test_bins_and_features_follow_from_attributes():
    """Bands need the features of the fit, which are computed from released counts again."""
    X, y = table("two", 3000, 0)
    own, seen = model("two", interactions=None), []
    original = _base.features_of

    def noted(parameters, cells):
        seen.append(original(parameters, cells))
        return seen[-1]

    with replaced(_classifier, "features_of", lambda true: noted):
        own.fit(X, y)
    (layout, features), found = seen[0], own._noise_of_steps(own._layout.codes(own._cells(X)), True).features
    assert found.layout is layout
    for one, other in zip(features.probabilities, found.probabilities, strict=True):
        np.testing.assert_array_equal(one, other)
