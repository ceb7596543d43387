"""What a fit leaves behind, says or does besides its releases: nothing of the data may be in it.

Everything is looked at that can be got at from Python: attributes, what views are views of, closures, caches, globals,
texts, warnings, logs, outputs, exceptions, pickles, records of the accountant. How long a fit takes is out of scope,
here and in the guarantee (user guide, "Privacy model"); so is who can read the memory of the process.

Tests of laws have a false-alarm probability of 1e-6 for each estimator.
"""

import gc
import io
import logging
import pickle
import random
import re
import warnings
import weakref

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from skdp import BudgetAccountant, DPNaiveBayes, DPStandardScaler, ObjPertLogReg
from skdp._release import ReleaseSession
from skdp.ensemble import SampleAggregate
from skdp.exceptions import BudgetError
from skdp.mechanisms import NoiseSource
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdp.preprocessing import PrivateLabelSet
from tests.estimators import (
    FREE,
    LOCAL,
    ONE_EACH,
    VARIANTS,
    data_for,
    declared,
    every_output,
    is_local,
    is_search,
    name_of,
    needs_y,
    without_data,
)
from tests.leaks import Secrets, caches, describe, library


def column_means(rows):
    """A statistic of a block."""
    return rows.mean(axis=0)


_SEARCHED = ObjPertLogReg(data_norm=30.0)
_GRID = {"fit_intercept": [True, False]}

#: Strategies, statistics and units besides those of the table.
MORE = [
    DPGridSearchCV(_SEARCHED, _GRID, epsilon=2000.0, delta=1e-5, strategy="split"),
    DPGridSearchCV(_SEARCHED, _GRID, epsilon=2000.0, delta=1e-5, strategy="repeat", mean_runs=2.0),
    DPRandomizedSearchCV(_SEARCHED, {"C": [1e-3, 1e-2, 0.1]}, n_iter=2, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    SampleAggregate(column_means, epsilon=1e6, n_blocks=4, bounds=(-5.0, 5.0)),
    DPNaiveBayes(epsilon=1e6, bounds=(-5.0, 5.0), rows_per_group=2),
    DPStandardScaler(epsilon=1e6, bounds=(-5.0, 5.0), rows_per_group=2),
]

ALL = [*VARIANTS, *MORE, *FREE, *LOCAL]

#: Those that charge a budget when they are fitted.
CHARGING = [estimator for estimator in ALL if hasattr(estimator, "epsilon") and estimator not in LOCAL]


def label_of(estimator):
    """Name for a test."""
    grouped = "-groups" if getattr(estimator, "rows_per_group", None) else ""
    inner = "-statistic" if estimator is MORE[3] else ""
    return name_of(estimator) + grouped + inner


def of_all(estimators):
    """Parametrise a test."""
    return pytest.mark.parametrize("estimator", estimators, ids=label_of)


def copy_of(estimator, **parameters):
    """A copy that declares its labels, with those of the parameters that it has."""
    known = {name: value for name, value in parameters.items() if name in estimator.get_params()}
    return declared(estimator, **known)


def fit(model, X, y):
    """Fit, with two rows a group where groups count."""
    if getattr(model, "rows_per_group", None):
        return model.fit(X, y, groups=np.arange(len(X)) // 2)
    return model.fit(X, y)


def said(model, X, y):
    """What a fitted model says of rows."""
    if isinstance(getattr(model, "estimator", None), type(column_means)):
        return {}
    return every_output(model, X, y)


def accountant_for(estimator, epsilon=1e8):
    """An accountant that admits many fits, or none."""
    unit = "group" if getattr(estimator, "rows_per_group", None) else "record"
    return BudgetAccountant(epsilon=epsilon, delta=0.5, composition="basic", unit=unit)


# --- looking at a fit ---------------------------------------------------------------------------------------------


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append((record.name, record.levelno, record.getMessage()))


def settings():
    """What code may leave changed in the process."""
    return [
        repr(np.random.get_state()[1].tolist()),  # noqa: NPY002
        repr(np.random.get_state()[2:]),  # noqa: NPY002
        repr(random.getstate()),
        repr(np.geterr()),
        repr(np.get_printoptions()),
        repr(sklearn.get_config()),
        repr(warnings.filters),
        repr((logging.root.level, logging.root.manager.disable)),
    ]


def traces(act, capfd):
    """What can be seen while something runs: its error, warnings, logs and outputs, and the settings it leaves."""
    log = Kept()
    level = logging.root.level
    logging.root.addHandler(log)
    logging.root.setLevel(logging.DEBUG)
    capfd.readouterr()
    failure = None
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                act()
            except Exception as error:
                failure = describe(error.with_traceback(None))
            after = settings()
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(log)
    return {
        "error": failure,
        "warnings": [(each.category.__name__, str(each.message), each.filename, each.lineno) for each in seen],
        "log": log.lines,
        "printed": list(capfd.readouterr()),
        "settings": after,
    }


def texts(model):
    """What is shown of a model."""
    html = re.sub(r"sk-(container|estimator)-id-\d+", "id", model._repr_html_())
    privacy = getattr(model, "privacy_", None)
    return [repr(model), str(model), html, repr(privacy), privacy is not None and privacy._repr_html_()]


def pickles(model):
    """What is written of a model."""
    written = io.BytesIO()
    joblib.dump(model, written)
    return [pickle.dumps(model, 0), pickle.dumps(model, 2), written.getvalue()]


def left_behind(model, X, y, shown=True):
    """All that is left of a fit, of which nothing depends on the data but what was released; X and y are public."""
    accountant = getattr(model, "accountant", None)
    records = () if accountant is None else accountant.records
    charged = [{name: value for name, value in vars(record).items() if name != "time"} for record in records]
    total = None if accountant is None else tuple(accountant.total())
    if accountant is not None:
        model.set_params(accountant=None)
    left = {
        "attributes": describe(vars(model)),
        "pickle": [pickle.dumps(model)],
        "said": describe(said(model, X, y)),
        "records": describe([charged, total]),
    }
    # What takes long.
    return {**left, "texts": texts(model), "pickles": pickles(model)} if shown else left


def compare(looks):
    """Fail where one fit was not like the first, and say where."""
    for look in looks[1:]:
        for what, value in look.items():
            first = looks[0][what]
            if value == first:
                continue
            lines = [(one, other) for one, other in zip(first or [], value or [], strict=False) if one != other]
            pytest.fail(f"{what} depend on the data: {str(lines[:1])[:500] or (first, value)}")


def noise_alone(monkeypatch):
    """Let releases come out as if all data were 0."""
    release, steps = ReleaseSession.release, ReleaseSession.steps

    def of_nothing(self, label, value):
        return release(self, label, without_data(value))

    def steps_of_nothing(self, label, n_rows):
        for rows, send in steps(self, label, n_rows):
            yield rows, lambda total, send=send: send(np.zeros(np.shape(total)))

    monkeypatch.setattr(ReleaseSession, "release", of_nothing)
    monkeypatch.setattr(ReleaseSession, "steps", steps_of_nothing)


def different_data(estimator):
    """Data sets that have nothing in common but columns; in the local model, the number of rows as well."""
    X, y = data_for(estimator)
    corner = np.sort(1e6 * X, axis=0)
    if is_local(estimator):
        return [(X, y), (X[::-1], y), (3 - X, 1 - y), (corner, 0 * y)]
    return [(X, y), (corner[:50][::-1], 0 * y[:50]), (3 - X[:7], y[:7]), (X[:0], y[:0])]


def check_what_is_left(estimator, capfd, monkeypatch):
    """Fail if anything depends on the data but what was released."""
    public = data_for(estimator, n_rows=12, seed=9)
    looks = []
    # One object, which has one address in texts.
    generator = np.random.RandomState(7)
    start = generator.get_state()
    with monkeypatch.context() as patch:
        noise_alone(patch)
        for X, y in different_data(estimator):
            np.random.seed(0)  # noqa: NPY002
            random.seed(0)
            generator.set_state(start)
            model = copy_of(estimator, random_state=generator, accountant=accountant_for(estimator))
            look = traces(lambda model=model, X=X, y=y: fit(model, X, y), capfd)
            looks.append({**look, **left_behind(model, *public, shown=len(looks) < 2)})
    assert looks[0]["error"] is None
    assert looks[0]["printed"] == ["", ""]
    assert not looks[0]["log"]
    compare(looks)


@of_all(ALL)
def test_what_is_left_of_a_fit_follows_from_its_releases(estimator, capfd, monkeypatch):
    check_what_is_left(estimator, capfd, monkeypatch)


# --- numbers of the data, and the data themselves -----------------------------------------------------------------


def secrets_of(X, y):
    """What nobody may find of these data; labels are public."""
    return Secrets(X, *([y] if y.dtype.kind == "f" else []))


def check_that_data_are_gone(act, X, y):
    """Fail if X or y are alive after something was done with them, or if what it returns holds numbers of theirs.

    X and y are to be referred to by nothing else: they come in lists, which are emptied.
    """
    secrets = secrets_of(X[0], y[0])
    alive = [weakref.ref(X[0]), weakref.ref(y[0])]
    kept = act(X.pop(), y.pop())
    if any(each() is not None for each in alive):
        # Of frames that refer to each other, and wait for the collector.
        gc.collect()
    assert all(each() is None for each in alive), "the data are referred to"
    found = secrets.found(kept)
    assert not found, found[:3]
    if hasattr(kept, "get_params"):
        for written in pickles(kept):
            assert not len(secrets.within(written)), "a pickle holds data"


def data_in_lists(estimator, n_rows=1013):
    """Rows and targets that nothing else refers to."""
    X, y = data_for(estimator, n_rows=n_rows)
    return [X.copy()], [y.copy()]


def fitted_and_asked(estimator):
    """A function that fits, with real noise, and asks for predictions on the same rows."""

    def act(X, y):
        model = fit(copy_of(estimator, epsilon=0.5, accountant=accountant_for(estimator)), X, y)
        said(model, X, y)
        return model

    return act


@of_all(ALL)
def test_no_number_of_the_data_is_in_reach_of_a_model(estimator):
    check_that_data_are_gone(fitted_and_asked(estimator), *data_in_lists(estimator))


def failed(estimator, how, monkeypatch):
    """A function that fits, fails, and returns estimator and error."""

    def stream(self, label):
        raise RuntimeError

    def act(X, y):
        model = copy_of(estimator, epsilon=0.5)
        if how == "refused":
            model.set_params(accountant=BudgetAccountant(1e-3, unit=accountant_for(estimator).unit))
        if how == "missing":
            X[3, 1] = np.nan
        with monkeypatch.context() as patch:
            if how == "interrupted":
                patch.setattr(NoiseSource, "stream", stream)
            try:
                fit(model, X, y)
            except (BudgetError, RuntimeError, ValueError) as error:
                return model, error.with_traceback(None)
        raise AssertionError("nothing failed")

    return act


SOME = [*ONE_EACH, *MORE]


@of_all(SOME)
@pytest.mark.parametrize("how", ["refused", "missing", "interrupted"])
def test_no_number_of_the_data_is_in_reach_after_a_fit_that_fails(estimator, how, monkeypatch):
    check_that_data_are_gone(failed(estimator, how, monkeypatch), *data_in_lists(estimator, 103))


def test_labels_that_are_not_told_of_are_gone():
    labels = np.array([f"patient-{k:04}" for k in range(500)] + ["flu"] * 600)
    alive = weakref.ref(labels)
    model = PrivateLabelSet(epsilon=1.0, delta=1e-9).fit(labels)
    del labels
    assert alive() is None
    assert model.classes_.tolist() == ["flu"]
    assert not any("patient" in line for line in describe(model))
    assert not any(b"patient" in written for written in pickles(model))


def arrays_in_the_process():
    """Arrays that anything refers to which the collector of garbage knows of."""
    found = {}
    for holder in gc.get_objects():
        for each in gc.get_referents(holder):
            if isinstance(each, np.ndarray):
                found[id(each)] = each
    return list(found.values())


def check_that_nothing_remembers(estimators, fit=fit):
    """Fail if caches or globals of the library depend on data, or if any array of the process holds some of them."""
    looks, data = [], []
    for cache in caches():
        # A full one forgets, and what it forgets is a matter of order.
        cache.cache_clear()
    for n_rows, seed in ((211, 1), (37, 2)):
        for estimator in estimators:
            X, y = data_for(estimator, n_rows=n_rows, seed=seed)
            data.append(Secrets(X))
            fit(copy_of(estimator, random_state=3), X, y)
            del X, y
        looks.append(describe(library()))
    own = {id(array) for secrets in data for array in vars(secrets).values()}
    rest = [array for array in arrays_in_the_process() if id(array) not in own]
    for secrets in {secrets._known.tobytes(): secrets for secrets in data}.values():
        for array in rest:
            assert not len(secrets.within(array)), "an array in the process holds data"
    compare([{"caches and globals": look} for look in looks])


def test_no_cache_or_global_depends_on_data(monkeypatch):
    # Caches may hold what was released, which is the same then.
    noise_alone(monkeypatch)
    check_that_nothing_remembers(ALL)
