"""The law of released noise, for intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoNoise, StabilityThreshold

Array = NDArray[np.float64]

# The density of the noise is treated as periodic, with this period in standard deviations. Its transform ends here.
_PERIOD, _LAST = 80.0, 400.0
_T = np.arange(0.5, _LAST * _PERIOD / (2 * math.pi)) * (2 * math.pi / _PERIOD)

# Normal shares of the variance for which quantiles are computed. Other shares are interpolated.
_SHARES = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True)
class Law:
    r"""A symmetric law whose transform is :math:`e^{-s^2t^2/2}\prod_i(1+a_i^2t^2)^{-k_i}`."""

    # A Laplace variable of scale a has k = 1. A coordinate of noise of density exp(-|z|/a) in p dimensions has
    # k = (p + 1) / 2. The transform of a sum of independent variables is the product of their transforms.
    normal: float = 0.0
    parts: tuple[tuple[float, float], ...] = ()

    @property
    def variance(self) -> float:
        return self.normal**2 + sum(2 * k * a**2 for a, k in self.parts)

    def half_width(self, level: float, normal: Any = 0.0) -> Any:
        """Return half the width of the central interval of this law plus independent normal variables."""
        own, normal = self.variance, np.asarray(normal, dtype=np.float64)
        total = np.sqrt(own + normal**2)
        if not self.parts or own == 0:
            return total * float(ndtri((1 + level) / 2))
        with np.errstate(invalid="ignore"):
            share = np.where(total > 0, (self.normal**2 + normal**2) / total**2, 1.0)
        unit = tuple(sorted((round(a / math.sqrt(own - self.normal**2), 6), k) for a, k in self.parts if a))
        if share.size > len(_SHARES):
            return total * np.interp(share, _SHARES, [_unit_quantile(level, one, unit) for one in _SHARES.tolist()])
        quantile = _laplace_quantile if [k for _, k in unit] == [1.0] else _unit_quantile
        found = [quantile(level, round(one, 6), unit) for one in share.ravel().tolist()]
        return total * np.reshape(found, share.shape)

    def tail(self, x: float, normal: float = 0.0) -> float:
        """Return the probability that the sum of this law and an independent normal variable exceeds `x`."""
        total = math.sqrt(self.variance + normal**2)
        if total == 0:
            return float(x < 0)
        if not self.parts:
            return float(ndtr(-x / total))
        unit = tuple((a / total, k) for a, k in self.parts)
        place = min(abs(x) / total, _PERIOD / 4)
        beyond = max(0.5 - float(np.sin(_T * place) @ _weights((self.normal**2 + normal**2) / total**2, unit)) / 2, 0.0)
        return beyond if x >= 0 else 1 - beyond


def _weights(normal: float, parts: tuple[tuple[float, float], ...]) -> Array:
    """Return the weights of the sines of multiples of x in the probability of [-x, x]."""
    log = -normal * _T**2 / 2 - sum(k * np.log1p((a * _T) ** 2) for a, k in parts)
    return np.asarray(np.exp(log) / _T * (4 / _PERIOD))


@lru_cache(maxsize=4096)
def _unit_quantile(level: float, share: float, parts: tuple[tuple[float, float], ...]) -> float:
    """Return the quantile of the absolute value, for a normal share of the unit variance."""
    weights = _weights(share, tuple((a * math.sqrt(1 - share), k) for a, k in parts))
    return float(brentq(lambda x: float(np.sin(_T * x) @ weights) - level, 0.0, _PERIOD / 4, xtol=1e-6))


def _laplace_quantile(level: float, share: float, parts: object) -> float:
    """Return this quantile for one Laplace variable, by the closed form of its sum with a normal variable."""
    scale, spread = math.sqrt(max(1 - share, 1e-12) / 2), math.sqrt(max(share, 1e-12))
    ratio = spread / scale

    def beyond(x: float) -> float:
        shifts = np.array([x / spread - ratio, -x / spread - ratio])
        both = np.exp(ratio**2 / 2 + np.array([-x, x]) / scale + log_ndtr(shifts))
        return 2 * float(ndtr(-x / spread)) + float(both[0] - both[1]) - (1 - level)

    return float(brentq(beyond, 0.0, _PERIOD / 4, xtol=1e-9)) if ratio < 30 else float(ndtri((1 + level) / 2))


def combination(mechanism: Mechanism, coefficients: Any) -> Law:
    """Return the law of a linear combination of the noise in different coordinates of one release."""
    own = np.abs(np.ravel(coefficients))
    if isinstance(mechanism, NoNoise):
        return Law()
    if isinstance(mechanism, DiscreteLaplaceMechanism | StabilityThreshold):
        return Law(parts=tuple((float(a) * mechanism.scale, 1.0) for a in own if a))
    length = float(np.linalg.norm(own)) * mechanism.scale
    if mechanism.name == "Gaussian":
        return Law(normal=length)
    return Law(parts=((length, (mechanism.size + 1) / 2),) if length else ())  # type: ignore[attr-defined]


def drawn_noise(mechanism: Mechanism, n: int, size: int, rng: Any) -> Array:
    """Draw noise to simulate the law of a test. The noise of a release is never drawn here."""
    if isinstance(mechanism, NoNoise):
        return np.zeros((n, size))
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        return rng.laplace(scale=mechanism.scale, size=(n, size))
    normal = mechanism.scale * rng.standard_normal((n, size))
    if mechanism.name == "Gaussian":
        return normal
    # A few coordinates of noise with density exp(-|z| / scale) are a scale mixture of normal variables.
    return normal * np.sqrt(2 * rng.gamma((mechanism.size + 1) / 2, size=(n, 1)))  # type: ignore[attr-defined]
