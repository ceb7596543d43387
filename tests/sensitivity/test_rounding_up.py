"""Every closed form is rounded up, covers the rounding of entries, and is no larger than that: against 60 digits."""

import decimal
from decimal import Decimal

import numpy as np
import pytest

from skdp import sensitivity
from skdp.sensitivity import POLYNOMIAL_BITS, SUM_BITS
from skdp.sensitivity._polynomials import bernstein_matrix

STEP = Decimal(2) ** -SUM_BITS

#: Arguments that are integers are below these: numbers of columns, and degrees.
LARGEST = {"n": 300, "k": 5}


def errors_of_powers(degree):
    """The errors of cubes and fourth powers, times the coefficients of Bernstein's polynomials."""
    largest = {3: Decimal(1), 4: 2 + Decimal(2) ** -10}
    matrix = bernstein_matrix(int(degree))
    errors = [abs(Decimal(row[power])) * largest[power] for row in matrix for power in range(3, len(row))]
    return sum(errors, Decimal(0)) * Decimal(2) ** -(POLYNOMIAL_BITS + 1)


def sqrt(x):
    return Decimal(x).sqrt()


def hypot(*values):
    return sqrt(sum(v * v for v in values))


def scaling(size):
    """The relative error that the scaling of a row of doubles is granted."""
    return 1 + max(Decimal(2) ** -40, size * Decimal(2) ** -50)


# The arguments of each bound (n is an integer from 1 to 300, x a number), and the bound without rounding of doubles.
FORMS = {
    "cells_l2": ("nxx", lambda d, a, b: hypot(a, scaling(d) + STEP * sqrt(d) / 2, b * (1 + STEP))),
    "cells_l1": ("nxx", lambda d, a, b: a + sqrt(d) * scaling(d) + d * STEP / 2 + b * (1 + STEP)),
    "blocks_l2": ("nn", lambda k, d: 2 * sqrt(k) * (scaling(d) + STEP * sqrt(d) / 2)),
    "blocks_l1": ("nn", lambda k, d: 2 * k * (sqrt(d) * scaling(d) + d * STEP / 2)),
    "class_sums_l2": ("nnx", lambda n, m, a: sqrt(n + m * (1 + a * a / 4))),
    "class_sums_l1": ("nnx", lambda n, m, a: n + m * (1 + a / 2)),
    "moments_l2": ("xxx", lambda z, u, w: z * hypot(z, w * u)),
    "weighted_moments_l2": (
        "xxxxnn",
        lambda z, u, w, c, a, b: sqrt(z**4 + (a * a - 1) * c**4 + (w * u) ** 2 * (z * z + (b * b - 1) * c * c)),
    ),
    "moments_l1": ("xx", lambda z, s: (s * s + z * z) / 2),
    "bernstein_l1": ("kn", lambda k, d: d * (1 + errors_of_powers(k))),
    "bernstein_l2": ("kn", lambda k, d: sqrt(d) * (1 + errors_of_powers(k))),
    "energies_l1": ("xx", lambda r, w: r * r + w),
    "energies_l2": ("xx", lambda r, w: hypot(r * r, w)),
    "row_sum_l2": ("xx", hypot),
    "centred_moments_l2": ("xxx", lambda r, s, c: hypot(r * r, s * r, c)),
    "minimizer_sensitivity": ("xxxx", lambda c, length, strong, tau: (c * length + 2 * tau) / strong),
    "solver_slack_sensitivity": ("xx", lambda strong, tau: 2 * tau / strong),
    "group_sensitivity": ("xn", lambda s, m: s * m),
}


@pytest.mark.parametrize("name", FORMS)
def test_bound_is_rounded_up(name):
    kinds, exact = FORMS[name]
    rng = np.random.default_rng(0)
    with decimal.localcontext(decimal.Context(prec=60)):
        for _ in range(200):
            arguments = [
                int(rng.integers(1, LARGEST[k])) if k in LARGEST else float(np.exp(rng.normal())) for k in kinds
            ]
            excess = (
                Decimal(getattr(sensitivity, name.removeprefix("weighted_"))(*arguments))
                / exact(*map(Decimal, arguments))
                - 1
            )
            assert 0 <= excess < 2e-12, (arguments, excess)


def test_norm_of_a_rounded_row_is_covered():
    for size in (1, 7, 5000):
        with decimal.localcontext(decimal.Context(prec=60)):
            exact = Decimal("1.75") * scaling(size) + Decimal(2) ** -10 * sqrt(size) / 2
            assert abs(Decimal(sensitivity.rounded_norm(1.75, size, 2.0**-10)) / exact - 1) < 1e-15
    # From 2**10 entries on, the rounding of their squares' sum counts.
    assert sensitivity.rounded_norm(1.0, 2**12, 0.0) >= 1 + 2.0**-38


def test_group_of_one_record_is_a_record():
    assert sensitivity.group_sensitivity(1.7, 1) == 1.7
