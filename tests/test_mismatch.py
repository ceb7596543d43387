"""Warnings about declared labels and categories that hardly occur: when they come, and how often falsely.

False-alarm probability of what is drawn here: 1e-9 at most, or seeds are fixed.
"""

import math
import re
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGreedyTree,
    DPNaiveBayes,
    DPRandomTree,
    DPRandomTreeRegressor,
    HistogramClassifier,
    Number,
    Schema,
    TableEncoder,
    make_private_pipeline,
)
from skdp import stats as descriptive
from skdp.cluster import DPKMeans
from skdp.decomposition import DPPCA
from skdp.exceptions import PrivacyAssumptionWarning, SchemaMismatchWarning
from skdp.linear_model import (
    DPSGDClassifier,
    DPSGDRegressor,
    FunctionalMechLinReg,
    FunctionalMechLogReg,
    ObjPertLogReg,
    OutputPertLogReg,
)
from skdp.mechanisms import NoiseSource
from skdp.neural_network import DPMLPClassifier, DPMLPRegressor
from skdp.preprocessing import DPQuantileBinner, DPStandardScaler
from skdp.release.counts import (
    ENTRIES,
    ENTRIES_SHARE,
    FALSE_ALARM,
    FEWEST,
    LARGEST_SHARE,
    LEAST_SHARE,
    LEAST_SHARE_OF_LABEL,
    NOT_RELEASED,
    TARGET_SHARE,
    WORST,
    _sums,
    check_entries,
    column_part,
    declared_parts,
    entries_releases,
    excess_of,
    label_parts,
    margin,
    warn_of_mismatch,
)
from skdp.release.session import ReleaseSession
from skdp.release.units import releases_before_fit
from skdp.schema.encoding import INSIDE, LISTED, OUTSIDE, Encoding, even_edges
from skdp.synthetic import HistogramRegressor

RNG = np.random.default_rng(0)
N = 4000
X = RNG.uniform(0, 1, (N, 2))
Y = np.where(X[:, 0] > 0.5, "e", "p")

MODELS = [
    DPNaiveBayes(bounds=(0, 1), random_state=0),
    DPGreedyTree(bounds=(0, 1), max_depth=2, random_state=0),
    HistogramClassifier(bounds=(0, 1), n_bins=4, random_state=0),
    DPAdditiveClassifier(bounds=(0, 1), n_bins=4, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def said(act):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        act()
    return [str(w.message) for w in heard if issubclass(w.category, SchemaMismatchWarning)]


@pytest.mark.parametrize("epsilon", [5.0, math.inf])
@every_model
def test_labels_that_never_occur_are_named(model, epsilon):
    def fit(classes, y=Y, **parameters):
        return said(lambda: model.set_params(classes=classes, epsilon=epsilon, **parameters).fit(X, y))

    assert fit(["e", "p"]) == []
    (message,) = fit(["edible", "poisonous"])
    assert "Check that the labels in y are spelled as in classes" in message
    if not isinstance(model, DPAdditiveClassifier):
        (message,) = fit(["e", "p", "q"])
        assert "too few records have the label 'q'. Check that the declared labels" in message
        # A label that is rare, and not very rare, is not named.
        assert fit(["e", "p", "q"], np.where(np.arange(N) % 10 == 0, "q", Y)) == []
    else:
        # Labels are not counted, and the number of records is.
        assert fit(["e", "p", "q"], delta=1e-5) == []
        model.set_params(delta=0.0)


def test_code_books_that_do_not_fit_are_named():
    town = pd.Series(RNG.choice(["aa", "ba"], N))
    frame = pd.DataFrame({"town": town, "age": X[:, 0]})
    for model, y in (
        (DPAdditiveClassifier(bounds=(0, 1), n_bins=4, classes=["e", "p"], epsilon=20.0, random_state=0), Y),
        (DPAdditiveRegressor(bounds=(0, 1), n_bins=4, bounds_y=(0, 1), epsilon=20.0, random_state=0), X[:, 0]),
    ):
        assert said(partial(model.set_params(categories={"town": ["aa", "ba"]}).fit, frame, y)) == []
        (message,) = said(partial(model.set_params(categories={"town": ["AA", "BA"]}).fit, frame, y))
        assert "in the column 'town'. " in message
    codes = np.column_stack([10 + RNG.integers(0, 3, N), RNG.integers(0, 3, N)]).astype(float)
    bayes = DPNaiveBayes(categorical_features=[0, 1], n_categories=3, classes=["e", "p"], random_state=0)
    (message,) = said(lambda: bayes.fit(codes, Y))
    assert "in the column 0. " in message


@pytest.mark.parametrize("epsilon", [20.0, math.inf])
@pytest.mark.parametrize("size", [{"n_estimators": 8}, {"expected_n": N}, {}], ids=lambda size: "".join(size) or "auto")
def test_codes_and_labels_of_random_trees_are_compared_with_released_counts(size, epsilon):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, (N, 2)).astype(float)
    model = DPRandomTree(
        bounds=(0, 1), categorical_features=[1, 2], n_categories=3, classes=["e", "p"], max_depth=3, random_state=0
    ).set_params(epsilon=epsilon, **size)
    frame = pd.DataFrame(np.column_stack([X[:, 0], codes]), columns=["age", "town", "kind"])
    assert said(lambda: model.fit(frame, Y)) == []
    for wrong in (-1.0, 7.0, 0.5):
        (message,) = said(lambda wrong=wrong: model.fit(frame.assign(town=wrong), Y))
        assert "in the column 'town'. " in message
    # A tenth with known codes is enough.
    assert said(lambda: model.fit(frame.assign(town=np.where(np.arange(N) % 10 == 0, 1.0, 7.0)), Y)) == []
    # Where each column is categorical, no tree counts all records.
    model.set_params(categorical_features=[0, 1])
    assert said(lambda: model.fit(codes, Y)) == []
    (message,) = said(lambda: model.fit(codes + np.array([0, 9]), Y))
    assert "in the column 1. " in message
    for y in (np.full(N, "x"), X[:, 0]):
        model.set_params(classes=["e", "p"] if y is not X[:, 0] and y.dtype.kind == "U" else [0, 1])
        (message,) = said(lambda y=y: model.fit(codes, y))
        assert "classes" in message


def test_the_largest_of_several_totals_is_allowed_for():
    """Each total exceeds its margin with a probability that is shared by all."""
    least = FEWEST - margin(1.0, FALSE_ALARM)
    assert said(lambda: warn_of_mismatch([], labels=(least - 0.1, 1.0)))
    assert said(lambda: warn_of_mismatch([], labels=(least - 0.1, 1.0), n_totals=9)) == []


@every_model
def test_the_charge_stands_and_only_released_values_are_looked_at(model):
    accountant = BudgetAccountant(200.0)
    own = model.set_params(classes=["edible", "poisonous"], epsilon=200.0).get_params() | {"accountant": accountant}
    with pytest.warns(UserWarning, match="the released counts|random_state"):
        type(model)(**own).fit(X, Y)
    assert len(accountant) == 1
    # Whether there is a warning depends on the noise as well: of no records, it is seen now and then.
    assert said(lambda: type(model)(**own | {"accountant": None}).fit(X[:0], Y[:0]))


@pytest.mark.parametrize("law", [stats.norm(), stats.laplace(scale=1 / math.sqrt(2))])
def test_noise_is_beyond_its_margin_as_rarely_as_is_said(law):
    for probability in (0.1, 1e-3, 1e-6):
        assert law.sf(margin(1.0, probability)) <= probability
    assert margin(3.0, 1e-3) == pytest.approx(3 * margin(1.0, 1e-3))
    assert margin(1.0, 1e-3) < 9
    assert margin(0.0, 1e-3) == 0.0


def test_false_alarms_are_as_rare_as_is_said():
    """Two labels with the least share that counts as present; noise of one kind in all numbers."""
    n, deviation, runs = 4000, 20.0, 2000
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(runs):
        counts = n * np.array([1 - 2 * LEAST_SHARE_OF_LABEL, LEAST_SHARE_OF_LABEL, LEAST_SHARE_OF_LABEL])
        counts += rng.laplace(scale=deviation / math.sqrt(2), size=3)
        parts = label_parts(np.array(["a", "b", "c"]), counts, deviation)
        act = partial(warn_of_mismatch, parts, labels=(counts.sum(), 3 * deviation**2))
        alarms += bool(said(act))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9


def test_few_parts_are_named():
    parts = [column_part(j, (0.0, 1.0), (1e6, 1.0)) for j in range(30)]
    (message,) = said(lambda: warn_of_mismatch(parts, labels=None))
    assert "8, 9, and others. " in message
    assert said(lambda: warn_of_mismatch([], labels=None)) == []


# --- good fits, and columns that are spelled otherwise ----------------------------------------------------------------

SURGERY = Schema({"ward": ["surgery", "medicine", "eyes"], "age": (0, 1), "kind": Category(["a", "b"])}, ["e", "p"])


def patients(n_rows, seed=8):
    """A table with many missing entries, and a label that is 2 % of the records."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n_rows) < 0.9, None, rng.choice(["a", "b"], n_rows))
    frame = pd.DataFrame(
        {"ward": rng.choice(["surgery", "medicine", "eyes"], n_rows, p=[0.9, 0.05, 0.05]), "age": rng.random(n_rows)}
    )
    return frame.assign(kind=kind), np.where(rng.random(n_rows) < 0.98, "e", "p")


KINDS = [
    (DPAdditiveClassifier, {"delta": 1e-6}),
    (DPNaiveBayes, {}),
    (DPGreedyTree, {}),
    (DPRandomTree, {"delta": 1e-6}),
    (FunctionalMechLogReg, {"delta": 1e-6}),
    (FunctionalMechLogReg, {}),
    (ObjPertLogReg, {"delta": 1e-6}),
    (OutputPertLogReg, {}),
    (DPSGDClassifier, {"delta": 1e-6, "n_steps": 2, "batch_size": 0.1}),
    (DPMLPClassifier, {"delta": 1e-6, "n_steps": 2}),
    (DPKMeans, {}),
    (DPPCA, {"delta": 1e-6}),
]
every_kind = pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=lambda one: getattr(one, "__name__", ""))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("n_rows", [200, 4000])
@every_kind
def test_good_fits_raise_no_alarm(kind, parameters, n_rows, epsilon):
    """At most one fit in 100 may warn. False-alarm probability of the test: 1e-9."""
    X, y = patients(n_rows)
    model = kind(schema=SURGERY, epsilon=epsilon, **parameters)
    runs = 30
    alarms = sum(bool(said(partial(model.set_params(random_state=seed).fit, X, y))) for seed in range(runs))
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_category_in_the_wrong_case_is_found(epsilon):
    """20,000 rows. It was found in no additive fit at 0.1, and in 13 of 20 at 1, for nine tenths of the records."""
    X, y = patients(20_000)
    wrong = X.assign(ward=X["ward"].replace("surgery", "Surgery"))
    for kind in (DPAdditiveClassifier, DPNaiveBayes, FunctionalMechLogReg):
        for seed in range(10):
            model = kind(schema=SURGERY, epsilon=epsilon, random_state=seed, delta=1e-6)
            (message,) = said(partial(model.fit, wrong, y))
            assert "many entries are in no category in the column 'ward' (about " in message


WRONG = {"ward": "in no category or missing", "age": "beyond the bounds, missing or no numbers"}
COUNTERS = [(kind, parameters) for kind, parameters in KINDS if "entries" in kind._counts_outside]


@pytest.mark.parametrize(("kind", "parameters"), COUNTERS, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.parametrize("epsilon", [0.2, 1.0, math.inf])
def test_entries_outside_are_found_by_their_numbers(kind, parameters, epsilon):
    """20,000 rows. The smallest distance from the margin is 6 standard deviations of the noise."""
    X, y = patients(20_000)
    model = kind(schema=SURGERY, epsilon=epsilon, random_state=0, **parameters)
    wrong = {"ward": X["ward"].replace("surgery", "Surgery")}
    if epsilon >= 1:
        # Nine tenths of the entries of "kind" are missing, which is no mismatch.
        wrong["age"] = X["age"].map("{:.1f} years".format)
        months = Schema({**SURGERY, "age": (0, 0.01)}, SURGERY.target)
        (message,) = said(partial(clone(model).set_params(schema=months).fit, X, y))
        assert re.search(
            "beyond the bounds(, missing or no numbers)? in the column 'age'. Check that the bounds", message
        )
        assert "spelled" not in message
    if is_classifier(model):
        # Trees also have counts of labels.
        assert "of the records have a label that is not in classes" in said(partial(model.fit, X, np.char.upper(y)))[0]
    for name, entries in wrong.items():
        (message,) = said(partial(model.fit, X.assign(**{name: entries}), y))
        assert f"{WRONG[name]} in the column {name!r}. " in message
    assert model.privacy_plan() == model.privacy_
    assert model._fixed_cost() in (None, model.privacy_.cost)
    assert model.privacy_.releases[0].label == ENTRIES


@pytest.mark.parametrize("kind", [DPSGDClassifier, DPSGDRegressor, DPMLPClassifier, DPMLPRegressor])
def test_steps_on_samples_leave_gaussian_noise_for_the_numbers_of_columns(kind):
    """Pure noise for 0.02 of epsilon hid half of a category. 3,000 rows and eight columns; none of 15 fits warned."""
    rng, n = np.random.default_rng(0), 3000
    names = [f"column {j}" for j in range(8)]
    X = pd.DataFrame({name: rng.choice(["aa", "bb", "cc"], n) for name in names})
    target = ["e", "p"] if is_classifier(kind()) else (0, 1)
    y = rng.choice(target, n) if is_classifier(kind()) else rng.random(n)
    schema = Schema({name: ["aa", "bb", "cc"] for name in names}, target)
    wrong = X.assign(**{names[3]: np.where(rng.random(n) < 0.5, X[names[3]].str.title(), X[names[3]])})
    model = kind(schema=schema, delta=1e-6, n_steps=3, batch_size=0.1)
    fits = [said(partial(model.set_params(random_state=seed).fit, wrong, y)) for seed in range(15)]
    assert (
        sum("many entries are in no category or missing in the column 'column 3'. " in str(one) for one in fits) >= 12
    )
    # The plan composes to the whole budget.
    loss = model.privacy_.privacy_loss_distribution()
    assert 0.95e-6 < loss.get_delta_for_epsilon(1.0) <= 1e-6 * (1 + 1e-3)


@pytest.mark.parametrize("kind", [DPKMeans, DPPCA, DPRandomTree, DPSGDRegressor, DPNaiveBayes, DPAdditiveClassifier])
def test_entries_in_parts_count_as_in_one_place(kind, monkeypatch):
    frames = pytest.importorskip("dask.dataframe")
    X, y = patients(600)
    X["age"] = X["age"].where(np.arange(len(X)) % 3 > 0, 1000.0)
    schema = Schema(SURGERY, Number(0, 1)) if kind is DPSGDRegressor else SURGERY
    y = X["age"].rename("cost") if kind is DPSGDRegressor else pd.Series(y)
    found = []

    def note(session, label, value):
        if label == ENTRIES:
            found.append(np.array(value))
        return release(session, label, value)

    release = ReleaseSession.release
    monkeypatch.setattr(ReleaseSession, "release", note)
    parameters = {"n_steps": 2} if kind is DPSGDRegressor else {}
    model = kind(schema=schema, delta=1e-6, random_state=0, **parameters)
    for one, other in ((X, y), (frames.from_pandas(X, npartitions=3), frames.from_pandas(y, npartitions=3))):
        clone(model).fit(*((one, other) if is_classifier(model) or is_regressor(model) else (one,)))
    np.testing.assert_array_equal(*found)


def recorded(columns, labels, epsilon, delta, released, seed=0):
    """A session that only makes the releases for these columns, and notes what is released."""
    declared = [inside for inside, _ in columns.values()] + [LISTED] * labels
    mechanisms = {one.label: one.mechanism for one, _ in entries_releases(declared, ENTRIES_SHARE, epsilon, delta)}

    def release(label, value):
        released.append(np.array(value))
        return mechanisms[label].release(value, NoiseSource(seed).stream(label))

    return SimpleNamespace(mechanism=mechanisms.__getitem__, release=release)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_numbers_of_entries_raise_no_alarm_at_the_largest_shares(delta):
    """One half of numbers is outside, 8/9 of them are missing, or one tenth of texts is outside."""
    n, runs = 1800, 1000
    shares = {"a": (INSIDE, OUTSIDE, 2), "b": (INSIDE, 1 / 16, 9), "c": (LISTED, OUTSIDE, 10)}
    X, columns = np.zeros((n, 3)), {}
    for place, (name, (inside, added, parts)) in enumerate(shares.items()):
        columns[name] = (inside, [(place, 1.0, 1.5, added)])
        X[: n // 10 if name == "c" else n - n // parts, place] = 1.0
    assert LARGEST_SHARE <= LISTED / (LISTED - OUTSIDE) < LARGEST_SHARE + 1e-3
    known = np.arange(n * 10 // 9) < n
    alarms = 0
    for seed in range(runs):
        release = recorded(columns, True, 1.0, delta, [], seed)
        alarms += bool(said(partial(check_entries, release, columns, True, X, known)))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("texts", [False, True])
def test_one_record_moves_what_is_released_by_no_more_than_is_said(labels, texts):
    """Rows with any entries are added to some others, with a label that is declared or not."""
    table = {"a": ["x"], "e": ["x", "z"]} if texts else {"a": ["x"], "b": Category(["x"], other="missing"), "d": (0, 1)}
    encoding, entries = Encoding(Schema(table), "linear"), ["x", "y", None, 0, -3]
    columns = encoding.outside()
    size = len(columns) + labels
    everything = recorded(columns, labels, math.inf, 0.0, [])
    session = recorded(columns, labels, 1.0, 0.0, released := [])
    rng, moved = np.random.default_rng(0), {"norm": 0.0, ENTRIES: 0.0, WORST: 0.0}
    for row in np.ndindex(*[len(entries)] * len(columns)):
        released.clear()
        others = [[entries[place] for place in other] for other in rng.integers(len(entries), size=(2, len(columns)))]
        rows = encoding.encode([*others, [entries[place] for place in row]], marked=True)
        for n, known in ((2, [True, True]), (3, [True] * 3), (2, [True, True, False])):
            # Records of other labels are left out of the rows.
            said(partial(check_entries, session, columns, labels, rows[:n], np.array(known) if labels else None))
        largest, scores = np.array(released[::2]), np.array([each[0] for each in released[1::2]])
        assert np.array_equal(largest[:, 0], scores.max(axis=1))
        for differences in scores[1:] - scores[0]:
            moved["norm"] = max(moved["norm"], np.linalg.norm(differences))
            moved[WORST] = max(moved[WORST], np.ptp(differences))
        moved[ENTRIES] = max(moved[ENTRIES], np.abs(largest[1:] - largest[0]).max())
    # Of texts, no entry lowers a number by more than 57/1024.
    assert moved[ENTRIES] == 0.5
    assert moved[WORST] == (0.5 + 57 / 1024 if texts else 1.0)
    assert moved[ENTRIES] <= session.mechanism(ENTRIES).sensitivity <= 0.5 * (1 + 1e-3)
    assert session.mechanism(WORST).sensitivity == moved[WORST]
    # Records of other labels count in no other number, so that the bound is not tight with labels.
    most = everything.mechanism(ENTRIES).sensitivity
    assert most == pytest.approx(math.sqrt(size) / 2)
    assert moved["norm"] <= most <= moved["norm"] * (1.25 if labels else 1 + 1e-9)


@pytest.mark.parametrize("share", [TARGET_SHARE, ENTRIES_SHARE])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 1e3])
def test_pure_releases_of_entries_cost_their_share(share, epsilon):
    for size in (1, 2, 12):
        releases = entries_releases([INSIDE] * size, share, epsilon, 0.0)
        assert [one.label for one, _ in releases] == [ENTRIES, WORST][:size]
        paid = [event.epsilon for _, event in releases]
        assert paid == [one.mechanism.epsilon for one, _ in releases]
        assert share * epsilon * (1 - 1e-12) <= math.fsum(paid) <= share * epsilon
        assert math.fsum(one.share for one, _ in releases) == pytest.approx(share)


@pytest.mark.parametrize("labels", [False, True])
def test_the_column_of_the_largest_number_is_named_as_likely(labels):
    """Of several columns that are wrong, one is named: in 40 fits, each of two at least once."""
    table = Schema({"a": ["x"], "b": ["x"], "c": ["x"], "d": (0, 1)})
    rows = Encoding(table, "linear").encode([["x", "y", "y", 0.5]] * 5000, marked=True)
    columns, messages = Encoding(table, "linear").outside(), []
    for seed in range(40):
        session = recorded(columns, labels, 1.0, 0.0, [], seed)
        messages += said(partial(check_entries, session, columns, labels, rows, np.ones(5000, dtype=bool)))
    assert len(messages) == 40
    named = {
        re.search(r"Most likely, many entries are in no category or missing in the column '(.)'\. ", m)[1]
        for m in messages
    }
    assert named == {"b", "c"}
    start = f"the entries of at least one column{' or the labels' if labels else ''} are not as declared. "
    assert all(start in message and "Schema.check" in message for message in messages)
    # All labels are undeclared, so that no record counts elsewhere.
    session = recorded(columns, True, 1.0, 0.0, [])
    (message,) = said(partial(check_entries, session, columns, True, rows[:0], np.zeros(5000, dtype=bool)))
    assert "Most likely, more than 10 % of the records have a label that is not in classes. " in message


@pytest.mark.parametrize("n_rows", [300, 600, 1600])
def test_a_wrong_column_is_rarely_named(n_rows):
    """Of 12 columns one is wrong, and the others have the largest shares that are none. Seeds are fixed."""
    columns = {str(j): (INSIDE, [(j, 1.0, 1.5, OUTSIDE)]) for j in range(12)}
    rows, runs, messages = np.zeros((n_rows, 12)), 400, []
    rows[: n_rows // 2] = 1.0
    rows[:, 7] = 1.0
    for seed in range(runs):
        session = recorded(columns, False, 1.0, 0.0, [], seed)
        messages += said(partial(check_entries, session, columns, False, rows, None))
    named = [message for message in messages if "in the column '" in message]
    wrong = [message for message in named if "in the column '7'. " not in message]
    assert stats.binom.sf(len(wrong) - 1, runs, 0.2) > 1e-9
    assert all("at least one column are not as declared. Schema.check" in message for message in messages)
    # Warnings that name no column come first.
    most = {300: (0.1, 0.0, 0.1), 600: (0.9, 0.0, 0.1), 1600: (0.99, 0.9, 1.0)}[n_rows]
    assert len(messages) >= most[0] * runs
    assert most[1] * runs <= len(named) <= most[2] * runs
    assert n_rows < 1600 or len(named) - len(wrong) > 0.9 * len(named)


def test_entries_are_not_counted_for_groups(monkeypatch):
    """The sensitivity is that of one record."""
    model = ObjPertLogReg(schema=SURGERY, delta=1e-6)
    assert len(releases_before_fit(model, 2)) == 1
    model.rows_per_group = 3
    monkeypatch.setattr(ObjPertLogReg, "_outside", lambda self: ({}, True))
    with pytest.raises(RuntimeError, match=r"single records only\. Nothing was charged"):
        releases_before_fit(model, 2)


@pytest.mark.parametrize(
    "edges", [(0.0, 100_000.0), (0.0, 1.0, 500.0), (0.0, 2.0), (5e4, 6e4, 2e5), (-10.0, -5.0), (2e5, 3e5), (-1e9, 1e9)]
)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_entry_counts_once_for_any_edges(edges, scale):
    """In each number, one record adds at most a half, as its sensitivity needs."""
    column = Number(0, 100_000, scale=scale)
    encoding = Encoding(Schema({"a": column}), "cells", {"a": np.array(edges)})
    near = [value for at in (*edges, 0.0, 1e5, 1e5 / 128) for value in (at, *np.nextafter(at, (-np.inf, np.inf)))]
    entries = np.array([*near, np.nan, -1e300, 1e300, 3.0, 600.0])
    columns = list(encoding.outside(False).values())
    rows = encoding.encode({"a": entries}, marked=True)
    assert max(np.abs(_sums(columns, rows[i : i + 1])).max() for i in range(len(rows))) == 0.5


@pytest.mark.parametrize("kind", [DPNaiveBayes, DPGreedyTree, FunctionalMechLogReg])
def test_labels_in_the_wrong_case_are_found_by_their_number(kind):
    X, y = patients(20_000)
    model = kind(schema=SURGERY, epsilon=0.5, random_state=0)
    assert "of the records have a label that is not in classes" in said(partial(model.fit, X, np.char.upper(y)))[0]
    assert model.privacy_plan() == model.privacy_


@pytest.mark.parametrize("kind", [DPSGDRegressor, DPMLPRegressor])
def test_targets_beyond_their_bounds_are_found(kind):
    X, _ = patients(20_000)
    schema = Schema({"ward": SURGERY["ward"], "kind": SURGERY["kind"]}, {"age": (0, 1)})
    model = kind(schema=schema, epsilon=0.5, delta=1e-6, n_steps=2, random_state=0)
    assert said(partial(model.fit, X[["ward", "kind"]], X["age"])) == []
    (message,) = said(partial(model.fit, X[["ward", "kind"]], X["age"] * 12))
    assert "of the targets are beyond bounds_y" in message


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_unreadable_numbers_are_found_by_moments(delta):
    X, _ = patients(20_000)
    schema = Schema({"ward": ["surgery", "medicine", "eyes"], "day": (0, 365)}, {"age": (0, 1)})
    days = np.arange(len(X)) % 365
    model = FunctionalMechLinReg(schema=schema, epsilon=1.0, delta=delta, random_state=0)
    assert said(partial(model.fit, X[["ward"]].assign(day=days), X["age"])) == []
    (message,) = said(partial(model.fit, X[["ward"]].assign(day=[f"day {day}" for day in days]), X["age"]))
    assert "in the column 'day'. " in message


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (DPAdditiveClassifier, {"delta": 1e-6}),
        (DPAdditiveRegressor, {"delta": 1e-6}),
        (DPNaiveBayes, {"numeric": "binned", "n_bins": 20}),
    ],
)
def test_bounds_below_most_numbers_are_found_by_estimators_with_bins(kind, parameters):
    X, y = patients(20_000)
    target = Number(0, 1) if kind is DPAdditiveRegressor else SURGERY.target
    y = X["age"].rename("cost") if kind is DPAdditiveRegressor else y
    for high, found in ((1, False), (0.6, False), (0.05, True)):
        schema = Schema({**SURGERY, "age": (0, high)}, target)
        messages = said(partial(kind(schema=schema, epsilon=2.0, random_state=0, **parameters).fit, X, y))
        assert any("the column 'age'" in message for message in messages) == found


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_labels_in_the_wrong_case_are_found_by_additive_models(epsilon):
    X, y = patients(20_000)
    for seed in range(10):
        model = DPAdditiveClassifier(schema=SURGERY, epsilon=epsilon, delta=1e-6, random_state=seed)
        (message,) = said(partial(model.fit, X, np.char.upper(y)))
        assert "of the records have a label that is not in classes" in message


@pytest.mark.parametrize(
    "model",
    [
        DPAdditiveClassifier(delta=1e-6, epsilon=20.0, random_state=0),
        DPNaiveBayes(epsilon=5.0, random_state=0),
        DPNaiveBayes(numeric="binned", epsilon=5.0, random_state=0),
    ],
    ids=["additive", "Gaussian", "binned"],
)
def test_values_that_a_schema_does_not_declare_are_told_by_their_cell(model):
    schema = Schema({"town": ["aa", "ba"], "size": Category(["s", "m"], ordered=True), "age": (0, 1)}, ["e", "p"])
    rng = np.random.default_rng(5)
    table = {"town": rng.choice(["aa", "ba"], N), "size": rng.choice(["s", "m"], N), "age": X[:, 0]}
    model = clone(model).set_params(schema=schema)
    assert said(lambda: model.fit(table, Y)) == []
    for name, entry in (("town", "AA"), ("size", None)):
        (message,) = said(lambda name=name, entry=entry: model.fit({**table, name: [entry] * N}, Y))
        what = "are in no category" if entry == "AA" else "are missing or unreadable"
        end = " (about 100 %). Check that" if entry == "AA" else ". Numbers must"
        assert f"{what} in the column {name!r}{end}" in message
    if model._form() == "cells":
        (message,) = said(lambda: model.fit({**table, "age": pd.date_range("2020", periods=N).to_numpy()}, Y))
        assert "missing or unreadable in the column 'age'. Numbers must be without a unit, and dates must" in message
        assert "Check" not in message


# --- random trees with a schema --------------------------------------------------------------------------------------

TOWNS = [f"t{i}" for i in range(11)]


def table(seed=6, n_rows=N):
    rng = np.random.default_rng(seed)
    return {"town": rng.choice(TOWNS, n_rows), "size": rng.choice(["s", "m"], n_rows), "age": rng.uniform(size=n_rows)}


@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("size", [{"n_estimators": 9}, {"expected_n": N}, {}], ids=lambda size: "".join(size) or "auto")
@pytest.mark.parametrize("kind", [DPRandomTree, DPRandomTreeRegressor])
def test_random_trees_compare_cells_of_a_schema(kind, size, epsilon):
    columns = {"town": TOWNS, "size": Category(["s", "m"], ordered=True), "age": (0, 1)}
    y, target = (Y, ["e", "p"]) if kind is DPRandomTree else (X[:, 0], Number(0, 1))
    model = kind(schema=Schema(columns, target), max_depth=5, delta=1e-5, random_state=0)
    model.set_params(epsilon=epsilon, **size)
    rows = table()
    assert said(lambda: model.fit(rows, y)) == []
    # Missing entries of a category of text weigh little, so that noise may hide them.
    for name, entry in (("town", "T1"), ("size", None), ("town", np.nan))[: 1 if epsilon == 2.0 else 3]:
        wrong = {**rows, name: [entry] * N}
        (message,) = said(lambda wrong=wrong: model.fit(wrong, y))
        assert f"in the column {name!r}. " in message
    (message,) = said(lambda: model.fit({**rows, "town": ["x"] * N, "size": ["x"] * N}, y))
    assert "in the columns 'town', 'size'. " in message
    # With a tenth in no category, there is no warning, and with a quarter there is.
    for part, warns in ((10, False), (4, True)):
        some = np.where(np.arange(N) % part > 0, rows["town"], "T1")
        assert bool(said(lambda some=some: model.fit({**rows, "town": some}, y))) == warns
    # Without numbers, too, there is a number of all records.
    only = Schema({name: columns[name] for name in ("town", "size")}, target)
    model.set_params(schema=only)
    rows.pop("age")
    assert said(lambda: model.fit(rows, y)) == []
    (message,) = said(lambda: model.fit({**rows, "town": ["x"] * N, "size": ["x"] * N}, y))
    assert "in the columns 'town', 'size'. " in message


# --- a part of the records, and targets and numbers beyond their bounds ----------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("kind", [DPAdditiveClassifier, DPNaiveBayes, ObjPertLogReg, DPRandomTree])
def test_a_part_of_the_records_in_another_spelling_is_found(kind, epsilon):
    """20,000 rows, 45 % of them spelled otherwise. There was no warning below 50 % and 75 %."""
    X, y = patients(20_000)
    other = np.random.default_rng(1).random(len(X)) < 0.45
    model = kind(schema=SURGERY, epsilon=epsilon, delta=1e-6, random_state=0)
    (message,) = said(partial(model.fit, X.assign(ward=np.where(other, "Ward", X["ward"])), y))
    assert "in the column 'ward'" in message
    if kind in (DPAdditiveClassifier, DPNaiveBayes):
        share = int(message.partition("(about ")[2].partition(" %")[0])
        assert abs(share - 45) <= 5
    (message,) = said(partial(model.fit, X, np.where(other, "E", y)))
    assert "of the records have a label that is not in classes. Other records are left out. " in message


@pytest.mark.parametrize(("declared", "n_others"), [(1, 2), (3, 2), (32, 1), (0, 2), (3, 0)])
def test_forms_of_shares_have_the_least_noise_and_no_bias(declared, n_others):
    """The variance is compared with that of other linear forms with the same expectation."""
    rng = np.random.default_rng(declared)
    for share in (0.1, 8 / 9, 0.98):
        known = (0.0, float(declared)) if declared else NOT_RELEASED
        others = (0.0, float(n_others)) if n_others else NOT_RELEASED
        for total in ((0.0, 1.0), (0.0, 4.0), NOT_RELEASED):
            if math.inf in (known[1], others[1]) and total is NOT_RELEASED:
                continue

            def form(k, o, t, known=known, others=others, total=total, share=share):
                a, b, c = ((value, own[1]) for value, own in zip((o, k, t), (others, known, total), strict=True))
                return excess_of(a, b, c, share)

            weights = np.array([form(1.0, 0.0, 0.0)[0], form(0.0, 1.0, 0.0)[0], form(0.0, 0.0, 1.0)[0]])
            assert weights[0] + weights[2] == pytest.approx(-share)
            assert weights[1] + weights[2] == pytest.approx(1 - share)
            variances = np.array([own[1] for own in (known, others, total)])
            used = np.isfinite(variances)
            assert np.all(weights[~used] == 0)
            variance = float(weights[used] ** 2 @ variances[used])
            assert form(0.0, 0.0, 0.0)[1] ** 2 == pytest.approx(variance)
            if used.all():
                for shift in rng.normal(size=20) / 10:
                    shifted = weights + shift * np.array([1.0, 1.0, -1.0])
                    assert shifted**2 @ variances >= variance * (1 - 1e-12)


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("n_declared", [0, 2, 20])
def test_columns_at_the_largest_shares_raise_no_alarm(n_declared, gaussian):
    """A tenth in no category, or 8/9 missing. False-alarm probability of the test: 1e-9."""
    n, deviation, runs = 4000.0, 20.0, 2000
    rng, alarms = np.random.default_rng(n_declared), 0
    scale = deviation / math.sqrt(2)
    for run in range(runs):
        outside = np.array([0.1, 0.0]) if run % 2 else np.array([0.0, 1 - LEAST_SHARE])
        declared = np.zeros(n_declared)
        declared[:1] = 1 - outside.sum()
        exact = n * np.concatenate([[1.0], declared, outside])
        noise = rng.normal(scale=deviation, size=len(exact)) if gaussian else rng.laplace(scale=scale, size=len(exact))
        total, *cells = exact + noise
        parts = declared_parts("a", np.array(cells), n_declared, (total, deviation**2), deviation**2)
        alarms += bool(said(partial(warn_of_mismatch, parts, labels=None, gaussian=gaussian)))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9


NUMBERS = COUNTERS + [(kind, parameters) for kind, parameters in KINDS if "numbers" in kind._counts_outside]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, math.inf])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_numbers_of_any_shape_in_their_bounds_raise_no_alarm(epsilon, delta):
    """At most one release in 100 may warn. Probability that the test fails by chance: 1e-9."""
    rng, n, runs, alarms = np.random.default_rng(0), 4000, 60, 0
    some = rng.random(n)
    table = {
        "skewed": some**6,
        "zeros": np.where(some < 0.97, 0.0, rng.random(n)),
        "ones": np.where(some < 0.97, 1.0, rng.random(n)),
        "digits": rng.integers(0, 3, n) / 2,
        "low": np.zeros(n),
        "high": np.ones(n),
        "missing": np.where(some < 0.85, np.nan, rng.random(n)),
        "clipped": np.where(some < 0.45, 5.0, rng.random(n)),
    }
    schema = Schema({name: Number(0, 1, step=0.5 if name == "digits" else None) for name in table})
    for form in ("linear", "codes", "ends", "cells"):
        encoding = Encoding(schema, form, even_edges(schema, 32))
        rows, columns = encoding.encode(table, marked=True), encoding.outside(form in ("linear", "ends"))
        plain = encoding.encode(table)
        # The clipped numbers are marked, and nothing else is changed.
        assert np.count_nonzero(rows != plain) == np.count_nonzero(table["clipped"] > 1)
        np.testing.assert_allclose(rows, plain, rtol=1e-12)
        for seed in range(runs // 4):
            release = recorded(columns, False, epsilon, delta, [], seed)
            alarms += bool(said(partial(check_entries, release, columns, False, rows, None)))
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


BUDGETS = [(0.1, 0.0), (1.0, 0.0), (0.1, 1e-6), (1.0, 1e-6), (10.0, 1e-6)]


def targets_of(kind, n, rng):
    """Targets between 0 and 1, many of them at an end of these bounds."""
    some = rng.random(n)
    return {
        "skewed": some**8,
        "zeros": np.where(rng.random(n) < 0.95, 0.0, some),
        "claims": np.where(rng.random(n) < 0.85, 0.0, some),
        "ends": rng.integers(0, 2, n).astype(float),
        "constant": np.ones(n),
        "a tenth beyond": np.where(rng.random(n) < 0.09, 3.0, some),
    }[kind]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("kind", ["skewed", "zeros", "claims", "ends", "constant", "a tenth beyond"])
def test_targets_in_their_bounds_raise_no_alarm(kind, epsilon, delta):
    """At most one fit in 100 may warn. False-alarm probability of the test: 1e-9."""
    y = targets_of(kind, 3000, np.random.default_rng(0))
    X, runs, alarms = np.zeros((len(y), 1)), 40, 0
    for seed in range(runs):
        model = HistogramRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins=2, n_bins_y=4, random_state=seed)
        model.set_params(epsilon=epsilon, delta=delta)
        messages = said(partial(model.fit, X, y))
        alarms += any("of the targets are beyond" in message for message in messages)
        # Equal targets have bounds that are wider.
        alarms += kind != "constant" and any("far too wide" in message for message in messages)
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-6), (10.0, 1e-6)])
@pytest.mark.parametrize("bounds_y", [(0, 1e4), (-1e5, 1e5), (0, 1e8)])
def test_bounds_of_targets_that_are_far_too_wide_are_found(bounds_y, epsilon, delta):
    """10,000 rows. The released range may be wider than the targets."""
    y, found = np.random.default_rng(0).exponential(0.2, 10_000), 0
    for seed in range(10):
        model = HistogramRegressor(bounds=(0, 1), bounds_y=bounds_y, n_bins=2, n_bins_y=4, random_state=seed)
        model.set_params(epsilon=epsilon, delta=delta)
        found += any(message.startswith("bounds_y are far too") for message in said(partial(model.fit, y[:, None], y)))
    assert found >= 9


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS[1:])
@pytest.mark.parametrize("high", [0.1, 0.5])
def test_targets_beyond_bounds_are_found_by_their_number(high, epsilon, delta):
    """20,000 rows, of which 9/10 or a half are beyond. The released share is named."""
    y = np.random.default_rng(0).random(20_000)
    for seed in range(5):
        model = HistogramRegressor(bounds=(0, 1), bounds_y=(0, high), n_bins=2, n_bins_y=4, random_state=seed)
        model.set_params(epsilon=epsilon, delta=delta)
        (message,) = said(partial(model.fit, np.zeros((len(y), 1)), y))
        share = int(message.partition("about ")[2].partition(" %")[0])
        assert abs(share - 100 * (1 - high)) <= 15
        assert "of the targets are beyond bounds_y. They count as the bounds. " in message


@pytest.mark.parametrize(("kind", "parameters"), NUMBERS, ids=lambda one: getattr(one, "__name__", ""))
def test_numbers_beyond_their_bounds_are_found(kind, parameters):
    """20,000 rows. All are below the bounds, 19/20 are above, or bounds are 1000 times too wide."""
    X, y = patients(20_000)
    model = kind(random_state=0, epsilon=1.0, **parameters)
    for low, high, found in ((2.0, 3.0, True), (0.0, 0.05, True), (-0.01, 1000.0, True), (0.0, 0.6, False)):
        schema = Schema({**SURGERY, "age": (low, high)}, SURGERY.target)
        messages = said(partial(clone(model).set_params(schema=schema).fit, X, y))
        assert any("in the column 'age'. " in message for message in messages) == found
    for end in (0.0, 1.0):
        # Half of the numbers are at an end, and the others are at 1/3. Nine tenths of them are 0.
        ends = np.where(np.arange(len(X)) % 2, end, 1 / 3), np.where(np.arange(len(X)) % 10, 0.0, X["age"])
        for age in ends:
            assert said(partial(clone(model).set_params(schema=SURGERY).fit, X.assign(age=age), y)) == []


# --- statistics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["median", "quantile", "histogram", "sum", "ecdf"])
def test_columns_without_numbers_are_found_by_every_statistic(statistic):
    """5,000 rows. At the largest shares of missing values and of values beyond, at most one call in 100 may warn."""
    n, runs, found, alarms = 5000, 20, 0, 0
    options = {"q": [0.1, 0.5]} if statistic == "quantile" else {}
    if statistic in ("median", "quantile"):
        options["interval"] = False
    missing, beyond = (np.where(np.arange(n) % every, other, 50.0) for every, other in ((9, np.nan), (2, 200.0)))
    few = np.full(30, 50.0)
    for seed in range(runs):
        release = partial(
            getattr(descriptive, statistic), schema={"day": Number(0, 100)}, columns="day", random_state=seed, **options
        )
        found += bool(said(partial(release, {"day": ["1.1.1993"] * n})))
        alarms += sum(bool(said(partial(release, {"day": day}))) for day in (missing, beyond, few))
    assert found >= 18
    assert stats.binom.sf(alarms - 1, 3 * runs, 0.01) > 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_statistics_warn_by_what_they_release(epsilon, delta):
    """Good tables, with 9 % in no category, and wrong ones. Fewer than 25 numbers are found by means at epsilon 1."""
    X, _ = patients(4000)
    X = X.assign(ward=np.where(np.random.default_rng(0).random(4000) < 0.09, "other", X["ward"]))
    wrong = X.assign(ward=X["ward"].str.title(), age="unknown")
    runs, alarms = 40, 0
    for seed in range(runs):
        words = {"schema": Schema(dict(SURGERY)), "epsilon": epsilon, "delta": delta, "random_state": seed}
        kept = said(lambda words=words: descriptive.value_counts(X, columns="ward", **words))
        kept += said(lambda words=words: descriptive.mean(X, columns="age", **words))
        alarms += bool(kept)
        (message,) = said(lambda words=words: descriptive.value_counts(wrong, columns="ward", **words))
        assert "the column 'ward' (about " in message
        (message,) = said(lambda words=words: descriptive.contingency(wrong, columns=["ward", "kind"], **words))
        assert "the column 'ward' (about " in message
        for statistic in [descriptive.mean] * (epsilon >= 1) + [descriptive.std] * (epsilon > 1):
            (message,) = said(lambda words=words, one=statistic: one(wrong, columns="age", **words))
            assert "in the column 'age'. " in message
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_descriptions_warn_by_what_they_release(delta):
    X, _ = patients(20_000)
    schema = Schema({**SURGERY, "weight": (1, 300)})
    X = X.assign(weight=50.0 + np.arange(len(X)) % 60, zeros=0.0)
    words = {"epsilon": 2.0, "delta": delta, "random_state": 0}
    assert said(partial(descriptive.describe, X, schema=schema, **words)) == []
    wrong = X.assign(ward=X["ward"].str.title(), age=X["age"].map("{:.1f} years".format), weight=X["weight"] * 1000)
    (many,) = said(partial(descriptive.describe, wrong, schema=schema, **words))
    assert "most entries are missing or unreadable in the column 'age'; " in many
    assert "many entries are in no category in the column 'ward' (about 100 %); " in many
    assert "most numbers are at a bound, or beyond it, in the column 'weight'. " in many
    for bounds, values, found in (
        ((1, 300), wrong["weight"], True),
        ((1, 300), X["weight"] / 1000, True),
        ((1, 300), X["weight"], False),
        ((0, 300), X["zeros"], False),
    ):
        for statistic in (descriptive.mean, descriptive.std):
            call = partial(statistic, values.to_numpy(), bounds=bounds, **words)
            assert any("are beyond the bounds in the column" in message for message in said(call)) == found


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_descriptions_find_bounds_that_clip_most_numbers(delta):
    """20,000 rows. Three fifths of one column are beyond. At most one call in 100 may warn of other shapes."""
    n, runs, alarms = 20_000, 10, 0
    some = np.random.default_rng(0).random(n)
    good = {
        "skewed": some**6,
        "zeros": np.where(some < 0.97, 0.0, some),
        "digits": np.where(some < 0.6, 1.0, 0.0),
        "half": np.where(some < 0.5, 2.0, some),
    }
    schema = Schema({name: Number(0, 1, step=1 if name == "digits" else None) for name in good})
    for seed in range(runs):
        words = {"epsilon": 1.0, "delta": delta, "random_state": seed}
        alarms += bool(said(partial(descriptive.describe, good, schema=schema, **words)))
        for step in (None, 0.25):
            for sign in (1.0, -1.0):
                low, high = sorted([0.0, sign])
                wrong = Schema({"weight": Number(low, high, step=step)})
                table = {"weight": sign * some * 2.5}
                (message,) = said(partial(descriptive.describe, table, schema=wrong, **words))
                assert "most numbers are beyond the bounds in the column 'weight'. " in message
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("statistic", [descriptive.mean, descriptive.var, descriptive.std])
def test_moments_warn_of_bounds_that_clip_most_numbers(statistic, delta):
    """The mean of the clipped numbers is far from both bounds."""
    values = np.linspace(0, 200, 20_000)
    words = {"epsilon": 1.0, "delta": delta, "random_state": 0}
    assert said(partial(statistic, values, bounds=(0, 200), **words)) == []
    (message,) = said(partial(statistic, values, bounds=(0, 60), **words))
    assert "most numbers are beyond the bounds in the column '0'. " in message
    (message,) = said(partial(statistic, pd.Series(values, name="height"), bounds=(0, 60), **words))
    assert " in the column 'height'. " in message
    # Numbers at a bound are not beyond it.
    (message,) = said(partial(statistic, np.full(20_000, 60.0), bounds=(0, 60), **words))
    assert "most numbers are at a bound, or beyond it, in the column '0'. " in message


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_descriptions_of_many_columns_name_a_column_without_a_number(delta):
    """Its line shows that nearly all entries are missing. The mean of no numbers is unknown."""
    columns = {f"n{j}": np.arange(8000.0) % 100 for j in range(6)}
    schema = Schema({"born": (0, 32_000), **dict.fromkeys(columns, (0, 100)), "job": ["clerk", "nurse"]})
    table = {"born": ["1970-01-01"] * 8000, **columns, "job": ["clerk", "nurse"] * 4000}
    for epsilon in (0.1, 1.0):
        for seed in range(5):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = descriptive.describe(table, schema=schema, epsilon=epsilon, delta=delta, random_state=seed)
            shown = found.numbers["born"]
            assert all(math.isnan(shown[name].value) for name in ("mean", "std", "25%", "50%", "75%"))
            # At epsilon 0.1, noise may hide the number of values.
            if epsilon == 1.0:
                (warning,) = caught
                assert "are missing or unreadable in the column 'born'. " in str(warning.message)


def survey(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "income": rng.lognormal(3, 0.5, n_rows),
            "job": rng.choice(["clerk", "nurse"], n_rows),
            "sex": np.where(rng.random(n_rows) < 0.5, "f", "m"),
        }
    )


ASKED = Schema({"age": Number(18, 90, step=1), "income": Number(1, 1000), "job": ["clerk", "nurse"], "sex": ["f", "m"]})
QUARTILES = [0.25, 0.5, 0.75]
OF_AGE = {
    "mean": partial(descriptive.mean, columns="age"),
    "std": partial(descriptive.std, columns="age"),
    "sum": partial(descriptive.sum, columns="age"),
    "median": partial(descriptive.median, columns="age"),
    "median without interval": partial(descriptive.median, columns="age", interval=False),
    "quartiles": partial(descriptive.quantile, q=QUARTILES, columns=["age", "income"]),
    "range": partial(descriptive.min_max, columns="age"),
    "histogram": partial(descriptive.histogram, columns="age"),
    "histogram of two": partial(descriptive.histogramdd, bins=4, columns=["age", "income"]),
    "ecdf": partial(descriptive.ecdf, columns="age"),
    "correlation": partial(descriptive.correlation, columns=["age", "income"]),
    "trend": partial(descriptive.linear_trend, columns=["age", "income"]),
    "describe": descriptive.describe,
    "means by group": lambda X, schema, **k: descriptive.group_by(X, "job", {"age": "mean"}, **k, schema=schema),
    "medians by group": lambda X, schema, **k: descriptive.group_by(X, "job", {"age": "median"}, **k, schema=schema),
}
BY_JOB = {
    "ttest": partial(descriptive.ttest_ind, by="job", columns="age"),
    "ranks": partial(descriptive.mannwhitneyu, by="job", columns="age"),
    "chi2": partial(descriptive.chi2_contingency, columns=["job", "sex"]),
    **{name: OF_AGE[name] for name in ("means by group", "medians by group", "describe")},
}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", sorted(OF_AGE))
def test_numbers_that_are_not_as_declared_are_named_by_statistics(name, delta):
    """20,000 records at epsilon 1."""
    X = survey(20_000)
    months, text = X.assign(age=X["age"] * 12), X.assign(age=X["age"].map("{} years".format))
    act = partial(OF_AGE[name], schema=ASKED, epsilon=1.0, delta=delta, random_state=0)
    assert said(partial(act, X)) == []
    for wrong, shown in ((months, "beyond|at a bound"), (text, "missing or unreadable|hardly any record")):
        (message,) = said(partial(act, wrong))
        assert re.search(shown, message)
        assert re.search("in (the column|all of the columns) 'age'", message)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", sorted(BY_JOB))
def test_groups_that_are_not_as_declared_are_named_by_statistics(name, delta):
    X = survey(20_000)
    act = partial(BY_JOB[name], schema=ASKED, epsilon=1.0, delta=delta, random_state=0)
    assert said(partial(act, X)) == []
    (message,) = said(partial(act, X.assign(job=X["job"].str.title())))
    assert re.search("in (the column|all of the columns) 'job'", message)


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", sorted({**OF_AGE, **BY_JOB}))
def test_statistics_of_declared_entries_raise_no_alarm(name, delta, epsilon):
    """Half of the ages are at a bound of their column, or at both. There are more records than noise."""
    X, runs, alarms = survey(8000), 10, 0
    for seed in range(runs):
        ends = X.assign(age=np.where(np.arange(len(X)) % 4 < 2, X["age"], 18 + 72 * (seed % 2)))
        act = partial({**OF_AGE, **BY_JOB}[name], schema=ASKED, epsilon=epsilon, delta=delta, random_state=seed)
        alarms += bool(said(partial(act, ends)))
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


def test_few_records_are_named_only_if_noise_could_be_all_of_them():
    X = survey(2000)
    act = partial(descriptive.correlation, columns=["age", "income"], schema=ASKED, random_state=0)
    assert said(partial(act, X)) == []
    (message,) = said(partial(act, X[:20]))
    assert "hardly any record has a declared entry in all of the columns 'age', 'income'. " in message


# --- preprocessing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_preprocessing_warns_of_numbers_beyond_the_bounds(delta):
    X = survey(20_000)
    ages, given = X[["age"]].to_numpy(float), {"epsilon": 1.0, "delta": delta}
    schema = Schema({"age": Number(18, 90, missing="error")})
    for act, table in (
        (lambda rows: DPStandardScaler(bounds=(18, 90), random_state=0, **given).fit(rows), ages),
        (lambda rows: DPStandardScaler(schema=schema, random_state=0, **given).fit(rows), X[["age"]]),
        (lambda rows: DPQuantileBinner(bounds=(18, 90), random_state=0, **given).fit(rows), ages),
        (lambda rows: DPQuantileBinner(schema=schema, random_state=0, **given).fit(rows), X[["age"]]),
    ):
        assert said(partial(act, table)) == []
        (message,) = said(partial(act, table * 12))
        assert re.search("in the column (0|'age'). Check that the bounds are in the units of the data", message)


def test_positions_of_quantiles_raise_no_alarm_without_records():
    """Then each position has the same probability."""
    runs, alarms = 400, 0
    for seed in range(runs):
        act = partial(DPQuantileBinner(2, bounds=(1, 9), grid_size=4096, random_state=seed).fit, np.zeros((0, 2)))
        alarms += bool(said(act))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9
    many = partial(DPQuantileBinner(2, bounds=(1, 9), grid_size=4096, random_state=0).fit, np.zeros((0, 400)))
    assert said(many) == []


# --- pipelines --------------------------------------------------------------------------------------------------------

STEPS = [
    (DPPCA, {"n_components": 2}, "linear"),
    (DPKMeans, {"n_clusters": 2}, "linear"),
    (DPStandardScaler, {}, "linear"),
    (ObjPertLogReg, {}, "linear"),
    (DPSGDClassifier, {"n_steps": 2}, "linear"),
    (FunctionalMechLogReg, {}, "linear"),
    (DPNaiveBayes, {}, "codes"),
    (DPAdditiveClassifier, {}, "codes"),
    (DPRandomTree, {}, "codes"),
    (DPGreedyTree, {}, "codes"),
]


@pytest.mark.parametrize(("kind", "parameters", "form"), STEPS, ids=lambda one: getattr(one, "__name__", ""))
def test_the_step_behind_an_encoder_warns_by_its_schema(kind, parameters, form):
    """20,000 records, all or half of whose jobs are spelled otherwise, or whose ages are months."""
    X = survey(20_000)
    y = np.where(X["age"] + 10 * (X["job"] == "nurse") > 60, "yes", "no")
    encoder = TableEncoder(Schema(dict(ASKED), ["no", "yes"]), form=form)

    def fitted(table, y=y, random_state=0, **given):
        step = kind(random_state=random_state, **parameters, **encoder.parameters(kind))
        return make_private_pipeline(encoder, step, epsilon=2.0, delta=1e-6, **given).fit(table, y)

    assert said(partial(fitted, X)) == []
    upper = X["job"].str.upper()
    for job in (upper, X["job"].where(np.arange(len(X)) % 2 == 0, upper)):
        (message,) = said(partial(fitted, X.assign(job=job)))
        assert "in the column 'job'" in message
    (message,) = said(partial(fitted, X.assign(age=X["age"] * 12)))
    assert "in the column 'age'" in message
    if is_classifier(kind()):
        assert any("classes" in message for message in said(partial(fitted, X, np.char.upper(y))))
    budget = BudgetAccountant(2.0, 1e-6)
    model = fitted(X, random_state=None, accountant=budget)
    assert budget.total().epsilon <= 2.0
    # The step keeps nothing of the encoder.
    assert vars(model[-1]).get("_encoded_by") is None
    assert not encoder._marks


def test_an_encoder_and_the_schema_of_the_step_release_the_same():
    """Numbers beyond their bounds are marked in the same way."""
    X = survey(3000).assign(age=lambda table: table["age"] * 2)
    schema = Schema(dict(ASKED), ["no", "yes"])
    y = np.where(X["age"] > 100, "yes", "no")
    encoder = TableEncoder(schema)
    for kind in (ObjPertLogReg, DPKMeans):
        alone = kind(schema=schema, epsilon=1.0, delta=1e-6, random_state=0)
        step = kind(random_state=0, **encoder.parameters(kind))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaMismatchWarning)
            alone.fit(X, y)
            make_private_pipeline(encoder, step, epsilon=1.0, delta=1e-6).fit(X, y)
        name = "coef_" if kind is ObjPertLogReg else "cluster_centers_"
        assert [one.label for one in step.privacy_.releases] == [one.label for one in alone.privacy_.releases]
        assert getattr(step, name).shape == getattr(alone, name).shape


def test_a_pipeline_that_fails_leaves_its_steps_as_they_were():
    encoder, step = TableEncoder(ASKED), DPKMeans(2, random_state=0)
    with pytest.raises(ValueError, match="bounds must be given"):
        make_private_pipeline(encoder, step, epsilon=1.0).fit(survey(10))
    assert step._encoded_by is None
    assert not encoder._marks


def test_tables_name_categories_in_the_wrong_case():
    X, y = patients(20_000)
    table = X[["ward"]]
    model = HistogramClassifier(schema=SURGERY.select("ward"), epsilon=1.0, random_state=0)
    assert said(partial(model.fit, table, y)) == []
    (message,) = said(partial(model.fit, table.assign(ward=table["ward"].str.title()), y))
    assert "in the column 'ward' (about 100 %). " in message


def test_a_calibration_by_private_labels_is_named():
    X, y = patients(600)
    model = DPNaiveBayes(schema=SURGERY, epsilon=1.0, accountant=BudgetAccountant(10.0))
    with pytest.warns(PrivacyAssumptionWarning, match="or the calibrator of CalibratedClassifierCV, are"):
        CalibratedClassifierCV(model, cv=2).fit(X, y)
