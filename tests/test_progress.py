"""Callbacks and printed lines tell phases and steps of a fit, which follow from public numbers and releases."""

import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.naive_bayes import GaussianNB

from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPKMeans,
    DPRandomizedSearchCV,
    DPSGDClassifier,
    DPSGDRegressor,
    ObjPertLogReg,
    PATEClassifier,
    SampleAggKMeans,
    SampleAggregate,
)
from skdp.exceptions import BudgetError
from skdp.model_selection import _strategies
from skdp.release.session import Progress, ReleaseSession
from tests.ensemble.data import public_rows
from tests.estimators import ONE_EACH, VARIANTS, data_for, declared, is_search, name_of, released
from tests.linear_model.data import blobs
from tests.test_leaks import check_what_is_left, secrets_of

_SEARCHED = ObjPertLogReg(data_norm=30.0, classes=[0, 1])
_GRID = {"fit_intercept": [True, False]}

REPEATED = DPGridSearchCV(_SEARCHED, _GRID, epsilon=2000.0, delta=1e-5, strategy="repeat", mean_runs=4.0)

#: Estimators that report progress, and strategies of searches besides those of the table.
REPORTING = [estimator for estimator in VARIANTS if "verbose" in estimator.get_params(deep=False)]
REPORTING += [
    REPEATED,
    DPGridSearchCV(_SEARCHED, {"C": [0.1]}, epsilon=2000.0, delta=1e-5),
    DPRandomizedSearchCV(_SEARCHED, {"C": [1e-3, 1e-2, 0.1]}, n_iter=2, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    DPAdditiveClassifier(bounds=(-5.0, 5.0), epsilon=0.1, delta=1e-5),
    SampleAggKMeans(3, bounds=(-20.0, 20.0), n_blocks=7, epsilon=1e6, delta=1e-5),
]
#: A release comes before the phases of the estimator.
REPORTING += [
    clone(estimator).set_params(class_weight="balanced")
    for estimator in ONE_EACH
    if is_classifier(estimator) and {"verbose", "class_weight"} <= set(estimator.get_params(deep=False))
]
every_reporting = pytest.mark.parametrize("estimator", REPORTING, ids=name_of)


class Listener:
    """A callback that notes all that it is told, and may fail or ask to stop."""

    def __init__(self, fails_at=None, looks=None):
        self.fails_at, self.looks, self.told = fails_at, looks, []

    def _note(self, hook, estimator, context, *handed):
        self.told.append((hook, context.task_name, context.max_subtasks))
        if self.looks is not None:
            self.looks(estimator, context, handed)
        if len(self.told) - 1 == self.fails_at:
            raise ZeroDivisionError

    def setup(self, estimator, context):
        self._note("setup", estimator, context)

    def teardown(self, estimator, context):
        if self.fails_at == "teardown":
            raise ZeroDivisionError

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self._note("begin", estimator, context, X, y, metadata)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self._note("end", estimator, context, X, y, metadata, fitted_estimator)
        return True


def listener(**parameters):
    """A listener, where scikit-learn has callbacks."""
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    return Listener(**parameters)


def without_times(printed, own="."):
    """Lines without the elapsed time, which each must have; `own` matches the start of those that are looked at."""
    lines = printed.splitlines()
    assert all(re.search(r" \(\d+\.\d s\)$", line) for line in lines if re.match(own, line))
    return [re.sub(r" \(\d+\.\d s\)$", "", line) for line in lines]


def timed(estimator):
    """The start of lines with times: all lines, unless the time would tell how many runs a search had."""
    return "(?!\\[DPGridSearchCV)" if getattr(estimator, "strategy", None) == "repeat" else "."


def reporting(estimator, **parameters):
    """A copy with a seed that prints its progress."""
    parameters = {"random_state": 0, "verbose": 2, **parameters}
    return declared(estimator, **parameters)


def values_of(model):
    """Return released numbers; of a search, of the model that it chose."""
    return [model.best_index_, *values_of(model.best_estimator_)] if is_search(model) else released(model)


def fit(model):
    X, y = data_for(model, n_rows=300)
    return model.fit(X, y)


# --- nothing of the data ------------------------------------------------------------------------------------------


def test_all_that_take_long_report():
    names = {type(estimator).__name__ for estimator in REPORTING}
    assert names == {
        "DPAdditiveClassifier",
        "DPAdditiveRegressor",
        "DPGridSearchCV",
        "DPKMeans",
        "DPMLPClassifier",
        "DPMLPRegressor",
        "DPRandomizedSearchCV",
        "DPSGDClassifier",
        "DPSGDRegressor",
        "DPTableGenerator",
        "ExpMechERM",
        "PATEClassifier",
        "SampleAggKMeans",
        "SampleAggregate",
    }


def test_the_parameter_has_the_same_paragraph_everywhere():
    paragraphs = set()
    for estimator in REPORTING:
        found = re.search(r"\n    verbose : int, default=0\n((?: {8}.*\n)+)", type(estimator).__doc__)
        paragraphs.add(found[1])
    assert len(paragraphs) == 1


@every_reporting
def test_released_values_do_not_depend_on_who_listens(estimator, capsys):
    silent = fit(reporting(estimator, verbose=0))
    assert capsys.readouterr().out == ""
    printing = fit(reporting(estimator))
    assert capsys.readouterr().out
    np.testing.assert_array_equal(values_of(printing), values_of(silent))
    # It asks to stop at each step, and is not heard.
    heard = listener()
    told = fit(reporting(estimator).set_callbacks(heard))
    np.testing.assert_array_equal(values_of(told), values_of(silent))
    assert heard.told[0][:2] == ("setup", "fit")
    assert heard.told[-1][:2] == ("end", "fit")
    begun, ended = ([name for hook, name, _ in heard.told if hook == which] for which in ("begin", "end"))
    assert sorted(begun) == sorted(ended)


@pytest.mark.parametrize("estimator", [e for e in REPORTING if not is_search(e)], ids=name_of)
def test_phases_are_the_releases_of_the_plan_in_their_order(estimator, monkeypatch, capsys):
    taken, release, done = [], ReleaseSession.release, Progress.done

    def noted(progress, attributes=None):
        taken.append(progress._current[0])
        done(progress, attributes)

    def checked(session, label, value):
        session.progress.reach(label)
        assert session.progress._current[0] == label
        return release(session, label, value)

    monkeypatch.setattr(Progress, "done", noted)
    monkeypatch.setattr(ReleaseSession, "release", checked)
    model = fit(reporting(estimator, verbose=1))
    lines = without_times(capsys.readouterr().out)
    phases = [line for line in lines if " phase " in line]
    assert [line.partition(": ")[2] for line in phases] == taken
    assert phases[-1].split()[2] == phases[-1].split()[4].rstrip(":") == str(len(taken))
    planned = [part.label for part in model.privacy_.releases]
    assert taken == planned or {"curves and tables", "tables"} & set(planned)
    assert lines[-1] == f"[{type(model).__name__}] end"


# With verbose=2, a listener that prints what it is told, and data of other sizes and contents: see the leak tests.
class Loud(Listener):
    """Prints what it is told."""

    def _note(self, hook, estimator, context, *handed):
        print(hook, context.task_name, context.max_subtasks, [value is None for value in handed], "(0.0 s)")


@every_reporting
def test_reports_follow_from_releases(estimator, capfd, monkeypatch):
    model = clone(estimator).set_params(verbose=2)
    if hasattr(model, "set_callbacks"):
        model.set_callbacks(Loud())
    check_what_is_left(model, capfd, monkeypatch, printed=partial(without_times, own=timed(estimator)))


@every_reporting
def test_neighbours_have_the_same_reports(estimator, capsys):
    # SampleAggKMeans without n_blocks takes their number from released counts.
    own = {"n_blocks": 5} if isinstance(estimator, SampleAggKMeans) else {}
    if name_of(estimator).startswith(("DPTableGenerator", "DPAdditive")[: 1 + (estimator.delta == 0)]):
        pytest.skip("the number of tables follows from released counts and choices")
    X, y = data_for(estimator, n_rows=60)
    found = []
    for rows, labels in ((X, y), (X[:-1], y[:-1]), (np.zeros_like(X), y)):
        reporting(estimator, **own).fit(rows, labels)
        found.append(without_times(capsys.readouterr().out, timed(estimator)))
    assert len(found[0]) > 1
    assert found[0] == found[1] == found[2]


# Of the module, because what a callback holds is in reach of the estimator.
_SECRETS, _SEEN = [], []


def look_for_secrets(estimator, context, handed):
    if not context.task_name.startswith("steps") or context.task_id in (0, 3):
        _SEEN.append(context.task_name)
        found = _SECRETS[0].found([vars(estimator), context, *map(vars_of, handed)])
        assert not found, found[:3]


@pytest.mark.parametrize("estimator", [e for e in REPORTING if e in ONE_EACH or e is REPEATED], ids=name_of)
def test_callbacks_reach_no_number_of_the_data(estimator):
    X, y = data_for(estimator, n_rows=211)
    _SECRETS[:], _SEEN[:] = [secrets_of(X, y)], []
    heard = listener(looks=look_for_secrets)
    declared(estimator, **({} if is_search(estimator) else {"epsilon": 0.5})).set_callbacks(heard).fit(X, y)
    assert len(_SEEN) > 3


def vars_of(value):
    return None if value is None else vars(value)


def test_a_callback_that_is_handed_rows_would_be_found():
    X, y = data_for(DPKMeans(), n_rows=211)
    assert secrets_of(X, y).found([{"rows": X}, None])


# --- the number of runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_number_of_runs_is_not_told(n_jobs, capsys, monkeypatch):
    runs, drawn = [], _strategies.number_of_runs

    def noted(*args):
        runs.append(drawn(*args))
        return runs[-1]

    monkeypatch.setattr(_strategies, "number_of_runs", noted)
    found, told = [], []
    for seed in range(6 if n_jobs is None else 2):
        search = reporting(REPEATED, random_state=seed, n_jobs=n_jobs)
        heard = Listener()
        if hasattr(search, "set_callbacks"):
            search.set_callbacks(heard)
        fit(search)
        found.append(capsys.readouterr().out.splitlines())
        told.append(heard.told)
    assert n_jobs or len(set(runs)) > 2
    assert all(one == found[0] for one in found)
    assert all(one == told[0] for one in told)
    name = "[DPGridSearchCV]"
    assert found[0] == [f"{name} phase 1 of 2: runs", f"{name} phase 2 of 2: selection", f"{name} end"]


def test_fits_whose_number_is_public_are_steps(capsys):
    search = DPGridSearchCV(
        _SEARCHED, _GRID, epsilon=4.0, delta=1e-5, strategy="holdout", refit=True, verbose=1, n_jobs=2, random_state=0
    )
    fit(search)
    assert without_times(capsys.readouterr().out) == [
        f"[DPGridSearchCV] {line}"
        for line in (
            "phase 1 of 3: fits",
            "fits: step 1 of 2",
            "phase 2 of 3: selection",
            "phase 3 of 3: refit",
            "end",
        )
    ]


# --- estimators inside --------------------------------------------------------------------------------------------


def test_estimators_inside_print_nothing(capfd):
    X, y = blobs(2, 120, 3)
    inner = DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=3, verbose=2)
    PATEClassifier(inner, public_X=public_rows(3), n_teachers=2, classes=[0, 1]).fit(X, y)
    regressor = DPSGDRegressor(data_norm=3.0, bounds_y=(-1, 1), n_steps=3, verbose=2)
    SampleAggregate(regressor, bounds=(-5, 5), n_blocks=2).fit(X, y)
    SampleAggKMeans(2, bounds=(-3, 3), n_blocks=2, estimator=DPKMeans(2, bounds=(-3, 3), verbose=1)).fit(X)
    DPGridSearchCV(inner, {"eta0": [0.1, 0.2]}, delta=1e-5).fit(X, y)
    assert "".join(capfd.readouterr()) == ""


# --- steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verbose", "n_lines"), [(0, 0), (1, 9), (2, 99), (3, 99)])
def test_lines_are_few(verbose, n_lines, capsys):
    X, y = blobs(2, 60, 3)
    model = DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=250, expected_n=60, verbose=verbose).fit(X, y)
    steps = [line for line in without_times(capsys.readouterr().out) if "step" in line]
    assert len(steps) == n_lines
    if verbose == 1:
        assert steps[0] == "[DPSGDClassifier] gradients: step 25 of 250"
    model.set_params(n_steps=3, verbose=1).partial_fit(X, y)
    assert len(without_times(capsys.readouterr().out)) == 4


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_teachers_are_steps(n_jobs, capsys):
    X, y = blobs(2, 60, 3)
    PATEClassifier(GaussianNB(), public_X=public_rows(3), n_teachers=4, classes=[0, 1], verbose=1, n_jobs=n_jobs).fit(
        X, y
    )
    assert [line for line in without_times(capsys.readouterr().out) if "step" in line] == [
        f"[PATEClassifier] votes: step {k} of 4" for k in range(1, 4)
    ]


def test_a_phase_yields_all_items_whatever_was_announced():
    progress = Progress()
    progress.set_up([("phase", 3)])
    progress.begin()
    assert list(progress.through(range(5))) == list(range(5))
    assert list(progress.phase(range(2))) == [0, 1]
    # The last phase is over.
    assert list(progress.through(range(2))) == [0, 1]


# --- callbacks that fail ------------------------------------------------------------------------------------------

_FAILING = [
    DPKMeans(2, bounds=(-3, 3)),
    DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=3),
    DPAdditiveClassifier(bounds=(-3, 3), classes=[0, 1], delta=1e-5),
    PATEClassifier(GaussianNB(), public_X=public_rows(3), n_teachers=3, classes=[0, 1]),
    PATEClassifier(GaussianNB(), public_X=public_rows(3), n_teachers=3, classes=[0, 1], n_jobs=2),
    SampleAggregate(GaussianNB(), attributes=["theta_", "var_", "class_prior_"], bounds=(0, 3), n_blocks=3),
    SampleAggKMeans(2, bounds=(-3, 3), n_blocks=3),
    DPGridSearchCV(_SEARCHED, _GRID, delta=1e-5, strategy="holdout"),
    DPGridSearchCV(_SEARCHED, _GRID, delta=1e-5, strategy="holdout", n_jobs=2),
]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("estimator", _FAILING, ids=name_of)
# joblib's own thread may raise an error when nobody waits for its results any more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_fails_leaves_the_charge_and_no_model(estimator):
    X, y = blobs(2, 60, 3)
    model = clone(estimator)
    if "classes" in model.get_params(deep=False):
        model.set_params(classes=[0, 1])
    heard = listener()
    clone(model).set_callbacks(heard).fit(X, y)
    last = len(heard.told) - 1
    # setup; start of the fit and of the first phase; a step or the end of a phase; the end of the fit.
    moments = (0, 1, 2, last // 2, last - 1, last, "teardown")
    # Processes take long to start.
    for fails_at in moments if getattr(model, "n_jobs", None) is None else (last // 2,):
        accountant = BudgetAccountant(5.0, 1e-3)
        failing = clone(model).set_params(accountant=accountant).set_callbacks(Listener(fails_at))
        with pytest.raises(ZeroDivisionError):
            failing.fit(X, y)
        # A callback is set up before the charge.
        assert len(accountant) == (fails_at != 0)
        assert not hasattr(failing, "privacy_")
        assert not any(name.endswith("_") for name in vars(failing))
        assert "_callback_fit_ctx" not in vars(failing)
        # It works again, and an earlier fit survives a callback that fails.
        before = dict(vars(failing.set_callbacks().fit(X, y)))
        failing.set_callbacks(Listener(fails_at))
        with pytest.raises(ZeroDivisionError):
            failing.fit(X, y)
        after = {name: value for name, value in vars(failing).items() if name != "_skl_callbacks"}
        assert all(after[name] is value for name, value in before.items())
        assert after.keys() == before.keys()


def test_a_refused_fit_begins_nothing():
    X, _ = blobs(2, 60, 3)
    heard = listener()
    model = DPKMeans(2, bounds=(-3, 3), accountant=BudgetAccountant(0.1)).set_callbacks(heard)
    with pytest.raises(BudgetError):
        model.fit(X)
    assert [hook for hook, *_ in heard.told] == ["setup"]


# --- scikit-learn without callbacks -------------------------------------------------------------------------------

_WITHOUT = """
import sys
from functools import partial
import sklearn.cluster, sklearn.ensemble, sklearn.frozen, sklearn.linear_model, sklearn.model_selection
import sklearn.naive_bayes, sklearn.pipeline
sys.modules["sklearn.callback"] = None
import numpy as np
from skdp import DPKMeans, DPSGDClassifier, DPGridSearchCV, ObjPertLogReg
X = np.linspace(-1, 1, 60).reshape(-1, 2)
y = (X[:, 0] > 0).astype(int)
assert not hasattr(DPKMeans, "set_callbacks")
DPKMeans(2, bounds=(-1, 1), random_state=0, verbose=1).fit(X)
DPSGDClassifier(data_norm=2.0, classes=[0, 1], n_steps=2, random_state=0, verbose=1).fit(X, y)
model = ObjPertLogReg(data_norm=2.0, classes=[0, 1])
DPGridSearchCV(model, {"C": [0.1, 1.0]}, strategy="holdout", refit=False, random_state=0, verbose=1).fit(X, y)
"""


@pytest.mark.sample(every=3)
def test_lines_do_not_need_callbacks():
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert without_times(done.stdout) == [
        "[DPKMeans] phase 1 of 4: centre and spread",
        "[DPKMeans] phase 2 of 4: coarse cells",
        "[DPKMeans] phase 3 of 4: fine cells",
        "[DPKMeans] phase 4 of 4: clusters",
        "[DPKMeans] end",
        "[DPSGDClassifier] phase 1 of 2: number of records",
        "[DPSGDClassifier] phase 2 of 2: gradients",
        "[DPSGDClassifier] gradients: step 1 of 2",
        "[DPSGDClassifier] end",
        "[DPGridSearchCV] phase 1 of 2: fits",
        "[DPGridSearchCV] fits: step 1 of 2",
        "[DPGridSearchCV] phase 2 of 2: selection",
        "[DPGridSearchCV] end",
    ]
