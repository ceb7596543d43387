"""The lattice that real values are moved to: steps, rounding, clipping. Nothing here is random but the data.

The one stochastic test has false-alarm probability 1e-6.
"""

import copy
import math
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from skdp.mechanisms import (
    DiscreteLaplaceMechanism,
    GammaMechanism,
    GaussianMechanism,
    NoNoise,
    SampledGaussianMechanism,
)
from skdp.mechanisms._base import from_lattice, lattice_step, to_lattice
from tests.mechanisms.streams import stream
from tests.statistics import accept, chi_square_integers, reject

CONTINUOUS = [GaussianMechanism(0.3, 2.0, 4), GammaMechanism(0.7, 2.0, 4)]


@pytest.mark.parametrize("scale", [1e-100, 0.1, 0.5, 1.0, 1.9999, 2.0, 3e7, 1e100])
@pytest.mark.parametrize("bits", [0, 10, 30])
def test_step_is_the_largest_power_of_two_within_the_limit(scale, bits):
    step = lattice_step(scale, bits)
    assert math.frexp(step)[0] == 0.5
    assert step <= scale * 2.0**-bits < 2 * step


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e6])
def test_outputs_are_multiples_of_the_step(mechanism, size):
    values = np.random.default_rng(0).normal(size=(500, 4)) * size
    bits = stream(f"multiples {size}")
    for value in values:
        steps = mechanism.release(value, bits) / mechanism.step
        assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_low_bits_of_the_output_tell_nothing_about_the_value(mechanism):
    # Values that agree but for their low bits give the very same output from the same bits.
    value = np.array([0.1, 0.2, 0.3, 0.4])
    near = np.nextafter(value, 1.0)
    released = mechanism.release(value, stream("low bits"))
    assert np.array_equal(released, mechanism.release(near, stream("low bits")))
    # The steps' last bits are uniform.
    bits = stream("last bits")
    steps = [mechanism.release(value, bits) / mechanism.step for _ in range(3000)]
    parity = np.concatenate(steps).astype(np.int64) % 4
    accept(chi_square_integers(parity, lambda k: 0.25, 0, 3), "last two bits")
    # The broken twin: noise in double precision on top of the value keeps the value's low bits.
    twin = np.floor(mechanism.step * np.concatenate(steps) / mechanism.step / 2) * 2
    reject(chi_square_integers(twin.astype(np.int64) % 4, lambda k: 0.25, 0, 3), "even steps")


def test_rounding_moves_each_coordinate_by_at_most_half_a_step():
    rng = np.random.default_rng(1)
    for step in (1.0, 2.0**-30, 2.0**20):
        values = rng.normal(size=2000) * step * 10.0 ** rng.integers(-2, 6, size=2000)
        for v, k in zip(values.tolist(), to_lattice(values, step).tolist(), strict=True):
            assert abs(Fraction(v) - k * Fraction(step)) <= Fraction(step) / 2


@pytest.mark.parametrize("p", [1, 2, 7, 100])
def test_rounding_adds_at_most_step_times_sqrt_p_to_a_distance(p):
    rng = np.random.default_rng(p)
    step = 2.0**-5
    worst = 0.0
    for trial in range(300):
        f = rng.normal(size=p)
        direction = rng.normal(size=p)
        neighbour = f + direction / np.linalg.norm(direction)
        if trial % 3 == 0:
            # Just above and just below half steps: each coordinate gains almost a whole step.
            f = (rng.integers(-50, 50, size=p) + 0.499) * step
            neighbour = f + step * 0.002
        distance = np.linalg.norm(f - neighbour)
        rounded = np.linalg.norm((to_lattice(f, step) - to_lattice(neighbour, step)) * step)
        worst = max(worst, (rounded - distance) / (step * math.sqrt(p)))
    assert worst <= 1
    assert worst >= 0.9


@pytest.mark.parametrize("kind", [GaussianMechanism, GammaMechanism])
@pytest.mark.parametrize("size", [1, 9, 50])
def test_the_sensitivity_that_is_noised_includes_the_rounding(kind, size):
    mechanism = kind(0.4, 3.0, size)
    parameter = 0.4
    assert 2 * mechanism.rounding == pytest.approx(mechanism.step * math.sqrt(size))
    assert mechanism.scale * parameter >= 3.0 + 2 * mechanism.rounding
    # A coarse lattice must show in the noise: here its steps are half the noise.
    coarse = kind(0.4, 3.0, size, lattice_bits=1)
    assert coarse.scale * parameter >= 3.0 + coarse.step * math.sqrt(size)
    assert coarse.scale > mechanism.scale * 1.1


def test_values_beyond_the_limit_are_moved_back_and_nothing_moves_apart():
    values = np.array([-math.inf, -1e300, -(2.0**62), -(2.0**61), 0.0, 2.0**61, 2.0**62, 1e300, math.inf])
    assert to_lattice(values, 1.0).tolist() == [-(2**61)] * 4 + [0] + [2**61] * 4
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000) * 2.0**61
    b = a + rng.normal(size=1000) * 2.0**59
    assert np.all(np.abs(to_lattice(a, 1.0) - to_lattice(b, 1.0)) <= np.abs(a - b) + 1)


def test_a_value_of_too_many_steps_is_moved_back_without_a_warning():
    assert to_lattice(np.array([1e300]), 2.0**-30).tolist() == [2**61]


@pytest.mark.parametrize("mechanism", CONTINUOUS, ids=repr)
def test_release_beyond_the_limit(mechanism):
    released = mechanism.release(np.full(4, -1e60), stream("beyond"))
    assert np.allclose(released, -(2.0**61) * mechanism.step)


def test_from_lattice_is_a_function_of_the_integers():
    assert from_lattice(np.array([-3, 0, 2**61]), 0.25).tolist() == [-0.75, 0.0, 2.0**59]


def test_no_noise_returns_a_copy_of_the_value():
    mechanism = NoNoise(2.0)
    value = np.array([1.0, math.pi])
    released = mechanism.release(value, stream("none"))
    assert np.array_equal(released, value)
    assert not np.shares_memory(released, value)
    assert mechanism.scale == 0.0
    assert mechanism == NoNoise(2.0)
    assert mechanism != NoNoise(3.0)
    assert mechanism != 2.0
    assert hash(mechanism) == hash(NoNoise(2.0))
    assert repr(mechanism) == "NoNoise(sensitivity=2.0)"


@pytest.mark.parametrize("mechanism", [*CONTINUOUS, DiscreteLaplaceMechanism(1.0, 2.0, 4)], ids=repr)
def test_mechanisms_are_frozen_values(mechanism):
    for other in (copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert other == mechanism
        assert hash(other) == hash(mechanism)
    with pytest.raises(AttributeError):
        mechanism.sensitivity = 0.0
    assert mechanism.norm in ("L1", "L2")
    assert mechanism.name
    assert mechanism.scale > 0


@pytest.mark.parametrize("sensitivity", [1e-90, 1e-3, 1e90])
@pytest.mark.parametrize("kind", [GaussianMechanism, GammaMechanism])
def test_any_unit_gives_the_same_noise_in_that_unit(kind, sensitivity):
    # In powers of two, the noise scales along exactly.
    unit = 2.0 ** round(math.log2(sensitivity))
    one = kind(0.5, 1.0, 3).release(np.zeros(3), stream("unit"))
    other = kind(0.5, unit, 3).release(np.zeros(3), stream("unit"))
    assert np.array_equal(one * unit, other)


@pytest.mark.parametrize("kind", [GaussianMechanism, GammaMechanism, partial(SampledGaussianMechanism, n_steps=1)])
@pytest.mark.parametrize(("parameter", "sensitivity"), [(1.0, 5e-324), (1.0, 1e-290), (1.0, 1e300), (1e-9, 1e305)])
def test_noise_whose_lattice_doubles_do_not_hold_is_refused(kind, parameter, sensitivity):
    with pytest.raises(ValueError, match="out of the range of doubles"):
        kind(parameter, sensitivity, 2)
