"""What runs on blocks: without callbacks, processes, or anything that another block sees."""

import os
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import BudgetAccountant, PATEClassifier, SampleAggKMeans, SampleAggregate
from skdp.ensemble._results import block_result
from skdp.release.blocks import over_blocks, prepared
from tests.ensemble.adversaries import MARK, Listed, Listener, Talker, Teacher
from tests.ensemble.data import public_rows
from tests.linear_model.data import blobs

# --- callbacks ----------------------------------------------------------------------------------------------------


def listened(make):
    """Estimators with one callback in each part that takes some."""
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    listener = Listener()
    inner = LogisticRegression().set_callbacks(listener)
    outer = make(inner)
    if hasattr(outer, "set_callbacks"):
        outer.set_callbacks(listener)
    return outer, listener


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: inner,
        lambda inner: make_pipeline(StandardScaler(), inner),
        lambda inner: GridSearchCV(inner, {"C": [1.0, 2.0]}, cv=2),
        lambda inner: GridSearchCV(make_pipeline(inner), {"logisticregression": [inner]}, cv=2),
        lambda inner: Listed([inner]),
    ],
    ids=["plain", "pipeline", "search", "grid", "list"],
)
def test_callbacks_of_teachers_are_not_told(make):
    teacher, listener = listened(make)
    X, y = blobs(2, 60, 5, 0)
    teacher.fit(X, y)
    # They are the user's, and heard elsewhere.
    assert listener.told
    listener.told.clear()
    PATEClassifier(teacher, public_X=public_rows(5), n_teachers=2, classes=[0, 1]).fit(X, y)
    assert not listener.told
    teacher.fit(X, y)
    assert listener.told


def test_callbacks_of_blocks_are_not_told():
    model, listener = listened(lambda inner: inner)
    X, y = blobs(2, 60, 5, 0)
    SampleAggregate(model, bounds=(-5, 5), n_blocks=2, classes=[0, 1]).fit(X, y)

    class Clusterer(KMeans):
        def set_callbacks(self, *callbacks):
            self._skl_callbacks = callbacks
            return self

        def fit(self, X, y=None):
            for callback in getattr(self, "_skl_callbacks", ()):
                callback.setup(X)
            return super().fit(X)

    clusterer = Clusterer(2, n_init=1).set_callbacks(listener)
    SampleAggKMeans(2, bounds=(-3, 3), n_blocks=2, estimator=clusterer).fit(X)
    assert not listener.told


def test_parts_of_lists_are_prepared_and_frozen_ones_left_alone():
    fitted = LogisticRegression(verbose=1, random_state=3).fit(*blobs(2, 60, 5, 0))
    frozen = FrozenEstimator(fitted)
    model = prepared(Listed([GridSearchCV(LogisticRegression(verbose=2), {}, n_jobs=2, verbose=3), frozen]), 7)
    search = model.parts[0]
    assert (search.n_jobs, search.verbose, search.estimator.verbose, search.estimator.random_state) == (1, 0, 0, 7)
    assert (fitted.verbose, fitted.random_state) == (1, 3)
    assert prepared(GaussianNB(), 0).get_params() == GaussianNB().get_params()


# --- functions with a state ---------------------------------------------------------------------------------------


def resampled(rows, rng):
    return rows[rng.integers(len(rows), size=len(rows))].mean()


class Resampled:
    """The mean of rows that are drawn from a generator of its own; as many draws as there are rows."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, rows):
        return resampled(rows, self.rng)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", ["partial", "object"])
def test_a_function_does_not_remember_blocks(kind, n_jobs):
    rng = np.random.default_rng(0)
    statistic = partial(resampled, rng=rng) if kind == "partial" else Resampled()
    own = rng if kind == "partial" else statistic.rng
    before = own.bit_generator.state
    X, labels = np.arange(50.0).reshape(-1, 1), np.arange(50) % 5

    def found(X, labels):
        compute = partial(block_result, statistic, (), ((1,),), None)
        return over_blocks(compute, X, None, 5, labels, [1] * 5, n_jobs)

    without, with_record = found(X, labels), found(np.vstack([X, [[1e6]]]), np.append(labels, 0))
    assert None not in without + with_record
    assert without[1:] == with_record[1:]
    assert without[0] != with_record[0]
    SampleAggregate(statistic, bounds=(0, 50), n_blocks=3, n_jobs=n_jobs).fit(X)
    assert own.bit_generator.state == before


# --- processes of a teacher's own ---------------------------------------------------------------------------------


def first_draw(n_rows):
    first = np.random.randint(1000)  # noqa: NPY002
    np.random.uniform(size=n_rows)  # noqa: NPY002
    return first


class Company(Teacher):
    """Draws from the global generators of processes of its own."""

    def fit(self, X, y):
        self.drawn_ = sum(Parallel(n_jobs=2)(delayed(first_draw)(len(X)) for _ in range(3)))
        return super().fit(X, y)


def drawn(rows, codes, seed):
    return prepared(Company(), seed).fit(rows, codes).drawn_


def test_a_teacher_has_no_processes_of_its_own():
    X, y, labels = np.arange(40.0).reshape(-1, 1), np.arange(40) // 4 % 2, np.arange(40) % 4
    seeds = [1, 2, 3, 4]
    without = over_blocks(drawn, X, y, 4, labels, seeds)
    with_record = over_blocks(drawn, np.vstack([X, [[MARK]]]), np.append(y, 1), 4, np.append(labels, 0), seeds)
    assert None not in without
    assert without[1:] == with_record[1:]
    # As drawn in this process, from seeds of the block.
    assert without == over_blocks(drawn, X, y, 4, labels, seeds)


class Homebody(Talker):
    """Fits in one process only."""

    def __init__(self, home=0):
        self.home = home

    def fit(self, X, y):
        if os.getpid() != self.home:
            raise RuntimeError
        return super().fit(X, y)


def searched(rows, codes, seed):
    search = GridSearchCV(Homebody(os.getpid()), {}, cv=2, n_jobs=2, error_score="raise")
    return prepared(search, seed).fit(rows, codes).best_score_


def test_processes_of_a_search_print_nothing(capfd):
    X, y = np.full((40, 1), MARK), np.arange(40) // 4 % 2
    teacher = GridSearchCV(Talker(), {}, cv=2, n_jobs=2)
    PATEClassifier(teacher, public_X=np.zeros((4, 1)), n_teachers=2, classes=[0, 1]).fit(X, y)
    # Processes that are there already would print to where they were started.
    assert None not in over_blocks(searched, X, y, 2, np.arange(40) % 2, [1, 2])
    assert "marked" not in "".join(capfd.readouterr())


# --- what costs nothing -------------------------------------------------------------------------------------------


class Locked(Teacher):
    """Cannot be pickled."""

    def __init__(self, lock=None):
        self.lock = lock

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Lock:
    """Can be copied, and not pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return self

    def __call__(self, rows):
        return 0.0


def test_what_cannot_be_sent_to_processes_costs_nothing():
    X, y = blobs(2, 60, 5, 0)
    accountant = BudgetAccountant(10.0)
    shared = {"n_jobs": 2, "accountant": accountant}
    with pytest.raises(ValueError, match=r"teacher .*process"):
        PATEClassifier(Locked(Lock()), public_X=X, classes=[0, 1], n_teachers=2, **shared).fit(X, y)
    with pytest.raises(ValueError, match=r"estimator .*process"):
        SampleAggregate(Lock(), bounds=(0, 1), n_blocks=2, **shared).fit(X)
    assert len(accountant) == 0


@pytest.mark.parametrize("large", [1e308, 1e155])
def test_public_rows_that_the_default_student_cannot_take_cost_nothing(large):
    X, y = blobs(2, 60, 5, 0)
    accountant = BudgetAccountant(10.0)
    rows = public_rows(5).copy()
    rows[-1, 0] = large
    with pytest.raises(ValueError, match="default student"):
        PATEClassifier(Teacher(), public_X=rows, classes=[0, 1], n_teachers=2, accountant=accountant).fit(X, y)
    assert len(accountant) == 0


class Demanding(Teacher):
    """Needs ten rows of each class."""

    def fit(self, X, y):
        if np.unique(y, return_counts=True)[1].min() < 10:
            raise ValueError
        return super().fit(X, y)


def test_a_trial_has_ten_rows_of_each_class():
    X, y = blobs(2, 60, 5, 0)
    for n_classes, n_rows in ((2, 5), (150, 1200)):
        rows = np.resize(public_rows(5), (n_rows, 5))
        PATEClassifier(Demanding(), public_X=rows, classes=range(n_classes), n_teachers=2).fit(X, y)


# --- the process --------------------------------------------------------------------------------------------------


def test_the_second_normal_number_of_a_pair_is_still_there():
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.normal(size=4)  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    first = np.random.normal()  # noqa: NPY002
    over_blocks(lambda *block: np.random.normal(), np.zeros((3, 1)), None, 1, np.zeros(3, int), [1])  # noqa: NPY002
    np.testing.assert_array_equal([first, *np.random.normal(size=3)], expected)  # noqa: NPY002


class Rows(np.ndarray):
    """Rows that do not fit in memory as a block."""

    def __getitem__(self, chosen):
        warnings.warn(f"{len(chosen)} rows", UserWarning, stacklevel=1)
        raise MemoryError(f"{len(chosen)} rows")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_too_little_memory_says_nothing(n_jobs):
    with pytest.raises(MemoryError) as failure:
        over_blocks(len, np.zeros((7, 1)).view(Rows), None, 1, np.zeros(7, int), [1], n_jobs)
    assert failure.value.args == ()
    assert failure.value.__context__ is None
