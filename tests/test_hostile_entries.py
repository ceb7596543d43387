"""Objects among the data that run code or warn when they are read: no message, cause or warning shows what they say."""

import warnings

import numpy as np
import pytest

from skdp import (
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPKMeans,
    DPNaiveBayes,
    FunctionalMechLinReg,
    NoisyHistogram,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    private_score,
    stats,
)

SECRET = "patient-7731"
METHODS = ["hash", "float", "eq", "ne", "class", "array", "len", "index", "int", "str", "repr", "bool", "lt"]


def hostile(name, error):
    def fail(self, *args, **kwargs):
        raise error(SECRET)

    # The class of an object is an attribute.
    return type("Entry", (), {f"__{name}__": property(fail) if name == "class" else fail})()


ENTRIES = {f"{name} {error.__name__}": (name, error) for name in METHODS for error in (ValueError, TypeError, KeyError)}

N = 20
ROWS = [[0.1, 0.5]] * N
LABELS = [0, 1] * (N // 2)
SCHEMA = Schema({"a": (0, 1), "b": ["x", "y"]}, target=[0, 1])
TABLE = {"a": [0.5] * N, "b": ["x"] * N}
BAYES = DPNaiveBayes(bounds=(0, 1), classes=[0, 1])


def among(entry, others):
    return [entry, *others[1:]]


def in_rows(entry, rows=ROWS):
    return [[entry, rows[0][1]], *rows[1:]]


def objects(entries, *shape):
    """Return an array of objects, which NumPy does not look into."""
    flat = [each for row in entries for each in row] if shape else entries
    return np.fromiter(flat, dtype=object, count=len(flat)).reshape(*shape or (-1,))


CALLS = {
    "rows": lambda entry: BAYES.fit(in_rows(entry), LABELS),
    "objects": lambda entry: BAYES.fit(objects(in_rows(entry), N, 2), LABELS),
    "linear": lambda entry: ObjPertLogReg(data_norm=1, classes=[0, 1]).fit(in_rows(entry), LABELS),
    "clusters": lambda entry: DPKMeans(2, bounds=(0, 1)).fit(in_rows(entry)),
    "histogram": lambda entry: NoisyHistogram(bounds=(0, 1)).fit(in_rows(entry)),
    "categories": lambda entry: DPAdditiveClassifier(
        bounds=(0, 1), categories={0: ["x", "y"]}, classes=[0, 1], delta=1e-6
    ).fit(in_rows(entry, [["x", 0.5]] * N), LABELS),
    "labels": lambda entry: BAYES.fit(ROWS, among(entry, LABELS)),
    "labels of text": lambda entry: DPNaiveBayes(bounds=(0, 1), classes=["a", "b"]).fit(
        ROWS, among(entry, ["a", "b"] * (N // 2))
    ),
    "labels that occur": lambda entry: DPNaiveBayes(bounds=(0, 1)).fit(ROWS, among(entry, LABELS)),
    "targets": lambda entry: FunctionalMechLinReg(bounds=(0, 1), bounds_y=(0, 1)).fit(ROWS, among(entry, LABELS)),
    "groups": lambda entry: DPNaiveBayes(bounds=(0, 1), classes=[0, 1], rows_per_group=1).fit(
        ROWS, LABELS, groups=among(entry, list(range(N)))
    ),
    "weights": lambda entry: DPNaiveBayes(bounds=(0, 1), classes=[0, 1], max_weight=1).fit(
        ROWS, LABELS, sample_weight=among(entry, [1.0] * N)
    ),
    "table": lambda entry: TableEncoder(SCHEMA).fit_transform({name: among(entry, own) for name, own in TABLE.items()}),
    "check": lambda entry: repr(SCHEMA.check({name: among(entry, own) for name, own in TABLE.items()})),
    "labels of a schema": lambda entry: DPNaiveBayes(schema=SCHEMA).fit(TABLE, among(entry, LABELS)),
    "search": lambda entry: DPGridSearchCV(BAYES, {"n_bins": [2, 3]}, epsilon=1.0, delta=1e-5).fit(
        in_rows(entry), among(entry, LABELS)
    ),
    "score": lambda entry: private_score(BAYES.fit(ROWS, LABELS), in_rows(entry), among(entry, LABELS)),
    "mean": lambda entry: stats.mean([entry, 1, 2], bounds=(0, 5)),
    "mean of objects": lambda entry: stats.mean(objects([entry, 1, 2]), bounds=(0, 5)),
    "counts": lambda entry: stats.value_counts([entry, *["a"] * N], delta=1e-6),
    "proportion": lambda entry: stats.proportion([entry, "a"], "a"),
    "names of groups": lambda entry: stats.group_by(TABLE, among(entry, ["a"] * N), {"a": "mean"}, schema=SCHEMA),
    "labels of groups": lambda entry: stats.group_by(
        TABLE, objects(among(entry, ["a"] * N)), {"a": "mean"}, delta=1e-6, schema=SCHEMA
    ),
}


def outcome(call, entry):
    """Return the error of a call and its causes as text, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(entry)
            told = []
        except Exception as error:
            told = [error]
            while (cause := told[-1].__cause__ or told[-1].__context__) is not None:
                told.append(cause)
    return [str(error) for error in told], [str(warning.message) for warning in caught]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_error_shows_what_an_entry_says(call):
    for key, entry in ENTRIES.items():
        errors, caught = outcome(call, hostile(*entry))
        assert SECRET not in " ".join([*errors, *caught]), key


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_masked_entries_do_not_warn(call):
    assert "masked element" not in " ".join(outcome(call, np.ma.masked)[1])


@pytest.mark.parametrize("by", [[SECRET] * N, (SECRET, "x"), [SECRET], ["b", SECRET]], ids=len)
def test_labels_that_are_taken_for_names_are_not_shown(by):
    for call in (
        lambda: stats.group_by(TABLE, by, {"a": "mean"}, delta=1e-6, schema=SCHEMA),
        lambda: stats.mean(TABLE, columns=by, schema=SCHEMA),
        lambda: stats.describe(TABLE, columns=by, schema=SCHEMA),
        lambda: stats.ttest_ind(TABLE, by=by, columns="a", schema=SCHEMA),
    ):
        with pytest.raises((TypeError, ValueError)) as failure:
            call()
        assert SECRET not in str(failure.value)
