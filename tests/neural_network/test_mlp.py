"""Private networks: what they compute, their parameters, and how well they learn."""

import math

import numpy as np
import pytest
from scipy import special
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skdp import DPMLPClassifier, DPMLPRegressor
from skdp.neural_network._gradients import GradientSums, Layout
from skdp.neural_network._network import Adam, initial_normals, initial_weights, scaled_rows
from skdp.release.session import ReleaseSession
from skdp.solvers.calibration import LABEL, Calibration, Line
from skdp.solvers.regularised import Scaling
from skdp.solvers.target_range import Located, TargetRange
from tests.difficult import difficult
from tests.linear_model.data import blobs

TINY = {"epsilon": 50.0, "data_norm": 4.0, "n_steps": 20, "random_state": 0}


def classifier(hidden=(5,), **parameters):
    return DPMLPClassifier(hidden, **{**TINY, "classes": [0, 1], **parameters})


def regressor(hidden=(5,), **parameters):
    return DPMLPRegressor(hidden, **{**TINY, "bounds_y": (-10, 10), **parameters})


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order[:1437]], y[order[:1437]], X[order[1437:]], y[order[1437:]]


# --- what is computed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [7, (7,), [4, 3], ()])
def test_shapes_are_those_of_scikit_learn(hidden):
    X, y = blobs(3)
    ours = classifier(hidden, classes=[0, 1, 2]).fit(X, y)
    theirs = MLPClassifier(hidden or (2,), max_iter=1)
    if hidden != ():
        with pytest.warns(match="iterations"):
            theirs.fit(X, y)
        assert [c.shape for c in ours.coefs_] == [c.shape for c in theirs.coefs_]
        assert [c.shape for c in ours.intercepts_] == [c.shape for c in theirs.intercepts_]
        assert (ours.n_layers_, ours.n_outputs_) == (theirs.n_layers_, theirs.n_outputs_)
        assert ours.out_activation_ == theirs.out_activation_
    assert classifier(hidden).fit(X, np.minimum(y, 1)).out_activation_ == "logistic"
    assert regressor(hidden).fit(X, y).out_activation_ == "identity"


def test_predictions_are_made_of_weights_in_original_units():
    X, y = blobs(3)
    model = classifier((6, 4), classes=[0, 1, 2]).fit(X, y)
    a = X
    for coef, intercept in zip(model.coefs_, model.intercepts_, strict=True):
        z = a @ coef + intercept
        a = np.tanh(z)
    # Gradients are clipped to 2, and the last layer has 4 + 1 inputs.
    power = 1 - 2 / 3 * max(0.0, 0.72 - 2 / math.sqrt(2 * 5))
    np.testing.assert_allclose(model.predict_proba(X), special.softmax(power * z, axis=1), rtol=1e-9)


def test_probabilities_are_less_extreme_than_outputs():
    """A tenth of the labels is wrong, so that the best probabilities are .1 and .9."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    y = (X[:, 0] > 0) ^ (rng.random(2000) < 0.1)
    model = classifier((16,), data_norm=2**0.5, max_grad_norm=0.5, n_steps=200).fit(X, y)
    outputs = model._outputs(X)[:, 0]
    losses = [-np.log(np.where(y, p, 1 - p)).mean() for p in (model.predict_proba(X)[:, 1], special.expit(outputs))]
    assert losses[0] < losses[1] - 0.05
    np.testing.assert_array_equal(model.predict(X), outputs > 0)


def test_units_do_not_matter():
    X, y = blobs()
    one, other = classifier().fit(X, y), classifier(data_norm=32.0).fit(8 * X, y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(8 * X), rtol=1e-9)
    targets = X[:, 0]
    one, other = regressor().fit(X, targets), regressor(bounds_y=(-80, 80)).fit(X, 8 * targets)
    np.testing.assert_allclose(one.predict(X) * 8, other.predict(X), rtol=1e-6)


def test_several_targets_and_one_column_are_kept_apart():
    X, _ = blobs()
    Y = np.column_stack([X[:, 0], -X[:, 1]])
    assert regressor().fit(X, Y).predict(X).shape == Y.shape
    assert regressor().fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)
    assert regressor().fit(X, Y[:, 0]).predict(X).shape == (len(X),)
    model = regressor(bounds_y=([-1, -2], [1, 2]))
    assert model.privacy_plan(n_features=5) == model.fit(X, Y).privacy_
    with pytest.raises(ValueError, match="bounds_y"):
        model.fit(X, np.column_stack([Y, Y]))


def test_targets_are_clipped():
    X, _ = blobs()
    y = np.clip(X[:, 0], -1.1, 1.1)
    one = regressor(bounds_y=(-1, 1)).fit(X, y)
    y[y > 1] = 1e200
    np.testing.assert_array_equal(one.predict(X), regressor(bounds_y=(-1, 1)).fit(X, y).predict(X))


def test_rows_are_multiples_of_a_step_and_short_enough():
    X = np.random.default_rng(0).normal(size=(50, 7)) * np.logspace(-3, 3, 50)[:, None]
    rows, step = scaled_rows(X, 2.0)
    np.testing.assert_array_equal(rows, np.rint(rows / step) * step)
    assert np.abs(rows).max() <= 2**20 * step
    assert (rows[:, -1] == 1).all()
    lengths = np.linalg.norm(rows[:, :-1], axis=1)
    assert lengths.max() <= math.sqrt(7)
    np.testing.assert_allclose(lengths, np.minimum(np.linalg.norm(X, axis=1) / 2, 1) * math.sqrt(7), atol=1e-4)


def adam(layout, weights, n_steps, rate, average=0.0, decays=False):
    return Adam(layout, weights, n_steps, learning_rate=rate, average=average, decays=decays)


@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize("average", [0.0, 0.3, 1.0])
def test_adam_is_the_textbooks(decays, average):
    rng = np.random.default_rng(0)
    layout = Layout((3, 2, 1))
    start = initial_weights(layout, rng.normal(size=layout.size))
    descent = adam(layout, start.copy(), 10, 0.1, average, decays)
    w, first, second, path = start.copy(), 0.0, 0.0, []
    width = np.concatenate([np.full(8, 3.0), np.full(3, 2.0)])
    for t in range(1, 11):
        g = rng.normal(size=layout.size)
        descent.step(g.copy())
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        rate = 0.1 * (1 - (t - 1) / 10) ** 2 if decays else 0.1
        w = w - rate / np.sqrt(width) * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        path.append(w)
        if t == 2 and average < 1:
            np.testing.assert_allclose(descent.result(), w, rtol=1e-10)
    np.testing.assert_allclose(descent.weights, w, rtol=1e-10)
    last = {0.0: 1, 0.3: 3, 1.0: 10}[average]
    np.testing.assert_allclose(descent.result(), np.mean(path[-last:], axis=0), rtol=1e-10)


def test_no_descent_diverges():
    rng = np.random.default_rng(0)
    layout = Layout((3, 2, 1))
    descent = adam(layout, rng.normal(size=layout.size), 50, 1e6, 0.5)
    for _ in range(50):
        descent.step(1e9 * rng.normal(size=layout.size))
        assert np.abs(descent.weights).max() <= 2**20
    descent.step(np.full(layout.size, np.nan))
    assert np.isfinite(descent.weights).all()
    assert np.isfinite(descent.result()).all()


FIERCE = {
    "noise": (
        (4, 4),
        {"epsilon": 0.1, "learning_rate_init": 2e5, "max_grad_norm": 1e-6, "average": 0}
        | {"batch_size": 1.0, "expected_n": 1e10},
    ),
    "deep": ((8,) * 100, {"batch_size": 1.0, "expected_n": 10, "n_steps": 5}),
    "deep adam": ((8,) * 45, {"learning_rate_init": 1e6}),
    "deep, long": ((8,) * 24, {"learning_rate_init": 1e6, "max_grad_norm": 1e6}),
}


@pytest.mark.parametrize("case", FIERCE)
def test_no_record_makes_a_model_that_is_not_finite(case):
    hidden, parameters = FIERCE[case]
    X, y = np.ones((50, 3)), np.arange(50) % 2
    for rows, labels in ((X, y), (np.r_[X, np.zeros((1, 3))], np.r_[y, 1]), (X[:0], y[:0])):
        model = classifier(hidden, data_norm=2.0, **{"epsilon": 8.0, **parameters})
        model.fit(rows, labels)
        assert all(np.isfinite(values).all() for values in [*model.coefs_, *model.intercepts_])
        assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("make", [classifier, regressor])
def test_tiny_and_huge_entries_raise_nothing(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) * np.resize([1e-310, 1e-160, 1.0, 1e160, 1e307], (30, 4))
    y = np.arange(30) % 2
    model = make(data_norm=1e3, n_steps=3)
    model.fit(X, y)
    targets = y if make is classifier else y * np.resize([1e-310, 1.0, 1e300], 30)
    with np.errstate(all="raise"):
        model.fit(X, targets)
    assert np.isfinite(model.coefs_[0]).all()


def test_initial_weights_have_their_own_stream_and_are_new_without_a_seed():
    from skdp.mechanisms import NoiseSource

    seeded = initial_normals(2000, NoiseSource(3).stream("initial weights"))
    np.testing.assert_array_equal(seeded, initial_normals(2000, NoiseSource(3).stream("initial weights")))
    assert not np.array_equal(
        initial_normals(50, NoiseSource(None).stream("initial weights")),
        initial_normals(50, NoiseSource(None).stream("initial weights")),
    )
    assert abs(seeded.mean()) < 0.15
    assert abs(seeded.std() - 1) < 0.1
    layout = Layout((100, 50, 1))
    weights = layout.parts(
        initial_weights(layout, initial_normals(layout.size, NoiseSource(0).stream("initial weights")))
    )
    assert weights[0][:-1].std() == pytest.approx(0.1, rel=0.05)
    assert not weights[0][-1].any()


# --- sampling -----------------------------------------------------------------------------------------------------


def test_sums_are_divided_by_public_numbers_alone(monkeypatch):
    # The gradients of 2n equal records under expected_n=n are twice those of n: no division by the sample.
    found = []
    steps = ReleaseSession.steps

    def reading(session, label, n_rows, attributes=None):
        for rows, release in steps(session, label, n_rows, attributes):

            def read(total, release=release):
                found.append(total.copy())
                return release(total)

            yield rows, read

    monkeypatch.setattr(ReleaseSession, "steps", reading)
    X, y = np.full((8, 2), 0.5), np.ones(8, dtype=int)
    for n in (4, 8):
        classifier(n_steps=1, batch_size=1.0, expected_n=4).fit(X[:n], y[:n])
    np.testing.assert_allclose(found[1], 2 * found[0], rtol=1e-12)


def test_an_empty_sample_is_a_step_like_any_other(monkeypatch):
    taken = []
    whole = GradientSums.sum

    def counting(sums, rows, out):
        taken.append(None if rows is None else len(rows))
        return whole(sums, rows, out)

    monkeypatch.setattr(GradientSums, "sum", counting)
    X, y = blobs(n_rows=3)
    model = classifier(batch_size=0.1, n_steps=30).fit(X, y)
    assert len(taken) == 30
    assert 0 in taken
    assert all(np.isfinite(c).all() for c in model.coefs_)


def test_callbacks_are_told_how_far_it_is_and_nothing_of_the_data():
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    told = []

    class Listener:
        def setup(self, *args, **kwargs):
            pass

        def on_fit_task_begin(self, *args, **kwargs):
            told.append(kwargs)

        def on_fit_task_end(self, *args, **kwargs):
            told.append(kwargs)

        def teardown(self, *args, **kwargs):
            pass

    for n_rows in (0, 400):
        X, y = blobs(n_rows=400)
        told.clear()
        classifier(n_steps=30).set_callbacks(Listener()).fit(X[:n_rows], y[:n_rows])
        # Begin and end of the number of records, of 30 steps, of the gradients, and of the whole.
        assert len(told) == 66
        assert not any(told)


@pytest.mark.parametrize(
    ("parameters", "rate", "n_steps"),
    [
        ({}, 0.1, 20),
        ({"n_steps": None}, 0.1, 1000),
        ({"n_steps": None, "expected_n": 10**6}, 0.016384, 1000),
        ({"expected_n": 1000}, 0.1, 20),
        ({"batch_size": 50, "expected_n": 1000}, 0.05, 20),
        ({"batch_size": 5000, "expected_n": 1000}, 1.0, 20),
        ({"batch_size": 0.25, "n_steps": None, "epochs": 3}, 0.25, 12),
    ],
    ids=str,
)
def test_course_is_public(parameters, rate, n_steps):
    (release,) = classifier(**{"expected_n": 10, **parameters}).privacy_plan(n_features=3).releases
    assert release.mechanism.rate == rate
    assert release.mechanism.n_steps == n_steps
    assert release.mechanism.size == 4 * 5 + 6
    assert release.sensitivity == 2.0
    if "expected_n" not in parameters:
        assert len(classifier(**parameters).privacy_plan(n_features=3).releases) == 2


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("delta", 0.0, ValueError),
        ("hidden_layer_sizes", (3, 0), ValueError),
        ("hidden_layer_sizes", 10**6, ValueError),
        ("hidden_layer_sizes", (8,) * 101, ValueError),
        ("hidden_layer_sizes", 2.5, TypeError),
        ("hidden_layer_sizes", "ab", TypeError),
        ("max_grad_norm", 0, ValueError),
        ("max_grad_norm", "automatic", TypeError),
        ("batch_size", 100, ValueError),
        ("batch_size", 1.5, ValueError),
        ("n_steps", 0, ValueError),
        ("epochs", 3, ValueError),
        ("expected_n", 0, ValueError),
        ("learning_rate_init", -1, ValueError),
        ("average", 2, ValueError),
        ("average", True, TypeError),
        ("bounds_y", None, ValueError),
        ("loss", "absolute_error", ValueError),
    ],
)
def test_bad_parameters_are_named(name, value, error):
    X, y = blobs()
    for model in (classifier(), regressor()):
        if name in model.get_params():
            with pytest.raises(error, match=name):
                clone(model).set_params(**{name: value}).fit(X, y)


# --- learning -----------------------------------------------------------------------------------------------------


def test_without_noise_it_learns_like_scikit_learns(digits):
    X, y, X_test, y_test = digits
    ours = DPMLPClassifier((32,), epsilon=math.inf, data_norm=80.0, classes=range(10), random_state=0).fit(X, y)
    theirs = MLPClassifier((32,), activation="tanh", random_state=0, max_iter=30, learning_rate_init=0.01)
    with pytest.warns(match="iterations"):
        theirs.fit(X / 16, y)
    assert ours.score(X_test, y_test) >= theirs.score(X_test, y_test) - 0.015
    assert ours.score(X_test, y_test) >= 0.965


@pytest.mark.parametrize(
    ("parameters", "least"),
    [
        ({}, 0.92),
        ({"hidden_layer_sizes": (32, 16)}, 0.85),
    ],
    ids=str,
)
def test_digits(digits, parameters, least):
    # One fit each; standard deviations are about 0.01, and means lie 0.02 or more above these floors.
    X, y, X_test, y_test = digits
    model = DPMLPClassifier(epsilon=3.0, data_norm=80.0, classes=range(10), random_state=0, n_steps=400)
    assert model.set_params(**parameters).fit(X, y).score(X_test, y_test) >= least


def test_predictions_are_corrected_by_the_lines_of_the_last_release(monkeypatch):
    X, _ = blobs()
    Y = np.column_stack([X[:, 0], -X[:, 1]])
    model = regressor(bounds_y=([-10, 0], [10, 40]))

    def with_lines(*lines):
        monkeypatch.setattr(Calibration, "lines", lambda self, session, f, t: session.release(LABEL, []) and lines)
        return model.fit(X, Y).predict(X)

    monkeypatch.setattr(ReleaseSession, "release", lambda self, label, values: [True])
    scaling = Scaling.of(model._check_parameters().bounds_y, "bounds_y", 2, True)
    all_bounds = Located(scaling, np.zeros(2), np.zeros(2), float(len(X)))
    monkeypatch.setattr(TargetRange, "located", lambda self, session, y, targets: all_bounds)
    plain = with_lines(Line(), Line())
    corrected = with_lines(Line(0.5, 0.1), Line(2.0, -0.2))
    expected = [0.5 * plain[:, 0] + 1.0, 2.0 * (plain[:, 1] - 20) + 20 - 4.0]
    # Predictions are within the bounds.
    expected = np.clip(np.column_stack(expected), [-10, 0], [10, 40])
    np.testing.assert_allclose(corrected, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_targets_that_fill_little_of_their_bounds(seed):
    # A mean of four draws was -0.4 with steps of one length, and is 0.08.
    table = difficult("heavy_tailed_target", 4500, seed)
    lower, upper = table.bounds
    X, y = 2 * (table.X - lower) / (upper - lower) - 1, table.target
    mean, variance = y[:3000].mean(), max(y[3000:].var(), 4.0)
    gaps = []
    for k in range(4):
        model = DPMLPRegressor(
            (16,),
            epsilon=1.0,
            delta=1e-6,
            data_norm=5**0.5,
            bounds_y=table.target_bounds,
            expected_n=2000,
            random_state=k,
        )
        errors = (y[3000:] - model.fit(X[:3000], y[:3000]).predict(X[3000:])) ** 2
        gaps.append(np.mean((y[3000:] - mean) ** 2 - errors) / variance)
    assert np.mean(gaps) > -0.1, gaps


def test_a_curve_is_learnt():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    model = DPMLPRegressor((16,), epsilon=math.inf, data_norm=1.5, bounds_y=(-1, 1), random_state=0, n_steps=500)
    assert model.set_params(learning_rate_init=0.2).fit(X, y).score(X, y) > 0.9
    # No linear model does.
    assert model.set_params(hidden_layer_sizes=()).fit(X, y).score(X, y) < 0.3
