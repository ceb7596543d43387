r"""Sensitivities of variances along orthonormal directions, and of sums of rows."""

from __future__ import annotations

import math


def energies_l1(norm: float, weight: float) -> float:
    r"""Bound the L1 norm of one record's contribution to (energies along directions, remaining energy, `weight`).

    A row :math:`x` adds :math:`(v_i^\top x)^2` to the energy along the orthonormal direction :math:`v_i`, and
    :math:`\|x\|^2 - \sum_i (v_i^\top x)^2` to the remaining energy. None of them is negative, and they add up to
    :math:`\|x\|^2 \le R^2`, for any number of directions. With the number of records, times `weight`, the bound is
    :math:`R^2 + w`, and every row of full norm attains it. (Energies and their *total* would have twice this
    sensitivity.)

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        Contribution of a record to the weighted number of records, or 0 if that is not released.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return (norm**2 + weight) * (1 + 2.0**-40)


def energies_l2(norm: float, weight: float) -> float:
    r"""Bound the same contribution in L2 norm: :math:`\sqrt{R^4 + w^2}`. Energies have an L2 norm of at most their sum.

    A row along one of the directions attains it.

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        Contribution of a record to the weighted number of records, or 0 if that is not released.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm**2, weight) * (1 + 2.0**-40)


def row_sum_l2(norm: float, weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to (sum of rows, `weight`): :math:`\sqrt{R^2 + w^2}`.

    Every row of full norm attains it.

    Parameters
    ----------
    norm : float
        Bound :math:`R` on the L2 norm of a row.
    weight : float
        Contribution of a record to the weighted number of records.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm, weight) * (1 + 2.0**-50)


def centred_moments_l2(norm: float, sum_weight: float, count_weight: float) -> float:
    r"""Bound the L2 norm of one record's contribution to (svec of the Gram matrix, weighted sum and number of rows).

    With :math:`\|\mathrm{svec}(x x^\top)\| = \|x\|^2`, it is :math:`\sqrt{\|x\|^4 + s^2\|x\|^2 + c^2}` exactly. Every
    row of full norm attains the bound.

    Parameters
    ----------
    norm : float
        Bound on the L2 norm of a row.
    sum_weight : float
        Weight :math:`s` of the sum of rows, or 0 if that is not released.
    count_weight : float
        Contribution :math:`c` of a record to the weighted number of records.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return math.hypot(norm**2, sum_weight * norm, count_weight) * (1 + 2.0**-48)
