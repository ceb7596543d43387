r"""Variances along orthonormal directions, and sums of rows: what one record can change."""

from __future__ import annotations

import math


def energies_l1(norm: float, weight: float) -> float:
    r"""Bound the L1 norm of what one record adds to (energies along orthonormal directions, what is left, `weight`).

    A row :math:`x` adds :math:`(v_i^\top x)^2` to the energy along :math:`v_i`, and
    :math:`\|x\|^2 - \sum_i (v_i^\top x)^2` to what is left. None is negative, and they add up to
    :math:`\|x\|^2 \le R^2`, however many directions there are. With the number of records, times `weight`, it is
    :math:`R^2 + w`; every row of full norm attains it. (Energies and their *total* would be twice as much.)

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        What a record adds to the weighted number of records; 0 if that is not released.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return (norm**2 + weight) * (1 + 2.0**-40)


def energies_l2(norm: float, weight: float) -> float:
    r"""Bound the L2 norm of the same: :math:`\sqrt{R^4 + w^2}`, since the L2 norm of energies is at most their sum.

    A row along one of the directions attains it.

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        What a record adds to the weighted number of records; 0 if that is not released.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm**2, weight) * (1 + 2.0**-40)


def row_sum_l2(norm: float, weight: float) -> float:
    r"""Bound the L2 norm of what one record adds to (sum of rows, `weight`): :math:`\sqrt{R^2 + w^2}`.

    Every row of full norm attains it.

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        What a record adds to the weighted number of records.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm, weight) * (1 + 2.0**-50)


def centred_moments_l2(norm: float, sum_weight: float, count_weight: float) -> float:
    r"""Bound the L2 norm of what one record adds to (svec of the Gram matrix, weighted sum of rows, weighted count).

    With :math:`\|\mathrm{svec}(x x^\top)\| = \|x\|^2`, it is :math:`\sqrt{\|x\|^4 + s^2\|x\|^2 + c^2}` exactly. Every
    row of full norm attains the bound.

    Parameters
    ----------
    norm : float
        Bound on the L2 norm of a row.
    sum_weight : float
        Weight :math:`s` of the sum of rows; 0 if that is not released.
    count_weight : float
        What a record adds to the weighted number of records, :math:`c`.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm**2, sum_weight * norm, count_weight) * (1 + 2.0**-48)
