"""Pictures: what is in them, and what is refused."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from skdp import (
    Category,
    DPAdditiveClassifier,
    FunctionalMechLinReg,
    Number,
    ObjPertLogReg,
    OutputPertLogReg,
    Schema,
)
from skdp.inspection import AdditiveTermsDisplay, CoefficientUncertaintyDisplay

X, y = make_classification(n_samples=300, n_features=4, random_state=0)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


# --- coefficients -----------------------------------------------------------------------------------------------------


def width_over_spread(model, X, y, n_fits=40):
    """Return the width of 80 % intervals over that of the law of the coefficients."""
    coefs, widths = [], []
    for seed in range(n_fits):
        model.set_params(random_state=seed).fit(X, y)
        coefs.append(np.atleast_2d(model.coef_))
        if seed % 8 == 0:
            display = CoefficientUncertaintyDisplay.from_estimator(
                model, level=0.8, n_draws=80, random_state=10**6 + seed, plot=False
            )
            widths.append(display.upper - display.lower)
    return np.mean(widths) / (2 * 1.28 * np.std(coefs, axis=0).mean())


@pytest.mark.parametrize(("loss", "delta"), [("log_loss", 0.0), ("log_loss", 1e-5), ("huber", 1e-5)])
def test_intervals_of_output_perturbation_are_as_wide_as_the_noise(loss, delta):
    estimator = partial(OutputPertLogReg, loss=loss, data_norm=3.0, classes=[0, 1], C=0.1)
    model = estimator(epsilon=1.0, delta=delta)
    ratio = width_over_spread(model, X, y)
    # 160 coefficients in all: 6 % is a standard error.
    assert 0.75 < ratio < 1.3
    exact = estimator(epsilon=np.inf).fit(X, y)
    display = CoefficientUncertaintyDisplay.from_estimator(exact, plot=False)
    np.testing.assert_array_equal(display.lower, display.upper)


@pytest.mark.parametrize("parameters", [{"delta": 1e-5}, {"delta": 0.0}])
def test_intervals_of_the_functional_mechanism_are_as_wide_as_the_noise(parameters):
    Z, t = make_regression(n_samples=4000, n_features=4, noise=20.0, random_state=0)
    model = FunctionalMechLinReg(epsilon=5.0, bounds=(-3, 3), bounds_y=(-300, 300), **parameters)
    ratio = width_over_spread(model, Z, t)
    assert 0.75 < ratio < 1.3


def test_intervals_shrink_with_epsilon_and_vanish_without_noise():
    widths = []
    for epsilon in (0.5, 5.0, np.inf):
        model = OutputPertLogReg(epsilon=epsilon, C=0.1, data_norm=3.0, classes=[0, 1], random_state=0).fit(X, y)
        display = CoefficientUncertaintyDisplay.from_estimator(model, random_state=1, plot=False)
        widths.append(float((display.upper - display.lower).mean()))
    assert widths[0] == pytest.approx(10 * widths[1], rel=0.2)
    assert widths[2] == 0


def test_names_and_refusals():
    model = OutputPertLogReg(data_norm=3.0, classes=["no", "yes"], random_state=0).fit(X, np.array(["no", "yes"])[y])
    display = CoefficientUncertaintyDisplay.from_estimator(model, plot=False)
    assert display.feature_names == ["x0", "x1", "x2", "x3"]
    assert display.output_names == ["yes"]
    with pytest.raises(ValueError, match="feature_names must be 4 names"):
        CoefficientUncertaintyDisplay.from_estimator(model, feature_names=["a"], plot=False)
    with pytest.raises(ValueError, match="level"):
        CoefficientUncertaintyDisplay.from_estimator(model, level=1.5, plot=False)
    private = ObjPertLogReg(data_norm=3.0, classes=[0, 1], random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="ObjPertLogReg"):
        CoefficientUncertaintyDisplay.from_estimator(private, plot=False)


# --- drawing ----------------------------------------------------------------------------------------------------------


@pytest.mark.sample(every=3)
def test_pictures(pyplot):
    model = OutputPertLogReg(data_norm=3.0, classes=[0, 1], random_state=0).fit(X, y)
    display = CoefficientUncertaintyDisplay.from_estimator(model, n_draws=50)
    assert display.ax_.figure is display.figure_
    display.figure_.canvas.draw()
    ax = pyplot.subplots()[1]
    assert display.plot(ax=ax, color="tab:green").ax_ is ax


# --- curves of additive models ----------------------------------------------------------------------------------------


def additive(n_classes=2):
    model = DPAdditiveClassifier(
        epsilon=2.0, delta=1e-6, bounds=(-4, 4), n_bins=8, categories={3: 2}, classes=range(n_classes), random_state=0
    )
    rows = np.column_stack([X[:, :3], X[:, 3] > 0])
    return model.fit(rows, y if n_classes == 2 else np.arange(len(y)) % 3), rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_panel_for_each_column(pyplot, n_classes):
    model, rows = additive(n_classes)
    display = AdditiveTermsDisplay.from_estimator(model, n_cols=3)
    assert len(display.axes_) == 4
    assert [ax.get_title() for ax in display.axes_] == ["x0", "x1", "x2", "x3"]
    outputs = 1 if n_classes == 2 else 3
    # There are eight cells for each bin.
    assert display.terms[0].shape == (64, outputs)
    assert [tick.get_text() for tick in display.axes_[3].get_xticklabels()] == ["0", "1"]
    assert display.figure_ is display.axes_[0].figure
    # The band is no wider than what holds for all records.
    for noise, most in zip(display.noise, display.most_noise, strict=True):
        assert np.all((noise > 0) & (noise <= most * (1 + 1e-9)))
    assert display.reach == pytest.approx(1.96, abs=0.001)
    assert display.most_reach > display.reach
    some = AdditiveTermsDisplay.from_estimator(model, rows, columns=["x2", 0], level=0.5, bound=False)
    assert some.term_names == ["x2", "x0"]


@pytest.mark.parametrize("sharey", [True, False])
def test_the_axis_follows_the_curves_and_not_the_bands(pyplot, sharey):
    model, _ = additive(2)
    display = AdditiveTermsDisplay.from_estimator(model, plot=False)
    display.most_noise = [np.full(term.shape, 100 * np.ptp(term)) for term in display.terms]
    display.plot(sharey=sharey)
    pyplot.gcf().canvas.draw()
    for ax, term in zip(display.axes_, display.terms, strict=True):
        low, high = ax.get_ylim()
        shown = np.concatenate(display.terms) if sharey else term
        assert low <= min(shown.min(), 0) <= max(shown.max(), 0) <= high
        assert high - low <= 1.2 * (max(shown.max(), 0) - min(shown.min(), 0)) + 1e-9


@pytest.mark.parametrize(("n_classes", "labels"), [(2, []), (3, ["0", "1", "2"])])
def test_bands_and_missing_values_have_a_legend(pyplot, n_classes, labels):
    model, rows = additive(n_classes)
    display = AdditiveTermsDisplay.from_estimator(model, level=0.9)
    bands = [
        "90% interval of the noise alone, estimated\nfor independent columns; not the curve's error",
        "largest interval of the noise alone\nfor any records",
        "band goes on",
    ]
    [legend] = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == [*labels, *bands]
    assert not legend.get_title().get_text()
    display.noise = [np.zeros_like(noise) for noise in display.noise]
    display.plot(pyplot.subplots(2, 2)[1], bound=False)
    assert [text.get_text() for text in display.axes_[0].get_legend().get_texts()] == [*labels, *bands[:1]]
    given = AdditiveTermsDisplay.from_estimator(model, rows, level=0.9)
    assert "for the given rows; not" in given.figure_.legends[0].get_texts()[len(labels)].get_text()


def test_arrows_mark_bands_that_leave_a_panel(pyplot):
    model, _ = additive(2)
    display = AdditiveTermsDisplay.from_estimator(model, plot=False)
    display.noise = [np.zeros_like(noise) for noise in display.noise]
    display.most_noise = [np.zeros_like(noise) for noise in display.most_noise]
    display.most_noise[1][5] = 100.0
    display.noise[3][1] = 100.0
    display.plot()
    for j, (ax, edges) in enumerate(zip(display.axes_, display.bin_edges, strict=True)):
        arrows = {line.get_marker(): line.get_xdata() for line in ax.lines if line.get_marker() in ("^", "v")}
        assert set(arrows) == ({"^", "v"} if j == 1 else set())
        if j == 1:
            assert all(edges[5] < x[0] < edges[6] for x in arrows.values())
    display.plot(bound=False)
    assert [any(line.get_marker() == "^" for line in ax.lines) for ax in display.axes_] == [False] * 3 + [True]


def test_the_legend_names_tables_that_are_not_drawn(pyplot):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 3))
    pairs = [(0, 1), (1, 2)]
    model = DPAdditiveClassifier(epsilon=2.0, delta=1e-6, bounds=(-1, 1), classes=[0, 1], interactions=pairs)
    display = AdditiveTermsDisplay.from_estimator(model.fit(rows, rows[:, 0] > 0), columns=[0])
    title = display.figure_.legends[0].get_title().get_text()
    assert title == "Not drawn, see terms_: 2 of several columns,\nx0 x x1, x1 x x2"


def test_the_point_of_missing_values_is_named_and_not_cut_off(pyplot):
    schema = Schema({"age": (18, 90), "work": ["a", "b"]}, target={"paid": ["no", "yes"]})
    model = DPAdditiveClassifier(schema=schema, random_state=0).fit(schema.sample(300))
    display = AdditiveTermsDisplay.from_estimator(model)
    [handle] = [handle for handle in display.figure_.legends[0].legend_handles if handle.get_label() == "missing"]
    # Only points of missing values look like the point in the legend.
    assert handle.get_markerfacecolor() == "none"
    hollow = [line.get_markerfacecolor() == "none" for line in display.axes_[1].lines if line.get_marker() == "o"]
    assert display.cell_names[1] == ["a", "b", "not in list", "missing"]
    assert hollow == [False, False, False, True]
    (points,) = [line for line in display.axes_[0].lines if line.get_marker() == "o"]
    assert not points.get_clip_on()
    assert len(points.get_xdata()) == 1


def test_columns_beyond_the_panels_are_named():
    rows = np.zeros((50, 38))
    model = DPAdditiveClassifier(epsilon=2.0, bounds=(-1, 1), n_bins=2, classes=[0, 1], random_state=0)
    model.fit(rows, np.arange(50) % 2)
    with pytest.warns(UserWarning, match="first 36 of 38 columns.*left out: x36, x37. Pass columns"):
        display = AdditiveTermsDisplay.from_estimator(model, plot=False)
    assert len(display.terms) == 36
    display = AdditiveTermsDisplay.from_estimator(model, columns=range(38), plot=False)
    assert display.term_names[-1] == "x37"


LOGARITHMIC = Schema(
    {
        "income": Number(100, 1e6, scale="log"),
        "gain": Number(0, 99_999, scale="log", step=2),
        "age": Number(18, 90),
        "size": Category(["s", "m"], ordered=True),
    },
    [0, 1],
)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_columns_with_a_logarithmic_scale_have_such_an_axis(pyplot, delta):
    table = LOGARITHMIC.sample(500, seed=0)
    labels = np.arange(500) % 2
    model = DPAdditiveClassifier(schema=LOGARITHMIC, n_bins=8, delta=delta)
    display = AdditiveTermsDisplay.from_estimator(model.fit(table, labels), columns=list(LOGARITHMIC))
    assert [ax.get_xscale() for ax in display.axes_] == ["log", "symlog", "linear", "linear"]
    assert display.x_scales[1] == {"value": "symlog", "linthresh": 2.0}
    for ax, edges, names, column in zip(
        display.axes_, display.bin_edges, display.cell_names, LOGARITHMIC.values(), strict=True
    ):
        if isinstance(column, Category):
            assert edges is None
            continue
        # Edges are in the units of the column.
        inner = edges[:-1] if names[-1] == "missing" else edges
        assert (inner[0], inner[-1]) == pytest.approx((column.low, column.high))
        assert np.all(np.diff(inner) > 0)
        if names[-1] == "missing":
            (point,) = next(line for line in ax.lines if line.get_marker() == "o").get_xdata()
            to_axis = ax.xaxis.get_transform().transform
            low, high, place = to_axis(np.array([column.low, column.high, point]))
            assert place == pytest.approx(high + 0.06 * (high - low))
        if delta == 0 and column.scale == "log" and column.low > 0:
            widths = np.diff(np.log(inner))
            np.testing.assert_allclose(widths, widths[0])
        ax.figure.canvas.draw()


def test_bands_of_additive_models_narrow_with_the_budget():
    widths = []
    for epsilon in (1.0, 10.0):
        model, rows = additive()
        # Steps would shrink curves that noise hides, and their noise.
        model.set_params(epsilon=epsilon, delta=0.0).fit(rows, y)
        widths.append(np.mean(AdditiveTermsDisplay.from_estimator(model, rows, plot=False).noise[0]))
    assert widths[1] < widths[0]


def test_curves_are_refused_where_there_are_none(pyplot):
    model, rows = additive()
    with pytest.raises(TypeError, match="DPAdditiveClassifier"):
        AdditiveTermsDisplay.from_estimator(OutputPertLogReg(data_norm=3.0, classes=[0, 1]).fit(X, y))
    with pytest.raises(ValueError, match="columns"):
        AdditiveTermsDisplay.from_estimator(model, columns=["town"])
    with pytest.raises(ValueError, match="columns"):
        AdditiveTermsDisplay.from_estimator(model, columns=[4])
    with pytest.raises(ValueError, match="level"):
        AdditiveTermsDisplay.from_estimator(model, level=1.5)
    with pytest.raises(ValueError, match="level"):
        AdditiveTermsDisplay.from_estimator(model, level=1)
    with pytest.raises(ValueError, match="X must have at least one row"):
        AdditiveTermsDisplay.from_estimator(model, rows[:0])
    with pytest.raises(ValueError, match="axes"):
        AdditiveTermsDisplay.from_estimator(model, axes=[pyplot.subplots()[1]])
