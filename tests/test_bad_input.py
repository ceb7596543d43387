"""Bad input, for all that is fitted: the right error, which names what is wrong and tells no value, and no charge.

What is refused is in one table, `tests/bad_input.py`, and so is what is not.
"""

import inspect
import re
import warnings
from copy import deepcopy
from fractions import Fraction
from functools import partial
from importlib import import_module
from operator import methodcaller
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp import BudgetAccountant, DPRandomizedSearchCV, NoisyHistogram
from skdp.accounting import check_epsilon
from skdp.exceptions import BudgetError, LedgerError
from skdp.release.session import check_accountant
from tests.bad_input import (
    BAD_ENTRIES,
    BAD_LABELS,
    BAD_SHAPES,
    BAD_TARGET_SHAPES,
    BAD_TARGETS,
    EXTREME,
    IN_USE,
    LEFT_OUT,
    LINES,
    NOT_IN_PLANS,
    PARAMETERS,
    READ_AS_NUMBERS,
    SAME,
    SUBJECTS,
    WITHOUT_RANGE,
    text_of,
    with_number,
)
from tests.estimators import (
    ONE_EACH,
    RELEASED,
    VARIANTS,
    data_for,
    declared,
    is_local,
    is_search,
    name_of,
    needs_y,
    output,
    released,
)

NAN, INF = float("nan"), float("inf")

N_ROWS = 37


def label(subject):
    return type(subject).__name__


every_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=label)
every_variant = pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)
one_of_each = pytest.mark.parametrize("estimator", ONE_EACH, ids=label)
one_of_each_regressor = pytest.mark.parametrize(
    "estimator", [estimator for estimator in ONE_EACH if is_regressor(estimator)], ids=label
)
one_of_each_classifier = pytest.mark.parametrize(
    "estimator", [estimator for estimator in ONE_EACH if is_classifier(estimator)], ids=label
)


def wide_accountant():
    return BudgetAccountant(epsilon=INF, delta=0.5, composition="basic")


def data_of(subject, whole=False):
    X, y = data_for(subject, n_rows=N_ROWS)
    return (np.round(4 * X), np.round(y)) if whole else (X, y)


def reads_categories(subject):
    return is_local(subject) and "categories" in parameters_of(subject)


def parameters_of(subject):
    return subject.get_params(deep=False)


def seeded(model):
    return model.set_params(random_state=3) if "random_state" in parameters_of(model) else model


def run(model, X, y, like):
    """Fit, and where rows are released by another method, call it. What to call, an instance like this one says."""
    model.fit(*((X, y) if needs_y(like) else (X,)))
    if getattr(like, "_randomizes_rows", False):
        model.transform(X)
    return model


def numbers_of(model, X):
    """All that comes out of a fit as numbers."""
    if is_search(model):
        return released(model.best_estimator_)
    if label(model) in RELEASED:
        return released(model)
    return np.asarray(model.transform(X)).astype(float).ravel()


#: Less work, where what is done with data is the same.
QUICK = {"n_steps": 3, "n_teachers": 2, "max_queries": 5, "n_estimators": 3}


#: For some forms of data only: they hand over rows to others, or compute for long.
SLOW = {"DPGridSearchCV", "DPRandomizedSearchCV", "PATEClassifier", "SampleAggregate", "SampleAggKMeans", "ExpMechERM"}


def quick(model):
    """Set parameters such that a fit takes little time."""
    own = parameters_of(model)
    if own.get("epochs") is not None:
        return model
    return model.set_params(**{name: value for name, value in QUICK.items() if name in own})


def secrets_in(X):
    """The first digits of the values in data, and what is put in by hand."""
    digits = (re.sub(r"[-.]|e.*", "", repr(value)).lstrip("0")[:6] for value in np.ravel(X).tolist())
    return {number for number in digits if len(number) == 6}


def told(text, secrets):
    """Return what a text tells of the data: digits of values, their number, or what is put in by hand."""
    numbers = [number.replace(".", "").lstrip("0") for number in re.findall(r"\d[\d.]*", text)]
    found = [number for number in numbers if number[:6] in secrets or number in (str(N_ROWS), str(N_ROWS - 1))]
    return [*found, *re.findall("patient|7731|77.31", text)][:1]


def faults_of(model, act, error, says, accountant, secrets):
    """Return what is wrong with how something is refused; nothing, if it is refused as it should be."""
    before, charged = dict(vars(model)), len(accountant)
    failure = None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            act(model)
        except Exception as caught:
            failure = caught
    faults = ["charged"] if len(accountant) > charged else []
    if vars(model).keys() != before.keys() or any(vars(model)[name] is not before[name] for name in before):
        faults.append("left something behind")
    if any(told(str(warning.message), secrets) for warning in heard):
        faults.append("warns of values")
    if failure is None:
        return ["accepted", *faults]
    text = text_of(failure)
    if type(failure) not in (error if isinstance(error, tuple) else (error,)):
        faults.append(f"raises {type(failure).__name__}")
    if not re.search(says, str(failure)):
        faults.append(f"does not say {says}: {str(failure)[:90]}")
    if getattr(act, "func", None) is run and getattr(model, "accountant", None) is accountant and "charged" not in text:
        faults.append(f"does not tell that nothing was charged: {text[:90]}")
    if told(text, secrets):
        faults.append(f"tells {told(text, secrets)}: {text[:90]}")
    return faults


def shown_case(value):
    """A case, in a report."""
    try:
        return repr(value)[:40].split("\n")[0]
    except Exception:
        return type(value).__name__


def report(faults):
    return "\n".join([f"{len(faults)} faults", *faults])


def keys_of(subject, name):
    """Where the table may have a parameter: under the names of the class and its bases, or under its own alone."""
    return [f"{kind.__name__}.{name}" for kind in type(subject).__mro__] + [name]


def cases_of(subject, name):
    """Return the table's entry for a parameter, and the instance in which the parameter matters."""
    keys = keys_of(subject, name)
    bad = next((PARAMETERS[key] for key in keys if key in PARAMETERS), None)
    base, others = next((IN_USE[key] for key in keys if key in IN_USE), (None, {}))
    return bad, quick(declared(base or subject)).set_params(**others)


# --- the table ----------------------------------------------------------------------------------------------------


def uncovered(subjects):
    """Return the parameters without a value of a wrong type, or without one that is out of range."""
    return [
        f"{label(subject)}.{name}"
        for subject in subjects
        for name in parameters_of(subject)
        if (bad := cases_of(subject, name)[0]) is None or not bad.types or not (bad.values or name in WITHOUT_RANGE)
    ]


def test_every_parameter_is_in_the_table():
    assert uncovered(SUBJECTS) == []


def test_no_entry_of_the_table_is_left_over():
    used = set()
    for subject in SUBJECTS:
        for name in parameters_of(subject):
            used.update([key for key in keys_of(subject, name) if key in PARAMETERS][:1])
    assert used == set(PARAMETERS)


def test_every_public_estimator_is_a_subject():
    public = set()
    for room in (*skdp._HOME.values(), "preprocessing"):
        module = import_module(f"skdp.{room}")
        kinds = [getattr(module, name) for name in getattr(module, "__all__", ())]
        public |= {kind.__name__ for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseEstimator)}
    # The encoder takes most of what the table calls bad, and pipelines take anything; they have tests of their own.
    assert public == set(map(label, SUBJECTS)) | {"TableEncoder", "PrivatePipeline"}


def test_every_line_of_the_catalogue_points_to_a_case():
    tests = "".join(Path(__file__).with_name(name).read_text() for name in ("test_bad_input.py", "test_common.py"))
    data = {
        case.name for group in (BAD_SHAPES, BAD_ENTRIES, BAD_TARGET_SHAPES, BAD_LABELS, BAD_TARGETS) for case in group
    }
    known = (
        set(PARAMETERS)
        | data
        | set(SAME)
        | set(READ_AS_NUMBERS)
        | set(EXTREME)
        | set(re.findall(r"def (test_\w+)", tests))
    )
    assert [number for first, last, *_ in LINES for number in range(first, last + 1)] == list(range(1, 73))
    assert [where for *_, places in LINES for where in places if where not in known] == []


# --- parameters ---------------------------------------------------------------------------------------------------


def mistaken(X, name):
    """Rows that are passed as a parameter by mistake."""
    return [] if name == "public_X" else [X, X.tolist()]


@every_subject
def test_bad_parameters(subject):
    models, faults = {}, []
    for name in parameters_of(subject):
        bad, base = cases_of(subject, name)
        X, y = data_of(base)
        secrets = secrets_in(X)
        fitted = models.setdefault(repr(base), None) or run(clone(base), X, y, base)
        models[repr(base)] = fitted
        accountant, own = wide_accountant(), getattr(base, name)
        planned = hasattr(base, "privacy_plan") and not {name, f"{label(subject)}.{name}"} & NOT_IN_PLANS
        cases = [(value, bad.type_error) for value in bad.types] + [(value, ValueError) for value in bad.values]
        # All of them to an estimator that is not fitted; some to one that is, and to its plan.
        often = {0, 1, len(bad.types), len(bad.types) + 1}
        cases += [(rows, (TypeError, ValueError)) for rows in mistaken(X, name)]
        if isinstance(subject, DPRandomizedSearchCV) and name not in ("param_distributions", "n_iter"):
            # Of the same base as the other search.
            cases = cases[:1] + cases[-1:]
        act, plan = partial(run, X=X, y=y, like=base), methodcaller("privacy_plan", n_features=X.shape[1])
        for i, (value, error) in enumerate(cases):
            # What is not given at all may be said to be missing.
            error = (TypeError, ValueError) if value is None else error
            tries = [("", clone(base), act)]
            if i in often:
                tries += [("fitted: ", fitted, act)] + [("plan: ", clone(base), plan)] * planned
            for kind, model, attempt in tries:
                if "accountant" in parameters_of(model):
                    model.set_params(accountant=accountant)
                model.set_params(**{name: value})
                found = faults_of(model, attempt, error, rf"\b{name}\b", accountant, secrets)
                faults += [f"{name}={shown_case(value)}: {kind}{fault}" for fault in found]
            fitted.set_params(**{name: own})
    assert not faults, report(faults)


# A form of a value, and the plain one that has the same result.
GOOD_NUMBERS = {
    "epsilon": [
        (np.float32(1), 1.0),
        (1, 1.0),
        (np.float64(1), 1.0),
        (Fraction(1), 1.0),
        (np.int8(1), 1.0),
        (INF, INF),
    ],
    "delta": [(np.float64(1e-5), 1e-5), (Fraction(1, 2), 0.5), (1e-30, 1e-30)],
    "bounds": [
        ([-3, 3], (-3.0, 3.0)),
        (np.array([-3, 3]), (-3.0, 3.0)),
        ((np.float32(-3), 3), (-3.0, 3.0)),
    ],
    "bounds_y": [([-3, 3], (-3.0, 3.0)), (np.array([-3, 3]), (-3.0, 3.0))],
    "data_norm": [(np.float32(2), 2.0), (2, 2.0), (Fraction(2), 2.0)],
    "classes": [
        (np.array([0, 1]), [0, 1]),
        ((1, 0), [0, 1]),
        (pd.Series([0, 1]), [0, 1]),
        ([0.0, 1.0], [0, 1]),
        (range(2), [0, 1]),
    ],
    "random_state": [(np.int64(3), 3), (np.uint64(3), 3), (np.random.RandomState(3), np.random.RandomState(3))],
}
GOOD_NUMBERS["random_state"] += [
    (np.random.RandomState(np.random.PCG64(3)), np.random.RandomState(np.random.PCG64(3))),
    (np.random.default_rng(3), np.random.default_rng(3)),
    (2**64, 2**64),
    (2**200, 2**200),
]


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
@every_subject
def test_good_parameters(subject):
    X, y = data_of(subject)
    own = parameters_of(declared(subject))
    pairs = {name: GOOD_NUMBERS[name] for name, value in own.items() if name in GOOD_NUMBERS and value is not None}
    if "random_state" in own:
        pairs["random_state"] = GOOD_NUMBERS["random_state"]
    # All parameters at a time: in the form that is tried, and in the plain one.
    for i in range(1 if is_search(subject) else max(map(len, pairs.values()), default=0)):
        chosen = {name: forms[i % len(forms)] for name, forms in pairs.items()}
        results = []
        for k in (0, 1):
            model = quick(declared(subject, **{name: deepcopy(pair[k]) for name, pair in chosen.items()}))
            results.append(numbers_of(run(model, X, y, subject), X))
        assert np.all(np.isfinite(results[0])), chosen
        np.testing.assert_array_equal(results[0], results[1], err_msg=str(chosen))


@pytest.mark.parametrize("estimator", [e for e in ONE_EACH if "delta" in e.get_params()], ids=label)
def test_delta_zero(estimator):
    X, y = data_of(estimator)
    accountant = wide_accountant()
    model = declared(estimator, delta=0.0, accountant=accountant)
    found = faults_of(model, partial(run, X=X, y=y, like=estimator), ValueError, r"\bdelta\b", accountant, set())
    without_pure_variant = {"DPSGDClassifier", "DPSGDRegressor", "DPMLPClassifier", "DPMLPRegressor"}
    assert (found == []) == (label(estimator) in without_pure_variant)


@pytest.mark.parametrize(
    "estimator",
    [
        estimator
        for estimator in ONE_EACH
        if "bounds" in estimator.get_params() and label(estimator) != "SampleAggregate"
    ],
    ids=label,
)
def test_narrow_bounds(estimator):
    X, y = data_of(estimator)
    model = declared(estimator, bounds=([-1e-11, 9e-9, -1, 0, 1], [1e-11, 2e-8, 1, 1e-5, 1e5])).fit(X, y)
    assert np.all(np.isfinite(released(model)))


@one_of_each_regressor
def test_targets_beyond_their_bounds_are_clipped(estimator):
    if "bounds_y" not in parameters_of(estimator):
        pytest.skip("bounds the result of each block")
    X, y = data_of(estimator)
    low, high = estimator.bounds_y
    plain = seeded(declared(estimator)).fit(X, np.where(y > 0, np.nextafter(high, np.inf), np.nextafter(low, -np.inf)))
    for far_away in (2**62, 1e308, 2**70):
        target = [far_away if value > 0 else -far_away for value in y.tolist()]
        far = seeded(declared(estimator)).fit(X, target)
        np.testing.assert_array_equal(released(far), released(plain))


# --- data ---------------------------------------------------------------------------------------------------------


def bad_data_for(subject):
    """The lines of the table that a subject refuses."""
    cases = list(BAD_SHAPES)
    if not reads_categories(subject):
        cases += BAD_ENTRIES
    if needs_y(subject):
        cases += BAD_TARGET_SHAPES
    if is_classifier(subject) and not is_local(subject):
        cases += BAD_LABELS
    if is_regressor(subject):
        cases += BAD_TARGETS
    return cases


@every_subject
def test_bad_data(subject):
    if getattr(subject, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_of(subject)
    secrets, accountant, faults = secrets_in(X), wide_accountant(), []
    if "accountant" not in parameters_of(subject):
        fresh, fitted = declared(subject), run(quick(declared(subject)), X, y, subject)
    else:
        fresh = declared(subject, accountant=accountant)
        fitted = run(quick(declared(subject)), X, y, subject).set_params(accountant=accountant)
    for case in bad_data_for(subject):
        rows, target = case.make(X, y)
        act = partial(run, X=rows, y=target, like=subject)
        tries = [("", fresh, act), ("fitted: ", fitted, act)]
        # A histogram is not applied to rows.
        if (case in BAD_SHAPES or case in BAD_ENTRIES) and not isinstance(subject, NoisyHistogram):
            tries.append(("afterwards: ", fitted, partial(output, X=rows)))
        for kind, model, attempt in tries:
            found = faults_of(model, attempt, case.error, case.says, accountant, secrets)
            faults += [f"{case.name}: {kind}{fault}" for fault in found]
    if "accountant" in parameters_of(subject):
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh, "privacy_")
    assert not faults, report(faults)


@one_of_each
def test_values_are_checked_whatever_scikit_learn_assumes(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_of(estimator)
    for value in (NAN, INF):
        accountant = wide_accountant()
        with config_context(assume_finite=True), pytest.raises(ValueError, match=r"NaN|infinity"):
            declared(estimator, accountant=accountant).fit(with_number(X, value), y)
        assert len(accountant) == 0


@one_of_each_regressor
def test_targets_of_several_columns_are_not_counted_in_rows(estimator):
    X, y = data_of(estimator)
    act = partial(run, X=X, y=np.stack([y, y, y], axis=1), like=estimator)
    found = faults_of(quick(declared(estimator)), act, ValueError, "y", wide_accountant(), secrets_in(X))
    # Some regressors have several targets.
    assert found in ([], ["accepted", "left something behind"])


@every_subject
def test_form_of_the_data_does_not_matter(subject):
    if getattr(subject, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_of(subject, whole=True)
    reference = numbers_of(run(seeded(quick(declared(subject))), X, y, subject), X)
    forms = SAME if reads_categories(subject) else SAME | READ_AS_NUMBERS
    faults = []
    for name, make in list(forms.items())[:: 5 if label(subject) in SLOW else 1]:
        data, target = make(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of few records.
            warnings.filterwarnings("ignore", "the released counts|all released quantiles")
            warnings.simplefilter("ignore", DataConversionWarning)
            try:
                other = numbers_of(run(seeded(quick(declared(subject))), data, target, subject), data)
                if not np.allclose(other, reference, rtol=1e-6 if "f" in name else 1e-12, atol=1e-12):
                    faults.append(f"{name}: another result")
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__}: {str(error)[:90]}")
    assert not faults, report(faults)


#: For all variants: their numerics differ, and not how they read data.
FEW = ("largest of both signs", "subnormal")


@every_variant
def test_numbers_of_any_size_and_any_number_of_rows_are_fitted(estimator):
    X, y = data_of(estimator)
    faults = []
    few = estimator not in ONE_EACH or label(estimator) in SLOW
    cases = {name: EXTREME[name] for name in FEW} if few else EXTREME
    for name, make in cases.items():
        data, target = make(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of few records, and of equal ones.
            warnings.filterwarnings("ignore", "the released counts|all released quantiles|bounds_y are far too wide")
            model = quick(declared(estimator))
            try:
                run(model, data, target, estimator)
                if not np.all(np.isfinite(released(model))):
                    faults.append(f"{name}: not finite")
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__}: {str(error)[:90]}")
    assert not faults, report(faults)


@one_of_each_classifier
def test_a_label_that_is_not_declared_is_left_out_with_its_row(estimator):
    X, y = data_of(estimator)
    plain = released(quick(declared(estimator, random_state=3)).fit(X, y.tolist()))
    faults = []
    for odd in LEFT_OUT[:: 5 if label(estimator) in SLOW else 1]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of few records.
            warnings.filterwarnings("ignore", "the released counts|all released quantiles")
            mixed = quick(declared(estimator, random_state=3)).fit(np.vstack([X, X[:1]]), [*y.tolist(), odd])
        # In the local model the number of rows is public, and a row without a known label reports all the same.
        if not is_local(estimator) and not np.array_equal(released(mixed), plain):
            faults.append(shown_case(odd))
    assert not faults, report(faults)


@one_of_each_classifier
def test_empty_data_without_declared_labels(estimator):
    accountant = wide_accountant()
    with pytest.raises(ValueError, match="0 sample"):
        clone(estimator).set_params(accountant=accountant).fit(np.empty((0, 3)), np.empty(0))
    assert len(accountant) == 0


@pytest.mark.parametrize("subject", list(filter(reads_categories, SUBJECTS)), ids=label)
def test_masked_categories_are_unknown(subject):
    X, _ = data_of(subject, whole=True)
    masked, unknown = np.ma.array(X % 3, mask=X > 1), np.where(X > 1, 99.0, X % 3)
    results = [seeded(declared(subject)).fit_transform(rows) for rows in (masked, unknown)]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("estimator", list(filter(is_local, ONE_EACH)), ids=label)
def test_masked_labels_are_unknown_in_the_local_model(estimator):
    X, y = data_of(estimator)
    results = [
        seeded(declared(estimator)).fit(X, target) for target in (np.ma.array(y, mask=y > 0), np.where(y > 0, 99, y))
    ]
    np.testing.assert_array_equal(*map(released, results))


@one_of_each
def test_sample_weight_is_refused_without_its_bound(estimator):
    X, y = data_of(estimator)
    taken = "max_weight" in parameters_of(estimator)
    with pytest.raises(ValueError if taken else TypeError, match="sample_weight"):
        declared(estimator).fit(X, y, sample_weight=np.ones(len(X)))


@every_subject
def test_there_is_no_way_around_fit(subject):
    assert not {"warm_start", "sample_weight"} & set(parameters_of(subject))
    # Of all that learn, some have a partial_fit: with tests of their own, since each call is charged.
    assert not hasattr(subject, "partial_fit") or label(subject) in {"DPSGDClassifier", "DPSGDRegressor"}


@every_subject
def test_unknown_parameters_are_refused(subject):
    for act in (subject.set_params, type(subject)):
        with pytest.raises((ValueError, TypeError), match="epsilonn"):
            act(epsilonn=1.0)


@every_subject
def test_nothing_is_said_before_a_fit(subject):
    X, _ = data_of(subject)
    rows = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
    refused = declared(subject)
    with pytest.raises((ValueError, TypeError)):
        run(refused, X[:, :0], np.zeros((3, 2, 2)), subject)
    for model in (declared(subject), refused):
        if model.__sklearn_tags__().requires_fit:
            for name in rows:
                if hasattr(model, name):
                    with pytest.raises(NotFittedError):
                        getattr(model, name)(X)
        assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("estimator", [e for e in ONE_EACH if not isinstance(e, NoisyHistogram)], ids=label)
def test_predicting_with_other_columns(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_of(estimator)
    names = list("abcde"[: X.shape[1]])
    frame = pd.DataFrame(X, columns=names)
    model = quick(declared(estimator)).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    for other in (frame.rename(columns=str.upper), frame[names[::-1]], frame[names[:-1]], frame.assign(z=0.0)):
        with pytest.raises(ValueError, match="feature names"):
            output(model, other)
    with pytest.raises(ValueError, match="features"):
        output(quick(declared(estimator)).fit(X, y), X[:, :-1])
    with pytest.raises(ValueError, match="NaN"):
        output(model, pd.DataFrame(np.full_like(X, NAN), columns=names))


@one_of_each
def test_names_that_occur_twice(estimator):
    if getattr(estimator, "schema", None) is not None:
        pytest.skip("entries are read by the schema")
    X, y = data_of(estimator)
    accountant = wide_accountant()
    frame = pd.DataFrame(X, columns=["a"] * X.shape[1])
    model = declared(estimator, accountant=accountant)
    # The later scikit-learn refuses them, and says so by their names, which are public.
    found = faults_of(
        model, partial(run, X=frame, y=y, like=estimator), ValueError, "unique", accountant, secrets_in(X)
    )
    assert found in ([], ["accepted", "charged", "left something behind"])


@one_of_each_classifier
def test_plan_needs_the_number_of_classes(estimator):
    with pytest.raises(ValueError, match="n_classes"):
        clone(estimator).privacy_plan(n_features=3)
    with pytest.raises(ValueError, match="n_features"):
        clone(estimator).privacy_plan(n_features=0, n_classes=2)
    assert clone(estimator).privacy_plan(n_features=3, n_classes=2) == declared(estimator).privacy_plan(n_features=3)


@one_of_each
def test_accountants_that_cannot_be_charged(estimator, tmp_path):
    X, y = data_of(estimator)
    accountant = wide_accountant()
    with accountant.parallel(by=np.arange(N_ROWS) % 2, parts=[0, 1]) as parts:
        closed = parts[0].accountant
    path = tmp_path / "budget.db"
    lost = BudgetAccountant(epsilon=1e8, delta=0.5, composition="basic", ledger=path)
    path.unlink()
    for ledger, error in ((closed, BudgetError), (lost, LedgerError)):
        model = declared(estimator, accountant=ledger)
        with pytest.raises(error) as failure:
            model.fit(X, y)
        assert not told(text_of(failure.value).replace(str(path), ""), secrets_in(X))
        assert not hasattr(model, "n_features_in_")
    assert len(accountant) == 0
    assert not path.exists()


# --- the checker itself -------------------------------------------------------------------------------------------


class Stub(BaseEstimator):
    """Refuses what is wrong as it should, and keeps what it has learned."""

    def __init__(self, *, epsilon=1.0, accountant=None):
        self.epsilon = epsilon
        self.accountant = accountant

    def fit(self, X, y):
        accountant = check_accountant(self.accountant)
        epsilon = check_epsilon(self.epsilon)
        if np.any(np.isnan(X)):
            raise ValueError("X contains NaN")
        if accountant is not None:
            accountant.spend(epsilon)
        self.coef_ = X.mean(axis=0)
        return self


class TellsAValue(Stub):
    def fit(self, X, y):
        if np.any(np.isnan(X)):
            raise ValueError(f"X contains NaN, after {X[0, 0]}")
        return super().fit(X, y)


class TellsInACause(Stub):
    def fit(self, X, y):
        try:
            float(f"{X[0, 0]} and more")
        except ValueError as error:
            raise ValueError("epsilon, or X contains NaN") from error


class TellsTheNumberOfRows(Stub):
    def fit(self, X, y):
        if np.any(np.isnan(X)):
            raise ValueError(f"X contains NaN, in one of {len(X)} rows")
        return super().fit(X, y)


class TellsInANote(Stub):
    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except ValueError as error:
            error.add_note(f"as in {X[0, 0]}")
            raise


class WarnsOfAValue(Stub):
    def fit(self, X, y):
        warnings.warn(f"{X[0, 0]} is large", UserWarning, stacklevel=2)
        return super().fit(X, y)


class ChargesFirst(Stub):
    def fit(self, X, y):
        if self.accountant is not None:
            self.accountant.spend(1.0)
        return super().fit(X, y)


class AcceptsAnything(Stub):
    def fit(self, X, y):
        self.coef_ = np.nan_to_num(X).mean(axis=0)
        return self


class DoesNotName(Stub):
    def fit(self, X, y):
        if np.any(np.isnan(X)) or not isinstance(self.epsilon, float):
            raise ValueError("bad input")
        return super().fit(X, y)


class RaisesAnything(Stub):
    def fit(self, X, y):
        if np.any(np.isnan(X)) or not isinstance(self.epsilon, float):
            raise ArithmeticError("epsilon or X: NaN")
        return super().fit(X, y)


class StaysHalfFitted(Stub):
    def fit(self, X, y):
        self.coef_ = None
        return super().fit(X, y)


TEETH = {
    Stub: set(),
    TellsAValue: {"tells"},
    TellsInACause: {"tells"},
    TellsInANote: {"tells"},
    TellsTheNumberOfRows: {"tells"},
    WarnsOfAValue: {"warns"},
    ChargesFirst: {"charged"},
    AcceptsAnything: {"accepted", "left"},
    DoesNotName: {"does"},
    RaisesAnything: {"raises"},
    StaysHalfFitted: {"left"},
}


@pytest.mark.parametrize("kind", TEETH, ids=lambda kind: kind.__name__)
def test_the_checker_has_teeth(kind):
    X, y = data_of(ONE_EACH[0])
    accountant, secrets = wide_accountant(), secrets_in(X)
    fresh, fitted = (kind(accountant=accountant) for _ in range(2))
    fitted.coef_ = np.zeros(5)
    found = []
    for model in (fresh, fitted):
        act = methodcaller("fit", with_number(X, NAN), y)
        found += faults_of(model, act, ValueError, "X.*NaN", accountant, secrets)
        model.set_params(epsilon="1")
        act = methodcaller("fit", X, y)
        found += faults_of(model, act, (TypeError, ValueError), "epsilon", accountant, secrets)
    assert {fault.split()[0] for fault in found} == TEETH[kind]


def test_a_parameter_without_a_case_is_found():
    class Wider(Stub):
        def __init__(self, *, epsilon=1.0, accountant=None, depth=3):
            super().__init__(epsilon=epsilon, accountant=accountant)
            self.depth = depth

    assert uncovered([Stub()]) == []
    assert uncovered([Wider()]) == ["Wider.depth"]
