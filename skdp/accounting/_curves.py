r"""The exact privacy curve of the Gaussian mechanism, and its inverse.

Noise of standard deviation :math:`\sigma` on a query of L2 sensitivity :math:`\Delta` is
:math:`(\varepsilon, \delta)`-DP exactly when :math:`\delta \ge \delta_G(\varepsilon; \mu)` with
:math:`\mu = \Delta/\sigma` and

.. math:: \delta_G(\varepsilon; \mu) = \Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon \Phi(-\mu/2 - \varepsilon/\mu)

(Balle and Wang 2018, theorem 8); it is then also :math:`\mu`-GDP (Dong, Roth and Su 2022).

Let :math:`x = \varepsilon/\mu - \mu/2`, :math:`y = x + \mu`, and let :math:`R = (1-\Phi)/\varphi` be Mills' ratio. For
small :math:`\mu`, the difference loses all digits. The identity :math:`e^\varepsilon \varphi(y) = \varphi(x)`
transforms it into

.. math:: \delta_G = \varphi(x) (R(x) - R(y)) = \varphi(x) \int_x^y (1 - t R(t))\, dt,

whose integrand is positive. This form is accurate to a few units in the last place.

The last functions give the Rényi divergence that an (epsilon, delta) ceiling admits.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from ..checks.messages import shown

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
# For mu up to 1, so many nodes are enough for the identity above, to a few units in the last place.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)

#: Relative margin by which calibrated noise exceeds the computed root. The curve is evaluated to about
#: 1e-13, so that this margin puts every rounding error on the safe side.
SAFETY = 1e-10

#: Deltas that Gaussian-DP parameters of other events leave out, and the least delta of a budget. It is so much larger
#: that a million such events change it by less than a part in a thousand.
NEGLIGIBLE_DELTA, LEAST_DELTA = 1e-40, 1e-30


def _mills(t: NDArray) -> NDArray:
    return np.sqrt(np.pi / 2) * special.erfcx(t / np.sqrt(2))


def gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> NDArray:
    r"""Smallest delta for which a mu-GDP Gaussian mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : array-like
        Any real numbers. Proofs use negative ones.
    mu : array-like
        Ratio of sensitivity to standard deviation, at least 0. Broadcast against `epsilon`.

    Returns
    -------
    delta : ndarray
        Values in [0, 1].

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy",
       ICML 2018, theorem 8.
    """
    eps, mu_ = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    positive = (mu_ > 0) & np.isfinite(mu_) & np.isfinite(eps)
    m = np.where(positive, mu_, 1.0)
    e = np.where(positive, eps, 0.0)
    with np.errstate(all="ignore"):
        x = e / m - m / 2
        y = e / m + m / 2
        t = x[..., None] + m[..., None] * (_NODES + 1) / 2
        integral = m / 2 * ((1 - t * _mills(t)) @ _WEIGHTS)
        by_quadrature = np.exp(-0.5 * x**2 - _HALF_LOG_2PI + np.log(integral))
        # exp(e) Phi(-y) = phi(x) R(y) for y > 0; for y <= 0, e is negative and nothing overflows.
        second = np.where(
            y > 0,
            np.exp(-0.5 * x**2 - _HALF_LOG_2PI) * _mills(np.maximum(y, 0.0)),
            np.exp(np.minimum(e, 0.0)) * special.ndtr(-y),
        )
        by_difference = special.ndtr(-x) - second
    delta = np.where((m <= 1.0) & (x > -1.0), by_quadrature, by_difference)
    # For large mu and x > -1, the two terms differ by a factor of at least R(x)/R(x + 1): no cancellation.
    at_zero = np.maximum(0.0, -np.expm1(np.minimum(eps, 0.0)))
    at_infinity = np.where(eps == np.inf, 0.0, 1.0)
    delta = np.where(positive, delta, np.where(mu_ > 0, at_infinity, at_zero))
    return np.clip(delta, 0.0, 1.0)


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu, rounded down, for which the Gaussian mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        At least 0. If infinite, so is mu.
    delta : float
        In (0, 1).

    Returns
    -------
    mu : float
        Ratio of L2 sensitivity to standard deviation.
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {shown(epsilon)}")
    if not (0 < delta < 1):
        raise ValueError(f"delta must lie in (0, 1), got {shown(delta)}")
    if epsilon == np.inf:
        return float(epsilon)

    def excess(log_mu: float) -> float:
        value = float(gaussian_delta(epsilon, np.exp(log_mu)))
        return (np.log(value) if value > 0 else -1e4) - np.log(delta)

    low, high = np.log(1e-290), np.log(1e8)
    root = optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=500)
    mu = float(np.exp(root)) * (1 - SAFETY)
    while float(gaussian_delta(epsilon, mu)) > delta:
        mu *= 1 - SAFETY
    return mu


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest noise multiplier, rounded up, that is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        At least 0. If infinite, there is no noise.
    delta : float
        In (0, 1).

    Returns
    -------
    noise_multiplier : float
        Ratio of standard deviation to L2 sensitivity, the reciprocal of :func:`gaussian_mu`.

    Examples
    --------
    >>> round(gaussian_noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    return 1.0 / gaussian_mu(epsilon, delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon, rounded up, for which a mu-GDP Gaussian mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    mu : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        At least 0. Infinite if `mu` is infinite.
    """
    if not (0 < delta < 1):
        raise ValueError(f"delta must lie in (0, 1), got {shown(delta)}")
    if mu == np.inf:
        return np.inf
    if float(gaussian_delta(0.0, mu)) <= delta:
        return 0.0

    def excess(epsilon: float) -> float:
        value = float(gaussian_delta(epsilon, mu))
        return (np.log(value) if value > 0 else -1e4) - np.log(delta)

    # The privacy loss is N(mu^2/2, mu^2), and delta_G(eps) <= P(loss > eps).
    high = mu**2 / 2 - mu * float(special.ndtri_exp(np.log(delta))) + 1e-300
    root = optimize.brentq(excess, 0.0, high * 1.01, xtol=1e-300, rtol=1e-14, maxiter=500)
    epsilon = root * (1 + SAFETY)
    while float(gaussian_delta(epsilon, mu)) > delta:
        epsilon *= 1 + SAFETY
    return float(epsilon)


def pure_dp_mu(epsilon: float) -> float:
    r"""Return the mu for which every epsilon-DP mechanism is mu-GDP, rounded up.

    The trade-off curve of :math:`\varepsilon`-DP has its kink where both error rates are
    :math:`1/(1+e^\varepsilon)`; the curve of :math:`\mu`-GDP through that point,
    :math:`\mu = -2\Phi^{-1}(1/(1+e^\varepsilon))`, lies below it everywhere by convexity.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Returns
    -------
    mu : float
        Infinite if `epsilon` is infinite.
    """
    if epsilon == np.inf:
        return np.inf
    if epsilon < 1:
        # The same formula by 1 - 2/(1+e^epsilon) = tanh(epsilon/2), which keeps its digits near 0.
        return float(np.sqrt(8) * special.erfinv(np.tanh(epsilon / 2))) * (1 + SAFETY)
    return float(-2 * special.ndtri_exp(special.log_expit(-epsilon))) * (1 + SAFETY)


def bounded_range_mu(epsilon: float) -> float:
    r"""Return the mu for which every epsilon-bounded-range mechanism is mu-GDP, rounded up.

    The privacy loss of a pair of data sets lies in an interval of length :math:`\varepsilon`, and
    :math:`\mathbb{E}_{D'}[e^L] = 1`. Among such losses, the loss that takes only the two ends dominates all others. Its
    trade-off curve has its kink at error rates :math:`(a, b)` with :math:`(a + c)(b + c) = c (1 + c)` for :math:`c =
    1/(e^\varepsilon - 1)`, for every interval. Of the points of that hyperbola, the one with :math:`a = b = 1/(1 +
    e^{\varepsilon/2})` needs the largest :math:`\mu`, which is that of :math:`\varepsilon/2`-DP (:ref:`trees, theorem 5
    <trees-theorem-5>`).

    Parameters
    ----------
    epsilon : float
        At least 0.

    Returns
    -------
    mu : float
        Infinite if `epsilon` is infinite.

    Examples
    --------
    >>> from skdp.accounting import bounded_range_mu
    >>> round(bounded_range_mu(1.0), 3)  # of pure epsilon-DP it would be 1.232
    0.624
    """
    return pure_dp_mu(epsilon / 2)


def bounded_range_epsilon(mu: float) -> float:
    """Return the largest epsilon for which every epsilon-bounded-range mechanism is mu-GDP, rounded down.

    Parameters
    ----------
    mu : float
        Positive and finite.

    Returns
    -------
    epsilon : float
        The inverse of :func:`bounded_range_mu`.
    """
    # The log-odds of Phi(mu/2), through the two tails.
    half = float(special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2))
    if mu < 1e-3:
        # The same formula to second order, which keeps its digits near 0.
        half = 2 * mu / np.sqrt(2 * np.pi) * (1 - 1e-6)
    return 2 * half * (1 - 4 * SAFETY)


def renyi_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the order at which a Rényi filter admits most Gaussian noise, and the admitted divergence.

    Parameters
    ----------
    epsilon : float
        Ceiling on epsilon, positive and finite.
    delta : float
        Ceiling on delta, in (0, 1).

    Returns
    -------
    order : float
        Greater than 1.
    divergence : float
        Largest sum of Rényi divergences. It is 0 if no order admits any.
    """

    def lost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return -_budget(order, epsilon, delta) / order

    minimum = optimize.minimize_scalar(lost, bounds=(-7.0, 25.0), method="bounded", options={"xatol": 1e-6})
    order = 1 + float(f"{math.exp(minimum.x):.4g}")
    return order, renyi_limit(order, epsilon, delta)


def renyi_limit(order: float, epsilon: float, delta: float) -> float:
    """Return the largest sum of Rényi divergences of this order that is (epsilon, delta)-DP, or 0, rounded down."""
    # The terms cancel if epsilon is small, for instance at the end of a budget.
    rounding = 2.0**-50 * (epsilon + (2 - math.log(delta) + math.log(order)) / (order - 1))
    return max(0.0, _budget(order, epsilon, delta) * (1 - 1e-12) - rounding)


def _budget(order: float, epsilon: float, delta: float) -> float:
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)
