r"""Sums by class: the sensitivity of counts of cells, and of first and second moments, listed by class.

A record adds to the row of its own class only. There it adds 1 to one cell of each table (a one-hot vector), and
:math:`(v, a(w - 1/2))` for each numeric feature, where :math:`v \in [-1, 1]` is the scaled value and
:math:`w \in [0, 1]` its square, each rounded to a lattice inside these intervals. The other rows do not move, so that
the number of classes does not appear.
"""

from __future__ import annotations

import math


def class_sums_l2(n_cells: int, n_moments: int, weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to the sums of its class.

    Each counted cell adds 1 to the square. A pair of moments adds :math:`v^2 + a^2(w - 1/2)^2`. For every rounding,
    this is largest for :math:`v = \pm1` and :math:`w \in \{0, 1\}`, namely :math:`1 + a^2/4`. The record with all
    values at a bound attains the bound. Without the shift by 1/2, it would be :math:`1 + a^2`.

    Parameters
    ----------
    n_cells : int
        Number of tables, plus one if the records of a class are counted separately.
    n_moments : int
        Number of features whose two moments are summed.
    weight : float
        Weight :math:`a` of the second moments.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.sqrt(n_cells + n_moments * (1 + weight**2 / 4)) * (1 + 2.0**-50)


def class_sums_l1(n_cells: int, n_moments: int, weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to the sums of its class.

    As above, with :math:`|v| + a|w - 1/2| \le 1 + a/2`.

    Parameters
    ----------
    n_cells : int
        Number of tables, plus one if the records of a class are counted separately.
    n_moments : int
        Number of features whose two moments are summed.
    weight : float
        Weight :math:`a` of the second moments.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return (n_cells + n_moments * (1 + weight / 2)) * (1 + 2.0**-50)
