r"""Privacy curve of objective perturbation with Gaussian noise.

Let :math:`\mu = CL/\sigma` and :math:`\kappa = CR^2/\lambda`. The user guide (*Objective perturbation*) proves that the
loss for an added record is at most

- binary log loss: :math:`h_c(G)` with :math:`c = \max(0, \kappa - \mu^2/2)`, where :math:`h_c(g) = g` for
  :math:`g \ge c`, :math:`(c+g)^2/4c` for :math:`|g| \le c`, and 0 below;
- other losses: :math:`s + \max(0, G_1, \ldots)`, with a price :math:`s` of the determinant,

for Gaussian losses :math:`G \sim N(\mu^2/2, \mu^2)` (with multiples of :math:`\mu` for several problems), and the loss
for a removed record is at most :math:`\max(0, G_1, \ldots)`. Theorems 6 to 8 show Gaussian DP with the parameter
:math:`\max(\mu, \kappa/3.7)` for the binary log loss, and :math:`\sqrt K(\mu + \sqrt{\pi/2}\,\kappa\beta)` for Huber
hinges with :math:`K` problems of curvature :math:`\beta`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ._budget import NEGLIGIBLE_DELTA, SAFETY, gaussian_delta, gaussian_mu

#: Up to this ratio of kappa to mu, the binary log loss is mu-GDP (theorem 6 of the user guide).
GAUSSIAN_RATIO = 3.7

# Factor of parameters, which is more than their rounding errors.
_UP = 1 + 1e-12

# Numbers of points at which the profile is compared with Gaussian curves, and of points of its convex hull.
_GRID, _HULL = 1200, 2000
# Up to this value, their exponentials, and products of them, are finite.
_FINITE_EPSILON = 300.0


@dataclass(frozen=True)
class ObjectiveCurve:
    """Privacy of one Gaussian objective perturbation, as a function of its GDP-like parameter mu.

    `mu` is the ratio of the sensitivity of the gradient to the standard deviation of the noise. Epsilons `t` are at
    least 0. Bounds are rounded up.
    """

    kappa: float  # C R^2 / lambda.
    shift: float  # Price of the determinant, which is added to every loss. It is 0 for the binary log loss.
    # Weights and multiples of mu of the Gaussian mechanisms whose deltas are summed.
    terms: tuple[tuple[float, float], ...]
    tied: bool  # Whether the loss is the binary log loss, whose determinant and shift depend on one quantity.

    @property
    def _n_problems(self) -> int:
        """Number of binary problems with independent noise. It is 0 for the multinomial log loss."""
        n = len(self.terms)
        return n if self.terms[0] == (n, 1.0) else 0

    @property
    def _single(self) -> ObjectiveCurve:
        """The curve of one of several binary problems."""
        return replace(self, shift=self.shift / self._n_problems, terms=((1.0, 1.0),))

    @property
    def _surplus(self) -> float:
        """The surplus of theorem 7 over mu in each problem, rounded up. It is infinite for the multinomial log loss."""
        if self._n_problems == 0:
            return math.inf
        return math.sqrt(math.pi / 2) * math.expm1(self.shift / self._n_problems) * _UP

    def threshold(self, mu: float) -> float:
        """Return the smallest epsilon from which the curve is a sum of Gaussian curves."""
        return max(0.0, self.kappa - mu**2 / 2) if self.tied else self.shift

    def delta(self, epsilon: float, mu: float, mu_slack: float = 0.0) -> float:
        """Return the delta of the perturbation, from the threshold on, together with a later `mu_slack`-GDP release."""
        main = sum(
            weight * float(gaussian_delta(epsilon - self.shift, math.hypot(multiple * mu, mu_slack)))
            for weight, multiple in self.terms
        )
        if mu_slack == 0:
            return main
        return main + float(gaussian_delta(epsilon - self.threshold(mu), mu_slack))

    def calibrate(self, epsilon: float, delta: float, slack_share: float) -> tuple[float, float]:
        """Return the largest mu, rounded down, and that of a later release, for which both are (epsilon, delta)-DP.

        The second one is `slack_share` times the Gaussian mechanism's mu at this guarantee.
        """
        mu_gauss = gaussian_mu(epsilon, delta)
        mu_slack = slack_share * mu_gauss

        def excess(log_mu: float) -> float:
            value = self.delta(epsilon, math.exp(log_mu), mu_slack)
            return (math.log(value) if value > 0 else -1e4) - math.log(delta)

        low, high = math.log(mu_gauss) - 30, math.log(mu_gauss) + 0.1
        if self.threshold(math.exp(high)) > 0.95 * epsilon or excess(low) > 0:
            raise ValueError("the regularisation is too weak for objective perturbation at this epsilon")
        mu = math.exp(optimize.brentq(excess, low, high, xtol=1e-13)) * (1 - SAFETY)
        while self.delta(epsilon, mu, mu_slack) > delta:
            mu *= 1 - SAFETY
        return mu, mu_slack

    def profile(self, t: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
        """Bound delta at every epsilon, in both directions."""
        above = sum(weight * gaussian_delta(t - self.shift, multiple * mu) for weight, multiple in self.terms)
        c = self.threshold(mu)
        if c == 0:
            return np.minimum(above, 1.0)
        if self.tied:
            below = _tied_profile(np.minimum(t, c), c, mu)
        else:
            at_zero = sum(w * float(gaussian_delta(0.0, multiple * mu)) for w, multiple in self.terms)
            below = 1 - np.exp(np.minimum(t - c, 0.0)) * (1 - min(at_zero, 1.0))
        return np.clip(np.where(t >= c, above, below), 0.0, 1.0)

    def mu_of_noise(self, mu: float) -> float:
        """Return the GDP parameter of the perturbation by theorems 6 to 8, or infinity for the multinomial log loss."""
        if self.tied:
            return max(mu, self.kappa / GAUSSIAN_RATIO)
        return math.sqrt(self._n_problems) * (mu + self._surplus) * _UP if self._n_problems else math.inf

    def noise_of_mu(self, mu: float) -> float:
        """Return the largest parameter of the noise, or 0, for which the perturbation is mu-GDP by theorems 6 to 8."""
        if self.tied:
            return mu if self.kappa <= GAUSSIAN_RATIO * mu else 0.0
        if self._n_problems == 0:
            return 0.0
        return max(0.0, mu / math.sqrt(self._n_problems) * (1 - 1e-11) - self._surplus)

    def gdp(self, mu: float) -> float:
        """Return the smallest known mu' for which the perturbation is mu'-GDP.

        This is the parameter of theorems 6 to 8, or the smallest Gaussian curve above the profile. Several problems are
        also compared as a composition of single problems. GDP needs the Gaussian delta at every epsilon, also below the
        threshold. On each cell of a grid, the left end of the bound is compared with the right end of the Gaussian
        curve. Beyond the grid, the profile is below 1e-40 (for the log loss, it is Gaussian there).
        """
        stated = self.mu_of_noise(mu)
        if stated <= mu:
            return stated
        if self._n_problems > 1:
            stated = min(stated, math.sqrt(self._n_problems) * _gdp(self._single, mu) * _UP)
        return min(stated, _gdp(self, mu))

    def rdp(self, order: float, mu: float) -> float:
        """Bound the Rényi divergence in both directions."""
        if self._n_problems > 1:
            # The problems have independent noise, so that their divergences add up.
            return self._n_problems * self._single.rdp(order, mu)
        ((weight, multiple),) = self.terms
        m = multiple * mu
        c = self.threshold(mu)
        if self.tied and c > 0:
            logarithm = _log_tied_moment(order, c, mu)
        else:
            # The first term is E exp((order - 1) max(0, G)) - 1, times the number of Gaussian losses. The second term
            # adds the 1. Both are divided by the exponential of the largest exponent.
            largest = order * (order - 1) * m**2 / 2
            moment = weight * (special.ndtr((order - 0.5) * m) - math.exp(-largest) * special.ndtr(m / 2))
            logarithm = math.log(moment + math.exp(-largest)) + largest
        divergence = self.shift + logarithm / (order - 1)
        return min(max(0.0, divergence), order * self.mu_of_noise(mu) ** 2 / 2) * (1 + 1e-9)

    def convex_profile(self, t: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
        """Bound delta at every epsilon, in both directions, by the lower convex hull of the profile on a grid."""
        epsilons, deltas = self.hull(np.linspace(0.0, self._reach(mu, 12.0), _HULL), mu)
        return np.interp(np.exp(np.minimum(t, epsilons[-1])), np.exp(epsilons), deltas)

    def hull(self, t: NDArray[np.float64], mu: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower convex hull of the profile, which is a bound as well.

        As a function of exp(epsilon), the true curve is convex and below the profile at all of these points. They
        increase from 0 and are below 700. The hull covers the same range on both sides of 0.
        """
        above = self.profile(t, mu)
        # Both directions have the same bound, so that the curve at -epsilon follows from that at epsilon.
        below = -np.expm1(-t) + np.exp(-t) * above
        epsilon = np.concatenate([-t[:0:-1], t])
        delta = np.minimum.accumulate(np.concatenate([below[:0:-1], above]))
        keep = _lower_hull(np.exp(epsilon), delta)
        return epsilon[keep], delta[keep]

    def _reach(self, mu: float, deviations: float) -> float:
        """Return an epsilon beyond which delta is negligible, if its exponential is finite."""
        widest = max(multiple for _, multiple in self.terms) * mu
        return min(self.threshold(mu) + widest**2 / 2 + deviations * widest, _FINITE_EPSILON)


def _lower_hull(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Return the indices of the points on the lower convex hull, for increasing `x`."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


@lru_cache(maxsize=1)
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(200)


def _log_tied_moment(order: float, c: float, mu: float) -> float:
    """Return log E exp((order - 1) h_c(G)) for G ~ N(mu^2/2, mu^2), with the middle part by quadrature."""
    nodes, weights = _quadrature()
    # The middle part is [-c, c], limited to the range of the normal distribution before and after tilting.
    low, high = max(-c, mu**2 / 2 - 40 * mu), min(c, (order + 0.5) * mu**2 + 40 * mu)
    logs = [special.log_ndtr((-c - mu**2 / 2) / mu)]
    if low < high:
        g = low + (high - low) * (nodes + 1) / 2
        log_density = -0.5 * ((g - mu**2 / 2) / mu) ** 2 - math.log(mu) - 0.5 * math.log(2 * math.pi)
        logs.extend((order - 1) * (c + g) ** 2 / (4 * c) + log_density + np.log((high - low) / 2 * weights))
    logs.append(order * (order - 1) * mu**2 / 2 + special.log_ndtr(((order - 0.5) * mu**2 - c) / mu))
    return float(special.logsumexp(logs))


def _tied_profile(t: NDArray[np.float64], c: float, mu: float) -> NDArray[np.float64]:
    """Return E[(1 - exp(t - h_c(G)))_+] for 0 <= t <= c and G ~ N(mu^2/2, mu^2), in closed form."""
    start = 2 * np.sqrt(c * t) - c
    spread = math.sqrt(1 / (1 / mu**2 + 1 / (2 * c)))
    # Upper tails avoid cancellation.
    between = special.ndtr(-start / spread) - special.ndtr(-c / spread)
    middle = spread / mu * math.exp(-(mu**2) / 8 - c / 4) * between
    beyond = special.ndtr(-c / mu - mu / 2)
    return special.ndtr((mu**2 / 2 - start) / mu) - np.exp(t) * (middle + beyond)


@lru_cache(maxsize=1024)
def _gdp(curve: ObjectiveCurve, mu: float) -> float:
    c = curve.threshold(mu)
    if c == 0 and len(curve.terms) == 1 and curve.terms[0][0] <= 1:
        return mu * curve.terms[0][1]
    if curve.tied:
        largest = c
    else:
        largest = curve._reach(mu, 16.0)
        while largest < _FINITE_EPSILON and float(curve.profile(np.array(largest), mu)) > NEGLIGIBLE_DELTA:
            largest = min(1.25 * largest, _FINITE_EPSILON)
        if float(curve.profile(np.array(largest), mu)) > NEGLIGIBLE_DELTA:
            return math.inf
    # The grid is finer at the left end, where the tied profile has an infinite slope.
    grid = largest * np.linspace(0.0, 1.0, _GRID) ** 2
    beyond = np.linspace(largest, max(largest, curve._reach(mu, 16.0)), _GRID)[1:]
    corners, deltas = curve.hull(np.unique(np.concatenate([grid, beyond])), mu)
    upper = np.interp(np.exp(grid[:-1]), np.exp(corners), deltas) * (1 + 1e-9)
    # Below the threshold, the closed form cancels.
    upper += np.where(grid[:-1] < c, 1e-15, 0.0)
    log_upper = np.log(np.maximum(upper, NEGLIGIBLE_DELTA))

    def excess(log_mu: float) -> float:
        with np.errstate(divide="ignore"):
            lower = np.log(gaussian_delta(grid[1:], math.exp(log_mu)))
        return float(np.max(log_upper - np.maximum(lower, math.log(NEGLIGIBLE_DELTA))))

    low = math.log(mu)
    high = low + 0.1
    while excess(high) > 0:
        high += 1.0
        if high > 5:
            return math.inf
    if excess(low) <= 0:
        return mu
    return math.exp(optimize.brentq(excess, low, high, xtol=1e-9)) * (1 + 1e-8)


def binary_log_loss(kappa: float) -> ObjectiveCurve:
    """Return the curve of the binary log loss (theorem 2 of the user guide), where mu is C R over the deviation."""
    return ObjectiveCurve(kappa, 0.0, ((1.0, 1.0),), tied=True)


def multinomial_log_loss(kappa: float, n_classes: int) -> ObjectiveCurve:
    """Return the curve of the multinomial log loss (theorem 3), where mu is sqrt(2) C R over the deviation."""
    return ObjectiveCurve(kappa, multinomial_price(kappa, n_classes), ((n_classes - 1.0, 1.0),), tied=False)


def huber_hinge(kappa: float, curvature: float, n_problems: int) -> ObjectiveCurve:
    """Return the curve of Huber hinges (theorem 4), where mu is C R over the standard deviation of the noise."""
    terms = tuple((float(math.comb(n_problems, j)), math.sqrt(j)) for j in range(1, n_problems + 1))
    return ObjectiveCurve(kappa, huber_price(kappa, curvature, n_problems), terms, tied=False)


def multinomial_price(kappa: float, n_classes: int) -> float:
    """Return the largest logarithm of the ratio of determinants, for the multinomial log loss."""
    return (n_classes - 1) * math.log1p(kappa / n_classes)


def huber_price(kappa: float, curvature: float, n_problems: int) -> float:
    """Return the largest logarithm of the ratio of determinants, for Huber hinges of this second derivative."""
    return n_problems * math.log1p(kappa * curvature)
