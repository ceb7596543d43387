"""The exponential mechanism over a ball: its law against numerical integration, in one dimension to four."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from skdp.mechanisms import NoiseSource, TangentPlaneMechanism, tangent_planes
from skdp.mechanisms.tangent_planes import (
    LATTICE_BITS,
    MARGIN,
    _Boxes,
    _geometric_digits,
    _Lattice,
    _log_geometric,
    sample_ball,
)
from skdp.solvers.losses import AbsoluteError, LogLoss, LossSum
from tests.statistics import accept, chi_square, chi_square_integers, reject

RADIUS = 2.0


def data(size, n_rows=60, seed=0, labels=True):
    """Rows of norm at most 1, correlated, and labels or targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, size)) + rng.normal(size=(n_rows, 1))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    score = 2 * X.sum(axis=1) + 0.5 * rng.normal(size=n_rows)
    return X, (np.where(score > 0, 1.0, -1.0) if labels else np.clip(score / 3, -1, 1))


class SquaredErrors:
    """The sum of squared errors, in the original axes."""

    def __init__(self, X, u):
        self.X, self.u, self.frame = X, u, np.eye(X.shape[1])

    def values(self, points):
        return ((points @ self.X.T - self.u) ** 2).sum(axis=1) / 2

    def slopes(self, points):
        return self.values(points), (points @ self.X.T - self.u) @ self.X


def sums(name, size, **kwargs):
    X, u = data(size, labels=name == "log_loss", **kwargs)
    if name == "squared":
        return SquaredErrors(X, u)
    loss = LogLoss() if name == "log_loss" else AbsoluteError()
    return LossSum(X, u, loss, RADIUS)


def draws(potential, rate, size, count, first_seed=0):
    source = NoiseSource(first_seed)
    points = [sample_ball(potential, rate, RADIUS, size, source.stream(str(i))) for i in range(count)]
    return np.array(points) * RADIUS * 2.0**-LATTICE_BITS


def density(potential, rate, w):
    """The density that is asked for, up to a factor, at points in the original axes."""
    return np.exp(-rate * (potential.values(w @ potential.frame) - potential.values(np.zeros((1, w.shape[1])))))


NAMES = ["log_loss", "squared", "absolute_error"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate", [0.05, 1.0])
@pytest.mark.sample(every=6)
def test_one_dimension_by_numerical_integration(name, rate):
    potential = sums(name, 1)
    grid = np.linspace(-RADIUS, RADIUS, 20_001)
    cumulative = integrate.cumulative_simpson(density(potential, rate, grid[:, None]), x=grid, initial=0)

    def below(x):
        return np.interp(x, grid, cumulative / cumulative[-1])

    accept(stats.kstest(draws(potential, rate, 1, 700)[:, 0], below).pvalue, "the law in one dimension")
    wrong = draws(potential, 20 * rate if rate < 1 else 3 * rate, 1, 700, first_seed=1)[:, 0]
    reject(stats.kstest(wrong, below).pvalue, "a larger rate")


def cells(w, edges):
    """Cell counts on a grid."""
    index = [np.searchsorted(edges, column, side="right") - 1 for column in w.T]
    return np.bincount(np.ravel_multi_index(index, (len(edges) - 1,) * w.shape[1]), minlength=(len(edges) - 1) ** 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(every=6)
def test_two_dimensions_by_numerical_integration(name):
    potential, rate, fine = sums(name, 2), 0.6, 320
    middle = (np.arange(fine) + 0.5) / fine * 2 * RADIUS - RADIUS
    w = np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.zeros(len(w))
    inside = np.einsum("ij,ij->i", w, w) <= RADIUS**2
    mass[inside] = density(potential, rate, w[inside])
    coarse = mass.reshape(16, fine // 16, 16, fine // 16).sum(axis=(1, 3)).ravel()
    edges = np.linspace(-RADIUS, RADIUS, 17)
    accept(chi_square(cells(draws(potential, rate, 2, 800), edges), coarse / coarse.sum()), "the law in the plane")
    wrong = draws(potential, 3 * rate, 2, 500, first_seed=1)
    reject(chi_square(cells(wrong, edges), coarse / coarse.sum()), "three times the rate")


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("name", ["log_loss", "absolute_error"])
@pytest.mark.sample(every=6)
def test_more_dimensions_by_importance_sampling(size, name):
    # Means of functions against those of uniform points of the ball, weighted by the density.
    potential, rate, runs = sums(name, size), 0.4, 600
    rng = np.random.default_rng(5)
    direction = rng.normal(size=(200_000, size))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    uniform = RADIUS * direction * rng.random((200_000, 1)) ** (1 / size)
    weight = np.concatenate([density(potential, rate, part) for part in np.array_split(uniform, 40)])
    weight /= weight.sum()
    w = draws(potential, rate, size, runs)
    functions = [*np.eye(size), np.ones(size)]
    for f in functions:
        for power in (1, 2):
            value = (uniform @ f) ** power
            mean = weight @ value
            spread = math.sqrt(weight @ (value - mean) ** 2 * (1 / runs) + np.sum(weight**2 * (value - mean) ** 2))
            z = (((w @ f) ** power).mean() - mean) / spread
            accept(2 * stats.norm.sf(abs(z)), "a moment")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.sample(every=4)
def test_without_records_the_ball_is_uniform(size):
    empty = LossSum(np.empty((0, size)), np.empty(0), LogLoss(), RADIUS)
    w = draws(empty, 1.0, size, 2000)
    norm = np.linalg.norm(w, axis=1) / RADIUS
    assert norm.max() <= 1
    accept(stats.kstest(norm**size, stats.uniform.cdf).pvalue, "norms")
    accept(stats.binomtest(int((w[:, 0] > 0).sum()), 2000).pvalue, "signs")


@pytest.mark.sample(every=4)
def test_the_frame_does_not_matter():
    # Any orthonormal frame gives the same law.
    potential, rate = sums("log_loss", 2), 0.6
    good = draws(potential, rate, 2, 500)
    turned = sums("log_loss", 2)
    angle = np.array([[0.6, -0.8], [0.8, 0.6]])
    turned._rows, turned.frame = turned._rows @ angle, turned.frame @ angle
    other = draws(turned, rate, 2, 500, first_seed=3)
    for f in ([1, 0], [0, 1], [1, 1], [1, -1]):
        accept(stats.ks_2samp(good @ f, other @ f).pvalue, "two frames")


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("rate", [1e-6, 1.0, 300.0])
def test_the_envelope_is_one(size, rate):
    # Convexity: the plane of a box lies below the function, up to rounding.
    potential = sums("log_loss", size)
    boxes, stream = _Boxes(potential, rate, RADIUS, size), NoiseSource(0).stream("x")
    for _ in range(12):
        box, points, envelope = boxes.propose(32, stream)
        at = boxes.coordinates(points)
        assert np.all(np.abs(at) <= RADIUS)
        excess = rate * potential.values(at) + envelope
        assert excess.min() >= -1e-9 * max(1.0, rate)
        boxes.halve(np.unique(box))


def test_boxes_of_very_different_masses_are_drawn_with_the_weights_that_they_have(monkeypatch):
    # Boxes 60 nats and more below the heaviest have weight 1, which is too much: their envelope is raised as well.
    potential, rate = sums("squared", 1, n_rows=400), 20.0
    boxes, stream = _Boxes(potential, rate, RADIUS, 1), NoiseSource(0).stream("x")
    for _ in range(3):
        boxes.halve(np.arange(len(boxes)))
    assert np.ptp(boxes._mass) > 60
    weight = np.maximum(np.ceil(np.exp(boxes._mass - boxes._mass.max()) * 2.0**40), 1.0)
    assert weight.min() == 1

    def each_box(most, count, stream):
        # One proposal in each box, whatever it weighs.
        assert most == weight.sum()
        return (np.cumsum(weight.astype(np.int64)) - 1,)

    monkeypatch.setattr(tangent_planes, "uniform_below", each_box)
    box, points, envelope = boxes.propose(4, stream)
    assert box.tolist() == list(range(len(boxes)))
    offset = points - boxes._low
    offset = np.where(boxes._falls, offset, 2**boxes._bits - 1 - offset)[:, 0]
    in_box = -boxes._slope[:, 0] * offset - _log_geometric(boxes._slope, boxes._bits)[:, 0]
    drawn = np.log(weight / weight.sum()) + in_box
    assert np.ptp(envelope - drawn) < 1e-9


def test_boxes_partition_the_points_and_their_masses_are_sums():
    potential = sums("log_loss", 2)
    boxes, stream = _Boxes(potential, 1.0, 10.0, 2), NoiseSource(0).stream("x")
    for _ in range(6):
        boxes.halve(np.unique(boxes.propose(8, stream)[0]))
    # No box of [-10, 10]^2 is far from the ball at first; sizes add up where none was dropped.
    volume = np.ldexp(1.0, boxes._bits).prod(axis=1).sum() * boxes._unit**2
    assert volume <= 400 * (1 + 1e-12)
    corner = np.abs(boxes._low + 0.5) * boxes._unit
    assert len(boxes) > 6
    assert corner.max() <= 10.0


def test_mass_of_an_axis_is_a_sum():
    for slope in (0.0, 1e-300, 1e-280, 2.0**-112, 1e-20, 1e-3, 0.7, 30.0, 1e4):
        for bits in (0, 1, 5, 10):
            exact = math.log(math.fsum(math.exp(-slope * k) for k in range(2**bits)))
            found = _log_geometric(np.array([slope]), np.array([bits]))[0]
            assert found == pytest.approx(exact, rel=1e-12, abs=1e-13)


def test_digits_have_a_geometric_law():
    slope, bits, runs = 0.1, 5, 20_000
    stream = NoiseSource(0).stream("x")
    k = _geometric_digits(np.full((runs, 1), slope), np.full((runs, 1), bits), stream)[:, 0]
    mass = np.exp(-slope * np.arange(2**bits))
    accept(chi_square_integers(k, lambda i: mass[i] / mass.sum(), 0, 2**bits - 1), "digits")
    k = _geometric_digits(np.full((runs, 1), 1.2 * slope), np.full((runs, 1), bits), stream)[:, 0]
    reject(chi_square_integers(k, lambda i: mass[i] / mass.sum(), 0, 2**bits - 1), "a steeper law")


def test_steep_digits_are_zero():
    slope, bits = np.full((3, 2), 1e5), np.full((3, 2), 51)
    assert not _geometric_digits(slope, bits, NoiseSource(0).stream("x")).any()


def test_the_mechanism_rounds_to_a_public_lattice():
    potential = sums("log_loss", 2)
    for epsilon in (2.0**-30, 1e-4, 1.0, 50.0):
        mechanism = TangentPlaneMechanism(epsilon, RADIUS, RADIUS, 2)
        w = mechanism.release(potential, NoiseSource(3).stream("x"))
        steps = w / (RADIUS * 2.0**-LATTICE_BITS)
        assert np.all(steps == np.rint(steps))
        assert np.linalg.norm(w) <= RADIUS
    assert mechanism.scale == RADIUS / 50.0 * (1 + MARGIN)


def test_the_margin_has_room():
    # 4 eta, for as many records as are promised and for the least epsilon.
    left = 1 - 1 / (1 + MARGIN)
    for epsilon in (2.0**-30, 1.0, 1000.0):
        eta = epsilon * 2.0 ** (26 - 42 + 4) + 2.0**-43 + 2.0**-56
        assert 4 * eta <= epsilon * left


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("epsilon", value) for value in (0.0, 2.0**-31, math.inf, math.nan)],
        *[("radius", value) for value in (-1.0, math.inf)],
        *[("n_parameters", value) for value in (0, 5, 1.5)],
        ("sensitivity", 0.0),
    ],
)
def test_bad_parameters_are_refused(name, value):
    good = {"epsilon": 1.0, "sensitivity": 1.0, "radius": 1.0, "n_parameters": 2}
    with pytest.raises(ValueError, match=name):
        TangentPlaneMechanism(**{**good, name: value})


def test_rounding_is_that_of_exact_arithmetic():
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    lattice = _Lattice(frame, NoiseSource(0).stream("x"))
    points = rng.integers(-(2**50), 2**50, size=(2000, 3))
    rounded = lattice.round(points)
    exact = np.array([lattice._round_exactly(point) for point in points.tolist()])
    # Other digits can only matter where the double is in doubt: about once in 2**10.
    assert np.count_nonzero((rounded != exact).any(axis=1)) <= 2
    # A point next to the surface of a cube, along an axis: its digits decide.
    plain = _Lattice(np.eye(2), NoiseSource(1).stream("x"))
    edge = np.array([[2**19, 0]] * 4 + [[2**19 - 1, 0]] * 4)
    assert plain.round(edge)[:, 0].tolist() == [1] * 4 + [0] * 4


def hard(kind, size):
    """Data that no frame fits well: kinks, repeated columns, one far record, everything at the boundary."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, size))
    if kind == "repeated":
        X[:] = X[:, :1]
    elif kind == "spikes":
        X = np.eye(size)[rng.integers(size, size=300)] * rng.choice([1e-6, 1.0], size=(300, 1))
    elif kind == "boundary":
        X[:, 0] = np.abs(X[:, 0]) + 3
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, (np.ones(300) if kind == "boundary" else rng.choice([-1.0, 1.0], size=300))


@pytest.mark.parametrize("kind", ["repeated", "spikes", "boundary", "plain"])
@pytest.mark.parametrize("loss", [LogLoss(), AbsoluteError()], ids=lambda loss: type(loss).__name__)
def test_hard_data_come_to_an_end(kind, loss):
    for size, rate in ((2, 1e4), (4, 30.0)):
        X, u = hard(kind, size)
        assert np.linalg.norm(draws(LossSum(X, u, loss, RADIUS), rate, size, 1)) <= RADIUS


def two_sided(kind, n_rows=20_000):
    """Targets at both ends, whose sum of losses is flat between with walls around, in four dimensions."""
    X, u = np.zeros((n_rows, 4)), np.ones(n_rows)
    X[:, 0] = 1.0
    u[: n_rows // 2 - n_rows // 100] = -1.0
    if kind == "small row":
        X, u = np.vstack([X, [0.03, 0, 0, 0]]), np.append(u, 0.0)
    if kind != "one direction":
        X, u = np.vstack([X, [0.5] * 4]), np.append(u, 0.2 if kind == "small row" else 0.0)
    if kind == "identical":
        X[:] = [0.3, 0.4, 0.5, 0.1]
    return X, u


@pytest.mark.parametrize("kind", ["one direction", "one row across", "small row", "identical"])
def test_a_flat_bottom_with_walls_takes_few_rounds(kind, monkeypatch):
    # In rounds and boxes, which do not depend on the machine. With one curvature for all boxes it took thousands.
    rounds = []
    real = _Boxes.halve

    def halve(self, chosen):
        real(self, chosen)
        rounds.append(len(self))
        assert len(rounds) < 200
        assert len(self) < 2000

    monkeypatch.setattr(_Boxes, "halve", halve)
    X, u = two_sided(kind)
    potential = LossSum(X, u, AbsoluteError(), 3.0)
    for seed in range(3):
        rounds.clear()
        sample_ball(potential, 1 / AbsoluteError().spread(3.0), 3.0, 4, NoiseSource(seed).stream("x"))


def test_targets_that_are_0_or_1_take_some_hundred_rounds(monkeypatch):
    rounds = []
    real = _Boxes.halve

    def halve(self, chosen):
        real(self, chosen)
        rounds.append(len(self))
        assert len(rounds) < 1000

    monkeypatch.setattr(_Boxes, "halve", halve)
    rng = np.random.default_rng(0)
    X = np.column_stack([0.3 * rng.normal(size=(2000, 3)), np.full(2000, 0.5)])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    for part in (0.5, 0.52):
        u = np.where(rng.random(2000) < part, 1.0, -1.0)
        rounds.clear()
        loss = AbsoluteError()
        sample_ball(LossSum(X, u, loss, 3.0), 1 / loss.spread(3.0), 3.0, 4, NoiseSource(0).stream("x"))
