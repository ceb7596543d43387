r"""Corrections of fits by clipped gradients, which minimise another loss, and by noise, which adds to the predictions.

*Regression.* Six joint sums of predictions and targets are released last. They determine the line through the
predictions with the smallest squared error.

*Classification.* Clipping and noise make probabilities too extreme. They are raised to a power below 1, and divided by
their sum. The power follows from the bound on gradients, the length of a row, and the released number of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..accounting import PrivacyEvent
from ..mechanisms import coordinate_variance, l2_mechanism, within_reach
from ..parts.arrays import rowwise
from ..release.session import Release, ReleaseSession, Theorem
from ..sensitivity import sparse_squared_norms, squared_norms, sum_over_rows

Array = NDArray[np.float64]

LABEL = "predictions and targets"

#: Part of the square of the GDP parameter.
SHARE = 0.02

#: Number of bits to which weights are rounded down.
_BITS = 20

# Number of rows of a block.
_ROWS = 2**17

_THEOREM = Theorem("Gradient descent", 2)

# Values of a prediction, of its square and of a target in the cells, where cells of the prediction come first.
_FIRST, _SECOND = np.repeat([-1.0, 0.0, 1.0], 2), np.repeat([1.0, -1.0, 1.0], 2)
_TARGET = np.tile([-1.0, 1.0], 3)

# A line is used if it is better than the predictions, or than the mean, by so many standard deviations of the noise in
# the difference. A line that is chosen because of the noise also follows it, and may be far off. With 2 deviations, two
# in a hundred fits of gradient descent lost more than .2 of R², with a few hundred records and an epsilon of 0.3.
_SURE_BY = 3.0

_MOST_SLOPE = 4.0

# The smallest half width of a window, far above the rounding of weights.
_LEAST_HALF = 2.0**-10


def weights_in_cells(predictions: NDArray, targets: NDArray) -> Array:
    """Divide each record among six cells, and return the sum of the records' weights in each.

    Let :math:`u` and :math:`v` be the prediction and the target mapped from [-1, 1] to [0, 1]. The weights are the
    products of :math:`(1-u)^2, 2u(1-u), u^2` and :math:`1-v, v`. They are not negative, and their sum is 1. They are
    rounded down to multiples of :math:`2^{-20}`, so that their sum is at most 1. A prediction is a public function of
    its record. Therefore adding or removing a record moves the sums by at most 1, in L1 norm and in L2 norm, and a
    record in a corner attains both bounds. With k targets, the bounds are k and the square root of k. Sums of such
    multiples are exact in doubles.
    """
    # Differences of infinite numbers are NaN, and no record may make the sums NaN.
    u, v = (
        np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0), -1.0, 1.0) / 2 + 0.5
        for values in (predictions, targets)
    )
    products = [by_u * by_v for by_u in ((1 - u) ** 2, 2 * u * (1 - u), u**2) for by_v in (1 - v, v)]
    return np.array([np.floor(product * 2.0**_BITS).sum() for product in products]) * 2.0**-_BITS


@dataclass(frozen=True)
class Line:
    """Map predictions, in scaled units, to corrected ones."""

    slope: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True)
class Window:
    """Hold the public interval of the predictions of a released model, in scaled units."""

    # In a narrow interval, lines differ little, and the noise in the estimates of their errors is smaller, too.

    centre: float = 0.0
    half: float = 1.0

    @classmethod
    def of(cls, lower: float, upper: float) -> Window:
        """Return the part of an interval within the bounds of targets, or all of the bounds if there is none."""
        lower, upper = max(lower, -1.0), min(upper, 1.0)
        return cls((lower + upper) / 2, max((upper - lower) / 2, _LEAST_HALF)) if lower <= upper else cls()


def _in_window(window: Window, predictions: NDArray) -> NDArray:
    return ((predictions - window.centre) / window.half)[:, None]


def _as_column(targets: NDArray) -> NDArray:
    return targets[:, None]


def _weights_of_columns(predictions: NDArray, targets: NDArray) -> Array:
    return np.concatenate([weights_in_cells(*pair) for pair in zip(predictions.T, targets.T, strict=True)])


@dataclass(frozen=True, eq=False)
class Calibration:
    """The public plan of the release."""

    release: Release
    event: PrivacyEvent

    @classmethod
    def of(cls, epsilon: float, delta: float, n_targets: int = 1) -> Calibration:
        mechanism, event = l2_mechanism(epsilon, delta, SHARE, math.sqrt(n_targets), 6 * n_targets)
        return cls(Release(LABEL, mechanism, SHARE, _THEOREM), event)

    def lines(
        self,
        session: ReleaseSession,
        predictions: NDArray,
        targets: NDArray,
        window: Window = Window(),
        *,
        sure_by: float = _SURE_BY,
        mean: tuple[float, float] | None = None,
    ) -> list[Line]:
        """Release the weights of private predictions and targets in scaled units, and return each column's line.

        The predictions are in units of the window, and so are the lines' arguments. `mean` is as in `with_mean`.
        """
        mechanism = self.release.mechanism
        # The weights are multiples of a power of two, so that their sums are exact.
        weights = sum_over_rows(_weights_of_columns, predictions, targets, block_rows=_ROWS)
        released = session.release(LABEL, within_reach(mechanism, weights))
        noise = math.sqrt(coordinate_variance(mechanism))
        chosen = [chosen_line(moments, noise, window, sure_by) for moments in released.reshape(-1, 6)]
        return chosen if mean is None else [with_mean(chosen[0], released, noise, *mean)]

    def line(
        self, session: ReleaseSession, predictions: NDArray, targets: NDArray, window: Window, **options: Any
    ) -> Line:
        """Return the line of a single target, for predictions in a public window."""
        in_window = rowwise(partial(_in_window, window), predictions)
        (line,) = self.lines(session, in_window, rowwise(_as_column, targets), window, **options)
        slope = line.slope / window.half
        return Line(slope, line.shift - slope * window.centre)


def _errors(line: Line) -> Array:
    """Return the squared error of a line per weight in each cell, without the square of the target."""
    a, b = line.shift, line.slope
    return b**2 * _SECOND + 2 * a * b * _FIRST + a**2 - 2 * _TARGET * (b * _FIRST + a)


def chosen_line(weights: Array, noise: float, window: Window = Window(), sure_by: float = _SURE_BY) -> Line:
    """Choose the line with the smallest squared error, from released weights and their noise.

    Lines map predictions in units of the window to predictions in scaled units.
    """
    # If the noise leaves the choice open, the predictions are kept.
    # A number of records below its noise is not used.
    deviation = noise * math.sqrt(len(weights))
    count = max(float(weights.sum()), 3 * deviation)
    total = float(weights @ _TARGET)
    # A sum within two standard deviations of 0 may be noise. The middle of the bounds is better then.
    shrinkage = max(0.0, 1 - (2 * deviation / total) ** 2) if total else 0.0
    target = min(max(shrinkage * total / count, -1.0), 1.0)
    mean, square = float(weights @ _FIRST) / count, float(weights @ _SECOND) / count
    unchanged = window.half
    lines = [Line(unchanged, window.centre), Line(0.0, target), Line(unchanged, target - unchanged * mean)]
    if square > mean**2:
        slope = (float(weights @ (_FIRST * _TARGET)) / count - mean * target) / (square - mean**2)
        slope = min(max(slope, 0.0), _MOST_SLOPE * unchanged)
        lines.append(Line(slope, target - slope * mean))
    best, least = lines[0], 0.0
    for line in lines:
        more = _errors(line) - _errors(lines[0])
        bound = float(weights @ more) + sure_by * noise * float(np.linalg.norm(more))
        if bound < least:
            best, least = line, bound
    return best


# About the standard deviation of the mean error of predictions that are squares of fitted roots.
_GAP = 0.03


def with_mean(line: Line, weights: Array, noise: float, mean: float, deviation: float) -> Line:
    """Return a line with a shift by the mean error that weights and another estimate of the mean target show."""
    count = max(float(weights.sum()), 3 * noise * math.sqrt(len(weights)))
    error, other = _TARGET - line.slope * _FIRST - line.shift, _TARGET - mean
    # This share of the other estimate has the least variance.
    scale = (noise / count) ** 2
    share = scale * float(error @ other) / max(scale * float(other @ other) + deviation**2, 1e-300)
    error = error - share * other
    variance = scale * float(error @ error) + (share * deviation) ** 2
    return Line(line.slope, line.shift + float(weights @ error) / count * _GAP**2 / (_GAP**2 + variance))


# Derivatives that are shorter than this part of the largest one do not make probabilities too extreme if they are
# clipped, and this number of records times the GDP parameter halves the logits of two classes.
_UNBIASED, _HALVED = 0.72, 45.0


def powers_of_probabilities(longest: Any, n_classes: int, evidence: float = math.inf) -> Any:
    """Return the powers for the longest derivatives that are not clipped, in units of the largest derivative.

    `evidence` is the number of records times the GDP parameter of the fit.
    """
    # The effects are smaller with more classes. Both are in proportion to one over their number.
    by_classes = 2 / n_classes
    return (1 - by_classes * np.maximum(_UNBIASED - longest, 0.0)) / (1 + by_classes * _HALVED / evidence)


@dataclass(frozen=True)
class RowPowers:
    """The powers of the probabilities of rows, as a public function of rows, parameters and released numbers."""

    data_norm: float
    constant: float
    clip: float  # The bound on gradients, in units of the largest derivative.
    n_classes: int
    evidence: float

    def logits(self, rows: Any, scores: NDArray) -> Array:
        """Return the logits of rows, from scores of shape (n_rows,) or (n_rows, n_classes)."""
        with np.errstate(all="ignore"):
            squares = sparse_squared_norms(rows) if issparse(rows) else squared_norms(rows)
        lengths = np.sqrt(np.minimum(squares, self.data_norm**2) + self.constant**2)
        longest = self.clip / np.maximum(lengths, np.finfo(np.float64).tiny)
        powers = powers_of_probabilities(longest, self.n_classes, self.evidence)
        return scores * (powers if scores.ndim == 1 else powers[:, None])
