r"""Sensitivities that follow from others: for a group of records, and of the minimiser of a regularised sum of losses.

Let :math:`J_D(w) = C \sum_{i \in D} \ell(w; z_i) + \frac{\lambda}{2}\|w\|^2` with convex losses whose gradients are
at most :math:`L` in norm, and let :math:`D' = D \cup \{z\}`. Write :math:`w, w'` for the two minimisers. Since
:math:`\nabla J_D(w) = 0`, :math:`\nabla J_{D'}(w) = C \nabla\ell(w; z)`. :math:`J_{D'}` is :math:`\lambda`-strongly
convex, so

.. math:: \lambda \|w - w'\| \le \|\nabla J_{D'}(w) - \nabla J_{D'}(w')\| = C \|\nabla\ell(w; z)\| \le C L.

If a solver returns :math:`\tilde w` with :math:`\|\nabla J(\tilde w)\| \le \tau`, the same inequality gives
:math:`\|\tilde w - w\| \le \tau/\lambda`, and two such points are within :math:`(C L + 2\tau)/\lambda` of each other.

The number of records does not appear (Chaudhuri, Monteleoni and Sarwate 2011, lemma 1, in sum form and for
add-or-remove-one).
"""

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


def minimizer_sensitivity(C: float, lipschitz: float, strong_convexity: float, tau: float) -> float:
    r"""Bound the L2 distance between the certified minimisers of neighbouring data sets.

    Parameters
    ----------
    C : float
        Weight of the sum of losses.
    lipschitz : float
        Bound on the norm of one record's loss gradient.
    strong_convexity : float
        The regulariser's :math:`\lambda`.
    tau : float
        Certified bound on the norm of the gradient at the returned point.

    Returns
    -------
    sensitivity : float
        The bound :math:`(C L + 2\tau)/\lambda`, rounded up.
    """
    return (C * lipschitz + 2 * tau) / strong_convexity * (1 + 2.0**-50)


def solver_slack_sensitivity(strong_convexity: float, tau: float) -> float:
    r"""Bound the L2 distance between two points certified to the same exact minimiser, :math:`2\tau/\lambda`.

    Parameters
    ----------
    strong_convexity : float
        The regulariser's :math:`\lambda`.
    tau : float
        Certified bound on the norm of the gradient at either point.

    Returns
    -------
    sensitivity : float
        The bound, rounded up.
    """
    return 2 * tau / strong_convexity * (1 + 2.0**-50)
