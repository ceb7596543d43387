"""What scikit-learn's own tools do with a private estimator: what is charged, and what becomes of an empty budget."""

import multiprocessing
import pickle
import warnings
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
from joblib import parallel_backend
from joblib.pool import MemmappingPool
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import BudgetAccountant, DPGridSearchCV, ObjPertLogReg
from skdp.exceptions import BudgetError, _UncaughtBudgetError
from tests.linear_model.data import blobs

FOLDS = PredefinedSplit(np.arange(400) % 5)


def model(budget, **parameters):
    return ObjPertLogReg(data_norm=3.0, classes=[0, 1], accountant=budget, **parameters)


def budget(fits):
    return BudgetAccountant(float(fits))


X, Y = blobs()

TOOLS = {
    "cross_val_score": (lambda m, n: cross_val_score(m, X, Y, cv=FOLDS, n_jobs=n), 5),
    "cross_validate": (lambda m, n: cross_validate(m, X, Y, cv=FOLDS, n_jobs=n, return_train_score=True), 5),
    "GridSearchCV": (lambda m, n: GridSearchCV(m, {"C": [0.01, 0.02]}, cv=FOLDS, n_jobs=n).fit(X, Y), 11),
    "GridSearchCV, no refit": (
        lambda m, n: GridSearchCV(m, {"C": [0.01, 0.02]}, cv=FOLDS, n_jobs=n, refit=False).fit(X, Y),
        10,
    ),
    "RandomizedSearchCV": (
        lambda m, n: RandomizedSearchCV(m, {"C": [0.01, 0.02]}, n_iter=2, cv=FOLDS, n_jobs=n).fit(X, Y),
        11,
    ),
    "learning_curve": (lambda m, n: learning_curve(m, X, Y, cv=FOLDS, n_jobs=n, train_sizes=[0.5, 1.0]), 10),
    "validation_curve": (
        lambda m, n: validation_curve(m, X, Y, param_name="C", param_range=[0.01, 0.02], cv=FOLDS, n_jobs=n),
        10,
    ),
    "cross_val_predict": (lambda m, n: cross_val_predict(m, X, Y, cv=FOLDS, n_jobs=n), 5),
    "CalibratedClassifierCV": (lambda m, n: CalibratedClassifierCV(m, cv=FOLDS, n_jobs=n).fit(X, Y), 5),
}
every_tool = pytest.mark.parametrize("tool", TOOLS)


@every_tool
def test_each_inner_fit_is_charged(tool):
    call, fits = TOOLS[tool]
    accountant = budget(fits)
    call(model(accountant), 1)
    assert len(accountant) == fits
    assert accountant.remaining().epsilon == 0


IN_PROCESSES = ["cross_val_score", "GridSearchCV, no refit"]


@pytest.mark.parametrize("short", [1, "all"])
@pytest.mark.parametrize(("tool", "n_jobs"), [(tool, 1) for tool in TOOLS] + [(tool, 2) for tool in IN_PROCESSES])
def test_an_empty_budget_reaches_the_user(tool, n_jobs, short):
    call, fits = TOOLS[tool]
    accountant = budget(0.5 if short == "all" else fits - 1)
    with warnings.catch_warnings():
        # Of fits that failed: nothing may hide behind it.
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "A cross-validation of scikit-learn")
        with pytest.raises(BudgetError, match="does not admit"):
            call(model(accountant), n_jobs)
    assert len(accountant) <= fits - 1


def wait_for_workers(pool):
    """End a pool, but kill no worker: it might hold the lock of the results, and Python would wait for it for ever."""
    pool.close()
    pool.join()


# A signal would end the first wait only, and the pool would be waited for again.
@pytest.mark.timeout(60, method="thread")
@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_workers_of_joblib_do_not_hang(backend, monkeypatch):
    monkeypatch.setattr(MemmappingPool, "terminate", wait_for_workers)
    with parallel_backend(backend, n_jobs=2), pytest.raises(BudgetError):
        cross_val_score(model(budget(2)), X[:60], Y[:60], cv=PredefinedSplit(np.arange(60) % 5))


def in_a_pool(_):
    """Outside any test, for other processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cross_val_score(model(budget(2)), X, Y, cv=FOLDS)


def fit_in_a_pool(_):
    return model(budget(0.5)).fit(X, Y)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_workers_of_a_pool_do_not_hang(kind):
    # They die of what is no Exception. In them the scores of fits without budget are NaN, as scikit-learn has it.
    pool = ThreadPool(1) if kind == "threads" else multiprocessing.get_context("fork").Pool(1)
    try:
        scores = pool.apply_async(in_a_pool, (0,)).get(timeout=60)
        assert np.isnan(scores).tolist() == [False, False, True, True, True]
        assert np.isnan(pool.map_async(in_a_pool, [0]).get(timeout=60)[0]).sum() == 3
        with pytest.raises(BudgetError):
            pool.apply_async(fit_in_a_pool, (0,)).get(timeout=60)
        wait_for_workers(pool)
    finally:
        pool.terminate()


def test_inside_a_pipeline_and_around_a_search():
    with pytest.raises(BudgetError):
        cross_val_score(make_pipeline(Normalizer(), model(budget(2))), X, Y, cv=FOLDS)
    search = DPGridSearchCV(
        ObjPertLogReg(data_norm=3.0, classes=[0, 1]), {"C": [0.01, 0.02]}, accountant=budget(2), strategy="holdout"
    )
    with pytest.raises(BudgetError):
        cross_val_score(search, X, Y, cv=FOLDS)


def test_elsewhere_it_is_an_exception():
    accountant = budget(0.5)
    for call in (
        lambda: model(accountant).fit(X, Y),
        lambda: accountant.spend(1.0),
        lambda: cross_val_predict(model(accountant), X, Y, cv=FOLDS),
    ):
        with pytest.raises(BudgetError) as failure:
            call()
        assert isinstance(failure.value, Exception)
        assert failure.value.__context__ is None


def test_the_form_that_passes():
    error = _UncaughtBudgetError("message")
    assert isinstance(error, BudgetError)
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, Exception)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args) == (type(error), error.args)


@pytest.mark.parametrize("error_score", ["raise", np.nan])
def test_in_a_cross_validation_only_its_own_name_catches_it(error_score):
    with pytest.raises(BudgetError) as failure:
        cross_val_score(model(budget(0.5)), X, Y, cv=FOLDS, error_score=error_score)
    assert not isinstance(failure.value, Exception)
    assert failure.value.__context__ is None


def test_a_search_that_raises_inside_one_that_does_not():
    inner = GridSearchCV(model(BudgetAccountant(7.5)), {"C": [0.01, 0.02]}, cv=2, error_score="raise")
    with pytest.raises(BudgetError):
        cross_val_score(inner, X, Y, cv=3)


def test_other_failures_are_scores_as_ever():
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        cross_val_score(model(None, C=-1.0), X, Y, cv=FOLDS)


# ---------------------------------------------------------------- what costs nothing, and what that means


def test_scores_and_importances_are_not_charged():
    # They are functions of the rows that they are given: on private ones, releases that nobody paid for.
    accountant = budget(1)
    fitted = model(accountant).fit(X, Y)
    fitted.score(X, Y)
    permutation_importance(fitted, X, Y, n_repeats=2, random_state=0)
    CalibratedClassifierCV(FrozenEstimator(fitted), cv=FOLDS).fit(X, Y)
    assert len(accountant) == 1


def test_the_score_on_the_training_rows_tells_a_record():
    # The same released model, two data sets that differ in one record: the exact scores differ for certain.
    fitted = model(None).fit(X, Y)
    assert fitted.score(X, Y) != fitted.score(X[:-1], Y[:-1])


def test_cv_results_tell_a_record():
    found = GridSearchCV(model(None, random_state=0), {"C": [0.01]}, cv=FOLDS, refit=False).fit(X, Y)
    # Exact counts of rows: multiples of one over the size of a fold.
    scores = np.array([found.cv_results_[f"split{k}_test_score"][0] for k in range(5)])
    np.testing.assert_allclose(80 * scores, np.rint(80 * scores), atol=1e-9)
