r"""Sample and aggregate: the sensitivity of a sum over blocks.

Each record is drawn into one of :math:`q` blocks, independently of all other records. Couple the draws for :math:`D`
and :math:`D' = D \cup \{z\}`, so that the blocks are the same, except that :math:`z` is in one of them. If each block
is processed separately, only the result of that block changes, and it may move from any point of its range to any
other. Therefore the change of a sum is the *diameter* of the range of one block's result, not its radius. The guarantee
holds for every draw of the blocks. It also holds on average over them, because the law of the draws does not depend on
the data.
"""

from __future__ import annotations

import math

from ._cells import SUM_BITS


def blocks_l2(n_centres: int, n_features: int) -> float:
    r"""Bound the L2 norm of the change by one record of a sum over blocks of `n_centres` points of the unit ball.

    The points of one block move by 2 each, hence by :math:`2\sqrt k` together. A block whose points all move from one
    end of a diameter to the other attains the bound. Rounding moves each coordinate by at most half a step, before and
    after.

    Parameters
    ----------
    n_centres : int
        The number of points k.
    n_features : int
        Their dimension.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    radius = 1 + max(2.0**-40, n_features * 2.0**-50) + 2.0**-SUM_BITS * math.sqrt(n_features) / 2
    return 2 * radius * math.sqrt(n_centres) * (1 + 2.0**-50)


def blocks_l1(n_centres: int, n_features: int) -> float:
    r"""Bound the same change in L1 norm: :math:`2k\sqrt d`, attained in the direction of a corner.

    Parameters
    ----------
    n_centres : int
        The number of points k.
    n_features : int
        Their dimension.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    radius = math.sqrt(n_features) * (1 + max(2.0**-40, n_features * 2.0**-50)) + n_features * 2.0**-SUM_BITS / 2
    return 2 * radius * n_centres * (1 + 2.0**-50)
