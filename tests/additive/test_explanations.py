"""Explanations, edits and exports of fitted additive models are functions of what was released."""

import json

import numpy as np
import pytest

from skdp import Category, DPAdditiveClassifier, DPAdditiveRegressor, Number, Schema

RNG = np.random.default_rng(0)
N = 3000
SCHEMA = Schema(
    {"age": Number(0, 100), "size": Category(["s", "m", "l"], ordered=True), "work": ["a", "b"]}, target=["no", "yes"]
)
TABLE = {
    "age": RNG.uniform(0, 100, N),
    "size": RNG.choice(["s", "m", "l"], N),
    "work": RNG.choice(["a", "b"], N),
}
LABELS = np.where(TABLE["age"] + 20 * RNG.normal(size=N) > 50, "yes", "no")
ROWS = {"age": [20, None, 90], "size": ["s", "l", "xl"], "work": ["a", None, "c"]}


def model(**parameters):
    return DPAdditiveClassifier(schema=SCHEMA, n_bins=8, epsilon=3.0, delta=1e-6, random_state=0, **parameters).fit(
        TABLE, LABELS
    )


MODEL = model()


def test_contributions_add_up_to_the_score():
    explained = MODEL.explain_local(ROWS)
    np.testing.assert_allclose([sum(own.values()) for own in explained], MODEL.decision_function(ROWS))
    first = explained[0]
    assert list(first)[-1] == "intercept"
    sizes = [abs(value) for name, value in first.items() if name != "intercept"]
    assert sizes == sorted(sizes, reverse=True)


def test_several_classes_are_explained():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (500, 2))
    several = DPAdditiveClassifier(bounds=(0, 1), classes=[0, 1, 2], n_bins=4, delta=1e-6, random_state=0)
    several.fit(X, rng.integers(0, 3, 500))
    own = several.explain_local(X[:1])[0]
    scores = [sum(value[label] for value in own.values()) for label in (0, 1, 2)]
    np.testing.assert_allclose(scores, several.decision_function(X[:1])[0])
    assert list(own["intercept"]) == [0, 1, 2]
    with pytest.raises(ValueError, match="is not a single curve"):
        several.monotone({"x0": 1})


@pytest.mark.parametrize("direction", [1, -1])
def test_curves_can_be_made_monotone(direction):
    edited = MODEL.monotone({"age": direction, "size": direction})
    assert MODEL.cell_names_[0][-1] == "missing"
    for place, n_steps in ((0, 8), (1, 5 - 1)):
        steps = np.diff(edited.terms_[place][:n_steps]) * direction
        assert np.all(steps >= 0)
        assert edited.terms_[place][-1] == MODEL.terms_[place][-1]
    assert edited.privacy_ == MODEL.privacy_
    # The first model stays as it was.
    assert np.array_equal(MODEL.terms_[0], model().terms_[0])
    ages = {"age": np.linspace(0, 100, 50), "size": ["s"] * 50, "work": ["a"] * 50}
    assert np.all(np.diff(edited.decision_function(ages)) * direction >= 0)


def test_weights_of_cells_are_released_counts():
    own = model()
    own.terms_ = [np.append(np.array([3.0, 0, 4, 5, 6, 7, 8, 9]), 1.0), *own.terms_[1:]]
    own.cell_counts_[0] = np.array([300.0, 100, 1, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(own.monotone({"age": 1}).terms_[0][:3], [2.25, 2.25, 4.0])


def test_a_term_can_be_edited():
    edited = MODEL.with_term("work", [0.0, 1.0, 0.0, 0.0])
    difference = edited.decision_function(ROWS) - MODEL.with_term("work", np.zeros(4)).decision_function(ROWS)
    assert np.allclose(difference, 0)
    row = {"age": [50], "size": ["s"], "work": ["b"]}
    moved = edited.decision_function(row)[0] - MODEL.with_term("work", np.zeros(4)).decision_function(row)[0]
    assert moved == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: MODEL.with_term("work", [1.0]), "values must be finite numbers of shape"),
        (lambda: MODEL.with_term("job", [1.0]), "there is no term 'job'; the terms are 'age', 'size', 'work'"),
        (lambda: MODEL.monotone({"work": 1}), "the term 'work' is not a single curve"),
        (lambda: MODEL.monotone({"age": 2}), "directions must be 1 or -1, got 2 for 'age'"),
    ],
)
def test_edits_that_make_no_sense_are_refused(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_json_says_all_that_predictions_need(tmp_path):
    text = MODEL.to_json(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text() == text + "\n"
    content = json.loads(text)
    assert content["classes"] == ["no", "yes"]
    score = content["intercept"]
    age, size, work = content["terms"]
    # A row of 20 years, size m, work b.
    score = np.ravel(score)[0]
    [column] = age["columns"]
    score += age["values"][np.searchsorted(column["edges"][1:-1], 20, side="left")]
    score += size["values"][size["columns"][0]["cells"].index("m")]
    score += work["values"][work["columns"][0]["cells"].index("b")]
    row = {"age": [20], "size": ["m"], "work": ["b"]}
    assert score == pytest.approx(MODEL.decision_function(row)[0])
    assert "edges" not in work["columns"][0]


def test_a_regression_is_exported():
    X = RNG.uniform(0, 1, (300, 2))
    regression = DPAdditiveRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins=4, delta=1e-6, random_state=0)
    content = json.loads(regression.fit(X, X[:, 0]).to_json())
    assert content["classes"] is None
    assert (content["link"], content["offset"]) == (regression.link_, regression.offset_)
    assert content["privacy"].startswith("(epsilon=1")
    # Predictions beyond the range of the targets are clipped.
    steep = regression.with_term("x0", np.linspace(-100, 100, len(regression.terms_[0])))
    predicted = steep.predict(X)
    low, high = json.loads(steep.to_json())["range"]
    assert low <= predicted.min()
    assert high == predicted.max()
