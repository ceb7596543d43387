"""Log-odds of scores with clipped derivatives, and the shrinkage of curves: by brute force.

Nothing is left to chance: seeds are fixed.
"""

import math

import numpy as np
import pytest
from scipy import optimize, special

from skdp import DPAdditiveClassifier
from skdp.additive import _features
from skdp.additive._cells import bins_of
from skdp.additive._curves import Directions, GradientEngine, Link, shrunk
from skdp.additive._features import Centred, GroupedLayout
from skdp.schema.columns import Columns
from skdp.schema.declared import Grid
from skdp.schema.entries import Categories
from skdp.solvers.linear_descent import probabilities
from skdp.solvers.losses import LogLoss, SoftmaxLogLoss

CLIP = 0.5

LINKS = {"none": Link(), "clip": Link(most=CLIP), "half of it": Link(most=0.25)}
EVERY_LINK = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)

# --- log-odds ---------------------------------------------------------------------------------------------------------


@EVERY_LINK
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.63, 0.97])
def test_log_odds_of_two_classes_invert_the_best_score(link, share):
    """The score at which the clipped derivatives of the records of a cell add up to 0."""

    def total(s):
        first, second = special.expit(-s), special.expit(s)
        return share * min(first, link.most) - (1 - share) * min(second, link.most)

    score = optimize.brentq(total, -60, 60, xtol=1e-13)
    found = special.expit(link.logits(np.array([score])))[0]
    assert found == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("most", [0.5 * math.sqrt(2), 0.4, math.inf])
@pytest.mark.parametrize("shares", [[0.2, 0.3, 0.5], [0.9, 0.06, 0.04], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
def test_log_odds_of_several_classes_invert_the_best_scores(most, shares):
    shares, link = np.array(shares), Link(most=most)
    identity = np.eye(len(shares))

    def total(scores):
        p = special.softmax(np.append(scores, 0.0))
        derivatives = identity - p
        lengths = np.linalg.norm(derivatives, axis=1)
        return (shares * np.minimum(1.0, most / lengths)) @ derivatives

    found = optimize.root(lambda s: total(s)[:-1], np.log(shares[:-1] / shares[-1]), tol=1e-13)
    np.testing.assert_allclose(total(found.x), 0, atol=1e-9)
    p = probabilities(link.logits(np.append(found.x, 0.0)[None]))[0]
    np.testing.assert_allclose(p, shares, atol=1e-7)


@EVERY_LINK
def test_log_odds_of_two_classes_have_the_order_and_the_signs_of_scores(link):
    scores = np.linspace(-40, 40, 1601)
    found = link.logits(scores)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) >= -1e-12)
    np.testing.assert_allclose(found, -found[::-1], atol=1e-9)
    assert np.all(found * scores >= -1e-9)


@pytest.mark.parametrize("most", [0.5 * math.sqrt(2), math.inf])
def test_the_most_probable_class_has_the_largest_score(most):
    scores = 5 * np.random.default_rng(0).standard_normal((4000, 4))
    found = Link(most=most).logits(scores)
    np.testing.assert_array_equal(np.argsort(found, axis=1), np.argsort(scores, axis=1))


@EVERY_LINK
def test_slopes_are_derivatives(link):
    # Scores without a kink, which is at 0 with a clip at a half.
    scores, h = np.array([-4.0, -1.3, -0.4, 0.3, 0.7, 1.6, 5.0]), 1e-6
    numerical = (link.logits(scores + h) - link.logits(scores - h)) / (2 * h)
    np.testing.assert_allclose(link.slope(scores), numerical, atol=1e-8)


@pytest.mark.parametrize("most", [0.5, 0.3, math.inf])
def test_moments_of_two_classes_are_those_of_records(most):
    rng = np.random.default_rng(0)
    link, scores = Link(most=most), rng.normal(scale=2, size=400_000)
    labels = rng.random(len(scores)) < special.expit(link.logits(scores))

    def derivatives(s):
        return np.clip(np.where(labels, -special.expit(-s), special.expit(s)), -most, most)

    curvature, square = link.clipped_moments(scores)
    h = 1e-4
    slopes = (derivatives(scores + h) - derivatives(scores - h)) / (2 * h)
    assert square == pytest.approx(np.mean(derivatives(scores) ** 2), rel=0.01)
    assert curvature == pytest.approx(slopes.mean(), rel=0.02)


def test_moments_of_several_classes_are_about_those_of_records():
    rng = np.random.default_rng(0)
    scores, most = rng.normal(size=(50_000, 3)), 0.5 * math.sqrt(2)
    link = Link(most=most)
    p = probabilities(link.logits(scores))
    labels = (rng.random(len(scores))[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    derivatives = np.eye(3)[labels] - probabilities(scores)
    derivatives *= np.minimum(1.0, most / np.linalg.norm(derivatives, axis=1))[:, None]
    _, square = link.clipped_moments(scores)
    assert square == pytest.approx(np.mean(derivatives**2), rel=0.02)


# --- directions -------------------------------------------------------------------------------------------------------


def features_of(counts, categorical=(), n_bins=10):
    kinds = tuple(
        Categories.codes(len(own)) if j in categorical else np.arange(len(own) + 1.0) for j, own in enumerate(counts)
    )
    columns = Columns(kinds, Grid(np.zeros(0), np.ones(0), 4))
    total = sum(counts[0])
    bins = bins_of(columns, n_bins, [np.array(own, dtype=float) for own in counts], total, 1.0)
    layout = GroupedLayout.of(columns, bins, 0.8)
    return Centred.of(layout, layout.probabilities([np.array(own, dtype=float) for own in counts], 1.0))


COUNTS = [np.linspace(10, 400, 8), np.full(40, 50.0), np.array([900.0, 20.0, 700.0]), np.array([1600.0])]


def test_directions_are_orthogonal_functions_and_invert_their_coefficients():
    features = features_of(COUNTS, (2,))
    rng = np.random.default_rng(0)
    for t in range(4):
        own = Directions.of(features, t)
        assert len(own.squares) == features.layout.sizes[t] - 1
        np.testing.assert_allclose(own.functions.T @ own.functions, np.eye(len(own.squares)), atol=1e-9)
        # They have mean 0, as all curves have.
        np.testing.assert_allclose(np.sqrt(own.shares) @ own.functions, 0, atol=1e-9)
        theta = rng.standard_normal(features.layout.n_features)
        values = features.tables(theta)[t][:, None]
        np.testing.assert_allclose(own.values(own.coefficients(values)), values, atol=1e-9)
        rows, _ = features.rows_of_bins(t)
        moments = np.append(np.linalg.eigvalsh(rows.T @ (own.shares[:, None] * rows)), 0.0)
        np.testing.assert_allclose(np.sort(own.squares), np.sort(moments)[len(moments) - len(own.squares) :], atol=1e-9)


def test_many_indicators_are_their_own_directions(monkeypatch):
    monkeypatch.setattr(_features, "MOST_TOGETHER", 20)
    features = features_of([np.linspace(10, 90, 50), np.array([100.0, 200.0])], (0, 1))
    own = Directions.of(features, 0)
    assert own.functions is None
    values = np.random.default_rng(0).standard_normal((50, 2))
    np.testing.assert_allclose(own.values(own.coefficients(values)), values, atol=1e-12)
    monkeypatch.undo()
    dense = Directions.of(features, 0)
    assert own.squares.sum() == pytest.approx(dense.squares.sum(), rel=0.05)


# --- shrinkage --------------------------------------------------------------------------------------------------------


def shrunk_curves(engine, features, coef, count, link):
    return shrunk(engine, features, coef, np.zeros(len(coef)), count, link)


@pytest.mark.parametrize("outputs", [1, 3])
def test_curves_of_noise_alone_are_shrunk_to_nothing(outputs):
    features = features_of(COUNTS, (2,))
    loss = LogLoss() if outputs == 1 else SoftmaxLogLoss(outputs)
    engine = GradientEngine(0.5, 1e-5, 0.04, features.layout, loss, CLIP * loss.lipschitz).with_rate(features, 1620.0)
    link, rng = Link(most=engine.clip), np.random.default_rng(0)
    bend = 0.1
    before, after, every = 0.0, 0.0, []
    for _ in range(10):
        coef = np.zeros((outputs, features.layout.n_features))
        for t in range(3):
            rows, _ = features.rows_of_bins(t)
            shares = features.probabilities[t]
            squares, vectors = np.linalg.eigh(rows.T @ (shares[:, None] * rows))
            sizes = engine.sizes_along(1620.0 * bend * np.maximum(squares, 0.0), 1620.0)
            where = [k for k, group in enumerate(features.layout.groups) if group.term == t]
            part = slice(features.layout.slices[where[0]].start, features.layout.slices[where[-1]].stop)
            coef[:, part] = (sizes * rng.standard_normal((outputs, len(sizes)))) @ vectors.T
        coef -= coef.mean(axis=0) if outputs > 1 else 0.0
        values, kept, _ = shrunk_curves(engine, features, coef, 1620.0, link)
        for t in range(3):
            weights = features.probabilities[t]
            raw = np.stack([features.tables(theta)[t] for theta in coef], axis=1)
            before += float(weights @ (raw**2).sum(axis=1))
            after += float(weights @ (values[t] ** 2).sum(axis=1))
        every += [own for own in kept if len(own)]
    factors = np.concatenate(every)
    assert np.all((factors >= 0) & (factors <= 1))
    assert after < 0.15 * before


@pytest.mark.parametrize("outputs", [1, 3])
def test_without_noise_curves_of_many_records_are_kept(outputs):
    features = features_of([100 * own for own in COUNTS], (2,))
    loss = LogLoss() if outputs == 1 else SoftmaxLogLoss(outputs)
    count = 162_000.0
    engine = GradientEngine(math.inf, 1e-5, 0.04, features.layout, loss, CLIP * loss.lipschitz)
    engine = engine.with_rate(features, count)
    coef = np.random.default_rng(0).normal(scale=0.3, size=(outputs, features.layout.n_features))
    coef -= coef.mean(axis=0) if outputs > 1 else 0.0
    values, kept, bend = shrunk_curves(engine, features, coef, count, Link())
    assert 0.01 <= bend <= 0.25
    for t, own in enumerate(kept):
        assert np.all((own >= 0) & (own <= 1))
        if len(own):
            raw = np.stack([features.tables(theta)[t] for theta in coef], axis=1)
            assert np.linalg.norm(values[t] - raw) < 0.1 * np.linalg.norm(raw)


def factors_of_one_coefficient(outputs, size):
    """Return the factors of the first column, where one feature of it has a coefficient of this size."""
    features = features_of(COUNTS, (2,))
    loss = LogLoss() if outputs == 1 else SoftmaxLogLoss(outputs)
    engine = GradientEngine(0.5, 1e-5, 0.04, features.layout, loss, CLIP * loss.lipschitz).with_rate(features, 1620.0)
    coef = np.zeros((outputs, features.layout.n_features))
    coef[:, features.layout.slices[0].start] = size
    coef *= np.linspace(-1, 1, outputs)[:, None] if outputs > 1 else 1.0
    return shrunk_curves(engine, features, coef, 1620.0, Link(most=engine.clip))[1][0]


@pytest.mark.parametrize(("outputs", "most"), [(1, 1.0), (3, math.sqrt(2.0))])
def test_factors_are_limited(outputs, most):
    """Steps reach little of a coefficient with few records. No factor may multiply much what noise does to a curve."""
    assert factors_of_one_coefficient(outputs, 100.0).max() == pytest.approx(most, rel=0.02)


def test_a_clear_coefficient_is_kept_in_a_column_of_noise():
    *others, largest = np.sort(factors_of_one_coefficient(3, 10.0))
    assert largest > 1
    assert max(others) < 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_that_say_nothing_give_flat_curves(n_classes):
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(5):
        X, y = rng.integers(8, size=(3000, 2)), rng.integers(n_classes, size=3000)
        model = DPAdditiveClassifier(
            epsilon=1.0, delta=1e-5, categories={0: 8, 1: 8}, classes=list(range(n_classes)), interactions=None,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        sizes += [np.std(values) for values in model.terms_]
    assert np.mean(sizes) < 0.1


def test_curves_that_many_records_tell_are_kept():
    rng = np.random.default_rng(0)
    X = rng.integers(8, size=(20_000, 2))
    y = (X[:, 0] // 2 + (rng.random(20_000) < 0.3)) % 4
    model = DPAdditiveClassifier(
        epsilon=3.0, delta=1e-5, categories={0: 8, 1: 8}, classes=[0, 1, 2, 3], interactions=None, random_state=0
    ).fit(X, y)
    assert model._kept[0].min() > 0.9
    # The other column says nothing.
    assert np.ptp(model.terms_[1]) < 0.1 * np.ptp(model.terms_[0])


def test_scores_of_several_classes_have_mean_0():
    """Only noise would move all of them together."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (3000, 2)), rng.integers(3, size=3000)
    common = {"epsilon": 1.0, "delta": 1e-5, "bounds": (0, 1), "classes": [0, 1, 2], "interactions": None}
    model = DPAdditiveClassifier(**common, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X).mean(axis=1), 0, atol=1e-9)
    for values in model.terms_:
        np.testing.assert_allclose(values.mean(axis=-1), 0, atol=1e-9)
