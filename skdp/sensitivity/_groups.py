"""What a group of records can change, by what one of them can."""

from __future__ import annotations


def group_sensitivity(sensitivity: float, rows: int) -> float:
    r"""Bound the norm of what one group of records changes in a sum over records.

    Of each group at most :math:`m` records count. Which ones is drawn for each group by itself, so that with the draws
    of the other groups held fixed, data sets that differ by all records of one group differ by at most :math:`m`
    records. A record moves the sum by at most :math:`\Delta` in some norm, hence they move it by at most
    :math:`m\Delta` together, by the triangle inequality. Nothing less would do, in any norm: :math:`m` equal records
    attain it. In particular, the L2 norm does not grow by :math:`\sqrt m`, which it would if the records of a group
    were known to touch different cells.

    Parameters
    ----------
    sensitivity : float
        Bound :math:`\Delta` for one record.
    rows : int
        Bound :math:`m` on the number of records that count.

    Returns
    -------
    sensitivity : float
        The bound for one group, rounded up; that for one record if `rows` is 1.
    """
    return sensitivity if rows == 1 else rows * sensitivity * (1 + 2.0**-50)
