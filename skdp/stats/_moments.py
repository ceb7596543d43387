r"""Means, variances and standard deviations of all records, or by group.

For each column, one joint release holds the sums of a basis of the polynomials of a clipped and scaled value (see
``sensitivity/_polynomials.py``). The number of records and all power sums follow by a linear map. The degree is 2 for
means and 4 for variances, so that their sampling errors are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, PrivacyEvent
from ..mechanisms import Mechanism, within_reach
from ..release.estimates import Each, Quotient, combination
from ..release.session import Theorem
from ..schema.grid import scaled
from ..sensitivity import (
    POLYNOMIAL_BITS,
    POLYNOMIAL_ROWS,
    POLYNOMIAL_UNIT,
    bernstein_l1,
    bernstein_l2,
    bernstein_matrix,
    chebyshev_l2,
    chebyshev_matrix,
    exact_sum,
    polynomial_sums,
)
from ._call import Numbers
from ._noise import Sensitivity, norm_mechanism, pure_mechanism

Array = NDArray[np.float64]

THEOREM = Theorem("Statistics", 1)
LABEL = "moments"

# Weights of Chebyshev polynomials, by degree. For variances, degrees 3 and 4 are for intervals only.
_WEIGHTS = {2: (1.0, 1.0, 0.375), 4: (1.0, 1.0, 0.6875, 0.375, 0.375)}

# With fewer records than this many standard deviations of the noise of their number, a variance has no interval.
_FEWEST = 4.0

#: Variance of values that are uniform on [-1, 1].
_EVEN = 1 / 3


@dataclass(frozen=True, eq=False)
class Design:
    """The public design of a release of `width` columns in `n_cells` groups."""

    degree: int
    width: int
    n_cells: int
    shared: bool  # Whether the number of records is released once for all columns.
    matrix: Array
    mechanism: Mechanism
    event: PrivacyEvent

    @property
    def n_own(self) -> int:
        """Number of released numbers of each column."""
        return self.degree + (not self.shared)

    @property
    def powers(self) -> Array:
        """Return the map from sums of polynomials to power sums."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)

    @property
    def cost(self) -> float:
        """Variance of the noise of a mean (degree 2) or variance (degree 4) of uniform values, times n**2."""
        gradient = np.zeros(self.degree + 1)
        gradient[2 if self.degree == 4 else 1] = 1.0
        gradient[0] = -_EVEN if self.degree == 4 else 0.0
        return combination(self.mechanism, gradient @ self.powers).variance

    def sums(self, values: NDArray, numbers: Numbers, cells: NDArray | None = None) -> Array:
        """Return the sums to be released, before the noise."""
        n, own, first = self.n_cells, self.matrix[int(self.shared) :], self.matrix[:1, :1]
        shared, width, may_lack = self.shared, self.width, numbers.may_lack
        centre, half = numbers.centre.tolist(), numbers.half.tolist()

        def block(rows: NDArray, codes: NDArray | None = None) -> NDArray:
            found = []
            if shared:
                found.append(polynomial_sums(first, np.zeros(len(rows)), codes, n))
            for j in range(width):
                # As many columns as numbers are released: the number of records, then those of each column.
                v = scaled(rows[:, j].astype(np.float64, copy=False), centre[j], half[j], 2.0**POLYNOMIAL_BITS)
                np.rint(v, out=v)
                here = codes
                if may_lack:
                    there = ~np.isnan(v)
                    v, here = v[there], None if codes is None else codes[there]
                found.append(polynomial_sums(own, v, here, n))
            return np.concatenate(found, axis=1)

        arrays = (values,) if cells is None else (values, cells)
        return within_reach(self.mechanism, exact_sum(block, *arrays, block_rows=POLYNOMIAL_ROWS) * POLYNOMIAL_UNIT)

    def power_sums(self, released: Array) -> Array:
        """Return power sums by group, column and power, from 0 on."""
        if self.shared:
            own = released[:, 1:].reshape(self.n_cells, self.width, self.degree)
            counts = np.broadcast_to(released[:, :1, None], (self.n_cells, self.width, 1))
            released = np.concatenate([counts, own], axis=2)
        else:
            released = released.reshape(self.n_cells, self.width, self.degree + 1)
        return np.asarray(released @ self.powers.T)


def moment_design(
    budget: Budget, share: float, degree: int, width: int, n_cells: int, may_lack: bool, rows: int
) -> Design:
    """Return the design of the smallest cost."""
    found = []
    if budget.delta == 0:
        moves = Sensitivity(bernstein_l1(degree, width), bernstein_l2(degree, width), n_cells * width * (degree + 1))
        basis = bernstein_matrix(degree)
        found.append(
            Design(degree, width, n_cells, False, basis, *pure_mechanism(budget, share, moves, rows)),
        )
    weights, shared = _WEIGHTS[degree], not may_lack
    size = n_cells * (width * (degree + (not shared)) + shared)
    moves = Sensitivity(np.inf, chebyshev_l2(weights, width, shared), size)
    basis = chebyshev_matrix(weights)
    found.append(Design(degree, width, n_cells, shared, basis, *norm_mechanism(budget, share, moves, rows)))
    return min(found, key=lambda design: design.cost)


def means(design: Design, sums: Array) -> tuple[Quotient, ...]:
    """Return the means by group and column, relative to the middle of the bounds, in units of half their distance."""
    p = design.powers
    found = []
    for m in sums.reshape(-1, design.degree + 1):
        mean = min(max(m[1] / max(m[0], 1.0), -1.0), 1.0)
        record = min(max(m[2] / max(m[0], 1.0) - mean**2, 0.0), 1 - mean**2)
        found.append(Quotient(m[1], m[0], design.mechanism, p[1], p[0], record, -1.0, 1.0))
    return tuple(found)


def variances(design: Design, sums: Array, power: float = 1.0) -> tuple[Quotient, ...]:
    """Return the variances (with ``power=0.5``, standard deviations) by group and column, in the units of `means`."""
    p = design.powers
    noise = math.sqrt(combination(design.mechanism, p[0]).variance)
    found = []
    for m in sums.reshape(-1, design.degree + 1):
        count = max(m[0], 1.0)
        mean = min(max(m[1] / count, -1.0), 1.0)
        # The square of a noisy mean is too large by the variance of its noise, on average.
        excess = combination(design.mechanism, p[1] - mean * p[0]).variance / count
        top = p[2] - 2 * mean * p[1] + mean**2 * p[0]
        a = m[2] - 2 * mean * m[1] + mean**2 * m[0] + excess
        variance = min(max(a / count, 0.0), 1.0)
        largest = (1 + abs(mean)) ** 2
        fourth = np.array([mean**4, -4 * mean**3, 6 * mean**2, -4 * mean, 1.0]) @ m / count
        record = min(max(fourth - variance**2, 0.0), variance * (largest - variance))
        reach = variance, largest - variance
        b = m[0] if m[0] > _FEWEST * noise else 0.0
        found.append(
            Quotient(a, b, design.mechanism, top, p[0], record, 0.0, 1.0, default=_EVEN, power=power, reach=reach)
        )
    return tuple(found)


def in_units(rules: Sequence[Any], shift: Array, scale: Array, shape: tuple[int, ...]) -> tuple[Array, Array, Each]:
    """Return values and standard errors of quotients in units of the columns, with their intervals."""
    n = len(rules)
    shifts, scales = (np.resize(each, n).tolist() for each in (shift, scale))
    own = tuple(replace(rule, shift=one, scale=unit) for rule, one, unit in zip(rules, shifts, scales, strict=True))
    values = np.array([rule.value for rule in own])
    errors = np.array([rule.standard_error for rule in own])
    return values.reshape(shape), errors.reshape(shape), Each(own, shape)
