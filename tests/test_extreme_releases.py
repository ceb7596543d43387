"""For any released values, no fit fails after its charge, warns of a numerical fault, or predicts what is not finite.

The results of the mechanisms are replaced by extreme ones. Noise that is added to nothing, as in objective
perturbation, is left as it is drawn: its law bounds it.
"""

import contextlib
import math
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import Category, Number, Schema, private_score, stats
from skdp.checks import silence
from skdp.mechanisms import (
    BestOfRuns,
    BinghamMechanism,
    DiscreteLaplaceMechanism,
    GridQuantiles,
    GroupChoices,
    StabilityCounts,
    TangentPlaneMechanism,
)
from skdp.mechanisms.gaussian import RoundedMechanism
from skdp.preprocessing import private_bounds
from skdp.release import mixin
from skdp.release.session import ReleaseSession
from tests.estimators import ADDITIVE, VARIANTS, data_for, declared, every_output, is_local, name_of
from tests.model_selection.stubs import NoisyCount

_HUGE = 2.0**40


def _few(places):
    """Large numbers at some places, and negative ones elsewhere."""

    def result(value, scale):
        found = np.full(value.size, -10 * scale)
        found[places(value.size)] = 1e6 * scale
        return found.reshape(value.shape)

    return result


def _wild(value, scale):
    rng = np.random.default_rng(value.size)
    return rng.choice([-1, 1], value.shape) * scale * 10.0 ** rng.uniform(-2, 12, value.shape)


#: Results of mechanisms that add noise, from the value and the scale of the noise.
RESULTS = {
    "exact": lambda value, scale: value,
    "zero": lambda value, scale: 0 * value,
    "negative": lambda value, scale: np.full(value.shape, -10 * scale),
    "equal": lambda value, scale: np.full(value.shape, 50 * scale),
    "huge": lambda value, scale: np.full(value.shape, _HUGE * scale),
    "hugely negative": lambda value, scale: np.full(value.shape, -_HUGE * scale),
    "alternating": lambda value, scale: (_HUGE * scale * (-1.0) ** np.arange(value.size)).reshape(value.shape),
    "first": _few(lambda size: 0),
    "last": _few(lambda size: -1),
    "few": _few(lambda size: np.random.default_rng(size).random(size) < 0.1),
    "wild": _wild,
}


def extreme(name, mechanism, value):
    """Return an extreme result of a mechanism. Choices are the first, the last or the middle candidate."""
    which = list(RESULTS).index(name) % 3
    if isinstance(mechanism, RoundedMechanism | DiscreteLaplaceMechanism):
        value = np.asarray(value, dtype=float)
        return np.rint(RESULTS[name](value, mechanism.scale) / mechanism.step) * mechanism.step
    if isinstance(mechanism, GroupChoices):
        n, m = np.shape(value)
        return np.full(n, (0.0, m - 1.0, float(m // 2))[which])
    if isinstance(mechanism, GridQuantiles):
        n, m = np.shape(value)
        return np.full((n, len(mechanism.levels)), (0.0, float(m), float(m // 2))[which])
    if isinstance(mechanism, BestOfRuns):
        return np.array((0.0, len(value) - 1.0, float(len(value) // 2))[which])
    if isinstance(mechanism, StabilityCounts):
        return np.full(np.shape(value), (0.0, mechanism.threshold + 1.0, _HUGE)[which])
    if isinstance(mechanism, BinghamMechanism):
        return np.full(len(value), len(value) ** -0.5) if which == 2 else np.eye(len(value))[-which]
    if isinstance(mechanism, TangentPlaneMechanism):
        return np.eye(mechanism.n_parameters)[0] * mechanism.radius * (which - 1)
    # Without noise, at epsilon = inf.
    return None


class _Loud:
    """NumPy that cannot be told to be silent."""

    def errstate(self, **kinds):
        return contextlib.nullcontext()

    def __getattr__(self, name):
        return getattr(np, name)


_LOUD = _Loud()


@contextlib.contextmanager
def released(name):
    """Hand on extreme results of every release."""
    release, steps = ReleaseSession.release, ReleaseSession.steps

    def extreme_release(session, label, value):
        mechanism = session.mechanism(label)
        drawn = release(session, label, value)
        found = None if "objective" in label and not np.any(value) else extreme(name, mechanism, value)
        assert found is None or np.shape(found) == np.shape(drawn)
        return drawn if found is None else found

    def extreme_steps(session, label, n_rows, attributes=None):
        mechanism = session.mechanism(label)

        def step(total, draw):
            drawn = draw(total)
            return extreme(name, mechanism, total) if mechanism.scale else drawn

        for rows, draw in steps(session, label, n_rows, attributes):
            yield rows, partial(step, draw=draw)

    with (
        patch.multiple(ReleaseSession, release=extreme_release, steps=extreme_steps),
        # Fits and predictions keep NumPy's messages to themselves.
        patch.object(mixin, "np", _LOUD),
        patch.object(silence, "np", _LOUD),
        np.errstate(divide="raise", invalid="raise", over="raise"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        yield


def not_finite(outputs):
    """Return the names of outputs with NaN or infinite numbers. The logarithm of a probability may be -inf."""
    found = []
    for name, output in outputs.items():
        array = np.asarray(output)
        if array.dtype.kind == "f":
            array = np.where((name == "predict_log_proba") & (array == -math.inf), 0.0, array)
            found += [] if np.isfinite(array).all() else [name]
    return found


def said(model, X, y):
    """Return what a model makes of rows."""
    outputs = every_output(model, X, y)
    for name in ("noise_std", "contributions"):
        if hasattr(model, name):
            outputs[name] = getattr(model, name)(X)
    for name in ("feature_importances_", "term_importances_"):
        if hasattr(model, name):
            outputs[name] = getattr(model, name)
    if hasattr(model, "explain_local"):
        model.explain_local(X[:3])
    if hasattr(model, "sample"):
        outputs["sample"] = model.sample(5, random_state=0)[0]
    repr(model.privacy_)
    return outputs


_PAIRS = {"interactions": "auto", "categories": dict.fromkeys(range(1, 5), 2)}

MODELS = {
    **{name_of(model): model for model in VARIANTS if not is_local(model)},
    **{
        f"{name_of(model)}-pairs": clone(model).set_params(
            interactions="auto", categories=dict.fromkeys(range(1, 5), 2)
        )
        for model in ADDITIVE
        if model.delta
    },
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_models(model):
    model = declared(model, 3).set_params(epsilon=1.0, random_state=0)
    X, y = data_for(model, 3, 40)
    for j in getattr(model, "categories", None) or {}:
        X[:, j] = X[:, j] > 0
    # Columns of one value and one label leave one occupied cell.
    equal = np.tile(X[:1], (40, 1)), np.tile(y[:1], 40)
    for name in RESULTS:
        for rows, targets in ((X, y), equal) if name == "exact" else ((X, y),):
            with released(name):
                fitted = clone(model).fit(rows, targets)
                assert not not_finite(said(fitted, X, y)), name


def test_a_fit_that_divides_by_what_is_released_is_found():
    class Inverse(NoisyCount):
        def fit(self, X, y):
            super().fit(X, y)
            self.inverse_ = 1 / np.float64(self.count_)
            return self

    X = np.zeros((5, 1))
    with released("exact"):
        Inverse().fit(X, X[:, 0])
    with released("zero"), pytest.raises(FloatingPointError, match="divide by zero"):
        Inverse().fit(X, X[:, 0])
    assert not_finite({"predict": [0.0, math.nan], "predict_log_proba": [-math.inf], "transform": [1.0]}) == ["predict"]
    assert not_finite({"predict_log_proba": [math.inf]}) == ["predict_log_proba"]


# --- statistics -------------------------------------------------------------------------------------------------------

_RNG = np.random.default_rng(0)
_TABLE = pd.DataFrame(
    {
        "size": _RNG.uniform(-1, 1, 60),
        "count": _RNG.integers(0, 5, 60).astype(float),
        "kind": _RNG.choice(["x", "y", "z"], 60),
        "side": _RNG.choice(["u", "v"], 60),
    }
)
_SCHEMA = Schema(
    {"size": (-1, 1), "count": Number(0, 5, step=1), "kind": Category(["x", "y", "z"]), "side": Category(["u", "v"])}
)
_NUMBERS = ("count", "size")


def of(name, columns, *arguments, **further):
    """A statistic of columns of the table."""
    schema = Schema({column: _SCHEMA[column] for column in columns})
    return partial(getattr(stats, name), _TABLE[list(columns)], *arguments, schema=schema, **further)


_MOMENTS = ("mean", "sum", "std", "var", "median", "covariance", "correlation", "linear_trend", "min_max")
_LABELS = (_TABLE["count"] > 2).astype(int)
_ROWS = _TABLE[["size"]].to_numpy()
_CLASSIFIER = LogisticRegression().fit(_ROWS, _LABELS)
_REGRESSOR = LinearRegression().fit(_ROWS, _TABLE["count"])
_scored = partial(private_score, _CLASSIFIER, _ROWS, _LABELS, classes=[0, 1])
_METRICS = {
    **{metric: {} for metric in ("accuracy", "neg_log_loss", "roc_auc", "average_precision", "f1", "confusion_matrix")},
    "balanced_accuracy": {"label_weights": {0: 1.0, 1: 2.0}},
}

STATISTICS = {
    **{name: of(name, _NUMBERS) for name in _MOMENTS},
    **{name: of(name, ("size",)) for name in ("ecdf", "histogram")},
    "wide": partial(stats.std, _ROWS, bounds=(-1e6, 1e6)),
    "quantile": of("quantile", _NUMBERS, [0.01, 0.5, 0.9]),
    "histogramdd": of("histogramdd", _NUMBERS),
    "count": of("count", _NUMBERS),
    "proportion": of("proportion", ("side",), "u"),
    "value_counts": of("value_counts", ("kind",)),
    "labels": partial(stats.value_counts, _TABLE[["kind"]]),
    "contingency": of("contingency", ("kind", "side")),
    "chi2_contingency": of("chi2_contingency", ("kind", "side")),
    "mannwhitneyu": of("mannwhitneyu", ("size", "side"), "side"),
    "ttest_ind": of("ttest_ind", ("size", "side"), "side"),
    "describe": of("describe", _TABLE),
    "groups": partial(stats.group_by, _TABLE, "kind", {"size": "mean", "count": "median"}, schema=_SCHEMA),
    "private_bounds": partial(private_bounds, _ROWS),
    **{f"score, {metric}": partial(_scored, metric=metric, **further) for metric, further in _METRICS.items()},
    "score, neg_mean_absolute_error": partial(
        private_score, _REGRESSOR, _ROWS, _TABLE["count"], metric="neg_mean_absolute_error", bounds_y=(0, 5)
    ),
}


@pytest.mark.sample(by=lambda statistic: statistic)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics(statistic, delta):
    if statistic == "labels" and delta == 0:
        pytest.skip("labels that are not declared need a positive delta")
    for name in RESULTS:
        with released(name):
            found = STATISTICS[statistic](epsilon=1.0, delta=delta, random_state=0)
            repr(found)
            if hasattr(found, "_repr_html_"):
                found._repr_html_()
        if statistic.startswith("score"):
            # A score is NaN if the released number of records is not positive.
            continue
        for estimate in found.values() if isinstance(found, dict) else [found]:
            numbers = estimate if isinstance(estimate, np.ndarray) else getattr(estimate, "value", 0.0)
            assert np.isfinite(np.asarray(numbers, dtype=float)).all(), name
