r"""What is released: sums by class, in one joint release.

For each class: the counts of all tables, and for each Gaussian column the sums of :math:`v` and of
:math:`a(v^2 - 1/2)`, for values :math:`v` scaled into [-1, 1]. Where there is no table, the number of records as well.
The values of each record lie on a lattice before anything is added, so that sums are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._release import PrivacyGuarantee, Release
from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..mechanisms import DiscreteLaplaceMechanism, GaussianMechanism, Mechanism, NoNoise
from ..sensitivity import class_sums_l1, class_sums_l2, sum_over_rows
from ._columns import Columns, Reader

Array = NDArray[np.float64]

SUMS = "sums by class"
THEOREM = "Naive Bayes, theorem 1"

#: Weight of the second moments, where the L2 norm counts and where the L1 norm does. The first is close to sqrt(2);
#: both have few bits, so that weighted sums are exact.
WEIGHT_L2 = 1.375
WEIGHT_L1 = 1.0

# Lattice of scaled values, in bits behind the point.
_VALUE_BITS = 20

# Entries of a matrix that says which class each row of a block is in.
_MOST_INDICATORS = 2**22

# Rows of a block.
_LEAST_ROWS, _MOST_ROWS = 2**11, 2**17

# Bits of an integer that doubles hold exactly.
_DOUBLE_BITS = 53


@dataclass(frozen=True, eq=False)
class Layout:
    """How the sums of a class are listed in its row: tables, number of records, first moments, second moments."""

    columns: Columns
    n_classes: int

    @property
    def n_moments(self) -> int:
        return len(self.columns.gaussian)

    @property
    def n_table_cells(self) -> int:
        return int(self.columns.sizes.sum())

    @property
    def counts_records(self) -> bool:
        """Whether the records of a class are counted by themselves: each table counts them, too."""
        return len(self.columns.sizes) == 0

    @property
    def n_touched(self) -> int:
        """Number of counts that a record adds to."""
        return len(self.columns.sizes) + self.counts_records

    @property
    def width(self) -> int:
        return self.n_table_cells + self.counts_records + 2 * self.n_moments

    @property
    def size(self) -> int:
        return self.n_classes * self.width


def plan(epsilon: float, delta: float, layout: Layout) -> PrivacyGuarantee:
    """Return the one release."""
    touched, moments = layout.n_touched, layout.n_moments
    event: PrivacyEvent = PureEvent(epsilon)
    mechanism: Mechanism
    if epsilon == math.inf:
        mechanism = NoNoise(class_sums_l2(touched, moments, WEIGHT_L2))
    elif delta > 0:
        mu = gaussian_mu(epsilon, delta)
        sensitivity = class_sums_l2(touched, moments, WEIGHT_L2)
        mechanism = GaussianMechanism(mu, sensitivity, layout.size, _gaussian_bits(sensitivity / mu))
        event = GaussianEvent(mu)
    else:
        sensitivity = class_sums_l1(touched, moments, WEIGHT_L1)
        step = math.ldexp(1.0, -_laplace_bits(sensitivity / epsilon)) if moments else 1.0
        mechanism = DiscreteLaplaceMechanism(epsilon, sensitivity, layout.size, step)
    return PrivacyGuarantee(epsilon, delta, (event,), (Release(SUMS, mechanism, 1.0, THEOREM),))


def _gaussian_bits(scale: float) -> int:
    # Steps of 2**-31 and more, which leave room for 2**30 records.
    return min(max(31 + math.floor(math.log2(scale)), 16), 30)


def _laplace_bits(scale: float) -> int:
    # The sampler takes scales of up to 2**46 steps.
    return max(1, min(_VALUE_BITS, 44 - math.ceil(math.log2(scale))))


def noise_scale(mechanism: Mechanism) -> float:
    """Standard deviation of the noise in each number."""
    return mechanism.scale * (math.sqrt(2) if isinstance(mechanism, DiscreteLaplaceMechanism) else 1.0)


def moment_weight(mechanism: Mechanism) -> float:
    """Weight of the second moments in a release by this mechanism."""
    return WEIGHT_L1 if isinstance(mechanism, DiscreteLaplaceMechanism) else WEIGHT_L2


def sums_by_class(X: NDArray, codes: NDArray[np.intp], layout: Layout, mechanism: Mechanism) -> Array:
    """Return the sums, of shape (n_classes, width), on the lattice if there is to be noise.

    A record adds integers of at most 2**20 in units of the lattice. They are added as integers, and clipped to what
    doubles hold exactly, which is a contraction.
    """
    bits = None if isinstance(mechanism, NoNoise) else _VALUE_BITS
    if isinstance(mechanism, DiscreteLaplaceMechanism) and layout.n_moments:
        bits = -round(math.log2(mechanism.step))
    # Where tables are large, blocks are, too: each has a total of its own.
    rows = min(max(_LEAST_ROWS, layout.size // layout.columns.n_features), _MOST_ROWS)
    if layout.n_moments:
        rows = max(1, min(rows, _MOST_INDICATORS // layout.n_classes))
    total = sum_over_rows(_Statistic(layout, bits), X, codes, block_rows=rows)
    n_counts = layout.width - 2 * layout.n_moments
    weight = moment_weight(mechanism)
    if bits is not None:
        most = 2 ** (_DOUBLE_BITS - 4)
        total = total.clip(-most, most).astype(np.float64)
        # By powers of two, and by a weight of four bits: exact.
        total[:, n_counts:] *= math.ldexp(1.0, -bits)
    total[:, n_counts + layout.n_moments :] *= weight
    return total


class _Statistic:
    """Sums of a block of rows: of integers, in units of 2**-bits for the moments, or of doubles if `bits` is None."""

    def __init__(self, layout: Layout, bits: int | None) -> None:
        self._layout = layout
        self._reader = Reader(layout.columns)
        self._bits = bits
        self._offsets = np.concatenate([[0], np.cumsum(layout.columns.sizes)[:-1]]).astype(np.intp)
        self._classes = np.arange(layout.n_classes)

    def __call__(self, X: NDArray, codes: NDArray[np.intp]) -> NDArray:
        layout, n_classes = self._layout, self._layout.n_classes
        dtype = np.float64 if self._bits is None else np.int64
        out = np.empty((n_classes, layout.width), dtype=dtype)
        n_counts = layout.width - 2 * layout.n_moments
        records = np.bincount(codes, minlength=n_classes)
        if layout.counts_records:
            out[:, 0] = records
        else:
            cells = self._reader.cells(X)
            cells += self._offsets
            cells += (codes * layout.n_table_cells)[:, None]
            out[:, :n_counts] = np.bincount(cells.ravel(order="K"), minlength=n_classes * layout.n_table_cells).reshape(
                n_classes, -1
            )
        if layout.n_moments:
            values = self._values(X)
            # The products are integers below 2**37 in all, so that doubles add them exactly.
            sums = (codes == self._classes[:, None]).astype(np.float64) @ values
            half = 0.5 if self._bits is None else float(2 ** (self._bits - 1))
            sums[:, layout.n_moments :] -= half * records[:, None]
            out[:, n_counts:] = sums
        return out

    def _values(self, X: NDArray) -> Array:
        m = self._layout.n_moments
        largest = 1.0 if self._bits is None else float(2**self._bits)
        values = np.empty((len(X), 2 * m))
        first = self._reader.scaled(X, largest)
        if self._bits is not None:
            np.rint(first, out=first)
        values[:, :m] = first
        np.multiply(first, first, out=first)
        if self._bits is not None:
            first *= 1 / largest
            np.rint(first, out=first)
        values[:, m:] = first
        return values
