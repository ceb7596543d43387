r"""The exact delta of one-dimensional objective perturbation, by integrating the two output densities.

What is released is :math:`w = \arg\min C \sum_i \ell(v_i w) + \frac{\lambda}{2} w^2 + b w` with
:math:`b \sim N(0, \sigma^2)` and :math:`v_i = y_i x_i`. Stationarity gives
:math:`-b_D(w) = \lambda w - C \sum_i |\ell'(v_i w)| v_i`, which increases in :math:`w`: an interval of outputs has,
under either data set, the normal probability of an interval of noise. Delta is the sum over cells of the positive
parts of :math:`P' - e^\varepsilon P`. Grouping outputs into cells is post-processing, so that the sum never exceeds the
true delta, whatever the grid: a theorem that bounds delta can be refuted by it, and a true one cannot. As the cells
shrink, the sum converges to the true delta.

Nothing here is taken from skdp. To be used for deltas above 1e-13.
"""

import numpy as np
from scipy import special

_REACH = 38.0


def slope(margin, loss, width):
    """|loss'| as a function of the margin."""
    if loss == "logistic":
        return special.expit(-margin)
    return np.clip((1 + width - margin) / (2 * width), 0.0, 1.0)


def _cell_masses(noise):
    """Normal probability between consecutive ends, to relative accuracy in both tails."""
    a, b = noise[:-1], noise[1:]
    return np.where(a > 0, special.ndtr(-a) - special.ndtr(-b), special.ndtr(b) - special.ndtr(a))


def exact_delta(epsilon, kappa, multiplier, records, added, *, loss="logistic", width=0.5, cells=8000):
    """Lower bounds, tight ones, of the two deltas of adding and of removing a record.

    Parameters
    ----------
    epsilon : array-like
        Where to evaluate them.
    kappa : float
        C for rows of norm at most 1 and lambda = 1.
    multiplier : float
        Standard deviation of the noise over C.
    records : sequence of (float, float)
        Products of label and feature, at most 1 in size, and how often each occurs.
    added : float
        Product of label and feature of the record that the neighbour has in addition.
    loss : {"logistic", "huber"}
        The loss; `width` is half the width of the Huber hinge's quadratic part.
    cells : int
        Size of the final grid.

    Returns
    -------
    adding, removing : ndarray
        P'(S) - exp(epsilon) P(S) at its largest, and the reverse.
    """
    table = np.array(records, dtype=float).reshape(-1, 2)
    sigma = multiplier * kappa

    def noise(w):
        without = w.copy()
        for v, count in table:
            without -= kappa * count * v * slope(v * w, loss, width)
        return without / sigma, (without - kappa * added * slope(added * w, loss, width)) / sigma

    reach = 40 * sigma + kappa * (table[:, 1] @ np.abs(table[:, 0])) + kappa * abs(added)
    kinks = np.zeros(0)
    if loss != "logistic":
        kinks = np.array([m / v for v in [*table[:, 0], added] if v for m in (1 - width, 1 + width)])
        kinks = kinks[np.abs(kinks) < reach]
    w = np.unique(np.concatenate([np.linspace(-reach, reach, 4001), kinks]))
    # Adapt: the cells become even in both noises and in the derivative of the added record's loss.
    for size in (4000, 4000, 4000, cells, cells):
        first, second = noise(w)
        progress = np.clip(first, -_REACH, _REACH) / 10 + np.clip(second, -_REACH, _REACH) / 10
        progress = progress - 2 * np.sign(added) * slope(added * w, loss, width) + 1e-9 * w / reach
        even = np.interp(np.linspace(progress[0], progress[-1], size), progress, w)
        w = np.unique(np.concatenate([even, kinks, w[[0, -1]]]))
    first, second = noise(w)
    p, q = _cell_masses(second), _cell_masses(first)
    factor = np.exp(np.atleast_1d(np.asarray(epsilon, dtype=float)))[:, None]
    return np.maximum(p - factor * q, 0).sum(axis=1), np.maximum(q - factor * p, 0).sum(axis=1)


def density(w, kappa, multiplier, records, *, loss="logistic", width=0.5):
    """Density of the output: that of the noise times the derivative of the noise. A second route to the above."""
    sigma = multiplier * kappa
    noise, jacobian = w.copy(), np.ones_like(w)
    for v, count in records:
        u = slope(v * w, loss, width)
        second = u * (1 - u) if loss == "logistic" else ((u > 0) & (u < 1)) / (2 * width)
        noise -= kappa * count * v * u
        jacobian += kappa * count * v**2 * second
    return np.exp(-0.5 * (noise / sigma) ** 2) / np.sqrt(2 * np.pi) / sigma * jacobian
