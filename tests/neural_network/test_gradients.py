"""Sums of clipped gradients: against finite differences, bit for bit, and how far one record moves them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from skdp.neural_network._gradients import (
    LARGEST_WEIGHT,
    GradientSums,
    clipping_factors,
    project,
    rounder,
    square_bits,
)
from skdp.solvers.losses import exponentials
from tests.neural_network.data import LOSSES, Problem

every_network = pytest.mark.parametrize(
    ("loss", "hidden"),
    [(loss, (5,)) for loss in LOSSES] + [("binary", ()), ("softmax", (4, 3)), ("binary", (3, 4, 2))],
)


@every_network
def test_clipped_gradients_are_those_of_the_loss(loss, hidden):
    problem = Problem(loss, hidden, n_rows=8)
    gradients = np.array([problem.gradient(i) for i in range(8)])
    norms = np.linalg.norm(gradients, axis=1)
    for max_norm in (1e3, float(np.median(norms)), 0.02):
        problem.max_norm = max_norm
        expected = gradients * np.minimum(1, max_norm / norms)[:, None]
        scale = np.abs(expected).max()
        for i in range(8):
            np.testing.assert_allclose(problem.total(np.array([i])), expected[i], atol=1e-3 * scale)
        np.testing.assert_allclose(problem.total(), expected.sum(axis=0), atol=5e-3 * scale)


@every_network
@pytest.mark.parametrize("block_rows", [1, 7, 64])
def test_a_record_adds_the_same_whatever_is_beside_it(loss, hidden, block_rows):
    problem = Problem(loss, hidden, n_rows=37)
    everyone = np.arange(37)
    whole = problem.exact(block_rows=block_rows)
    assert (problem.exact(everyone, block_rows=block_rows) == whole).all()
    assert (sum(problem.exact(everyone[i : i + 1], block_rows=block_rows) for i in everyone) == whole).all()
    for i in (0, 5, 36):
        own = problem.exact(np.array([i]), block_rows=block_rows)
        assert (problem.exact(np.delete(everyone, i), block_rows=block_rows) == whole - own).all()
        # Other data, not only another sample.
        X, y = np.delete(problem.X, i, axis=0), np.delete(problem.y, i, axis=0)
        assert (problem.exact(X=X, y=y, block_rows=block_rows) == whole - own).all()
    order = np.random.default_rng(1).permutation(37)
    assert (problem.exact(X=problem.X[order], y=problem.y[order], block_rows=block_rows) == whole).all()


def test_wide_layers_stay_exact():
    problem = Problem("softmax", hidden=(70, 33), n_rows=130, n_features=150)
    everyone = np.arange(130)
    whole = problem.exact(block_rows=50)
    for i in (0, 64, 129):
        own = problem.exact(np.array([i]), block_rows=50)
        assert (problem.exact(np.delete(everyone, i), block_rows=50) == whole - own).all()


def test_blocks_of_full_length_stay_exact():
    # Records that all push the same way, which is where bits run out first.
    problem = Problem(n_rows=2048, max_norm=0.1)
    problem.X[:], problem.y[:] = problem.X[0], problem.y[0]
    own = problem.exact(np.array([0]), block_rows=1024)
    assert (problem.exact(block_rows=1024) == 2048 * own).all()


def in_fractions(values):
    return np.array([Fraction(number) for number in values], dtype=object)


@pytest.mark.parametrize("lattice", [2.0**-20, 2.0**-11])
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e-13, 1e-100])
def test_sums_of_many_blocks_stay_exact(size, lattice):
    # Where weights are small, so are derivatives, and many more bits are below the lattice than in doubles.
    rng = np.random.default_rng(0)
    problem = Problem(hidden=(4,), max_norm=0.3, n_rows=20_000)
    X, y = np.abs(problem.X) + 1, np.ones(20_000, dtype=int)
    weights = size * np.abs(rng.normal(size=problem.layout.size))
    everyone = np.arange(len(y))
    options = {"X": X, "y": y, "weights": weights, "lattice": lattice, "block_rows": 1024}
    whole = problem.exact(**options)
    own = problem.exact(everyone[:1], **options)
    assert (problem.exact(everyone[1:], **options) == whole - own).all()
    # What is released comes of that: as it is for one block, and rounded once for several.
    assert (in_fractions(problem.total(everyone[:1], **options)) == own).all()
    rounded = in_fractions(problem.total(**options))
    assert max(abs(rounded - whole)) <= Fraction(lattice) / 2
    assert all((number / Fraction(lattice)).denominator == 1 for number in rounded)
    assert size < 1.0 or own.any()


class NothingBroken(GradientSums):
    """Norms are finite by themselves, and not because what is not finite is left out."""

    def _squares(self, *layers):
        squares = super()._squares(*layers)
        assert np.isfinite(squares).all()
        return squares


def test_derivatives_that_grow_or_vanish_in_a_hundred_layers():
    # Where rows and intercepts are 0, tanh is the identity, and each layer multiplies derivatives by its weights.
    problem = Problem("binary", (4,) * 100, n_rows=2, max_norm=0.3)
    problem.X[:] = 0.0
    for size, least in ((1e300, 0.9), (1e-9, 0.2), (1e-300, 0.2)):
        weights = np.full(problem.layout.size, size)
        for part in problem.layout.parts(weights):
            part[-1] = 0.0
        total = problem.total(np.array([0]), weights=weights, kind=NothingBroken)
        assert least * 0.3 <= np.linalg.norm(total) <= 0.3


def test_derivatives_below_the_normal_numbers():
    problem = Problem("far", hidden=(), n_rows=3)
    problem.X[:], problem.y[:, 0] = 0.0, (5e-324, -1e-320, 1e-310)
    assert not problem.total(weights=np.zeros(problem.layout.size), kind=NothingBroken).any()


EXTREME = [1e6, 1e100, 1e150, 1e160, 1e303, np.inf, np.nan, 1e-160, 0.0]


@pytest.mark.parametrize("size", EXTREME)
@pytest.mark.parametrize(
    ("loss", "hidden"),
    [
        ("binary", (4, 4)),
        ("softmax", (5,)),
        ("squared", (3,) * 30),
        ("huber", (4,) * 100),
        ("softmax", (4,) * 100),
        ("binary", ()),
    ],
)
@pytest.mark.parametrize("max_norm", [1e-6, 1e6])
def test_what_a_record_adds_is_finite_and_its_own_for_all_weights(loss, hidden, size, max_norm):
    problem = Problem(loss, hidden, n_rows=12, max_norm=max_norm)
    problem.X *= np.resize([0.0, 1e-3, 1.0, 1e300], 12)[:, None]
    with np.errstate(all="ignore"):
        weights = problem.weights * size
    # Not all of them are extreme, and zeros meet infinities.
    for start in (1, 2):
        weights[start::7] = problem.weights[start::7]
    weights[3::7] = 0.0
    everyone = np.arange(12)
    with np.errstate(all="ignore"):
        whole = problem.exact(weights=weights, block_rows=5)
        for i in (0, 6, 11):
            own = problem.exact(everyone[i : i + 1], weights=weights, block_rows=5)
            assert (problem.exact(np.delete(everyone, i), weights=weights, block_rows=5) == whole - own).all()
            assert sum(number * number for number in own) <= Fraction(max_norm) ** 2
            total = problem.total(everyone[i : i + 1], weights=weights, block_rows=5, kind=NothingBroken)
            assert np.isfinite(total).all()
            assert (in_fractions(total) == own).all()
    assert np.isfinite(problem.total(weights=weights)).all()


def test_deep_gradients_keep_their_digits():
    # Bounds on derivatives grow by each layer; digits do not depend on bounds.
    problem = Problem("softmax", hidden=(16,) * 6, n_rows=8)
    problem.weights /= 2.0
    first = problem.layout.parts(problem.weights)[0].size
    for i in range(8):
        expected = problem.gradient(i, width=1e-5)
        expected *= min(1.0, 1.0 / np.linalg.norm(expected))
        found = problem.total(np.array([i]))
        for part in (slice(0, first), slice(first, None)):
            error = np.linalg.norm(found[part] - expected[part])
            assert error <= 1e-3 * np.linalg.norm(expected[part])


def test_weights_are_projected_to_a_box():
    weights = np.array([1.0, -(2.0**20), 2.0**20 + 1, -1e300, np.inf, -np.inf, np.nan, 1e-320])
    kept = LARGEST_WEIGHT
    np.testing.assert_array_equal(project(weights), [1.0, -kept, kept, -kept, kept, -kept, 0.0, 1e-320])


class Breaks(GradientSums):
    """The bounds do not hold: norms are not finite for some records."""

    def _squares(self, row_squares, activations, deltas, scales):
        squares = super()._squares(row_squares, activations, deltas, scales)
        for broken, value in ((row_squares < 1.2, np.nan), (row_squares > 3.0, np.inf)):
            squares[broken] = value
            deltas[0][broken] = value
            activations[1][broken] = value
        return squares


def test_records_whose_numbers_are_not_finite_add_nothing():
    problem = Problem()
    problem.X *= np.resize([0.1, 1.0, 9.0], 40)[:, None]
    squares = problem.sums()._row_squares
    fine = np.flatnonzero((squares >= 1.2) & (squares <= 3.0))
    assert 0 < len(fine) < 40
    np.testing.assert_array_equal(problem.total(kind=Breaks), problem.total(fine))


def test_clipping_has_a_margin():
    rng = np.random.default_rng(0)
    norms = np.exp(rng.uniform(0.0, 300.0, 10_000))
    for norm in (1e-6, 0.3, 1.0, 1e6):
        factors = clipping_factors((norms * norm) ** 2, norm)
        assert (factors * (norms * norm)).max() <= norm * (1 - 2.0**-41)
        assert (factors * (norms * norm)).max() >= norm * (1 - 2.0**-39)


def finest_step(values):
    """The exponent of the largest power of two that all numbers are multiples of."""
    mantissas, exponents = np.frexp(values[values != 0])
    integers = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.log2((integers & -integers).astype(float))
    return int((exponents - 53 + lowest).min()) if integers.size else 0


def nearly_equal(problem, size):
    """Weights and derivatives of all their bits, and of one sign: sums of products as large as can be."""
    noise = np.random.default_rng(2).uniform(size=problem.layout.size)
    weights = 1 + 0.1 * noise
    for part in problem.layout.parts(weights)[:-1]:
        part *= 1e-3 * size
    return weights


@pytest.mark.parametrize("size", [1e-4, 1.0, 30.0])
@pytest.mark.parametrize(
    ("loss", "hidden", "n_features", "max_norm"),
    [
        ("binary", (64,), 100, 1.0),
        ("softmax", (33, 17), 5, 1e-3),
        ("squared", (9,), 9000, 1e-3),
        ("huber", (300,), 3, 50.0),
        ("softmax", (4, 4, 4), 4, 1e4),
        ("far", (3, 300), 3, 1.0),
    ],
)
def test_products_have_bits_to_spare(loss, hidden, n_features, max_norm, size, monkeypatch):
    # Every sum of products, in any order, has partial sums of no more than 2**53 steps.
    problem = Problem(loss, hidden, n_rows=100, max_norm=max_norm, n_features=n_features)
    problem.X *= np.resize([1e-3, 1.0, 1e6], 100)[:, None]
    # Where Cauchy and Schwarz hold with equality, and where they do not.
    tight = np.full_like(problem.weights, size)
    for weights in (size * problem.weights, tight, nearly_equal(problem, size)):
        matmul, einsum, most = np.matmul, np.einsum, []

        def checked_matmul(a, b, out, most=most, matmul=matmul):
            # The constant unit has a column of its own size, with one entry.
            steps = 2.0 ** np.array([finest_step(a) + finest_step(column) for column in b.T])
            # Sums over rows have room for a whole block of them.
            rows = 1024 / 100 if a.shape[1] == 100 else 1.0
            most.append(((np.abs(a) @ np.abs(b)) / steps).max() * rows)
            return matmul(a, b, out=out)

        def checked_einsum(how, a, b, most=most, einsum=einsum):
            assert how == "ij,ij->i"
            assert a is b
            most.append((a * a).sum(axis=1).max() / 4.0 ** finest_step(a))
            return einsum(how, a, b)

        sums = problem.sums(weights=weights, block_rows=1024)
        with monkeypatch.context() as patch:
            patch.setattr(np, "matmul", checked_matmul)
            patch.setattr(np, "einsum", checked_einsum)
            sums.sum(None, np.empty(problem.layout.size))
        assert len(most) >= 4 * len(hidden) + 2
        assert max(most) <= 2.0**53


def test_several_blocks_are_rounded_to_the_lattice_once():
    problem = Problem(n_rows=100)
    lattice = 2.0**-9
    exact = problem.exact(block_rows=8, lattice=lattice)
    rounded = problem.total(block_rows=8, lattice=lattice)
    assert max(abs(exact - rounded)) <= lattice / 2
    np.testing.assert_array_equal(rounded, np.rint(rounded / lattice) * lattice)


def test_no_rows():
    problem = Problem()
    assert not problem.total(np.empty(0, dtype=np.intp)).any()
    assert not problem.total(X=problem.X[:0], y=problem.y[:0]).any()


class ForgotLayer(GradientSums):
    """The norm lacks the last layer."""

    def _squares(self, row_squares, *layers):
        return super()._squares(row_squares, *(layer[:-1] for layer in layers))


class ClipsTheSum(GradientSums):
    """Clips after adding up."""

    def sum(self, rows, out):
        norm, self._max_norm = self._max_norm, 1e6
        total = super().sum(rows, out)
        self._max_norm = norm
        return total * min(1.0, norm / max(np.linalg.norm(total), 1e-300))


class DividesByTheSample(GradientSums):
    """Divides by how many records there are, instead of how many are expected: 3."""

    def sum(self, rows, out):
        return super().sum(rows, out) * 3 / max(len(self._rows), 1)


def largest_move(problem, kind=GradientSums, n_random=60):
    """The most that a record moves the sum, over random records, long ones, and opposite ones."""
    rng = np.random.default_rng(5)
    moves = []
    for trial in range(n_random):
        n_rows = int(rng.integers(0, 4))
        X, y = problem.X[:n_rows], problem.y[:n_rows]
        size = (0.0, 1e-3, 1.0, 50.0, 1e9)[trial % 5]
        row = size * rng.normal(size=(1, problem.X.shape[1]))
        label = problem.y[rng.integers(len(problem.y))][None]
        if trial % 2 and n_rows and not isinstance(problem.loss, type(LOSSES["huber"])):
            # Opposite to what is there.
            X, y = np.repeat(X[:1], n_rows, axis=0), np.repeat(y[:1], n_rows)
            row, label = X[:1], np.array([(y[0] + 1) % max(2, problem.loss.outputs)])
        before = problem.total(X=X, y=y, kind=kind)
        after = problem.total(X=np.concatenate([X, row]), y=np.concatenate([y, label]), kind=kind)
        moves.append(np.linalg.norm(after - before))
    return max(moves)


@every_network
@pytest.mark.parametrize("max_norm", [0.3, 0.02])
def test_sensitivity(loss, hidden, max_norm):
    problem = Problem(loss, hidden, max_norm=max_norm)
    most = largest_move(problem)
    assert most <= max_norm
    # The Huber loss has short gradients.
    assert most >= (0.9 if loss != "huber" else 0.5) * max_norm


@pytest.mark.parametrize("kind", [ForgotLayer, ClipsTheSum, DividesByTheSample])
def test_broken_sums_move_too_far(kind):
    problem = Problem(max_norm=0.3, hidden=(20,))
    assert largest_move(problem) <= 0.3
    assert largest_move(problem, kind) > 1.2 * 0.3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.tanh, np.exp, special.expit, np.sqrt])
def test_functions_of_single_numbers_do_not_depend_on_their_place(function):
    rng = np.random.default_rng(0)
    numbers = np.abs(np.concatenate([rng.normal(0, s, 300) for s in (1e-4, 0.3, 3, 30)]))
    if function is not np.sqrt:
        numbers *= rng.choice([-1, 1], len(numbers))
    # Beside numbers that overflow, underflow or are none: vectors of them may take another path.
    wild = np.array([np.inf, np.nan, 1e308, 800.0, 746.0, 709.9, 1e-310, 5e-324, 0.0])
    if function is not np.sqrt:
        wild = np.concatenate([wild, -wild])
    whole = function(numbers)
    for length in range(1, 41):
        for offset in range(5):
            chosen = rng.integers(len(numbers), size=length)
            buffer = np.empty(length + offset)
            part = buffer[offset:]
            part[:] = numbers[chosen]
            np.testing.assert_array_equal(function(part, out=part), whole[chosen])
            for share in (0.2, 0.9):
                tame = rng.random(length) > share
                mixed = np.where(tame, numbers[chosen], rng.choice(wild, length))
                np.testing.assert_array_equal(function(mixed)[tame], whole[chosen][tame])
                # The wild ones, too, are each their own.
                alone = np.array([function(mixed[k : k + 1])[0] for k in range(length)])
                np.testing.assert_array_equal(function(mixed), alone)
            matrix = np.repeat(numbers[chosen], 3).reshape(length, 3)
            np.testing.assert_array_equal(function(matrix)[:, 1], whole[chosen])


def test_rounding_by_a_large_number():
    values = np.random.default_rng(0).normal(size=1000)
    number = rounder(2.0**-10)
    np.testing.assert_array_equal((values + number) - number, np.rint(values * 2.0**10) / 2.0**10)
    assert [square_bits(n) for n in (1, 2**13, 2**13 + 1, 2**20)] == [20, 20, 19, 16]


def test_softmax_of_equal_rows_is_equal_wherever_they_stand():
    loss = LOSSES["softmax"]
    z = np.random.default_rng(0).normal(size=(50, 4)) * 5
    together = z.copy()
    loss.differentiate_rows(together, np.arange(50) % 4)
    for i in range(50):
        alone = z[i : i + 1].copy()
        loss.differentiate_rows(alone, np.array([i % 4]))
        np.testing.assert_array_equal(alone[0], together[i])
        expected = special.softmax(z[i])
        expected[i % 4] -= 1
        np.testing.assert_allclose(alone[0], expected, atol=1e-9)


def test_exponentials_are_multiples_of_a_step():
    # So that their sum over a row is exact in any order.
    z = np.random.default_rng(0).normal(size=(50, 7)) * np.logspace(-3, 3, 50)[:, None]
    exact = np.exp(z - z.max(axis=1, keepdims=True))
    exponentials(z)
    np.testing.assert_array_equal(z * 2.0**38, np.rint(z * 2.0**38))
    assert np.abs(z - exact).max() <= 2.0**-39
    assert (z.max(axis=1) == 1).all()
