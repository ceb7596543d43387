"""What a fit leaves behind, says or does besides its releases: nothing of the data may be in it.

Everything is looked at that can be got at from Python: attributes, what views are views of, closures, caches, globals,
texts, warnings, logs, outputs, exceptions, pickles, records of the accountant. How long a fit takes is out of scope,
here and in the guarantee (user guide, "Privacy model"); so is who can read the memory of the process.

Tests of laws have a false-alarm probability of 1e-6 for each estimator.
"""

import functools
import gc
import importlib
import inspect
import io
import logging
import math
import pickle
import pkgutil
import random
import re
import sys
import warnings
import weakref

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import skdp
from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPKMeans,
    DPNaiveBayes,
    DPRandomTree,
    DPStandardScaler,
    Number,
    ObjPertLogReg,
    Schema,
)
from skdp.checks import data as _data
from skdp.ensemble import SampleAggregate
from skdp.exceptions import BudgetError
from skdp.mechanisms import NoiseSource
from skdp.model_selection import (
    DPGridSearchCV,
    DPRandomizedSearchCV,
    PrivatePipeline,
    private_cross_val_score,
    private_score,
)
from skdp.preprocessing import NormClipper, private_bounds
from skdp.release.session import ReleaseSession
from tests.estimators import (
    FREE,
    LOCAL,
    ONE_EACH,
    TABLES,
    VARIANTS,
    data_for,
    declared,
    every_output,
    is_local,
    is_search,
    name_of,
    output,
    without_data,
)
from tests.leaks import Secrets, caches, describe, library, walk


def column_means(rows):
    """A statistic of a block."""
    return rows.mean(axis=0)


_SEARCHED = ObjPertLogReg(data_norm=30.0)
_GRID = {"fit_intercept": [True, False]}

#: A table of five columns, as the data have. One of them must not have missing values.
FIVE = Schema({"x0": (-5, 5), "x1": Number(-5, 5, missing="error"), "x2": (-5, 5), "x3": (-5, 5), "x4": (-5, 5)})

#: Strategies, statistics, units and schemas besides those of the table.
MORE = [
    DPGridSearchCV(_SEARCHED, _GRID, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    DPGridSearchCV(_SEARCHED, _GRID, epsilon=2000.0, delta=1e-5, strategy="repeat", mean_runs=2.0),
    DPRandomizedSearchCV(_SEARCHED, {"C": [1e-3, 1e-2, 0.1]}, n_iter=2, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    SampleAggregate(column_means, epsilon=1e6, n_blocks=4, bounds=(-5.0, 5.0)),
    DPNaiveBayes(epsilon=1e6, bounds=(-5.0, 5.0), rows_per_group=2),
    DPStandardScaler(epsilon=1e6, bounds=(-5.0, 5.0), rows_per_group=2),
    DPGridSearchCV(
        DPNaiveBayes(bounds=(-5.0, 5.0), rows_per_group=2),
        {"alpha": [0.5, 1.0]},
        epsilon=2000.0,
        delta=1e-5,
        strategy="holdout",
        rows_per_group=2,
    ),
    ObjPertLogReg(schema=FIVE, epsilon=2000.0, delta=1e-5),
    DPAdditiveClassifier(schema=FIVE, epsilon=2000.0, delta=1e-5),
    DPNaiveBayes(schema=FIVE, epsilon=1e6),
    DPRandomTree(schema=FIVE, epsilon=1e6, n_estimators=8, max_depth=3),
    DPKMeans(schema=FIVE, n_clusters=2, epsilon=1e6),
    DPGridSearchCV(ObjPertLogReg(), {"C": [0.01, 0.1]}, schema=FIVE, epsilon=2000.0, delta=1e-5, strategy="holdout"),
    *[
        clone(model).set_params(epsilon=1e6, class_weight={0: 1.0, 1: 0.5}, max_weight=2.0)
        for model in (DPNaiveBayes(bounds=(-5.0, 5.0)), _SEARCHED)
    ],
]

ALL = [*VARIANTS, *MORE, *FREE, *TABLES, *LOCAL]

#: Those that charge a budget when they are fitted.
CHARGING = [estimator for estimator in ALL if hasattr(estimator, "epsilon") and estimator not in LOCAL]


def label_of(estimator):
    """Name for a test."""
    grouped = "-groups" if getattr(estimator, "rows_per_group", None) else ""
    inner = "-statistic" if estimator is MORE[3] else ""
    weighted = "-weights" if getattr(estimator, "max_weight", None) else ""
    table = "-schema" if getattr(estimator, "schema", None) is FIVE else ""
    return name_of(estimator) + grouped + inner + weighted + table


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
    if getattr(model, "max_weight", None):
        return model.fit(X, y, sample_weight=np.abs(X[:, 0]))
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

    def steps_of_nothing(self, label, n_rows, attributes=None):
        for rows, send in steps(self, label, n_rows, attributes):
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


def check_what_is_left(estimator, capfd, monkeypatch, act=fit, printed=None):
    """Fail if anything depends on the data but what was released; `printed` is what counts of the output, if any."""
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
            look = traces(lambda model=model, X=X, y=y: act(model, X, y), capfd)
            if printed is not None:
                look["printed"] = [printed(text) for text in look["printed"]]
                assert look["printed"][0]
            looks.append({**look, **left_behind(model, *public, shown=len(looks) < 2)})
    assert looks[0]["error"] is None
    assert printed is not None or looks[0]["printed"] == ["", ""]
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
    # At once: a cycle of references would keep them until the collector of garbage comes by.
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


def fitted_and_asked(estimator, act=fit):
    """A function that fits, with real noise, and asks for predictions on the same rows."""

    def fit_and_ask(X, y):
        model = act(copy_of(estimator, epsilon=0.5, accountant=accountant_for(estimator)), X, y)
        said(model, X, y)
        return model

    return fit_and_ask


@of_all(ALL)
def test_no_number_of_the_data_is_in_reach_of_a_model(estimator):
    check_that_data_are_gone(fitted_and_asked(estimator), *data_in_lists(estimator))


def failed(estimator, how, monkeypatch, act=fit):
    """A function that fits, fails, and returns estimator and error."""

    def stream(self, label):
        raise RuntimeError

    def fit_and_fail(X, y):
        model = copy_of(estimator, epsilon=0.5)
        if how == "refused":
            model.set_params(accountant=BudgetAccountant(1e-3, unit=accountant_for(estimator).unit))
        if how == "missing":
            X[3, 1] = np.nan
        with monkeypatch.context() as patch:
            if how == "interrupted":
                patch.setattr(NoiseSource, "stream", stream)
            try:
                act(model, X, y)
            except (BudgetError, RuntimeError, ValueError) as error:
                # Without its traceback, whose frames are the process's.
                return model, error.args, vars(error), error.__cause__, error.__context__
        raise LookupError("nothing failed")

    return fit_and_fail


SOME = [*ONE_EACH, *MORE]


@of_all(SOME)
@pytest.mark.parametrize("how", ["refused", "missing", "interrupted"])
def test_no_number_of_the_data_is_in_reach_after_a_fit_that_fails(estimator, how, monkeypatch):
    check_that_data_are_gone(failed(estimator, how, monkeypatch), *data_in_lists(estimator, 103))


def test_labels_that_are_not_told_of_are_gone():
    labels = np.array([f"patient-{k:04}" for k in range(500)] + ["flu"] * 600)
    alive = weakref.ref(labels)
    found = skdp.stats.value_counts(labels, epsilon=1.0, delta=1e-9)
    del labels
    assert alive() is None
    assert found.names == ("flu",)
    assert not any("patient" in line for line in describe(found))
    assert not any(b"patient" in written for written in pickles(found))


def arrays_in_the_process():
    """Arrays that anything refers to which the collector of garbage knows of."""
    found = {}
    for holder in gc.get_objects():
        for each in gc.get_referents(holder):
            if isinstance(each, np.ndarray):
                found[id(each)] = each
    return list(found.values())


def check_that_nothing_remembers(estimators, act=fit):
    """Fail if caches or globals of the library depend on data, or if any array of the process holds some of them."""
    looks, data = [], []
    for cache in caches():
        # A full one forgets, and what it forgets is a matter of order.
        cache.cache_clear()
    for n_rows, seed in ((211, 1), (37, 2)):
        for estimator in estimators:
            X, y = data_for(estimator, n_rows=n_rows, seed=seed)
            data.append(Secrets(X))
            act(copy_of(estimator, random_state=3), X, y)
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


# --- errors -------------------------------------------------------------------------------------------------------


def refusals(X, y, rng):
    """Data that are refused, and why; where in the data, and how many of them there are, is private."""
    row, column = rng.integers(len(X)), rng.integers(X.shape[1])
    spoiled = {"nan": np.nan, "infinity": np.inf}
    spoiled |= {"text": "patient-7731", "missing": pd.NA, "object": {7731}, "huge": 10**400, "complex": 7731j}
    for name, entry in spoiled.items():
        data = X.copy() if isinstance(entry, float) else X.astype(object)
        data[row, column] = entry
        yield name, data, y
    yield "ragged", [list(each)[: len(each) - (k == row)] for k, each in enumerate(X)], y
    yield "one dimension", X[:, 0], y
    yield "three dimensions", X[None], y
    yield "no columns", X[:, :0], y
    yield "short targets", X, y[:-1]
    yield "long targets", X, np.append(y, y[:3])
    yield "many targets", X, np.stack([y, y, y], axis=1)[:, None]
    yield "no label", X, [*y[:row].tolist(), None, *y[row + 1 :].tolist()]
    yield "text for labels", X, ["patient-7731"] * len(y)


def check_refusals(estimator, act=fit, budget=True):
    """Fail if an error tells more of the data than what it refuses."""
    X, y = data_for(estimator, n_rows=31)
    looks = []
    for rows, targets, seed in ((X, y, 0), (1e3 * X[:17] - 5, 0 * y[:17], 1)):
        look = {}
        for name, data, target in refusals(rows, targets, np.random.default_rng(seed)):
            try:
                act(copy_of(estimator), data, target)
            except Exception as error:
                look[name] = describe(error.with_traceback(None))
        if budget and hasattr(estimator, "accountant") and estimator not in LOCAL:
            poor = BudgetAccountant(1e-3, unit=accountant_for(estimator).unit)
            try:
                act(copy_of(estimator, accountant=poor), rows, targets)
            except BudgetError as error:
                look["budget"] = describe([error.with_traceback(None), error.__cause__, error.__context__])
        looks.append(look)
    assert looks[0]
    assert looks[0].keys() == looks[1].keys()
    compare(looks)


@of_all([*SOME, *FREE, *TABLES, *LOCAL])
def test_errors_say_what_is_refused_and_nothing_else_of_the_data(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("an error names a column with an entry that the schema refuses")
    check_refusals(estimator)


def cross_validated(model, X, y):
    private_cross_val_score(model, X, y, cv=2)


def evaluated(model, X, y):
    private_score(model.fit(*data_for(model)), X, y)


def searched(model, X, y):
    steps = [("clip", NormClipper(3.0)), ("model", model.set_params(accountant=None))]
    DPGridSearchCV(Pipeline(steps), {"model__C": [0.1, 1.0]}).fit(X, y)


def divided(model, X, y):
    with BudgetAccountant().parallel(by=y, parts=[0, 1]) as parts_:
        for part in parts_:
            part.take(X, y)


def grouped(model, X, y):
    by = np.arange(len(y)).tolist()
    DPStandardScaler(bounds=(-1.0, 1.0), rows_per_group=2).fit(X, groups=by if np.ndim(y) == 1 else by[1:])


def quantiles(model, X, y):
    private_bounds(X, epsilon=1.0)


def means(model, X, y):
    skdp.stats.mean(X, bounds=(-1.0, 1.0))


def medians_by_group(model, X, y):
    skdp.stats.median(X, bounds=(-1.0, 1.0), **members_of(X, y))


def labels_with_counts(model, X, y):
    skdp.stats.mean(X, bounds=(-1.0, 1.0))
    skdp.stats.value_counts(y, delta=1e-6)


def members_of(X, y):
    by = np.arange(len(y)).tolist()
    return {"rows_per_group": 2, "groups": by if np.ndim(y) == 1 else by[1:]}


def quantiles_by_group(model, X, y):
    private_bounds(X, epsilon=1.0, **members_of(X, y))


def evaluated_by_group(model, X, y):
    private_score(model.fit(*data_for(model)), X, y, **members_of(X, y))


def cross_validated_by_group(model, X, y):
    by_group = declared(DPNaiveBayes(bounds=(-1.0, 1.0), rows_per_group=2))
    private_cross_val_score(by_group, X, y, cv=2, **members_of(X, y))


BY_GROUP = (grouped, medians_by_group, quantiles_by_group, evaluated_by_group, cross_validated_by_group)


@pytest.mark.parametrize(
    "act", [cross_validated, evaluated, searched, divided, quantiles, means, labels_with_counts, *BY_GROUP]
)
def test_errors_of_functions_say_nothing_of_the_data(act):
    check_refusals(declared(ObjPertLogReg(data_norm=3.0)), act, budget=False)


@of_all([estimator for estimator in SOME if not is_search(estimator)])
def test_too_little_memory_is_all_that_is_said(estimator, monkeypatch):
    def lacking(*args, **kwargs):
        np.empty((1013, 2**48), dtype=np.uint8)

    monkeypatch.setattr(NoiseSource, "stream", lacking)
    with pytest.raises(MemoryError) as failure:
        fit(copy_of(estimator), *data_for(estimator, n_rows=103))
    assert type(failure.value) is MemoryError
    assert "1013" not in "".join(describe(failure.value))
    assert failure.value.__context__ is None


def bounds_are_sought(model, X, y):
    private_bounds(X, epsilon=1.0)


@pytest.mark.parametrize("act", [evaluated, cross_validated, searched, quantiles, bounds_are_sought])
def test_too_little_memory_for_a_function_is_all_that_is_said(act, monkeypatch):
    def lacking(*args, **kwargs):
        np.empty((1013, 2**48), dtype=np.uint8)

    model = declared(ObjPertLogReg(data_norm=3.0))
    X, y = data_for(model, n_rows=103)
    if act is evaluated:
        model = model.fit(X, y)
        monkeypatch.setattr(model, "fit", lambda X, y: model)
    monkeypatch.setattr(NoiseSource, "stream", lacking)
    with pytest.raises(MemoryError) as failure:
        act(model, X, y)
    assert type(failure.value) is MemoryError
    assert "1013" not in "".join(describe(failure.value))
    assert failure.value.__context__ is None


class TooLarge:
    """Rows of which NumPy says, when anything is asked of them, how many do not fit into memory."""

    def lack(self, *args, **kwargs):
        np.empty((1013, 2**48), dtype=np.uint8)

    __array__ = __getattr__ = __getitem__ = __iter__ = __len__ = lack


#: Names of parameters that hold rows, or one value for each.
ROWS = {"X", "y", "Z", "arrays", "by", "reports"}

#: Packages of parts of estimators, and of tools for public or made-up records.
PARTS = ("skdp.sensitivity", "skdp.mechanisms", "skdp.audit", "skdp.inspection", "skdp.datasets")


def rows_of(function):
    """The parameters of a function that hold rows."""
    return ROWS & set(inspect.signature(function).parameters)


def check_that_rows_are_not_counted(function, monkeypatch, *args, **kwargs):
    """Call with rows that are too large, where validation does not replace NumPy's message itself."""
    monkeypatch.setattr(_data, "_quietly", lambda validate, *arguments, **options: validate())
    with pytest.raises(MemoryError) as failure:
        function(*args, **kwargs)
    assert "1013" not in "".join(describe(failure.value))
    assert failure.value.__context__ is None


@of_all([*ONE_EACH, *FREE, *TABLES, *LOCAL])
def test_no_method_counts_rows_for_lack_of_memory(estimator, monkeypatch):
    model = copy_of(estimator)
    X, y = data_for(model, n_rows=103)
    model.fit(X, y)
    for name in dir(model):
        method = None if name.startswith("_") else getattr(model, name, None)
        if inspect.ismethod(method) and rows_of(method):
            check_that_rows_are_not_counted(method, monkeypatch, **dict.fromkeys(rows_of(method), TooLarge()))


def frozen():
    """A fitted model."""
    return declared(ObjPertLogReg(data_norm=3.0)).fit(*data_for(ObjPertLogReg()))


def one_part():
    """The only part of one record."""
    return BudgetAccountant(epsilon=1.0).parallel(["a"], ["a"])["a"]


_NUMBERS = {"bounds": (0, 1)}
_PEOPLE = {"schema": Schema({"a": ["u", "v"], "b": ["u", "v"], "x": (0, 1)})}

#: The functions of `skdp.stats`, with what they need besides rows.
STATISTICS = {
    **dict.fromkeys(["sum", "mean", "var", "std", "median", "min_max"], _NUMBERS),
    **dict.fromkeys(["histogram", "histogramdd", "ecdf"], _NUMBERS),
    **dict.fromkeys(["covariance", "correlation", "linear_trend"], _NUMBERS),
    **dict.fromkeys(["count", "contingency", "chi2_contingency", "describe"], _PEOPLE),
    "quantile": {"q": 0.5, **_NUMBERS},
    "value_counts": {"delta": 1e-6},
    "proportion": {},
    "ttest_ind": {"by": "a", **_PEOPLE},
    "mannwhitneyu": {"by": "a", **_PEOPLE},
    "group_by": {"by": "a", "statistics": {"x": "mean"}, **_PEOPLE},
}


def statistic_of(name, given):
    """Call one of them with rows."""
    return lambda rows: getattr(skdp.stats, name)(rows, **given)


#: How functions that are no methods of estimators are called with rows.
CALLS = {
    "BudgetAccountant.parallel": lambda: lambda rows: BudgetAccountant(epsilon=1.0).parallel(rows, ["a"]),
    "Part.take": lambda: one_part().take,
    "private_bounds": lambda: lambda rows: private_bounds(rows, epsilon=1.0),
    "private_cross_val_score": lambda: lambda rows: cross_validated(declared(ObjPertLogReg(data_norm=3.0)), rows, rows),
    **{name: functools.partial(statistic_of, name, given) for name, given in STATISTICS.items()},
    "private_score": lambda: functools.partial(lambda model, rows: private_score(model, rows, rows), frozen()),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_function_counts_rows_for_lack_of_memory(name, monkeypatch):
    check_that_rows_are_not_counted(CALLS[name](), monkeypatch, TooLarge())


def test_every_function_that_takes_rows_is_called_with_too_many():
    found, estimators = set(), {type(each) for each in [*ONE_EACH, *FREE, *TABLES, *LOCAL, *MORE]}
    # A private pipeline hands rows to its steps.
    estimators.add(PrivatePipeline)
    for module in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if "._" in module.name or module.name.startswith(PARTS):
            continue
        package = importlib.import_module(module.name)
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if value in estimators:
                continue
            methods = inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else [(None, value)]
            for method, function in methods:
                if callable(function) and not str(method).startswith("_") and rows_of(function):
                    found.add(name if method is None else f"{name}.{method}")
    assert found == set(CALLS)


def test_a_search_in_processes_writes_no_rows_to_files(monkeypatch):
    written = []
    monkeypatch.setattr(joblib._memmapping_reducer, "dump", lambda value, *args, **kwargs: written.append(value))
    y = np.arange(60_000) % 2
    X = np.random.default_rng(0).normal(size=(len(y), 8))
    search = DPGridSearchCV(declared(_SEARCHED), _GRID, epsilon=4.0, strategy="holdout", n_jobs=2)
    search.fit(X, y)
    # joblib would write what is larger than a megabyte.
    assert X[: len(X) // 3].nbytes > 2**20
    assert not written


# --- laws ---------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-6

# Fits of these take longer; there are fewer of them, which are enough for what does not depend on noise.
SLOW = (
    "LocalDPNaiveBayes",
    "DPGreedyTree",
    "DPMLP",
    "DPRandomTree",
    "DPSGD",
    "ExpMechERM",
    "Histogram",
    "PATE",
    "SampleAgg",
    "DPQuantile",
)


def fits_of(estimator):
    """How often an estimator is fitted to each data set."""
    return 16 if is_search(estimator) or type(estimator).__name__.startswith(SLOW) else 120


def least_budget(estimator):
    """The smallest budget: all data are nearly alike then. That of a search, or after a first release, is divided."""
    return {"epsilon": 1e-3 if is_search(estimator) else 2.0**-19, "delta": 1e-12 if estimator.delta else 0.0}


def far_apart(estimator):
    """Two data sets at opposite corners, with one label each; in the local model, as many rows in both."""
    few, many = (30, 30) if is_local(estimator) else (7, 60)
    width = data_for(estimator)[0].shape[1]
    # Halves of a histogram's range, and of the norms of the table.
    low, high = np.full((few, width), -1.5), np.full((many, width), 1.5)
    y = (np.zeros(few, dtype=int), np.ones(many, dtype=int))
    return (low, y[0]), (high, y[1])


def as_numbers(model, X):
    """The attributes of a fit: what they are made of, as text, and all numbers by their place."""
    made_of, found = [], {}
    parameters = model.get_params(deep=False)
    own = {name: value for name, value in vars(model).items() if name not in parameters and name != "privacy_"}
    if not isinstance(getattr(model, "estimator", None), type(column_means)):
        own["said"] = output(model, X)
    for place, value in walk(own):
        if isinstance(value, np.ndarray):
            made_of.append(f"{place} {value.dtype} {value.shape}")
            if value.dtype.kind in "fiu" and value.size:
                flat = value.ravel().astype(np.float64)
                some = np.unique(np.linspace(0, flat.size - 1, 4).astype(int))
                found |= {f"{place}{k}": flat[k] for k in some}
                found[f"{place} sum"] = flat[np.isfinite(flat)].sum()
        elif isinstance(value, bool | np.bool_ | str | np.str_ | type(None)):
            made_of.append(f"{place} {value}")
        elif isinstance(value, int | float | np.number):
            found[place] = float(value)
            made_of.append(f"{place} {type(value).__name__}")
        else:
            made_of.append(f"{place} {type(value).__name__}")
    return "\n".join(made_of), found


def p_of_distance(first, second):
    """P-value of two samples of one size to be of one law (Kolmogorov and Smirnov; Gnedenko and Korolyuk)."""
    n = len(first)
    both = np.concatenate([first, second])
    ends = np.unique(both)
    counts = [np.searchsorted(np.sort(sample), ends, side="right") for sample in (first, second)]
    h = int(np.abs(counts[0] - counts[1]).max())
    if h == 0:
        return 1.0
    terms = (-1.0) ** np.arange(n // h) * [math.comb(2 * n, n - j * h) / math.comb(2 * n, n) for j in jumps(n, h)]
    return min(1.0, 2 * terms.sum())


def jumps(n, h):
    """Multiples of `h`, by their number, up to `n`."""
    return range(1, n // h + 1)


def least_p(looks):
    """The smallest p-value of two lists of fits to be of one law, times the number of comparisons, and what it is of.

    Exact or conservative for each comparison; several are allowed for by their number (Bonferroni).
    """
    n = len(looks[0])
    structure = "what attributes are made of"
    places = sorted(set.intersection(*(set(found) for look in looks for _, found in look)))
    p_values = {structure: 1.0}
    # Half of the error is for the numbers, half for the rest, of which there are 2n kinds at most.
    for place in places:
        samples = [np.nan_to_num([found[place] for _, found in look], nan=-1e308) for look in looks]
        p_values[place] = 2 * len(places) * p_of_distance(*samples)
    for kind in {made_of for look in looks for made_of, _ in look}:
        hits = [sum(made_of == kind for made_of, _ in look) for look in looks]
        p_value = 2 * (2 * n) * stats.fisher_exact([hits, [n - hit for hit in hits]])[1]
        p_values[structure] = min(p_values[structure], p_value)
    worst = min(p_values, key=p_values.get)
    return p_values[worst], worst


def check_laws(estimator, act=fit, n_fits=None):
    """Fail if fits to data that are far apart, with next to no budget, are told apart."""
    n_fits = fits_of(estimator) if n_fits is None else n_fits
    public = data_for(estimator, n_rows=3, seed=9)[0]
    looks = []
    for k, (X, y) in enumerate(far_apart(estimator)):
        looks.append([])
        for seed in range(n_fits):
            model = copy_of(estimator, random_state=2 * seed + k, **least_budget(estimator))
            looks[-1].append(as_numbers(act(model, X, y), public))
    p_value, worst = least_p(looks)
    assert p_value >= FALSE_ALARM, f"{worst}: p-value {p_value:.3g}; a false alarm has probability {FALSE_ALARM:g}"


@of_all([*ONE_EACH, *MORE[3:]])
@pytest.mark.sample(every=4)
def test_with_next_to_no_budget_all_data_are_alike(estimator):
    check_laws(estimator)


# --- these tests have teeth ---------------------------------------------------------------------------------------


def caught():
    """The block must fail as a test does."""
    return pytest.raises((AssertionError, pytest.fail.Exception))


VICTIM = DPStandardScaler(epsilon=1.0, bounds=(-5.0, 5.0))


def leaky(leak):
    """A fit that does something besides."""

    def act(model, X, y):
        fit(model, X, y)
        leak(model, X)
        return model

    return act


def draw(model, X):
    np.random.normal(size=len(X))  # noqa: NPY002


def change_options(model, X):
    np.seterr(over="raise" if len(X) > 100 else "warn")


def charge_by_rows(model, X):
    model.accountant.spend(1.0, label=f"{len(X)} rows")


def say(model, X):
    warnings.warn(f"{np.count_nonzero(X > 3)} entries are large", UserWarning, stacklevel=1)


SEEN = {
    "count": lambda model, X: setattr(model, "n_samples_", len(X)),
    "count as a float": lambda model, X: setattr(model, "weight_", 1.0 / (1 + len(X))),
    "minimum": lambda model, X: setattr(model, "clipped_", bool((X > 5).any())),
    "shape": lambda model, X: setattr(model, "sums_", np.zeros(len(X))),
    "type": lambda model, X: setattr(model, "mean_", model.mean_.astype(np.float32 if len(X) > 90 else np.float64)),
    "order of attributes": lambda model, X: setattr(model, "mean_", vars(model).pop("mean_")) if len(X) > 90 else None,
    "order of keys": lambda model, X: setattr(model, "parts_", dict.fromkeys("ab" if len(X) > 90 else "ba")),
    "view": lambda model, X: setattr(model, "none_", X[:0]),
    "closure": lambda model, X: setattr(model, "said_", [each for each in (column_means,) if len(X) > 90]),
    "output": lambda model, X: print(len(X)),
    "log": lambda model, X: logging.getLogger("skdp").debug("%d rows", len(X)),
    "warning": say,
    "generator": draw,
    "options": change_options,
    "record": charge_by_rows,
}


@pytest.mark.parametrize("leak", SEEN)
def test_a_leak_is_seen_in_what_is_left(leak, capfd, monkeypatch):
    with np.errstate(), caught():
        check_what_is_left(VICTIM, capfd, monkeypatch, leaky(SEEN[leak]))


def test_a_leak_into_texts_and_pickles_is_seen(capfd, monkeypatch):
    aside = {}
    act = leaky(lambda model, X: aside.update({id(model): len(X)}))
    for name, method in {
        "__repr__": lambda self: f"fitted to {aside.get(id(self))} rows",
        "_repr_html_": lambda self: f"<p>{aside.get(id(self))}</p>",
        "__getstate__": lambda self: {**vars(self), "n": aside.get(id(self))},
        "transform": lambda self, X: np.asarray(X) * aside[id(self)],
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(DPStandardScaler, name, method)
            with caught():
                check_what_is_left(VICTIM, capfd, monkeypatch, act)


def slotted(X):
    """An object without a dictionary."""

    class Slotted:
        __slots__ = ("__rows",)

        def __init__(self, rows):
            self.__rows = rows

    return Slotted(X)


def waiting(X):
    """A generator that has started."""
    yield 0
    yield X


def started(X):
    """The same."""
    steps = waiting(X)
    next(steps)
    return steps


KEPT = {
    "entry": lambda X: float(X[17, 2]),
    "entry in a dict": lambda X: {"a": [(X[3, 1],)]},
    "single precision": lambda X: X[:6].astype(np.float32),
    "sums": lambda X: X.sum(axis=0),
    "mean": lambda X: float(X.mean()),
    "largest": lambda X: X.max(axis=0),
    "moments": lambda X: X.T @ X,
    "text": lambda X: f"between {X.min():.17g} and {X.max():.17g}",
    "bytes": lambda X: b"x" + X[:1].tobytes(),
    "view of nothing": lambda X: X[:0],
    "view of a copy": lambda X: X.copy()[:0],
    "buffer": lambda X: memoryview(X),
    "slots": slotted,
    "closure": lambda X: lambda: X,
    "default": lambda X: lambda rows=X: rows,
    "partial": lambda X: functools.partial(np.add, X),
    "method": lambda X: X.sum,
    "generator": started,
    "iterator": lambda X: iter([X]),
    "map": lambda X: map(np.sum, [X]),
    "nested model": lambda X: StandardScaler().fit(X),
    "tree": lambda X: DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0]),
    "neighbours": lambda X: NearestNeighbors().fit(X),
    "frame": lambda X: pd.DataFrame(X),
    "error": lambda X: ValueError(X[0, 0]),
    "context": lambda X: error_within(X),
    "cache": lambda X: cached(X),
    "type": lambda X: list[X],
}


def error_within(X):
    """An error whose message is harmless, and that of its context is not."""
    try:
        try:
            raise KeyError(float(X[0, 0]))
        except KeyError:
            raise ValueError("no") from None
    except ValueError as error:
        return error.with_traceback(None)


def cached(X):
    """A cache that holds a row."""
    cache = functools.lru_cache(lambda row: 0)
    cache(tuple(X[0].tolist()))
    return cache


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_kept_is_found(kept):
    found = secrets_of(*(data := data_for(VICTIM, n_rows=103))).found({"kept": KEPT[kept](data[0])})
    assert found

    def nothing(model, X):
        model.kept_ = None

    check_that_data_are_gone(fitted_and_asked(VICTIM, leaky(nothing)), *data_in_lists(VICTIM, 103))
    if kept not in ("buffer", "closure", "default", "partial", "method", "generator", "iterator", "map"):
        # Not pickled.
        with caught():
            check_that_data_are_gone(
                fitted_and_asked(VICTIM, leaky(lambda model, X: setattr(model, "kept_", KEPT[kept](X)))),
                *data_in_lists(VICTIM, 103),
            )


@pytest.mark.parametrize("how", ["refused", "interrupted"])
def test_rows_that_a_refused_fit_keeps_are_found(how, monkeypatch):
    kept = []

    def act(model, X, y):
        kept.append(X)
        fit(model, X, y)

    with caught():
        check_that_data_are_gone(failed(VICTIM, how, monkeypatch, act), *data_in_lists(VICTIM, 103))


def remember(monkeypatch, what):
    """A fit that leaves something in a module of the library."""
    module = sys.modules[DPStandardScaler.__module__]
    if what == "cache":
        cache = functools.lru_cache(lambda count: 0)
        monkeypatch.setattr(module, "cache", cache, raising=False)
        return leaky(lambda model, X: cache(len(X)))
    if what == "class":
        monkeypatch.setattr(DPStandardScaler, "last", None, raising=False)
        return leaky(lambda model, X: setattr(DPStandardScaler, "last", X.shape))
    if what == "global":
        monkeypatch.setattr(module, "last", [], raising=False)
        return leaky(lambda model, X: module.last.append(len(X)))
    return leaky(lambda model, X: setattr(logging.getLogger("elsewhere"), "last", 2 * X.copy()[:3] / 2))


@pytest.mark.parametrize("what", ["cache", "class", "global", "elsewhere"])
def test_what_the_library_remembers_is_found(what, monkeypatch):
    monkeypatch.setattr(logging.getLogger("elsewhere"), "last", None, raising=False)
    act = remember(monkeypatch, what)
    check_that_nothing_remembers([VICTIM])
    with caught():
        check_that_nothing_remembers([VICTIM], act)


def test_an_error_that_counts_rows_is_seen():
    def act(model, X, y):
        try:
            fit(model, X, y)
        except ValueError as error:
            raise ValueError(f"{error}, in {np.shape(X)}") from None

    def within(model, X, y):
        try:
            raise KeyError(len(X))
        except KeyError:
            fit(model, X, y)

    for each in (act, within):
        with caught():
            check_refusals(VICTIM, each)


def test_numpy_says_how_many_rows_do_not_fit_into_memory():
    with pytest.raises(MemoryError) as failure:
        np.empty((1013, 2**48), dtype=np.uint8)
    assert "1013" in "".join(describe(failure.value.with_traceback(None)))


def shift(model, X):
    """Move a released number by one standard deviation of its law, which `fit` has not been told to do."""
    model.mean_ = model.mean_ + np.random.default_rng(model.random_state).normal(X[0, 0] / 3, 1.0, model.mean_.shape)


LAWS = {
    "count": (lambda model, X: setattr(model, "n_", len(X)), 16),
    "shape": (lambda model, X: setattr(model, "n_", np.zeros(len(X))), 16),
    "minimum": (lambda model, X: setattr(model, "n_", X.min()), 16),
    "text": (lambda model, X: setattr(model, "n_", str(X.max())), 16),
    "key": (lambda model, X: setattr(model, "n_", {len(X): 0}), 16),
    "shift": (shift, 120),
}


@pytest.mark.parametrize("leak", LAWS)
def test_laws_that_differ_are_told_apart(leak, monkeypatch):
    act, n_fits = LAWS[leak]
    if leak == "shift":
        # Within the range of the scaler, one standard deviation is all there is between the two.
        monkeypatch.setattr(DPStandardScaler, "transform", lambda self, X: np.zeros(1))
    with caught():
        check_laws(VICTIM, leaky(act), n_fits)


def test_distances_of_samples_have_their_exact_law():
    rng = np.random.default_rng(0)
    for n in (16, 120):
        for move in (0.0, 0.3, 9.0):
            first, second = rng.normal(size=n), rng.normal(move, size=n)
            assert p_of_distance(first, second) == pytest.approx(stats.ks_2samp(first, second).pvalue, rel=1e-6)
    assert p_of_distance(np.zeros(16), np.ones(16)) * 100 < FALSE_ALARM


@pytest.mark.parametrize("act", [searched, cross_validated])
def test_bytes_are_refused_whose_width_one_entry_decides(act):
    model = declared(ObjPertLogReg(data_norm=3.0))
    for longest in (b"ab", b"a much longer one"):
        with pytest.raises(TypeError, match="X holds bytes, whose width depends on single entries"):
            act(model, np.array([[b"a"], [b"b"], [b"a"], [longest]]), np.array([0, 1, 0, 1]))
