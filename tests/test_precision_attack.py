"""Attacks on floating point, repeated: which outputs are possible, what their low-order bits say, and how sums round.

Noise as NumPy draws it gives itself away; releases of the library do not. Guesses are tested at tiny epsilons, where
hardly anything but bits could tell neighbours apart. Each such test fails with probability 1e-6 at most if nothing is
wrong.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from skdp.decomposition import ExpMechPCA
from skdp.linear_model import ExpMechERM, ObjPertLogReg, OutputPertLogReg
from skdp.local import LocalLaplace, PiecewiseMechanism
from skdp.mechanisms import (
    BinghamMechanism,
    DiscreteLaplaceMechanism,
    GammaMechanism,
    GaussianMechanism,
    LocalMechanism,
    SampledGaussianMechanism,
    TangentPlaneMechanism,
    bingham,
    gaussian,
    tangent_planes,
)
from skdp.mechanisms._base import from_lattice, lattice_step, to_lattice
from skdp.mechanisms.gaussian import RoundedMechanism
from skdp.preprocessing import DPStandardScaler, _scaling
from skdp.release.session import ReleaseSession
from skdp.synthetic import DPTableGenerator
from tests.bit_attacks import NumPySampler, attack, most_right, read
from tests.estimators import ONE_EACH, PERTURBATION, data_for, declared, name_of, needs_y, released
from tests.mechanisms.streams import Replay, stream
from tests.neighbours import COMPARED, inputs_of_both

#: At these, nobody who sees an output can be right with probability 1/2 + 1e-5.
EPSILON, DELTA = 1e-6, 1e-5


def tells_nothing(outcome, epsilon=EPSILON, delta=DELTA):
    assert outcome.surely <= most_right(epsilon, delta), f"{outcome.correct} of {outcome.trials} guesses are right"


def tells(outcome):
    assert outcome.surely > 0.6, f"{outcome.correct} of {outcome.trials} guesses are right: the attack has no teeth"


# --- Possible outputs ---------------------------------------------------------------------------------------------

#: How noise is drawn, what undoes it, and the least share of outputs that one of two values is excluded by.
NAIVE = {
    "Generator.laplace": (lambda scale: np.random.default_rng(1).laplace(0, scale, 300), "reaches_laplace", 0.7),
    "RandomState.normal": (lambda scale: np.random.RandomState(1).normal(0, scale, (200, 2)), "reaches_polar", 0.85),
    "Generator.normal": (lambda scale: np.random.default_rng(1).normal(0, scale, 2000), "reaches_ziggurat", 0.02),
}


@pytest.mark.parametrize("name", NAIVE)
@pytest.mark.parametrize("scale", [1.0, 1e6], ids=["noise of one record", "noise of a million"])
def test_outputs_of_naive_noise_exclude_one_of_two_values(name, scale):
    draw, reaches, least = NAIVE[name]
    reaches = getattr(NumPySampler(), reaches)
    excluded = []
    for value, other in ((0.0, 1.0), (1.0, 0.0)):
        outputs = value + draw(scale)
        assert all(reaches(output, value, scale) for output in outputs)
        excluded += [not reaches(output, other, scale) for output in outputs]
    assert np.mean(excluded) > least


def words_for(mechanism, steps):
    """Words that the sampler makes noise of so many steps of: for each normal, a point of the strip that it is in."""
    scale, words, heights = mechanism.scale / mechanism.step, [], []
    if isinstance(mechanism, GammaMechanism):
        # Small uniforms for the factor, which make it large.
        words = [2**56] * ((mechanism.size + 1) // 2)
        scale *= math.sqrt(-2 * len(words) * math.log(2.0**-8 + 2.0**-54))
    for normal in steps / scale:
        prefix = math.floor(normal * 2.0**53)
        strip, within = divmod(prefix, 2**47)
        # Of the pieces of a strip, the lowest; where the curve passes through, a height of 0 is below it.
        head = np.flatnonzero((max(strip, ~strip) << 47 == gaussian._SHIFTED_STRIP) & (gaussian._RANK == 0))[0]
        words.append(int(head) | within << 16 | (prefix < 0) << 63)
        heights += [0] * int(head >= gaussian._BELOW)
    return words + heights


@pytest.mark.parametrize(
    "mechanism",
    [GaussianMechanism(1.0, 1.0, 2), GaussianMechanism(EPSILON, 1.0, 4), GammaMechanism(1.0, 1.0, 3)],
    ids=repr,
)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e3, -1e-300])
def test_every_output_of_the_library_is_possible_for_its_neighbour(mechanism, value):
    # Not by argument, but with bits that make it.
    bits = stream("possible")
    first, second = np.full(mechanism.size, value), np.full(mechanism.size, value)
    second[0] += 1.0
    for _ in range(100):
        output = mechanism.release(first, bits)
        steps = output / mechanism.step - to_lattice(second, mechanism.step)
        again = mechanism.release(second, Replay(words_for(mechanism, steps), bits))
        np.testing.assert_array_equal(again, output)


# --- Low-order bits -----------------------------------------------------------------------------------------------


def granularity(mechanism):
    """The step of the lattice that releases lie on, from public parameters; None if they are positions in a list."""
    if isinstance(mechanism, BinghamMechanism):
        return 2.0**-bingham.LATTICE_BITS
    if isinstance(mechanism, TangentPlaneMechanism):
        return math.ldexp(mechanism.radius, -tangent_planes.LATTICE_BITS)
    return getattr(mechanism, "step", None)


def draws(mechanism, value, n, label):
    """Release a value again and again."""
    bits = stream(label)
    if isinstance(mechanism, SampledGaussianMechanism):
        many = replace(mechanism, n_steps=n, rate=1.0)
        return np.array([send(np.copy(value)).ravel() for _, send in many.steps(0, bits, bits)])
    return np.array([np.ravel(mechanism.release(value, bits)) for _ in range(n)])


MECHANISMS = [
    GaussianMechanism(EPSILON, 1.0, 3),
    GammaMechanism(EPSILON, 1.0, 3),
    DiscreteLaplaceMechanism(EPSILON, 1.0, 3),
    DiscreteLaplaceMechanism(EPSILON, 1.0, 3, 2.0**-20),
    SampledGaussianMechanism(EPSILON, 1.0, 3, 1),
]

#: Values of neighbours: round numbers, those with many bits, small ones, beyond what doubles count, out of the lattice.
PAIRS = [(0.0, 1.0), (0.1, 1.1), (0.0, 5e-324), (2.0**53 - 1, 2.0**53), (-1e300, 1e-300 - 1e300)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_bits_of_noisy_numbers_tell_nothing(mechanism, pair):
    values = [np.array([0.3, value, -7.0]) for value in pair]
    if isinstance(mechanism, DiscreteLaplaceMechanism) and pair[0] == 0.1:
        values = [np.rint(value / mechanism.step) * mechanism.step for value in values]
    both = [draws(mechanism, value, 400, f"draws {value}") for value in values]
    tells_nothing(attack(*(read(outputs, values, mechanism.step) for outputs in both)))


def neighbours(estimator, n_rows=60):
    """Data, and the same with one record more, at an edge of the bounds."""
    X, y = data_for(estimator, n_rows=n_rows)
    corner = np.where(np.arange(X.shape[1]) % 2, 5.0, -5.0)[None]
    # Also a category.
    corner[0, 0] = 1.0
    without, with_it = (X,), (np.concatenate([X, corner]),)
    return ((*without, y), (*with_it, np.append(y, y[:1]))) if needs_y(estimator) else (without, with_it)


def in_brief(estimator):
    """A copy with a tiny budget, that takes few steps."""
    steps = {"n_steps": 2} if "n_steps" in estimator.get_params() else {}
    return declared(estimator, epsilon=EPSILON, random_state=3, **steps)


def guesses(estimator, data=None, reaches=None):
    """Attack what a fit releases of two neighbours: yield a label, and how often the attacker is right."""
    model = in_brief(estimator)
    without, with_it = inputs_of_both(model, *(data or neighbours(estimator)), read=lambda value, _: value)
    for place, release in without.items():
        mechanism, value, label = release.mechanism, release.value, release.label
        step = granularity(mechanism)
        # Of a descent, the first step.
        if step is None or place[-1]:
            continue
        other = with_it[place].value
        if isinstance(mechanism, BinghamMechanism | TangentPlaneMechanism):
            # The release is no noisy version of what goes into it.
            values, moved = [np.zeros(1)] * 2, slice(None)
        else:
            moved = np.flatnonzero(np.ravel(value) != np.ravel(other))
            values = [np.ravel(v)[moved] for v in (value, other)]
            if not len(moved):
                continue
        outputs = [draws(mechanism, v, 60, f"{label} {k}")[:, moved] for k, v in enumerate((value, other))]
        sampler = reaches and (lambda output, value, scale=mechanism.scale: reaches(output, value, scale))
        yield label, attack(*(read(output, values, step, sampler) for output in outputs))


@pytest.mark.parametrize("estimator", COMPARED, ids=name_of)
def test_bits_of_what_fits_release_tell_nothing(estimator):
    outcomes = [outcome for _, outcome in guesses(estimator)]
    for outcome in outcomes:
        tells_nothing(outcome)
    plan = in_brief(estimator).fit(*neighbours(estimator)[0]).privacy_
    planned = any(granularity(release.mechanism) is not None for release in plan.releases)
    # The plan of a generator of tables has one release, from which others are reserved.
    assert bool(outcomes) == (planned or isinstance(estimator, DPTableGenerator))


RELEASE = RoundedMechanism.release


def naive(self, value, stream):
    """What is common: noise in doubles on top of the value."""
    return value + np.random.default_rng(stream.words(4)).laplace(0, self.scale, np.shape(value))


def in_single_precision(self, value, stream):
    """Noise of few bits, on the lattice."""
    steps = np.random.default_rng(stream.words(4)).normal(size=np.shape(value)).astype(np.float32)
    steps *= np.float32(2.0 ** round(math.log2(self.scale / self.step)))
    return from_lattice(to_lattice(value, self.step) + steps.astype(np.int64), self.step)


def not_rounded(self, value, stream):
    """Exact noise on top of a value that is not on the lattice."""
    return value + RELEASE(self, np.zeros(np.shape(value)), stream)


def lattice_of_the_data(self, value, stream):
    """As fine as numbers of the size of the value are."""
    step = lattice_step(np.abs(value).max(), 10)
    return from_lattice(to_lattice(RELEASE(self, value, stream), step), step)


@pytest.mark.parametrize("leak", [naive, in_single_precision, not_rounded, lattice_of_the_data])
def test_attack_has_teeth(leak, monkeypatch):
    estimator = OutputPertLogReg(data_norm=5.0, delta=DELTA)
    data, reaches = None, None
    if leak is lattice_of_the_data:
        # The largest of the numbers is that of the records: 63, or 64.
        estimator = DPStandardScaler(bounds=(-5.0, 5.0), delta=DELTA)
        data = neighbours(estimator, n_rows=63)
    if leak is naive:
        reaches = NumPySampler().reaches_laplace
    for _, outcome in guesses(estimator, data, reaches):
        tells_nothing(outcome)
    monkeypatch.setattr(RoundedMechanism, "release", leak)
    for _, outcome in guesses(estimator, data, reaches):
        tells(outcome)


# --- Fitted models ------------------------------------------------------------------------------------------------

#: Those whose attributes are made of more than counts.
SOLVED = [
    estimator
    for estimator in [*ONE_EACH, *PERTURBATION]
    if type(estimator).__module__.split(".")[1] in ("linear_model", "neural_network", "decomposition", "preprocessing")
    or type(estimator).__name__ in ("DPKMeans", "DPNaiveBayes", "DPRandomTree", "DPRandomTreeRegressor")
]


def guess_by_attributes(estimator):
    """Attack fitted attributes of two neighbours."""
    model = in_brief(estimator)
    fits = [
        np.array([released(model.set_params(random_state=100 * k + i).fit(*data)) for i in range(50)])
        for k, data in enumerate(neighbours(estimator))
    ]
    step = granularity(model.privacy_.releases[-1].mechanism)
    return attack(*(read(numbers, (np.zeros(1),), step) for numbers in fits))


@pytest.mark.parametrize("estimator", SOLVED, ids=name_of)
def test_bits_of_fitted_attributes_tell_nothing(estimator):
    tells_nothing(guess_by_attributes(estimator))


def test_attack_on_attributes_has_teeth(monkeypatch):
    monkeypatch.setattr(RoundedMechanism, "release", in_single_precision)
    tells(guess_by_attributes(OutputPertLogReg(data_norm=5.0, delta=DELTA)))


def steps_of_the_objective(model, X, y):
    """What the objective's noise must have been for data, in steps of its lattice, from the solution alone."""
    theta, sign = model.coef_[0], np.where(y == 1, 1.0, -1.0)
    pull = (sign / (1 + np.exp(sign * (X @ theta)))) @ X
    return (model.C_ * pull - theta) / model.privacy_.releases[0].mechanism.step


@pytest.mark.parametrize("noise_on_top", [True, False])
def test_a_solution_does_not_tell_which_objective_it_solves(noise_on_top, monkeypatch):
    # The objective's noise lies on a lattice. For the right data, an exact solution leads back to it.
    model = in_brief(ObjPertLogReg(data_norm=20.0, fit_intercept=False, delta=DELTA))
    both = neighbours(model)
    if not noise_on_top:
        release = ReleaseSession.release
        monkeypatch.setattr(
            ReleaseSession,
            "release",
            lambda self, label, value: value if np.any(value) else release(self, label, value),
        )
    features = []
    for k, data in enumerate(both):
        places = []
        for i in range(60):
            model.set_params(random_state=100 * k + i).fit(*data)
            places.append([steps_of_the_objective(model, *other) % 1 for other in both])
        features.append((np.array(places) * 64).astype(int).transpose(1, 0, 2))
    (tells_nothing if noise_on_top else tells)(attack(*features))


# --- Sums ---------------------------------------------------------------------------------------------------------

#: Released are functions of sums of what each record adds by itself. Others find a minimum, by a stated residual, or
#: draw at random which block a row belongs to.
SUMMED = [
    estimator
    for estimator in COMPARED
    if type(estimator).__name__
    not in ("OutputPertLogReg", "ExpMechERM", "SampleAggregate", "SampleAggKMeans", "PATEClassifier")
]


def awkward(estimator, n_rows, order, dtype):
    """Rows of very different sizes, most of which round when they are added."""
    X, y = data_for(estimator, n_rows=n_rows)
    X *= 10.0 ** np.random.default_rng(1).integers(-9, 3, size=(n_rows, 1))
    return np.asarray(X, dtype=dtype, order=order), y


def order_matters(estimator, n_rows, order, dtype):
    """Whether any release of a fit is of another number if the rows are in another order."""
    model = in_brief(estimator).set_params(epsilon=1.0)
    if getattr(model, "batch_size", None) is not None:
        model.set_params(batch_size=1.0)
    X, y = awkward(model, n_rows, order, dtype)
    turned = np.asarray(X[::-1], order=order)
    data = [(X, y), (turned, y[::-1])] if needs_y(model) else [(X,), (turned,)]
    first, second = inputs_of_both(model, *data)
    return any(not np.array_equal(release.value, second[place].value) for place, release in first.items())


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
@pytest.mark.parametrize("estimator", SUMMED, ids=name_of)
def test_the_order_of_rows_does_not_matter_in_any_bit(estimator):
    # One row more than blocks have, so that another row is alone.
    assert not order_matters(estimator, 2049, "C", np.float64)
    assert not order_matters(estimator, 129, "F", np.float32)


def in_floating_point(monkeypatch):
    """Add up numbers of all their bits, as is common."""
    monkeypatch.setattr(_scaling, "moment_bits", lambda *_: None)


def test_sums_in_floating_point_depend_on_the_order(monkeypatch):
    in_floating_point(monkeypatch)
    assert order_matters(DPStandardScaler(bounds=(-5.0, 5.0), delta=DELTA), 2049, "C", np.float64)


def moved_too_far(mechanism, first, second):
    """Whether the points that are noised are further apart than the noise is made for, in exact arithmetic."""
    step, scale = Fraction(mechanism.step), Fraction(mechanism.scale)
    points = [[round(Fraction(v) / step) for v in np.ravel(value).tolist()] for value in (first, second)]
    distances = [a - b for a, b in zip(*points, strict=True)]
    if mechanism.norm == "L1":
        return step * sum(map(abs, distances)) > mechanism.lattice_scale * step * Fraction(mechanism.epsilon)
    return step**2 * sum(d * d for d in distances) > (scale * Fraction(mechanism.parameter)) ** 2


def growing(estimator, n_rows, half_unit=2.0**-51):
    """Rows of 5 and 2.5 units of its last place: they round down, or up if another 5 makes the sum's units larger."""
    X, y = data_for(estimator, n_rows=n_rows)
    X[:] = 2.5 * half_unit
    X[0] = 5.0
    return X, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_record_moves_a_sum_in_floating_point_by_more_than_itself(dtype):
    # The example of Casacuberta and others.
    unit = 4 * float(np.finfo(dtype).eps)
    rows = growing(DPStandardScaler(), 500, unit / 2)[0].astype(dtype)
    sums = [float(part.sum(axis=0)[0]) for part in (rows, np.concatenate([rows[:1], rows]))]
    assert sums[1] - sums[0] == 5 + 499 * unit
    if dtype is np.float32:
        assert moved_too_far(GaussianMechanism(1.0, 5.0, 1), *sums)
        assert not moved_too_far(GaussianMechanism(1.0, 5.0, 1), sums[0], sums[0] + 5.0)


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide:skdp.exceptions.SchemaMismatchWarning")
@pytest.mark.parametrize("estimator", COMPARED, ids=name_of)
def test_rounding_adds_nothing_to_what_a_record_moves(estimator):
    model = in_brief(estimator).set_params(epsilon=1.0)
    # In the middle, unless bits are drawn for rows one after the other.
    in_order = estimator not in SUMMED or getattr(model, "batch_size", None) not in (None, 1.0)
    for X, y in (awkward(model, 130, "C", np.float64), growing(model, 130)):
        place = len(X) if in_order else 17
        for size in (-5.0, 1e300):
            with_it = np.insert(X, place, size, axis=0), np.insert(y, place, y[0])
            data = [(X, y), with_it] if needs_y(model) else [(X,), with_it[:1]]
            first, second = inputs_of_both(model, *data)
            noisy = {at: release for at, release in first.items() if hasattr(release.mechanism, "step")}
            for at, release in noisy.items():
                assert not moved_too_far(release.mechanism, release.value, second[at].value)
            if not noisy:
                # What is released is a position in a list.
                return


# --- Lattices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("size", [0.0, -0.0, 5e-324, 1e-3, 2.0**53, 2.0**61, 1e300, math.inf])
def test_whatever_is_released_lies_on_a_public_lattice(mechanism, size):
    for value in (size, -size):
        outputs = draws(mechanism, np.full(3, value), 20, f"lattice {size}")
        steps = outputs / mechanism.step
        assert np.array_equal(steps, np.rint(steps))
        assert np.isfinite(outputs).all()
        # The sign of a zero would be one of what it was rounded from.
        assert not np.signbit(outputs[outputs == 0]).any()


def test_directions_and_points_lie_on_a_public_lattice():
    X, y = data_for(ExpMechERM(data_norm=1.0))
    for estimator in (ExpMechPCA(2, data_norm=4.0), ExpMechERM(data_norm=4.0, classes=[0, 1])):
        kept = []

        class Kept(ReleaseSession):
            def release(self, label, value, kept=kept):
                mechanism = self.mechanism(label)
                kept.append((mechanism, super().release(label, value)))
                return kept[-1][1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"{type(estimator).__module__}.ReleaseSession", Kept)
            for scale in (1e-6, 1.0, 1e6):
                estimator.set_params(random_state=1).fit(scale * X, y)
        for mechanism, output in kept:
            steps = output / granularity(mechanism)
            assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("kind", [LocalLaplace, PiecewiseMechanism])
@pytest.mark.parametrize("n_reported", ["all", 1])
def test_local_reports_are_functions_of_integers(kind, n_reported, monkeypatch):
    # Two data sets share all reports that have the same integer.
    release, integers = LocalMechanism.release, []

    def kept(self, value, stream):
        integers.append(release(self, value, stream))
        return integers[-1]

    monkeypatch.setattr(LocalMechanism, "release", kept)
    X = np.random.default_rng(0).normal(size=(400, 2)) * [0.1, 1e3]
    local = kind((-1.0, 1.0), epsilon=2.0, n_reported=n_reported, random_state=0)
    reports = [local.fit_transform(rows) for rows in (X, np.nextafter(X, 2), -1e-300 * X)]
    for column in (0, 1):
        codes, values = (np.concatenate([part[:, column] for part in parts]) for parts in (integers, reports))
        assert len(set(zip(codes.tolist(), values.tolist(), strict=True))) == len(set(codes.tolist()))
