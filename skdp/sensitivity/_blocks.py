r"""Sample and aggregate: how far one record moves a sum over blocks.

Each record is drawn into one of :math:`q` blocks, independently of all other records. Couple the draws for
:math:`D` and :math:`D' = D \cup \{z\}`: the blocks are the same, but that :math:`z` is in one of them. Whatever is
computed from each block by itself changes for that block alone, and there by any amount: from one point of its range to
any other. The change of a sum is therefore the *diameter* of the range of one block's output, not its radius. Where the
guarantee holds for every draw of the blocks, it holds on average over them, since the law of the draws does not depend
on the data.
"""

from __future__ import annotations

import math

from ._cells import SUM_BITS


def blocks_l2(n_centres: int, n_features: int) -> float:
    r"""Bound the L2 norm of what one record changes in a sum over blocks of `n_centres` points of the unit ball.

    One block's points move by 2 each, hence by :math:`2\sqrt k` together. A block whose points all go from one end of
    a diameter to the other attains it. Rounding moves each coordinate by half a step at most, before and after.

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
    r"""Bound the L1 norm of the same: :math:`2k\sqrt d`, attained in the direction of a corner.

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
