r"""The first releases of a regression: a range that holds nearly all targets, and their location and spread in it.

Noise is proportional to the width of the bounds of the targets. Targets often lie in a small part of these bounds. The
fit then runs on targets that are clipped to the released range, as on public bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ..checks.params import warn
from ..exceptions import SchemaMismatchWarning
from ..mechanisms import (
    BestChoices,
    GroupChoices,
    Mechanism,
    NoNoise,
    coordinate_variance,
    is_gaussian,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    weight_penalties,
    within_reach,
)
from ..parts.arrays import charge
from ..release.counts import FALSE_ALARM, FEWEST, margin, warn_of_beyond
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import group_sensitivity, sum_over_rows
from .regularised import Scaling

Array = NDArray[np.float64]
Pair = tuple[float, float]

RANGE, LOCATION = "range of targets", "targets in the range"

#: Shares of the squared GDP parameter.
_RANGE_SHARE, _LOCATION_SHARE = 0.04, 0.02

# Shares of epsilon with delta = 0, for a large and for a small epsilon. They are between at the third number.
_PURE_RANGE_SHARES, _PURE_LOCATION_SHARES, _BETWEEN = (0.015, 0.09), (0.02, 0.045), 0.2

# A range half as wide is as likely if it holds fewer records by the logarithm of 2 times a number, over epsilon: the
# first for so many halvings, and the second after them. Otherwise, zeros in most targets would pay for the loss of the
# others.
_PREFERENCE, _HALVINGS, _LATER_PREFERENCE = 3.0, 10.0, 0.5

# Ranges are so wide that an empty one is unlikely to be chosen with so many records.
_RECORDS = 2000

# The finest level of ranges at any place, and at the ends of the bounds and around 0.
_DEEPEST, _DEEPEST_AT_ENDS = 9, 24

# Scores count a record as so many units, so that penalties can be less than a record.
_UNITS = 128.0

_NEVER = -(2.0**52)

# Number of bits to which weights are rounded down, and the number of rows of a block.
_BITS, _ROWS = 20, 2**15

# The range is used if the released numbers show by so many deviations of the noise that it holds records, and do not
# show that it misses more than this part of them.
_HOLDS, _MISSES, _SURE_BY = 3.0, 0.1, 2.0

# Part of the weight of a record beyond the bounds that is counted apart.
_BEYOND = 0.25

# A warning names a range whose mean is nearer to an end of it than the first part of the bounds, and that misses less
# than the second part of the targets. Of targets that are mostly zeros, a narrow range misses the others.
_SMALL_PART, _ELSEWHERE = 0.0005, 0.05


@dataclass(frozen=True, eq=False)
class Candidates:
    """Public intervals: edges of cells, and the first and last edge of each interval, in shares of the bounds."""

    edges: Array
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    penalties: Array

    @classmethod
    def of(cls, lower: float, upper: float, epsilon: float) -> Candidates:
        """Return the intervals between bounds for a choice with this epsilon."""
        # The weight of an interval is a power of its width. There are more intervals the narrower they are. So many
        # records outweigh all narrow intervals together.
        reach = epsilon * _RECORDS / math.log(2)
        level = math.floor(min(reach / (_PREFERENCE + 1), _DEEPEST))
        later = max(reach - _PREFERENCE * _HALVINGS, 0.0) / _LATER_PREFERENCE
        at_ends = math.floor(min(reach / _PREFERENCE, _HALVINGS) + min(later, _DEEPEST_AT_ENDS - _HALVINGS))
        # With so little budget that no half of the bounds is a candidate, all of them are the only one.
        at_ends, factors = (at_ends, (1.0, 0.75)) if level else (0, (1.0,))
        starts: list[Array] = []
        stops: list[Array] = []
        for depth in range(level + 1):
            size = 2.0**-depth
            for width in [factor * size for factor in factors]:
                start = np.arange(0.0, 1 - width + size / 8, size / 4)
                starts.append(start)
                stops.append(start + width)
        zero = -lower / (upper - lower)
        for depth in range(1, at_ends + 1):
            size = 2.0**-depth
            pairs = [(0.0, size), (1 - size, 1.0)]
            if 0 < zero < 1:
                pairs += [(zero, zero + size), (zero - size, zero), (zero - size, zero + size)]
            starts.append(np.maximum([start for start, _ in pairs], 0.0))
            stops.append(np.minimum([stop for _, stop in pairs], 1.0))
        fractions = np.array([np.concatenate(starts), np.concatenate(stops)])
        # Ends that differ by less than the rounding of targets would be no interval.
        edges = lower * (1 - fractions) + upper * fractions
        if 0 < zero < 1:
            edges[np.abs(fractions - zero) < 2.0**-50] = 0.0
        is_interval = edges[1] - edges[0] > 2.0**-40 * np.abs(edges).max(axis=0)
        edges, widths = edges[:, is_interval], (fractions[1] - fractions[0])[is_interval]
        distinct_edges, positions = np.unique(edges, return_inverse=True)
        first, last = positions.reshape(edges.shape)
        # `weight_penalties` is for scores that move by twice the change.
        depths = -np.log2(widths)
        gains = _PREFERENCE * np.minimum(depths, _HALVINGS) + _LATER_PREFERENCE * np.maximum(depths - _HALVINGS, 0.0)
        penalties = weight_penalties(np.round(math.log(2) * gains, 9), 0.5, epsilon / _UNITS)
        return cls(distinct_edges, first, last, penalties)

    def scores(self, y: Any, j: int) -> Array:
        r"""Return the score of each interval: the number of its targets `j` in units, minus a public penalty.

        Each target is in one cell. Adding a record raises the score of each interval by 0 or by the number of units of
        a record. Scores are whole numbers below :math:`2^{53}`, and are exact.
        """
        counts = sum_over_rows(partial(_in_cells, self.edges, j), y, block_rows=_ROWS)
        below = np.concatenate([[0.0], np.cumsum(counts)])
        return _UNITS * (below[self.last] - below[self.first]) - self.penalties

    def chosen(self, position: float) -> Pair:
        """Return the ends of a chosen interval."""
        at = int(position)
        return float(self.edges[self.first[at]]), float(self.edges[self.last[at]])


def _values(y: NDArray, j: int, lower: float, upper: float) -> Array:
    """Return targets `j`, clipped to their bounds."""
    return np.clip(np.asarray(y if y.ndim == 1 else y[:, j], dtype=np.float64), lower, upper)


def _in_cells(edges: Array, j: int, y: NDArray) -> NDArray[np.intp]:
    values = _values(y, j, edges[0], edges[-1])
    return np.bincount(np.searchsorted(edges[1:-1], values, side="right"), minlength=len(edges) - 1)


def weights_in_range(lower: float, upper: float, y: NDArray, bounds: Pair) -> Array:
    """Divide each record among four numbers, and return the sums: two in a range, outside of it, and beyond the bounds.

    A record in the range, at :math:`u` in [0, 1], has the weights :math:`1-u` and :math:`u`, where :math:`u` is rounded
    to a multiple of :math:`2^{-20}`. Another record has the weight 1 in the third number. A quarter of the weights of a
    record beyond the bounds is in the fourth number. The weights are not negative, and their sum is 1. Therefore adding
    or removing a record moves the four sums by at most 1, in L1 norm and in L2 norm. A record at an end of the range
    attains both bounds. With k targets, the bounds are k and the square root of k. Sums of such multiples are exact in
    doubles.
    """
    beyond = (y < bounds[0]) | (y > bounds[1])
    y = np.clip(y, *bounds)
    outside = (y < lower) | (y > upper)
    u = np.rint(np.clip((y - lower) / (upper - lower), 0.0, 1.0) * 2.0**_BITS) * 2.0**-_BITS
    weights = np.where(beyond, 1 - _BEYOND, 1.0)
    inside = weights * ~outside
    return np.array([inside @ (1 - u), inside @ u, weights @ outside, _BEYOND * np.count_nonzero(beyond)])


def _weights(ranges: list[Pair], bounds: list[Pair], y: NDArray) -> Array:
    columns = np.asarray(y if y.ndim > 1 else y[:, None], dtype=np.float64).T
    by_target = zip(ranges, columns, bounds, strict=True)
    return np.concatenate([weights_in_range(*chosen, column, declared) for chosen, column, declared in by_target])


def _pure_share_of(epsilon: float, least: float, most: float) -> float:
    # The choice of a range needs about 20 records over its epsilon, which are few only if epsilon is large.
    return least + (most - least) / (1 + min(epsilon / _BETWEEN, 1e100) ** 2)


@dataclass(frozen=True, eq=False)
class Located:
    """Hold the released range of the targets, their mean in it, and the number of records."""

    targets: Scaling
    mean: Array  # In units of the scaled range.
    deviation: Array  # Standard deviation of the noise in the mean.
    count: float  # At least 1, and at least its own noise.
    clipped_mean: tuple[float, float] = (0.0, 1e100)  # Of the first target, clipped to the range, and its deviation.

    def mean_with(self, other: Any = 0.0, deviation: float = 1e100) -> Array:
        """Return the mean of the targets, averaged with another estimate, and shrunk to the middle of the range."""
        # This is the estimate of James and Stein. The weights are the inverses of the variances.
        share = deviation**2 / np.maximum(self.deviation**2 + deviation**2, 1e-300)
        mean = share * self.mean + (1 - share) * np.clip(other, -1.0, 1.0)
        square = np.maximum(mean**2, 1e-300)
        return np.asarray(np.maximum(1 - share * self.deviation**2 / square, 0.0) * mean)


@dataclass(frozen=True, eq=False)
class TargetRange:
    """The public plan of the two releases."""

    releases: tuple[Release, Release]
    events: tuple[PrivacyEvent, PrivacyEvent]
    n_targets: int

    @classmethod
    def of(cls, epsilon: float, delta: float, n_targets: int = 1, rows: int = 1) -> TargetRange:
        """Plan the releases, for groups of at most `rows` records."""
        events: tuple[PrivacyEvent, PrivacyEvent]
        choice: Mechanism
        sums: Mechanism
        sensitivity = group_sensitivity(_UNITS, rows)
        l1, l2 = (group_sensitivity(norm, rows) for norm in (float(n_targets), math.sqrt(n_targets)))
        shares = _RANGE_SHARE, _LOCATION_SHARE
        if epsilon == math.inf:
            choice, sums = BestChoices(sensitivity), NoNoise(l2)
            events = PureEvent(epsilon), PureEvent(epsilon)
        elif delta > 0:
            mu = gaussian_mu(epsilon, delta) * math.sqrt(_RANGE_SHARE)
            each = bounded_range_epsilon(mu / math.sqrt(n_targets))
            choice = GroupChoices(each, sensitivity, monotone=True, bounded_range=True)
            sums, event = l2_mechanism(epsilon, delta, _LOCATION_SHARE, l2, 4 * n_targets)
            events = GaussianEvent(mu), event
        else:
            # Each of the rows of a group counts for a part of epsilon.
            each_row = epsilon / rows
            shares = _pure_share_of(each_row, *_PURE_RANGE_SHARES), _pure_share_of(each_row, *_PURE_LOCATION_SHARES)
            of_choice, of_sums = (pure_share(epsilon, share) for share in shares)
            choice = GroupChoices(pure_share(of_choice, 1 / n_targets), sensitivity, monotone=True)
            sums = l1_mechanism(of_sums, l1, 4 * n_targets)
            events = PureEvent(of_choice), PureEvent(of_sums)
        releases = (
            Release(RANGE, choice, shares[0], Theorem("Regression", 1)),
            Release(LOCATION, sums, shares[1], Theorem("Regression", 2)),
        )
        return cls(releases, events, n_targets)

    @property
    def pairs(self) -> list[tuple[Release, PrivacyEvent]]:
        """The releases with their events."""
        return list(zip(self.releases, self.events, strict=True))

    @property
    def share(self) -> float:
        """Part of the budget of both releases."""
        return sum(release.share for release in self.releases)

    def and_then(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the guarantee of these releases and of those of the model."""
        events = self.events + guarantee.events if guarantee.epsilon < math.inf else guarantee.events
        return replace(guarantee, events=events, releases=self.releases + guarantee.releases)

    def located(self, session: ReleaseSession, y: Any, targets: Scaling, centred: bool = True) -> Located:
        """Release the range and the location of private targets within public bounds."""
        bounds = list(zip(np.atleast_1d(targets.lower), np.atleast_1d(targets.upper), strict=True))
        choice = session.mechanism(RANGE)
        # The exponent of one record.
        epsilon = _UNITS / choice.scale if choice.scale else math.inf
        by_target = [Candidates.of(lower, upper, epsilon) for lower, upper in bounds]
        # Candidates that do not exist have a score that no record changes.
        scores = np.full((len(by_target), max(len(candidates.first) for candidates in by_target)), _NEVER)
        for j, candidates in enumerate(by_target):
            scores[j, : len(candidates.first)] = candidates.scores(y, j)
        positions = session.release(RANGE, scores)
        ranges = [candidates.chosen(position) for candidates, position in zip(by_target, positions, strict=True)]
        mechanism = session.mechanism(LOCATION)
        weights = sum_over_rows(partial(_weights, ranges, bounds), y, block_rows=_ROWS)
        noise = math.sqrt(coordinate_variance(mechanism))
        released = session.release(LOCATION, within_reach(mechanism, weights)).reshape(-1, 4)
        estimates = [_postprocess(*numbers, noise) for numbers in zip(released[:, :3], ranges, bounds, strict=True)]
        lower, upper, mean, deviation, count, *clipped = np.array(estimates).T
        alarm = FALSE_ALARM / len(released), is_gaussian(mechanism)
        warned = any(
            warn_of_beyond((sums[3] / _BEYOND, (noise / _BEYOND) ** 2), (sum(sums), 4 * noise**2), *alarm)
            for sums in released.tolist()
        )
        if not warned and noise > 0:
            least = margin(noise, *alarm)
            totals = released[:, :3].sum(axis=1)
            held = (totals >= FEWEST) & (released[:, 2] + least <= _ELSEWHERE * totals)
            _warn_of_bounds(lower, upper, mean, 3 * deviation, held, targets)
        count = max(1.0, noise * math.sqrt(3 / len(count)), float(count.mean()))
        first = float(clipped[0][0]), float(clipped[1][0])
        return Located(targets.within(lower, upper, centred), mean, deviation, count, first)


def _warn_of_bounds(lower: Array, upper: Array, mean: Array, error: Array, held: Array, bounds: Scaling) -> None:
    """Warn if nearly all targets are in a released range, and their mean is near an end of it for such wide bounds."""
    distance = np.minimum(1 - np.abs(mean) + error, 1.0) / 2 * (upper - lower)
    small = held & (distance <= _SMALL_PART * (np.atleast_1d(bounds.upper) - np.atleast_1d(bounds.lower)))
    if small.any():
        j = int(small.argmax())
        value = lower[j] + (1 + mean[j]) / 2 * (upper[j] - lower[j])
        warn(
            f"bounds_y are far too wide: the released range of the targets{f' {j}' if len(lower) > 1 else ''} is "
            f"({lower[j]:g}, {upper[j]:g}), and their released mean is {value:g}. Declare narrower bounds that are "
            f"known without the data, or release bounds by skdp.preprocessing.private_bounds. {charge()}",
            SchemaMismatchWarning,
        )


def _postprocess(released: Array, chosen: Pair, bounds: Pair, noise: float) -> tuple[float, ...]:
    """Return a range, the mean in its units, its noise, the number of records, and both for clipped targets."""
    inside, outside = float(released[:2].sum()), float(released[2])
    count = inside + outside
    lower, upper = chosen
    # The sum of targets in units of half the range, from its middle.
    sums = np.array([-1.0, 1.0, 0.0])
    if inside < _HOLDS * math.sqrt(2) * noise or outside > _MISSES * count + _SURE_BY * noise:
        lower, upper = bounds
        # Records outside of the range are taken to be in the middle of the bounds.
        shift = ((chosen[0] - lower) - (upper - chosen[1])) / (upper - lower)
        sums = shift * np.array([1.0, 1.0, 0.0]) + (chosen[1] - chosen[0]) / (upper - lower) * sums
        inside = count
    total, deviation = float(released @ sums), noise * float(np.linalg.norm(sums))
    sure = max(inside, noise, 1.0)
    if (lower, upper) == bounds != chosen:
        # Nothing else is known of them.
        deviation += max(outside, 0.0)
    # If the range has one end of the bounds, other targets are beyond its other end. Else, nothing is known of them.
    beyond = float(lower == bounds[0]) - float(upper == bounds[1])
    whole, others = (max(count, noise, 1.0), noise) if beyond else (sure, max(outside, 0.0))
    clipped = min(max((total + beyond * outside) / whole, -1.0), 1.0), math.hypot(deviation, others) / whole
    return lower, upper, min(max(total / sure, -1.0), 1.0), deviation / sure, count, *clipped
