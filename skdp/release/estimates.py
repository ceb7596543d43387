"""The result of a statistic: its value, its guarantee, and its error by noise, whose law is known, and by sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from ..checks.params import check_choice, check_positive
from ..mechanisms import DiscreteLaplaceMechanism, Mechanism, NoNoise, StabilityCounts
from ..schema.schema import as_html, as_text
from .session import PrivacyGuarantee

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
        variance, normal = self.variance, np.asarray(normal, dtype=np.float64)
        total = np.sqrt(variance + normal**2)
        if not self.parts or variance == 0:
            return total * float(ndtri((1 + level) / 2))
        with np.errstate(invalid="ignore"):
            shares = np.where(total > 0, (self.normal**2 + normal**2) / total**2, 1.0)
        # Quantiles are cached by rounded numbers, and interpolated for many shares.
        unit = tuple(sorted((round(a / math.sqrt(variance - self.normal**2), 6), k) for a, k in self.parts if a))
        if shares.size > len(_SHARES):
            return total * np.interp(shares, _SHARES, [_unit_quantile(level, one, unit) for one in _SHARES.tolist()])
        quantile = _laplace_quantile if [k for _, k in unit] == [1.0] else _unit_quantile
        quantiles = [quantile(level, round(share, 6), unit) for share in shares.ravel().tolist()]
        return total * np.reshape(quantiles, shares.shape)

    def tail(self, x: float, normal: float = 0.0) -> float:
        """Return the probability that the sum of this law and an independent normal variable exceeds `x`."""
        total = math.sqrt(self.variance + normal**2)
        if total == 0:
            return float(x < 0)
        if not self.parts:
            return float(ndtr(-x / total))
        unit = tuple((a / total, k) for a, k in self.parts)
        half = min(abs(x) / total, _PERIOD / 4)
        beyond = max(0.5 - float(np.sin(_T * half) @ _weights((self.normal**2 + normal**2) / total**2, unit)) / 2, 0.0)
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
    if isinstance(mechanism, NoNoise):
        return Law()
    sizes = np.abs(np.ravel(coefficients))
    if isinstance(mechanism, DiscreteLaplaceMechanism | StabilityCounts):
        return Law(parts=tuple((float(a) * mechanism.scale, 1.0) for a in sizes if a))
    length = float(np.linalg.norm(sizes)) * mechanism.scale
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


def check_level(level: object) -> float:
    """Check and return the level of an interval."""
    return check_positive(level, "level", least=1e-6, most=1 - 1e-9)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A private statistic.

    Parameters
    ----------
    value : float or ndarray
        The statistic, with noise.
    standard_error : float or ndarray
        Standard deviation of the noise alone, without sampling, estimated from released numbers.
    privacy_ : PrivacyGuarantee
        Guarantee of the call, with its releases.
    names : tuple of str
        Names of the columns, or labels of the entries along the last axis. Empty if there are none.
    details : dict
        Further released numbers, such as ``"count"``, and public numbers, such as ``"bin_edges"``.
    spread : object
        Object that computes the intervals. None if there are no intervals.

    Notes
    -----
    **Privacy.** All attributes are computed from releases and public numbers.

    Examples
    --------
    >>> from skdp import stats
    >>> mean = stats.mean(
    ...     [2.0, 3.0, 4.0] * 1000, bounds=(0, 10), epsilon=1.0, random_state=0
    ... )
    >>> low, high = mean.confidence_interval(0.95)
    >>> round(low, 2), round(high, 2)
    (2.97, 3.04)
    """

    value: Any
    standard_error: Any
    privacy_: PrivacyGuarantee
    names: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    spread: Any = field(default=None, repr=False)

    def __float__(self) -> float:
        """Return the value of a single statistic as a float."""
        return float(self.value)

    def confidence_interval(self, level: float = 0.95, *, of: str = "total") -> tuple[Any, Any]:
        """Return an interval that contains the true value with probability `level`.

        Parameters
        ----------
        level : float, default=0.95
            Level of the interval, in (0, 1).
        of : {"total", "noise"}, default="total"
            With ``"total"``, the true value is the value of the population from which the records, or the groups, were
            drawn independently. The interval then covers noise and sampling. With ``"noise"``, the true value is the
            value of the records without noise.

        Returns
        -------
        low, high : float or ndarray
            Both ends, with the shape of `value`.
        """
        level, total = check_level(level), check_choice(of, "of", ("total", "noise")) == "total"
        if self.spread is None:
            raise ValueError("this statistic was released without an interval")
        low, high = self.spread.interval(level, self.privacy_.rows if total else 0)
        return (float(low), float(high)) if np.ndim(self.value) == 0 else (np.asarray(low), np.asarray(high))

    #: What a table with rows and columns shows.
    _corner: ClassVar[str] = "± is noise"

    def _table(self) -> list[tuple[str, ...]]:
        value, error = np.broadcast_arrays(np.asarray(self.value, dtype=object), self.standard_error)
        if value.ndim > 2 or value.size > 100:
            return [
                ("value", "largest standard error (noise)"),
                (f"array of shape {value.shape}", f"{error.max():.4g}"),
            ]
        size = value.shape[-1] if value.ndim else 1
        names = self.names if len(self.names) == size else tuple(map(str, range(size)))
        pairs = [(f"{x:.6g}", f"{spread:.3g}") for x, spread in zip(value.ravel(), error.ravel(), strict=True)]
        if value.ndim < 2:
            cells = ((name, *pair) for name, pair in zip(names, pairs, strict=True))
            return [("", "value", "standard error (noise)"), *cells]
        labels = names if len(value) == size else tuple(map(str, range(len(value))))
        lines = [(label, *map(" ± ".join, pairs[size * i : size * (i + 1)])) for i, label in enumerate(labels)]
        return [(self._corner, *names), *lines]

    def __repr__(self) -> str:
        return as_text(self._table()) + f"\n{str(self.privacy_).splitlines()[0]}"

    def _repr_html_(self) -> str:
        return as_html(self._table()) + f"<p>{str(self.privacy_).splitlines()[0]}</p>"


# Rules have a method `interval`. Its `rows` is 0 for noise alone, and otherwise the largest number of counted records
# of a group. These need not be independent. Under sampling, the variance of a sum is then at most `rows` times that of
# a sum of independent records, by the Cauchy-Schwarz inequality in each group.


@dataclass(frozen=True, eq=False)
class Around:
    """Intervals around estimates whose noise has one law, and whose sampling error is normal."""

    value: Any
    law: Law
    sampling: Any = None  # Standard deviations. None if the sampling error is not known.
    least: Any = -np.inf
    most: Any = np.inf
    unit: Any = 1.0  # Unit of the law, in units of the values.
    allowance: float = 0.0  # Bound on a further error.

    def interval(self, level: float, rows: int) -> tuple[Any, Any]:
        if rows and self.sampling is None:
            raise ValueError(
                'of="total" is not supported for a sum, which a population does not have. Use of="noise", or a mean'
            )
        sampling = math.sqrt(rows) * self.sampling if rows else 0.0
        half = self.unit * self.law.half_width(level, sampling) + self.allowance
        return np.clip(self.value - half, self.least, self.most), np.clip(self.value + half, self.least, self.most)


@dataclass(frozen=True, eq=False)
class Counts:
    """Intervals of noisy counts, which follow Poisson laws under sampling."""

    value: Any
    law: Law

    def interval(self, level: float, rows: int) -> tuple[Any, Any]:
        count = np.asarray(self.value, dtype=np.float64)
        sampled = rows * np.maximum(count, 0.0)
        half = self.law.half_width(level, np.sqrt(sampled))
        high = count + half
        if rows:
            # At the upper end, the variance of a Poisson law is the end itself, or `rows` times the end.
            variance = self.law.variance + sampled
            z = np.where(variance > 0, half**2 / np.maximum(variance, 1e-300), float(ndtri((1 + level) / 2)) ** 2)
            root = z * (rows**2 * z / 4 + self.law.variance + rows * count)
            high = count + rows * z / 2 + np.sqrt(np.maximum(root, 0.0))
        return np.maximum(count - half, 0.0), np.maximum(high, 0.0)


@dataclass(frozen=True, eq=False)
class Each:
    """Intervals of several estimates, each by its own rule."""

    rules: tuple[Any, ...]
    shape: tuple[int, ...]

    def interval(self, level: float, rows: int) -> tuple[Any, Any]:
        intervals = {rule: rule.interval(level, rows) for rule in dict.fromkeys(self.rules)}
        ends = np.array([intervals[rule] for rule in self.rules], dtype=np.float64).reshape(-1, 2)
        return ends[:, 0].reshape(self.shape), ends[:, 1].reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Quotient:
    """Intervals of a quotient a / b of two noisy sums by inverting a test, in the manner of Fieller."""

    a: float
    b: float
    mechanism: Mechanism
    top: Array  # Coefficients of the noise of a, and of b, in the release.
    bottom: Array
    # Variance of the contribution of one record to a - quotient * b under sampling. None for a proportion.
    record: float | None
    least: float
    most: float
    default: float = 0.0  # The value is shrunk to this number if b does not exceed its noise.
    shift: float = 0.0
    scale: float = 1.0
    power: float = 1.0
    # Largest distances of a record's contribution below and above its mean. None for those of `least` and `most`.
    reach: tuple[float, float] | None = None

    @property
    def value(self) -> float:
        """The quotient in units of the column."""
        square = max(self.b, 0.0) ** 2
        weight = square / (square + combination(self.mechanism, self.bottom).variance) if square else 0.0
        at = weight * self.a / max(self.b, 1e-300) + (1 - weight) * self.default if square else self.default
        return self._in_units(at)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the quotient by noise alone, by linearisation."""
        count = max(self.b, 1.0)
        at = min(max(self.a / count, self.least), self.most)
        error = min(math.sqrt(self.law(at).variance) / count, self.most - self.least)
        slope = 1.0 if self.power == 1 else self.power * max(at, error, 1e-300) ** (self.power - 1)
        return self.scale * slope * error

    def law(self, quotient: float) -> Law:
        """Return the law of the noise of a - quotient * b."""
        return combination(self.mechanism, self.top - quotient * self.bottom)

    def _in_units(self, quotient: float) -> float:
        return float(self.shift + self.scale * min(max(quotient, self.least), self.most) ** self.power)

    def interval(self, level: float, rows: int) -> tuple[float, float]:
        low, high = self._ends(level, rows)
        return self._in_units(low), self._in_units(high)

    def _ends(self, level: float, rows: int) -> tuple[float, float]:
        if self.b <= 0:
            return self.least, self.most
        count = max(self.b, 1.0)
        at = min(max(self.a / count, self.least), self.most)
        sampled, rates = self.sampling(at) if rows else (0.0, (0.0, 0.0))
        law, sampled = self.law(at), sampled * rows * count
        half = float(law.half_width(level, np.sqrt(sampled)))
        z = half**2 / (law.variance + sampled) if half else float(ndtri((1 + level) / 2)) ** 2
        # The variance of a - q b is a polynomial of degree 2 in q, which three values determine.
        v0, v1, v2 = (self.law(q).variance for q in (0.0, 1.0, -1.0))
        square, slope = (v1 + v2) / 2 - v0, (v1 - v2) / 2
        lead, ends = self.b**2 - z * square, []
        for side, rate in zip((-1, 1), rates, strict=True):
            more = side * rows * count * rate
            middle = self.a * self.b + z * (slope + more) / 2
            root = middle**2 - lead * (self.a**2 - z * (v0 + sampled - more * at))
            if lead <= 0 or root < 0:
                return self.least, self.most
            ends.append((middle + side * math.sqrt(root)) / lead)
        return ends[0], ends[1]

    def sampling(self, at: float) -> tuple[float, tuple[float, float]]:
        """Return the variance of a record's contribution, and its growth with the distance of lower and higher means.

        No law of this variance within reach is more skewed than a law of two values, whose variance grows so.
        """
        reach = self.reach or (at - self.least, self.most - at)
        record = reach[0] * reach[1] if self.record is None else self.record
        low, high = (max(most - record / most, 0.0) if most else 0.0 for most in reach)
        return record, (low, high)
