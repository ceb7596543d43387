"""The sensitivity for a group of records, from that for one record."""

from __future__ import annotations


def group_sensitivity(sensitivity: float, rows: int) -> float:
    r"""Bound the norm of the change of a sum over records by one group of records.

    At most :math:`m` records of each group count. They are drawn for each group separately. For fixed draws of the
    other groups, data sets that differ by all records of one group differ by at most :math:`m` records. A record moves
    the sum by at most :math:`\Delta` in some norm. By the triangle inequality, a group moves it by at most
    :math:`m\Delta`. In every norm, :math:`m` equal records attain this bound. In particular, :math:`\sqrt m` is not
    enough in L2 norm. It would be enough if the records of a group were known to affect different cells.

    Parameters
    ----------
    sensitivity : float
        Bound :math:`\Delta` for one record.
    rows : int
        Bound :math:`m` on the number of records that count.

    Returns
    -------
    sensitivity : float
        Bound for one group, rounded up. If `rows` is 1, it is the bound for one record.
    """
    return sensitivity if rows == 1 else rows * sensitivity * (1 + 2.0**-50)
