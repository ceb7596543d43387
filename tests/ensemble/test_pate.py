"""PATE: known answers, what a teacher cannot do, students, and accuracy.

Tests of laws refuse a right one with probability 1e-6.
"""

import logging
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdp import BudgetAccountant, PATEClassifier, allocate
from skdp.accounting import gaussian_mu
from skdp.ensemble import _pate
from skdp.ensemble._pate import (
    VOTES,
    VoteRegressor,
    shrunk_mean,
    sum_of_votes,
    teacher_votes,
    votes_l2,
)
from skdp.mechanisms import NoiseSource
from skdp.release.blocks import block_labels, block_seeds, over_blocks
from skdp.release.session import ReleaseSession
from tests.ensemble.adversaries import MARK, Dreamer, Failing, Panic, Scribbler, Talker, Teacher, Turncoat, Vandal
from tests.ensemble.data import public_rows
from tests.linear_model.data import blobs
from tests.statistics import FALSE_ALARM

INF = math.inf
PUBLIC = public_rows(5)


def model_of(teacher=None, **parameters):
    defaults = {"public_X": PUBLIC, "epsilon": INF, "n_teachers": 6, "classes": [0, 1], "random_state": 4}
    return PATEClassifier(GaussianNB() if teacher is None else teacher, **{**defaults, **parameters})


# --- known answers ------------------------------------------------------------------------------------------------


def test_without_noise_the_answers_are_the_plurality_of_teachers():
    X, y = blobs(3, 400, 5, 0)
    model = model_of(DecisionTreeClassifier(), classes=[0, 1, 2], n_teachers=7).fit(X, y)
    source = NoiseSource(4)
    labels = block_labels(len(X), 7, source.stream("blocks"))
    seeds = block_seeds(7, source.stream("seeds"))
    votes = np.zeros((len(PUBLIC), 3))
    for b, seed in enumerate(seeds):
        teacher = DecisionTreeClassifier(random_state=seed).fit(X[labels == b], y[labels == b])
        votes[np.arange(len(PUBLIC)), teacher.predict(PUBLIC)] += 1
    assert sorted(model.answered_) == list(range(len(PUBLIC)))
    np.testing.assert_array_equal(model.answers_, votes[model.answered_].argmax(axis=1))


def fixed_votes(monkeypatch, counts, n_queries):
    monkeypatch.setattr(_pate, "sum_of_votes", lambda *_: np.tile(counts, (n_queries, 1)))


def answers_of(monkeypatch, counts, **parameters):
    n = 3000
    fixed_votes(monkeypatch, counts, n)
    rows = np.zeros((n, 1))
    student = DummyClassifier()
    parameters = {"public_X": rows, "max_queries": n, "student": student, "classes": [0, 1, 2], **parameters}
    model = model_of(**parameters).fit(np.zeros((2, 1)), [0, 1])
    return np.bincount(model.answers_, minlength=3)


COUNTS = np.array([5, 3, 1])


def test_law_of_answers_with_gaussian_noise(monkeypatch):
    sigma = 2.5
    # The total mu of 3000 rows, and an epsilon that it comes with.
    mu = math.sqrt(2 * 3000) / sigma
    epsilon, delta = 600.0, 0.01
    assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=0.2)
    sigma = math.sqrt(2 * 3000) / gaussian_mu(epsilon, delta)

    def win(c):
        others = [COUNTS[k] for k in range(3) if k != c]
        return integrate.quad(
            lambda z: stats.norm.pdf(z) * math.prod(stats.norm.cdf(z + (COUNTS[c] - n) / sigma) for n in others), -9, 9
        )[0]

    seen = answers_of(monkeypatch, COUNTS, epsilon=epsilon, delta=delta)
    assert stats.chisquare(seen, 3000 * np.array([win(c) for c in range(3)])).pvalue > FALSE_ALARM


def test_law_of_answers_of_permute_and_flip(monkeypatch):
    each = 0.8
    seen = answers_of(monkeypatch, COUNTS, epsilon=3000 * each)

    # One exponential noise for each class, of scale 2 / epsilon: the largest noisy count wins.
    def win(c):
        def density(t):
            shifted = [max(0.0, t + COUNTS[c] - COUNTS[k]) for k in range(3) if k != c]
            return each / 2 * math.exp(-each / 2 * t) * math.prod(-math.expm1(-each / 2 * s) for s in shifted)

        return integrate.quad(density, 0, 80, points=[2, 4])[0]

    law = np.array([win(c) for c in range(3)])
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert stats.chisquare(seen, 3000 * law).pvalue > FALSE_ALARM


def test_constant_teachers_are_answered_by_noise_alone_when_they_tie(monkeypatch):
    seen = answers_of(monkeypatch, np.array([3, 3, 3]), epsilon=1.0, delta=1e-5)
    assert stats.chisquare(seen).pvalue > FALSE_ALARM


def test_plan_is_what_the_book_says():
    plan = model_of(epsilon=2.0, delta=1e-5, max_queries=100).privacy_plan(n_features=5)
    (votes,) = plan.releases
    mu = gaussian_mu(2.0, 1e-5)
    assert votes.label == VOTES
    assert votes.mechanism.scale == pytest.approx(math.sqrt(2 * 100) / mu, rel=1e-3)
    assert plan.cost.mu() == pytest.approx(mu)


def test_defaults_follow_public_numbers():
    X, y = blobs(2, 50, 5, 0)
    assert PATEClassifier(GaussianNB(), public_X=PUBLIC, classes=[0, 1]).fit(X, y).n_teachers_ == 250
    model = PATEClassifier(GaussianNB(), public_X=PUBLIC, classes=[0, 1], expected_n=10_000)
    assert model.fit(X, y).n_teachers_ == 300
    assert len(model.answered_) == 60
    assert len(model.set_params(delta=1e-5).fit(X, y).answered_) == 300


# --- sensitivity --------------------------------------------------------------------------------------------------


def test_votes_move_as_far_as_claimed_and_no_further():
    rng = np.random.default_rng(0)
    for n_queries, n_classes in ((1, 2), (7, 3), (40, 10)):
        for _ in range(200):
            answers = list(rng.integers(-1, n_classes, size=(5, n_queries)))
            changed = answers.copy()
            changed[rng.integers(5)] = rng.integers(-1, n_classes, size=n_queries)
            one, other = (sum_of_votes(a, n_queries, n_classes) for a in (answers, changed))
            assert np.linalg.norm(one - other) <= votes_l2(n_queries) * (1 + 1e-12)
            assert np.ptp(one - other, axis=1).max() <= 2
        still = [np.zeros(n_queries, dtype=int)] * 4
        zero, one = (sum_of_votes([*still, np.full(n_queries, c)], n_queries, n_classes) for c in (0, 1))
        assert np.linalg.norm(zero - one) == pytest.approx(votes_l2(n_queries))
        nobody = sum_of_votes([*still, None], n_queries, n_classes)
        assert np.linalg.norm(zero - nobody) < votes_l2(n_queries)


def block_answers(teacher, X, y, n_blocks=6, n_jobs=None):
    """What each teacher says, with the seeds of a fit."""
    source = NoiseSource(1)
    labels = block_labels(len(X), n_blocks, source.stream("blocks"))
    seeds = block_seeds(n_blocks, source.stream("seeds"))
    queries = public_rows(3)[:20]

    def vote(rows, codes, seed):
        return teacher_votes(teacher, queries, np.arange(2), rows, codes, seed)

    return over_blocks(vote, X, y, n_blocks, labels, seeds, n_jobs), labels


FAILURES = (Panic, SystemExit, MemoryError, "short", "deep", "none", "unknown", "text", "nan")
CARRIERS = (Dreamer(), Vandal(), DecisionTreeClassifier(max_features=1))
OTHERS = (Turncoat(), Scribbler(), *map(Failing, FAILURES), make_pipeline(StandardScaler(), LogisticRegression()))


@pytest.mark.parametrize(
    ("teacher", "n_jobs"),
    [*[(t, None) for t in CARRIERS + OTHERS], *[(t, 2) for t in CARRIERS]],
    ids=lambda value: str(value),
)
def test_one_record_changes_one_teacher(teacher, n_jobs):
    rng = np.random.default_rng(0)
    X, y = rng.choice([0.25, 0.5], size=(60, 3)) + 1e-3 * rng.normal(size=(60, 3)), rng.integers(2, size=60)
    record = np.full((1, 3), MARK)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    without, _ = block_answers(teacher, X, y, n_jobs=n_jobs)
    with_record, labels = block_answers(teacher, np.vstack([X, record]), np.append(y, 1), n_jobs=n_jobs)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    for b, (one, other) in enumerate(zip(without, with_record, strict=True)):
        if b != labels[-1]:
            np.testing.assert_array_equal(one, other)
    if isinstance(teacher, Turncoat):
        assert np.all(with_record[labels[-1]] == 1)
    if isinstance(teacher, Failing):
        said = with_record[labels[-1]]
        assert said is None or np.all(said == -1)
    if isinstance(teacher, Vandal | Scribbler):
        assert all(np.all(said == 0) for said in with_record)


def test_the_order_of_other_records_does_not_matter():
    X, y = blobs(2, 60, 3, 0)
    answers, labels = block_answers(DecisionTreeClassifier(), X, y)
    for drop in (0, 30):
        keep = np.arange(60) != drop
        seeds = block_seeds(6, NoiseSource(1).stream("seeds"))
        queries = public_rows(3)[:20]

        def vote(rows, codes, seed, queries=queries):
            return teacher_votes(DecisionTreeClassifier(), queries, np.arange(2), rows, codes, seed)

        others = over_blocks(vote, X[keep], y[keep], 6, labels[keep], seeds)
        for b in set(range(6)) - {labels[drop]}:
            np.testing.assert_array_equal(answers[b], others[b])


# --- what a teacher cannot do ---------------------------------------------------------------------------------------


def test_nothing_of_a_teacher_is_seen(capsys, caplog):
    X, y = blobs(2, 60, 5, 0)
    X[7] = MARK
    with warnings.catch_warnings(record=True) as seen, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        filters, errors = list(warnings.filters), np.geterr()
        for teacher in (Talker(), Vandal()):
            model_of(teacher).fit(X, y)
        assert warnings.filters == filters
        assert np.geterr() == errors
    assert not seen
    assert not caplog.records
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [Panic, SystemExit, MemoryError, ValueError])
def test_a_teacher_that_fails_abstains(error):
    X, y = blobs(2, 60, 5, 0)
    X[7] = MARK
    model = model_of(Failing(error), n_teachers=1).fit(X, y)
    assert np.all(model.answers_ == 0)
    assert np.all(model.predict(X) == 0)


def test_an_interrupt_is_handed_on_without_what_it_says():
    X, y = blobs(2, 60, 5, 0)
    X[:] = MARK
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(KeyboardInterrupt) as failure:
        model_of(Failing(KeyboardInterrupt), epsilon=1.0, random_state=None, accountant=accountant).fit(X, y)
    assert "0.75" not in str(failure.value) + str(failure.value.__context__)
    assert len(accountant) == 1


def test_a_block_of_one_class_says_that_class():
    # Logistic regression fails on one class.
    X, _ = blobs(2, 60, 5, 0)
    model = model_of(LogisticRegression()).fit(X, np.ones(60, dtype=int))
    assert np.all(model.answers_ == 1)


def test_processes_do_not_matter():
    X, y = blobs(2, 200, 5, 0)
    one, two = (model_of(DecisionTreeClassifier(max_features=1), n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.answers_, two.answers_)


# --- public rows and students ---------------------------------------------------------------------------------------


def test_without_public_rows_it_refuses():
    X, y = blobs(2, 60, 5, 0)
    with pytest.raises(ValueError, match=r"public_X .*rows without labels"):
        PATEClassifier(classes=[0, 1]).fit(X, y)


def test_public_rows_by_name():
    X, y = blobs(2, 60, 5, 0)
    frame, public = (pd.DataFrame(rows, columns=list("abcde")) for rows in (X, PUBLIC))
    model = model_of(public_X=public).fit(frame, y)
    np.testing.assert_array_equal(model.answers_, model_of().fit(X, y).answers_)
    with pytest.raises(ValueError, match="public_X"):
        model_of(public_X=public[list("edcba")]).fit(frame, y)
    # Without names in X, those of the public rows are not compared, and nothing warns.
    np.testing.assert_array_equal(model_of(public_X=public).fit(X, y).answers_, model.answers_)


def test_rows_beyond_the_cap_are_a_random_part():
    X, y = blobs(2, 60, 5, 0)
    one, two = (model_of(max_queries=40, random_state=seed).fit(X, y) for seed in (0, 1))
    assert len(one.answered_) == len(set(one.answered_)) == 40
    assert set(one.answered_) != set(two.answered_)
    # The same rows whatever the data are.
    np.testing.assert_array_equal(model_of(max_queries=40, random_state=0).fit(X[:5], y[:5]).answered_, one.answered_)


@pytest.mark.parametrize("student", [None, DecisionTreeClassifier(), LogisticRegression()])
def test_students_of_one_class_still_work(student, monkeypatch):
    X, y = blobs(3, 60, 5, 0)
    fixed_votes(monkeypatch, np.array([0, 0, 6]), len(PUBLIC))
    model = model_of(student=student, classes=[0, 1, 2], delta=1e-5).fit(X, y)
    assert len(model.answered_) == len(PUBLIC)
    assert np.all(model.predict(X) == 2)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_student_of_ones_own():
    X, y = blobs(2, 400, 5, 0)
    student = make_pipeline(StandardScaler(), LogisticRegression())
    model = model_of(student=student).fit(X, y)
    theirs = clone(student).fit(PUBLIC[model.answered_], model.answers_)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X))
    assert not hasattr(student[-1], "coef_")
    assert not hasattr(model_of(student=Teacher()).fit(X, y), "predict_proba")
    # Scores of a student that knows some of the classes only would not have the shape of others.
    assert not hasattr(model, "decision_function")


class Copycat(Teacher):
    """Keeps what it is shown."""

    def fit(self, X, y):
        self.shown_ = (X.copy(), np.array(y))
        return super().fit(X, y)


@pytest.mark.parametrize("student", [None, Copycat()], ids=["default", "own"])
@pytest.mark.parametrize("parameters", [{}, {"delta": 1e-5}], ids=str)
def test_a_student_sees_what_was_released_and_nothing_else(parameters, student, monkeypatch):
    shown = []
    fit = VoteRegressor.fit

    def spy(self, *arguments):
        shown.append(arguments)
        return fit(self, *arguments)

    def released(self, label, value):
        return np.arange(len(value)) % 3 if not parameters else np.sin(np.arange(value.size)).reshape(value.shape)

    monkeypatch.setattr(VoteRegressor, "fit", spy)
    monkeypatch.setattr(ReleaseSession, "release", released)
    X, y = blobs(3, 60, 5, 0)
    # The same releases, of other data.
    models = []
    for data in ((X, y), (2 - X[:30], (y[:30] + 1) % 3)):
        shown.clear()
        model = model_of(student=student, epsilon=1.0, classes=[0, 1, 2], max_queries=40, **parameters).fit(*data)
        models.append((*(shown[-1] if student is None else model.student_.shown_), model.answered_, model.answers_))
    assert len(models[0]) == (7 if student is None else 4)
    for one, other in zip(*models, strict=True):
        np.testing.assert_array_equal(one, other)


def test_default_student_regresses_on_votes():
    rows = public_rows(3)
    truth = (rows[:, 0] > 0).astype(int)
    parts = np.where(np.eye(2)[truth] > 0, 0.4, -0.4)
    rng = np.random.default_rng(1)
    noise = 1.5 * rng.normal(size=parts.shape)
    student = VoteRegressor().fit(rows, parts + noise - noise.mean(axis=1, keepdims=True), 1.5, rows, np.arange(2))
    winners = (parts + noise).argmax(axis=1)
    assert np.mean(winners == truth) < 0.75
    assert np.mean(student.predict(rows) == truth) > 0.8


def test_mean_of_noise_is_shrunk_away():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 5))
    noise -= noise.mean(axis=1, keepdims=True)
    assert np.linalg.norm(shrunk_mean(noise, 1.0)) < 0.7 * np.linalg.norm(noise.mean(axis=0))
    far = np.array([9, 0, 0, 0, -9])
    np.testing.assert_allclose(shrunk_mean(noise + far, 1.0), far, atol=0.3)
    np.testing.assert_array_equal(shrunk_mean(noise, 0.0), noise.mean(axis=0))


# --- bad input, and company ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("teacher", "tree", TypeError),
        ("teacher", DecisionTreeClassifier, TypeError),
        ("teacher", object(), TypeError),
        ("teacher", LinearRegression(), ValueError),
        ("teacher", LogisticRegression(C=-1.0), ValueError),
        ("teacher", model_of(accountant=BudgetAccountant(1.0)), ValueError),
        ("teacher", make_pipeline(model_of(accountant=BudgetAccountant(1.0))), ValueError),
        ("student", LogisticRegression(C=-1.0), ValueError),
        ("student", 3, TypeError),
        ("public_X", None, ValueError),
        ("public_X", PUBLIC[:, :3], ValueError),
        ("public_X", PUBLIC[:0], ValueError),
        ("public_X", PUBLIC[0], ValueError),
        ("public_X", np.full((3, 5), np.nan), ValueError),
        ("public_X", [["a"] * 5], ValueError),
        ("n_teachers", 0, ValueError),
        ("n_teachers", 2.0, TypeError),
        ("max_queries", 0, ValueError),
        ("expected_n", 0.5, ValueError),
    ],
)
def test_bad_parameter_is_named_and_costs_nothing(name, value, error):
    X, y = blobs(2, 60, 5, 0)
    accountant = BudgetAccountant(10.0, 1e-5)
    model = model_of(epsilon=1.0, delta=1e-5, accountant=accountant, random_state=None, n_teachers=None)
    with pytest.raises(error, match=name):
        model.set_params(**{name: value}).fit(X, y)
    assert len(accountant) == 0


def test_allocation_pays_for_the_whole_and_not_for_teachers():
    X, y = blobs(2, 200, 5, 0)
    accountant = BudgetAccountant(1.0, 1e-5)
    model = make_pipeline(MaxAbsScaler(), model_of(epsilon=9.0, random_state=None))
    with pytest.warns(UserWarning, match="maxabsscaler"):
        allocation = allocate(model, 1.0, 1e-5, accountant=accountant)
    assert allocation.not_private == ("maxabsscaler",)
    assert list(allocation) == ["pateclassifier"]
    with pytest.warns(UserWarning, match="does not cover MaxAbsScaler"):
        model.fit(X, y)
    assert accountant.total().epsilon == pytest.approx(1.0)
    # A teacher may be private itself: its budget is of no account.
    inner = model_of(model_of(n_teachers=2, public_X=public_rows), epsilon=1.0)
    assert list(allocate(inner, 0.5)) == [""]
    assert inner.teacher.epsilon == INF


@pytest.mark.parametrize(("epsilon", "floor"), [(3.0, 0.6), (8.0, 0.75), (INF, 0.82)])
@pytest.mark.sample(every=3)
def test_digits(epsilon, floor):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    test, public, private = order[:360], order[360:900], order[900:]
    model = PATEClassifier(
        LogisticRegression(max_iter=50),
        public_X=X[public] / 16,
        epsilon=epsilon,
        delta=1e-5,
        expected_n=900,
        classes=range(10),
        random_state=0,
    )
    assert model.fit(X[private] / 16, y[private]).score(X[test] / 16, y[test]) >= floor
