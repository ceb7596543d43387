"""diffprivlib's models and tools spend from our budget, each once, and before they release anything."""

import contextlib
import copy
import math
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdp import BudgetAccountant
from skdp.accounting import Budget
from skdp.exceptions import BudgetError

diffprivlib = pytest.importorskip(
    "diffprivlib", exc_type=ImportError, reason="diffprivlib is not installed, or not for this scikit-learn"
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::diffprivlib.utils.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::diffprivlib.utils.DiffprivlibCompatibilityWarning"),
    # diffprivlib's own, with newer NumPy and scikit-learn.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:lbfgs failed to converge"),
]

X = np.random.default_rng(0).uniform(0, 1, (80, 3))
Y = (X[:, 0] > 0.5).astype(int)


def models():
    bounds = (0, 1)
    m = diffprivlib.models
    return [
        m.GaussianNB(epsilon=0.5, bounds=bounds),
        m.LogisticRegression(epsilon=0.5, data_norm=2),
        m.LinearRegression(epsilon=0.5, bounds_X=bounds, bounds_y=bounds),
        m.StandardScaler(epsilon=0.5, bounds=bounds),
        m.PCA(2, epsilon=0.5, data_norm=2, bounds=bounds),
        m.KMeans(2, epsilon=0.5, bounds=bounds),
        m.DecisionTreeClassifier(epsilon=0.5, bounds=bounds, classes=[0, 1], max_depth=3),
        m.RandomForestClassifier(n_estimators=3, epsilon=0.5, bounds=bounds, classes=[0, 1], max_depth=3),
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_each_model_is_charged_once_and_refused_when_it_does_not_fit(model):
    accountant = BudgetAccountant(1.0)
    model.set_params(accountant=accountant.as_diffprivlib())
    for count in (1, 2):
        model.fit(X, Y)
        assert len(accountant) == count
        assert accountant.total() == Budget(0.5 * count, 0.0)
    with pytest.raises(BudgetError):
        clone(model).fit(X, Y)
    assert [record.label for record in accountant.records] == ["diffprivlib"] * 2


def test_tools_are_charged():
    accountant = BudgetAccountant(3.0)
    theirs = accountant.as_diffprivlib()
    tools = diffprivlib.tools
    tools.mean(X, epsilon=0.5, bounds=(0, 1), accountant=theirs)
    tools.histogram(X[:, 0], epsilon=0.25, range=(0, 1), accountant=theirs)
    tools.quantile(X[:, 0], 0.5, epsilon=0.25, bounds=(0, 1), accountant=theirs)
    tools.quantile(X[:, 0], [0.25, 0.75], epsilon=0.5, bounds=(0, 1), accountant=theirs)
    assert accountant.total() == Budget(1.5, 0.0)
    with pytest.raises(BudgetError):
        tools.var(X, epsilon=1.6, bounds=(0, 1), accountant=theirs)
    assert accountant.remaining() == Budget(1.5, 0.0)


def test_the_default_accountant_of_a_block_is_ours():
    accountant = BudgetAccountant(1.0)
    with accountant.as_diffprivlib():
        diffprivlib.tools.mean(X, epsilon=0.25, bounds=(0, 1))
    diffprivlib.BudgetAccountant.pop_default()
    assert accountant.total() == Budget(0.25, 0.0)


def test_fits_inside_model_selection_are_charged():
    # With diffprivlib's own accountant both leave it at zero, because clones copy it.
    accountant = BudgetAccountant(50.0)
    model = diffprivlib.models.GaussianNB(epsilon=0.5, bounds=(0, 1), accountant=accountant.as_diffprivlib())
    cross_val_score(model, X, Y, cv=3)
    assert len(accountant) == 3
    GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2, n_jobs=2).fit(X, Y)
    assert len(accountant) == 3 + 5
    theirs = diffprivlib.BudgetAccountant(50.0)
    cross_val_score(clone(model).set_params(accountant=theirs), X, Y, cv=3)
    assert len(theirs) == 0


def test_threads_do_not_get_past_the_ceiling():
    def race(theirs):
        start = threading.Barrier(6)
        fitted = []

        def fit():
            model = diffprivlib.models.GaussianNB(epsilon=1.0, bounds=(0, 1), accountant=theirs)
            start.wait()
            with contextlib.suppress(BudgetError, diffprivlib.utils.BudgetError):
                fitted.append(model.fit(X, Y))

        threads = [threading.Thread(target=fit) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(fitted)

    accountant = BudgetAccountant(2.0)
    assert race(accountant.as_diffprivlib()) == len(accountant) == 2


def test_a_fit_that_fails_stays_charged_and_the_next_one_is_charged_again():
    accountant = BudgetAccountant(10.0)
    model = diffprivlib.models.GaussianNB(epsilon=1.0, bounds=(0, 1), accountant=accountant.as_diffprivlib())
    bad = X.copy()
    bad[0, 0] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(bad, Y)
    charged = len(accountant)
    model.fit(X, Y)
    assert len(accountant) == charged + 1
    # A charge by hand after a failed fit of the same cost is a charge.
    with pytest.raises(ValueError, match="NaN"):
        model.fit(bad, Y)
    before = len(accountant)
    model.accountant.spend(1.0, 0)
    assert len(accountant) == before + 1


def test_calls_by_hand_mean_what_they_say():
    accountant = BudgetAccountant(1.0, 1e-5, composition="basic")
    theirs = accountant.as_diffprivlib()
    assert theirs.check(0.5, 0) is True
    assert len(accountant) == 0
    assert theirs.spend(0.5, 1e-6) is theirs
    assert theirs.total() == accountant.total() == Budget(0.5, 1e-6)
    assert theirs.remaining(2) == accountant.remaining(2)
    assert (theirs.epsilon, theirs.delta, theirs.slack, len(theirs)) == (1.0, 1e-5, 0.0, 1)
    assert theirs.spent_budget == [(0.5, 1e-6)]
    with pytest.raises(BudgetError):
        theirs.check(0.6, 0)
    with pytest.raises(ValueError, match="composition"):
        theirs.total(slack=1e-6)
    assert "for diffprivlib" in repr(theirs)
    assert theirs


def test_copies_and_pickles_share_the_budget():
    accountant = BudgetAccountant(1.0)
    theirs = accountant.as_diffprivlib()
    assert copy.deepcopy(theirs) is theirs
    assert clone(theirs) is theirs
    other = pickle.loads(pickle.dumps(theirs))
    other.spend(0.75, 0)
    assert accountant.remaining() == Budget(0.25, 0.0)
    assert isinstance(other, diffprivlib.BudgetAccountant)


def test_without_a_ceiling_everything_is_recorded():
    accountant = BudgetAccountant(math.inf)
    diffprivlib.tools.mean(X, epsilon=5.0, bounds=(0, 1), accountant=accountant.as_diffprivlib())
    assert accountant.total() == Budget(5.0, 0.0)
