r"""Counts and scaled moments of records: their mechanism, and their exact sums.

A value is clipped to public bounds and scaled to :math:`v \in [-1, 1]`. The sums are of :math:`v` and :math:`a(v^2 -
1/2)`. The values of each record are rounded to a lattice before they are added, so that sums are exact. The sensitivity
is in ``class_sums_l1`` and ``class_sums_l2``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..mechanisms import DiscreteLaplaceMechanism, GaussianMechanism, Mechanism, NoNoise, pure_share
from ..sensitivity import class_sums_l1, class_sums_l2, group_sensitivity

Array = NDArray[np.float64]

#: Weight of the second moments, for L2 and for L1 sensitivity. The first is close to sqrt(2). Both have few bits, so
#: that weighted sums are exact.
WEIGHT_L2 = 1.375
WEIGHT_L1 = 1.0

# Lattice of scaled values, in bits after the point.
_VALUE_BITS = 20

# Bits of an integer that doubles hold exactly.
_DOUBLE_BITS = 53


def class_sums_mechanism(
    epsilon: float, delta: float, n_counts: int, n_moments: int, size: int, rows: int = 1, share: float = 1.0
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism that releases counts and moments jointly for a share of the budget, and its event."""
    # A record adds to `n_counts` counts and to two moments of each of `n_moments` features. One unit adds at most
    # `rows` records. The vector has `size` numbers.
    part = pure_share(epsilon, share)
    event: PrivacyEvent = PureEvent(part)
    mechanism: Mechanism
    if epsilon == math.inf:
        mechanism = NoNoise(group_sensitivity(class_sums_l2(n_counts, n_moments, WEIGHT_L2), rows))
    elif delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        sensitivity = group_sensitivity(class_sums_l2(n_counts, n_moments, WEIGHT_L2), rows)
        mechanism = GaussianMechanism(mu, sensitivity, size, _gaussian_bits(sensitivity / mu))
        event = GaussianEvent(mu)
    else:
        sensitivity = group_sensitivity(class_sums_l1(n_counts, n_moments, WEIGHT_L1), rows)
        step = math.ldexp(1.0, -_laplace_bits(sensitivity / part)) if n_moments else 1.0
        mechanism = DiscreteLaplaceMechanism(part, sensitivity, size, step)
    return mechanism, event


def _gaussian_bits(scale: float) -> int:
    # Steps of at least 2**-31 leave room for 2**30 records.
    return min(max(31 + math.floor(math.log2(scale)), 16), 30)


def _laplace_bits(scale: float) -> int:
    # The sampler takes scales of up to 2**46 steps.
    return max(1, min(_VALUE_BITS, 44 - math.ceil(math.log2(scale))))


def noise_scale(mechanism: Mechanism) -> float:
    """Return the standard deviation of the noise in each number."""
    return mechanism.scale * (math.sqrt(2) if isinstance(mechanism, DiscreteLaplaceMechanism) else 1.0)


def moment_weight(mechanism: Mechanism) -> float:
    """Return the weight of the second moments in a release by this mechanism."""
    return WEIGHT_L1 if isinstance(mechanism, DiscreteLaplaceMechanism) else WEIGHT_L2


def moment_bits(mechanism: Mechanism, n_moments: int) -> int | None:
    """Return the bits after the point of the lattice of records' values, or None for doubles if no noise is added."""
    if isinstance(mechanism, NoNoise):
        return None
    if isinstance(mechanism, DiscreteLaplaceMechanism) and n_moments:
        return -round(math.log2(mechanism.step))
    return _VALUE_BITS


def largest_value(bits: int | None) -> float:
    """Return 1 in units of the lattice."""
    return 1.0 if bits is None else float(2**bits)


def record_moments(first: Array, bits: int | None) -> Array:
    """Return values and their squares in lattice units, of shape (n_rows, 2 * n_moments), and overwrite `first`."""
    # `first` holds values of at most `largest_value`. Rounding leaves both within their intervals.
    m = first.shape[1]
    values = np.empty((len(first), 2 * m))
    if bits is not None:
        np.rint(first, out=first)
    values[:, :m] = first
    np.multiply(first, first, out=first)
    if bits is not None:
        first *= 1 / largest_value(bits)
        np.rint(first, out=first)
    values[:, m:] = first
    return values


def in_real_units(total: NDArray, n_counts: int, n_moments: int, mechanism: Mechanism) -> Array:
    """Convert sums in units of the lattice (counts first, then both moments) to the units of the release."""
    # The sums were added as integers, and are clipped to the range that doubles hold exactly, which is a contraction.
    bits = moment_bits(mechanism, n_moments)
    out = np.asarray(total)
    if bits is not None:
        most = 2 ** (_DOUBLE_BITS - 4)
        out = out.clip(-most, most).astype(np.float64)
        # Factors are powers of two and a weight of four bits, so that the products are exact.
        out[..., n_counts:] *= math.ldexp(1.0, -bits)
    out[..., n_counts + n_moments :] *= moment_weight(mechanism)
    return out
