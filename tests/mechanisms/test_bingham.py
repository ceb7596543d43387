"""The Bingham sampler: its law, and that doubles and exact arithmetic decide alike.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed (see `tests.statistics`).
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, special, stats

from skdp.mechanisms import BinghamMechanism, NoiseSource, bingham, bingham_direction
from skdp.mechanisms.bingham import (
    LATTICE_BITS,
    LEAST_SIZE,
    MARGIN,
    ROOT_ERROR,
    _envelope,
    _Proposals,
    _triangular_root,
)
from tests.statistics import accept, binomial, chi_square, reject

BITS = 24


def draws(matrix, count, seed=0, bits=BITS, tolerance=0.0):
    stream = NoiseSource(seed).stream("direction")
    return np.array([bingham_direction(matrix, bits, stream, tolerance) for _ in range(count)]) * 2.0**-bits


@pytest.fixture(params=["eigenvectors", "triangular"])
def tolerance(request, monkeypatch):
    """The error of the exponent for which roots are of this kind, also in few dimensions."""
    if request.param == "eigenvectors":
        return 0.0
    monkeypatch.setattr(bingham, "LEAST_SIZE", 2)
    monkeypatch.setattr(bingham, "_ritz_values", lambda a: (np.linalg.eigvalsh(a), np.ones(len(a))))
    monkeypatch.setattr(bingham, "_MOST_REFUSED", -1)
    monkeypatch.setattr(np.linalg, "eigh", None)
    return 1e-6


def rotation(size, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def square_law(density, edges):
    """Probabilities of t = u^2 between the edges, for a density of t without its factor t^(-1/2)."""

    def mass(low, high):
        return integrate.quad(lambda u: 2 * density(u * u), np.sqrt(low), np.sqrt(high), epsabs=0, limit=200)[0]

    masses = np.array([mass(low, high) for low, high in itertools.pairwise(edges)])
    return masses / masses.sum()


def p_of_squares(t, density, edges):
    return chi_square(np.histogram(t, edges)[0], square_law(density, edges))


# --- the law ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0.5, 4.0, 200.0])
@pytest.mark.sample(every=3)
def test_in_the_plane_the_double_angle_is_von_mises(gap, tolerance):
    turn = rotation(2)
    v = draws(turn @ np.diag([3 + gap, 3]) @ turn.T, 4000, tolerance=tolerance) @ turn
    angle = 2 * np.arctan2(v[:, 1], v[:, 0])
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    accept(stats.kstest(angle, stats.vonmises(gap / 2).cdf).pvalue, "double angle")
    reject(stats.kstest(angle, stats.vonmises(gap).cdf).pvalue, "twice the exponent")


@pytest.mark.sample(every=5)
def test_mean_square_cosine_where_dividing_by_the_envelope_fails():
    # A sampler that divides by (v' Omega v)^(d/2) where it has to multiply finds 0.955 here.
    cosines = draws(np.diag([4.0, 0.0]), 20_000)[:, 0] ** 2
    exact = (1 + special.ive(1, 2.0) / special.ive(0, 2.0)) / 2
    assert exact == pytest.approx(0.849, abs=5e-4)
    error = np.sqrt(cosines.var() / len(cosines))
    assert abs(cosines.mean() - exact) < 4.9 * error
    assert abs(cosines.mean() - 0.955) > 50 * error


@pytest.mark.parametrize("size", [2, 3, 10, 50])
@pytest.mark.sample(every=3)
def test_without_data_every_direction_is_alike(size, tolerance):
    v = draws(np.zeros((size, size)), 3000, tolerance=tolerance)
    for t in (v[:, 0] ** 2, (v @ rotation(size)[:, 0]) ** 2):
        accept(stats.kstest(t, stats.beta(0.5, (size - 1) / 2).cdf).pvalue, "uniform direction")
        reject(stats.kstest(t, stats.beta(0.5, 0.75 * (size - 1)).cdf).pvalue, "half as many dimensions again")
    accept(binomial(np.count_nonzero(v[:, 0] > 0), len(v), 0.5), "sign")


@pytest.mark.parametrize("a", [1.0, 12.0])
@pytest.mark.sample(every=4)
def test_three_dimensions_with_three_eigenvalues(a, tolerance):
    turn = rotation(3)
    v = draws(turn @ np.diag([a, a / 2, -1.0]) @ turn.T, 6000, seed=1, tolerance=tolerance) @ turn

    def density(t, a=a):
        # The rest is a circle of squared radius 1 - t.
        b, c = a / 2, -1.0
        x = (1 - t) * (b - c) / 2
        return np.exp(a * (t - 1) + (1 - t) * (b + c) / 2 + x) * special.ive(0, x)

    edges = np.linspace(0, 1, 21)
    accept(p_of_squares(v[:, 0] ** 2, density, edges), "squared cosine")
    reject(p_of_squares(v[:, 0] ** 2, lambda t: density(t, 2 * a), edges), "twice the exponent")


@pytest.mark.parametrize("a", [2.0, 15.0, 60.0])
@pytest.mark.sample(every=5)
def test_ten_dimensions(a, tolerance):
    # Eigenvalues a, four times a / 3, five times 0. Of what the first leaves, a Beta(2, 5/2) part is in the next four.
    turn = rotation(10, seed=3)
    matrix = turn @ np.diag([a] + [a / 3] * 4 + [0.0] * 5) @ turn.T
    v = draws((matrix + matrix.T) / 2, 6000, seed=2, tolerance=tolerance) @ turn

    def density(t, a=a):
        return np.exp(a * (t - 1)) * (1 - t) ** 3.5 * special.hyp1f1(2, 4.5, (1 - t) * a / 3)

    edges = np.quantile(v[:, 0] ** 2, np.linspace(0, 1, 17)).round(3)
    edges[[0, -1]] = 0, 1
    accept(p_of_squares(v[:, 0] ** 2, density, edges), "squared cosine")
    reject(p_of_squares(v[:, 0] ** 2, lambda t: density(t, 1.5 * a), edges), "half as much again in the exponent")


@pytest.mark.parametrize("tolerance", [0.0, 1e-6])
@pytest.mark.sample(every=3)
def test_many_dimensions(tolerance):
    # One record in a direction that is no axis. With a tolerance, the root is triangular.
    size, a = LEAST_SIZE, 60.0
    direction = rotation(size)[0]
    v = draws(a * np.outer(direction, direction), 3000, tolerance=tolerance) @ direction

    def density(t, a=a):
        return np.exp(a * (t - 1)) * (1 - t) ** ((size - 3) / 2)

    edges = np.quantile(v**2, np.linspace(0, 1, 17)).round(3)
    edges[[0, -1]] = 0, 1
    accept(p_of_squares(v**2, density, edges), "squared cosine")
    reject(p_of_squares(v**2, lambda t: density(t, 1.1 * a), edges), "a tenth more in the exponent")


@pytest.mark.sample(every=2)
def test_components_of_equal_eigenvalues_are_alike():
    v = draws(np.diag([9.0, 9.0, 0.0, 0.0]), 4000)
    angle = np.arctan2(v[:, 1], v[:, 0])
    accept(stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue, "angle in the plane of the first two")


# --- the sampler --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5, 30])
def test_doubles_and_exact_arithmetic_decide_alike(size, tolerance, monkeypatch):
    whole = bingham.filtered_bernoulli_exp
    seen = []

    def both(gamma, error, decide, stream):
        prefixes = {}

        def note(i, prefix):
            prefixes[i] = prefix
            return False

        # First with errors that leave all in doubt, for the same words.
        copy = NoiseSource(77).stream("words")
        whole(gamma, np.full_like(gamma, 1e9), note, copy)
        outcome = whole(gamma, error, decide, NoiseSource(77).stream("words"))
        exact = [decide(i, prefixes[i]) for i in range(len(gamma))]
        np.testing.assert_array_equal(outcome, exact)
        seen.append(outcome)
        return outcome

    monkeypatch.setattr(bingham, "filtered_bernoulli_exp", both)
    matrix = np.diag(np.linspace(0, 20, size))
    for seed in range(6):
        bingham_direction(matrix, BITS, NoiseSource(seed).stream("x"), tolerance)
    outcomes = np.concatenate(seen)
    assert 0 < outcomes.mean() < 1


@pytest.mark.parametrize("bits", [4, 24])
@pytest.mark.parametrize("shape_of", [np.copy, np.triu])
def test_rounding_is_that_of_exact_arithmetic(bits, shape_of):
    rng = np.random.default_rng(0)
    root = shape_of(rotation(7) * rng.uniform(0.1, 1, 7))
    proposals = _Proposals(root, 20, NoiseSource(4).stream("x"))
    error = proposals._normals.error
    for candidate in range(20):
        proposals._normals.error = error
        by_doubles = proposals._rounded(candidate, bits)
        z = proposals._normals.value.reshape(20, 7)[candidate]
        y = root @ z
        np.testing.assert_allclose(by_doubles * 2.0**-bits, y / np.linalg.norm(y), atol=0.51 * 2.0**-bits)
        proposals._normals.error = np.inf
        np.testing.assert_array_equal(proposals._rounded(candidate, bits), by_doubles)


def test_normals_that_doubles_lost_are_found_again():
    proposals = _Proposals(rotation(4), 6, NoiseSource(4).stream("x"))
    _, error = proposals._exponents()
    assert np.all(error < 1e-6)
    value = proposals._normals.value.copy()
    proposals._normals.value[5], proposals._normals.error = 0.0, np.inf
    _, error = proposals._exponents()
    assert np.all(error >= 1e9)
    rounded = proposals._rounded(1, BITS) * 2.0**-BITS
    y = rotation(4) @ value[4:8]
    np.testing.assert_allclose(rounded, y / np.linalg.norm(y), atol=1e-7)


@pytest.mark.parametrize(("size", "gap", "least"), [(2, 40.0, 0.5), (10, 40.0, 0.2), (100, 400.0, 0.05)])
def test_enough_candidates_are_accepted(size, gap, least, monkeypatch):
    counts = []
    whole = bingham.filtered_bernoulli_exp

    def counting(*args):
        counts.append(whole(*args))
        return counts[-1]

    monkeypatch.setattr(bingham, "filtered_bernoulli_exp", counting)
    for spectrum in (np.r_[gap, np.zeros(size - 1)], np.linspace(0, gap, size), np.zeros(size)):
        counts.clear()
        draws(np.diag(spectrum), 100)
        assert np.concatenate(counts).mean() > least


def test_envelope_solves_its_equation():
    for gaps in (np.zeros(5), np.r_[0.0, np.full(9, 1e6)], np.linspace(0, 30, 40)):
        b = _envelope(gaps, np.ones(len(gaps)))
        assert 1 <= b <= len(gaps)
        assert np.sum(1 / (b + gaps)) == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize("scale", [1e-300, 1e15])
def test_extreme_matrices(scale):
    v = draws(scale * np.diag([1.0, 0.5, 0.0]), 20)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, atol=1e-6)
    if scale > 1:
        np.testing.assert_allclose(np.abs(v[:, 0]), 1, atol=1e-6)


def test_one_dimension_has_one_direction():
    assert bingham_direction(np.array([[3.0]]), 10, NoiseSource(0).stream("x")).tolist() == [1024]


def test_mechanism_leaves_a_part_of_the_exponent_to_rounding():
    mechanism = BinghamMechanism(0.5, 9.0)
    assert mechanism.scale == 18 * (1 + MARGIN)
    matrix = np.diag([100.0, 0.0])
    released = mechanism.release(matrix, NoiseSource(3).stream("x"))
    points = bingham_direction(matrix / mechanism.scale, LATTICE_BITS, NoiseSource(3).stream("x"))
    np.testing.assert_array_equal(released, points * 2.0**-LATTICE_BITS)


def inverse(matrix):
    """Invert a matrix of fractions."""
    m = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(m)] for i, row in enumerate(matrix)]
    for i in range(m):
        pivot = max(range(i, m), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(m):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[m:] for row in rows]


def exponent(mechanism, matrix, monkeypatch):
    """The quadratic form of the density that is drawn from, exactly: minus half the inverse of M M'."""

    class SeenError(Exception):
        pass

    def note(root, *args):
        raise SeenError(root.tolist())

    with monkeypatch.context() as patch:
        patch.setattr(bingham, "_Proposals", note)
        with pytest.raises(SeenError) as seen:
            mechanism.release(matrix, NoiseSource(0).stream("x"))
    root = [[Fraction(x) for x in row] for row in seen.value.args[0]]
    product = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in root] for u in root]
    return [[-x / 2 for x in row] for row in inverse(product)]


def moments(spectrum, seed):
    turn = rotation(len(spectrum), seed)
    matrix = turn @ np.diag(spectrum) @ turn.T
    return (matrix + matrix.T) / 2


def distance(root, matrix):
    """Half the range of the error of the exponent, exactly: x'(M M')^-1 x / 2 + x'A x is constant on the sphere."""
    form = inverse([[sum(a * b for a, b in zip(u, v, strict=True)) for v in root] for u in root])
    error = [[f / 2 + a for f, a in zip(*rows, strict=True)] for rows in zip(form, fractions(matrix), strict=True)]
    error = [[float(x - error[0][0] * (i == j)) for j, x in enumerate(row)] for i, row in enumerate(error)]
    values = np.linalg.eigvalsh(error)
    return (values[-1] - values[0]) / 2


def fractions(matrix):
    return [[Fraction(x) for x in row] for row in matrix.tolist()]


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("largest", [1.0, 1e3, 1e6])
def test_bound_on_the_error_of_a_triangular_root(size, largest):
    for seed in range(3):
        matrix = moments(largest * np.random.default_rng(seed).uniform(size=size) ** 3, seed)
        root, error = _triangular_root(matrix)
        assert np.array_equal(root, np.triu(root))
        assert distance(fractions(root), matrix) <= error < 1e4 * 2.0**-53 * max(largest, size) ** 1.5
        wrong = root.copy()
        wrong[0, 0] *= 1 + 20 * error * wrong[0, 0] ** 2
        assert distance(fractions(wrong), matrix) > error


@pytest.mark.parametrize(
    "matrix",
    [
        1e12 * np.diag([1.0] + [0.0] * (LEAST_SIZE - 1)),
        1e200 * np.diag(np.arange(LEAST_SIZE)),
        np.diag([1e9, 1e9, 1e9] + [0.0] * (LEAST_SIZE - 3)),
    ],
)
def test_without_a_proof_there_are_eigenvectors(matrix):
    # The error of a double is more than the tolerance.
    assert _triangular_root(matrix)[1] > ROOT_ERROR
    v = draws(matrix, 3, tolerance=ROOT_ERROR)
    np.testing.assert_array_equal(v, draws(matrix, 3))
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose((v * v) @ np.diagonal(matrix) / matrix.max(), 1, atol=1e-6)


@pytest.mark.parametrize(("score", "multiple"), [(0, 1), (50, 1), (0, 0.01), (0, 99)])
def test_without_a_good_envelope_there_are_eigenvectors(score, multiple, monkeypatch):
    # All eigenvalues are taken for zeros. Then a matrix is not definite, or few candidates would be accepted.
    matrix = np.zeros((LEAST_SIZE, LEAST_SIZE))
    matrix[0, 0] = score
    estimates = np.zeros(LEAST_SIZE), np.full(LEAST_SIZE, multiple)
    monkeypatch.setattr(bingham, "_ritz_values", lambda _: estimates)
    good = (score, multiple) == (0, 1)
    assert (_triangular_root(matrix)[1] < np.inf) == good
    if not good:
        np.testing.assert_array_equal(draws(matrix, 3, tolerance=1.0), draws(matrix, 3))


def test_after_refused_batches_there_are_eigenvectors():
    # Lanczos' method finds one eigenvalue only if its first vector is the eigenvector.
    first = np.random.default_rng(0).normal(size=200)
    first /= np.linalg.norm(first)
    matrix = 50 * np.outer(first, first)
    assert _triangular_root(matrix)[1] < 1e-6
    found = bingham_direction(matrix, BITS, NoiseSource(1).stream("direction"), 1e-6) * 2.0**-BITS
    assert abs(np.linalg.norm(found) - 1) < 1e-4


@pytest.mark.parametrize("spectrum", [np.zeros(LEAST_SIZE), 300 * np.linspace(0, 1, LEAST_SIZE) ** 4])
def test_a_triangular_root_accepts_about_as_many(spectrum):
    matrix = moments(spectrum, 0)
    by_kind = []
    for root in (_triangular_root(matrix)[0], None):
        if root is None:
            values, vectors = np.linalg.eigh(matrix)
            gaps = 2 * (values[-1] - values)
            root = vectors / np.sqrt(_envelope(gaps, np.ones(LEAST_SIZE)) + gaps)
        gamma, _ = _Proposals(root, 1000, NoiseSource(0).stream("x"))._exponents()
        by_kind.append(np.exp(-gamma).mean())
    assert by_kind[0] > 0.5 * by_kind[1] > 0.01


def worst_ratio(size, monkeypatch, largest=2.0**30):
    """What one record moves the exponents by, as a part of epsilon, at its largest over some matrices."""
    mechanism = BinghamMechanism(0.5, 1.0)
    worst = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        # Sums of records, whose entries are on a lattice: one more adds without an error.
        spectrum = np.rint(largest * rng.uniform(size=size)) * (np.arange(size) < 2)
        turn = rotation(size, seed)
        matrix = np.rint(2.0**10 * turn @ np.diag(spectrum) @ turn.T) / 2.0**10
        matrix = (matrix + matrix.T) / 2
        record = np.rint(2.0**5 * turn[:, seed % size] * (1 - 2.0**-4)) / 2.0**5
        record /= max(np.linalg.norm(record), 1)
        record = np.trunc(2.0**5 * record) / 2.0**5
        one, more = (exponent(mechanism, m, monkeypatch) for m in (matrix, matrix + np.outer(record, record)))
        moved = np.array([[float(b - a) for a, b in zip(u, v, strict=True)] for u, v in zip(one, more, strict=True)])
        values = np.linalg.eigvalsh(moved)
        worst = max(worst, (values[-1] - values[0]) / (0.5 * float(record @ record)))
    return worst


@pytest.mark.parametrize("size", [3, 6])
def test_margin_covers_the_rounding_of_the_matrix(size, monkeypatch):
    # The exponents of two neighbours differ by a range of no more than epsilon, in the law that is drawn from.
    assert 0.99 < worst_ratio(size, monkeypatch) <= 1
    monkeypatch.setattr(bingham, "MARGIN", 0.0)
    assert worst_ratio(size, monkeypatch) > 1


@pytest.mark.parametrize("size", [3, 6])
def test_margin_covers_the_error_of_a_triangular_root(size, tolerance, monkeypatch):
    # With this spectrum, its bound is below the tolerance of the mechanism.
    assert 0.99 < worst_ratio(size, monkeypatch, 2.0**16) <= 1
