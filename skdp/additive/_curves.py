r"""Fits of the curves by noisy gradient steps.

What follows released gradients: log-odds of clipped scores, shrinkage of curves, and the noise in them.

A last release chooses a power: the probabilities of a model are raised to it, and divided by their sum. Half of the sum
of squared differences from the indicators of the labels measures the error of the probabilities.

Shrinkage. The curve of a column is a sum of orthogonal functions, which have mean 0 by the released counts. Gradient
steps reach a part :math:`r` of each coefficient, and add noise and a sampling error with a known variance :math:`v`. If
coefficients per unit of features have the variance :math:`s^2`, the best linear estimate multiplies a coefficient by
:math:`r s^2 / (r^2 s^2 + v)`. The logarithm of :math:`s` is estimated for each column from its released coefficients,
with a normal prior that is common to all columns, and then for each coefficient with a normal prior around its column.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from threadpoolctl import threadpool_limits

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu, sampled_gaussian_mu
from ..mechanisms import SampledGaussianMechanism, choice_mechanism
from ..parts.arrays import folded
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..schema.columns import Codes
from ..sensitivity import truncate
from ..solvers.clipped_gradients import Gradients, gradients_over
from ..solvers.linear_descent import (
    GRADIENTS,
    MARGIN_WALK,
    Descent,
    Path,
    SamplingSchedule,
    Settings,
    eta,
    probabilities,
    rule_of,
)
from ..solvers.losses import GradientLoss
from ._features import CellGradients, Centred, GroupedLayout, spectrum
from ._plans import Cells

Array = NDArray[np.float64]

# Matrices of fewer rows are too small to gain from several threads of BLAS. While other processes are at work, threads
# that wait for one another make small products many times slower.
_FEWEST_ROWS = 4096

# As in DPSGDClassifier, except for the number of steps.
_MOMENTUM, _AVERAGED = 0.95, 0.5

# Steps are at most this part of the longest stable step.
_STABLE = 0.99

#: Number of gradient steps.
N_STEPS = 300

#: Limits on what the curvature leaves in a predictor: on noise for two labels, and for more, and on sampling errors.
LIMIT, LIMIT_OF_CLASSES, SAMPLING_LIMIT = 0.5, 0.8, 0.8

#: Approximate mean of the second derivative of the loss of labels.
MEAN_CURVATURE = 0.12

# Momentum divides the length of a step by the first number. Steps are shorter than the longest steps by at most this
# power of e.
_REST, _POWERS = 1 - _MOMENTUM, 30.0

#: Name of the release of a second fit of the curves.
AGAIN = "gradients of the second fit"

GRADIENT_THEOREM = Theorem("Additive models", 2)


def blas_threads(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if the matrices have fewer rows and columns than some thousands.

    The limit holds for the whole process, as does that of scikit-learn's estimators.
    """
    return threadpool_limits(1, "blas") if size < _FEWEST_ROWS else nullcontext()


def mechanism_of(guarantee: PrivacyGuarantee, label: str) -> Any:
    """Return the mechanism of a release."""
    return next(release.mechanism for release in guarantee.releases if release.label == label)


@dataclass(frozen=True, eq=False)
class GradientEngine:
    """Noisy gradient steps on all records, described by public values."""

    epsilon: float
    delta: float
    reserved: float  # The part of the budget that other releases use.
    layout: GroupedLayout
    loss: GradientLoss
    clip: float  # The clipping norm over the norm of rows.
    walk: float = MARGIN_WALK
    rate: float | None = None  # Length of a step on the mean gradient; automatic if None.
    label: str = GRADIENTS

    def with_rate(self, features: Centred, count: float) -> GradientEngine:
        """Return the engine of labels with the longest steps that limit noise and sampling error in predictors."""
        longest = eta(replace(self.descent, walk=math.inf), 0.0)
        limit = LIMIT if self.loss.outputs == 1 else LIMIT_OF_CLASSES
        eigenvalues, noise, time = spectrum(features), self.mechanism.scale / count, N_STEPS / _REST

        def excess(logarithm: float) -> float:
            """Return the larger deviation of a predictor by its limit, less 1, for the logarithm of the rate."""
            # Along an eigenvector, steps add up noise and sampling errors, and the curvature of the loss reduces them.
            rate = math.exp(logarithm)
            added = (rate * noise) ** 2 * time / _REST * eigenvalues
            decay = 2 * MEAN_CURVATURE * rate * time * eigenvalues
            of_noise = math.sqrt(float(np.sum(added * special.exprel(-decay)))) / limit
            moved = rate * time * float(np.linalg.norm(eigenvalues * special.exprel(-decay / 2)))
            return max(of_noise, math.sqrt(MEAN_CURVATURE / count) * moved / SAMPLING_LIMIT) - 1

        most = math.log(longest)
        least = most - _POWERS
        if excess(most) <= 0:
            return replace(self, rate=longest)
        return replace(self, rate=math.exp(optimize.brentq(excess, least, most) if excess(least) < 0 else least))

    @cached_property
    def descent(self) -> Descent:
        settings = Settings(self.epsilon, self.delta, self.layout.data_norm, momentum=_MOMENTUM, averaged=_AVERAGED)
        if self.rate is not None:
            settings = replace(settings, eta0=self.rate)
        if settings.private:
            settings = replace(settings, max_grad_norm=self.clip * settings.row_norm)
        schedule = SamplingSchedule(1.0, N_STEPS, None)
        return Descent(settings, schedule, self.loss, self.layout.n_features, self.walk, centred=True)

    @property
    def constant(self) -> float:
        """The constant feature."""
        return self.descent.settings.constant

    @property
    def lone_steps(self) -> int:
        """Number of averaged steps of the intercept alone."""
        return max(1, self.descent.lone_steps - self.descent.lone_steps // 2)

    @property
    def step_mu(self) -> float:
        """Sensitivity divided by noise, of one step."""
        if self.epsilon == math.inf:
            return math.inf
        other = gaussian_mu(self.epsilon, self.delta) * math.sqrt(self.reserved)
        return sampled_gaussian_mu(self.epsilon, self.delta, 1.0, N_STEPS, other)

    @cached_property
    def mechanism(self) -> SampledGaussianMechanism:
        size = math.prod(self.descent.shape)
        return SampledGaussianMechanism(self.step_mu, self.descent.max_norm, size, N_STEPS)

    def plan(self) -> PrivacyGuarantee:
        events: tuple[PrivacyEvent, ...] = (PureEvent(math.inf),)
        if self.epsilon < math.inf:
            events = (GaussianEvent(self.step_mu * math.sqrt(N_STEPS)),)
        release = Release(self.label, self.mechanism, 1 - self.reserved, GRADIENT_THEOREM)
        return PrivacyGuarantee(self.epsilon, self.delta, events, (release,))

    def run(
        self,
        session: ReleaseSession,
        codes: Any,
        targets: Any,
        count: float,
        features: Centred,
        start: Any = None,
        intercept: Array | None = None,
    ) -> tuple[Array, Array, Array | None]:
        """Return coefficients, intercepts, and the intercepts of a fit without curves.

        `start` has scores of shape (n_rows, outputs) that are added to those of the curves. The first steps move the
        intercepts alone, unless they start at `intercept`.
        """
        mechanism = self.mechanism
        gradients = self.gradients(codes, targets, features, start)
        weights = np.zeros(self.descent.shape)
        if intercept is not None:
            weights[:, -1] = intercept / self.constant
        path = Path(self.descent, weights, count, mechanism.scale)
        with blas_threads(self.layout.n_features):
            weights = path.follow(gradients, session.steps(self.label, gradients.n_rows), mechanism)
        return *rule_of(weights, self.descent.settings), path.lone_intercept

    def gradients(self, codes: Any, targets: Any, features: Centred, start: Any = None) -> Gradients:
        """Return the sums of the records' clipped gradients."""
        # Without noise, nothing is clipped.
        most = self.descent.max_norm if self.epsilon < math.inf else math.inf
        arrays = (codes, targets) if start is None else (codes, targets, start)
        return gradients_over(partial(CellGradients, features, self.loss, most), *arrays)

    def sizes_along(self, bends: Array, count: float) -> Array:
        """Return standard deviations of the result along eigenvectors of the second derivative, for its eigenvalues."""
        shares = self._moves_along(bends, count)
        return self.mechanism.scale * np.sqrt((shares**2).sum(axis=0))

    def response_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in all steps on the result along eigenvectors, for their eigenvalues."""
        return np.abs(self._moves_along(bends, count).sum(axis=0))

    def _moves_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in one step on the result, of shape (n_steps, n_eigenvalues)."""
        # The noise of each step decays by a recursion. The result is an average of the remaining noise of all steps.
        length = (eta(self.descent, self.mechanism.scale / count) if self.rate is None else self.rate) / count
        first = N_STEPS - max(1, math.ceil(_AVERAGED * N_STEPS))
        # The actual steps are stable, even if they are too long for the pseudo-records.
        bends = np.clip(length * bends, 0.0, 2 * _STABLE * (1 + _MOMENTUM))
        left, moved = np.full(len(bends), -length), np.full(len(bends), -length)
        sums = [np.zeros(len(bends)), left.copy()]
        for _ in range(N_STEPS - 1):
            moved = _MOMENTUM * moved - bends * left
            left = left + moved
            sums.append(sums[-1] + left)
        total = np.array(sums)
        steps = np.arange(N_STEPS)
        shares = total[N_STEPS - steps] - total[np.maximum(first - steps, 0)]
        return shares / (N_STEPS - first)


@dataclass(frozen=True, eq=False)
class Averaged:
    """The average of fits by gradient steps, whose noise is independent."""

    engines: tuple[GradientEngine, ...]
    weights: tuple[float, ...] = (1.0,)

    def sizes_along(self, bends: Array, count: float) -> Array:
        """Return standard deviations of the result, as for one fit."""
        pairs = zip(self.weights, self.engines, strict=True)
        return np.sqrt(sum((weight * engine.sizes_along(bends, count)) ** 2 for weight, engine in pairs))

    def response_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in all steps, as for one fit."""
        pairs = zip(self.weights, self.engines, strict=True)
        return np.asarray(sum(weight * engine.response_along(bends, count) for weight, engine in pairs))


# A smaller mean curvature would claim that steps have moved nothing.
_LEAST_CURVATURE = 0.01


POWER = "power of probabilities"

#: Share of the choice of a power in the budget.
POWER_SHARE = 0.02

#: The powers that a fit may choose.
POWERS = 2.0 ** np.linspace(0, 3, 7)

# Other powers than 1 count as if they had so much more error for each record, and the second number times the square of
# their logarithm. The exponent of the choice is reduced by the third number, and by the last times the logarithm.
_LEAST_GAIN, _CURVATURE, _DOUBT, _SLOPE = 0.002, 0.004, 3.0, 1.5

# Errors are rounded down to multiples of this number, so that their sums are exact.
_STEP = 2.0**-20


@dataclass(frozen=True)
class Link:
    r"""Log-odds as a function of scores.

    If a share :math:`\pi_k` of the records of a cell has label :math:`k`, scores with the probabilities :math:`p`
    minimise the sum of losses whose derivatives :math:`e_k - p` are clipped to `most` if :math:`\pi_k m_k` is
    proportional to :math:`p_k`, for the factor :math:`m_k = \min(1, \text{most}/\|e_k - p\|)` of label :math:`k`.
    """

    most: float = math.inf
    power: float = 1.0

    def logits(self, scores: Array) -> Array:
        """Return log-odds, or logarithms that are log-probabilities up to a constant for several classes."""
        return self.power * self._logits(scores)

    def _logits(self, scores: Array) -> Array:
        if scores.ndim > 1:
            p = probabilities(scores)
            return np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(1.0, self._lengths(p) / self.most))
        first, second = (np.maximum(1.0, special.expit(sign * scores) / self.most) for sign in (-1, 1))
        return scores + np.log(first) - np.log(second)

    def slope(self, scores: Array) -> Array:
        """Return the derivative of the log-odds of two classes."""
        first, second = (special.expit(sign * scores) for sign in (-1, 1))
        return 1.0 - np.where(first > self.most, second, 0.0) - np.where(second > self.most, first, 0.0)

    @staticmethod
    def _lengths(p: Array) -> Array:
        squares = (p**2).sum(axis=1, keepdims=True) + 1 - 2 * p
        return np.sqrt(np.maximum(squares, 0.0))

    def clipped_moments(self, scores: Array) -> tuple[float, float]:
        """Return the mean curvature of a record's clipped loss, and the mean square of its derivative."""
        if scores.ndim == 1:
            share = special.expit(self.logits(scores))
            curvature, square = np.zeros(len(scores)), np.zeros(len(scores))
            for part, length in ((share, special.expit(-scores)), (1 - share, special.expit(scores))):
                curvature += part * np.where(length < self.most, length * (1 - length), 0.0)
                square += part * np.minimum(length, self.most) ** 2
            return max(float(curvature.mean()), _LEAST_CURVATURE), float(square.mean())
        p, shares = probabilities(scores), probabilities(self.logits(scores))
        lengths = self._lengths(p)
        inside = (shares * np.minimum(1.0, self.most / np.maximum(lengths, 1e-30))).sum(axis=1, keepdims=True)
        square = (shares * np.minimum(lengths, self.most) ** 2).sum(axis=1)
        return max(float((inside * p * (1 - p)).mean()), _LEAST_CURVATURE), float(square.mean()) / p.shape[1]


def errors_of_powers(logits: Array, labels: NDArray) -> Array:
    r"""Return the sum of the errors of the probabilities of records, for each power.

    The error of a record with label :math:`y` is :math:`\lVert e_y-p\rVert^2/2=(1-2p_y+\sum_kp_k^2)/2`. It is between 0
    and 1, because :math:`p_y^2\le\sum_kp_k^2\le1`. It is rounded down to a multiple of :math:`2^{-20}`. The logits are
    those of a released model. Therefore an added record raises each sum, by at most 1. A record attains this bound if
    another label has the probability 1.
    """
    sums = []
    for power in POWERS:
        p = probabilities(power * logits)
        errors = (1 - 2 * p[np.arange(len(p)), labels] + (p**2).sum(axis=1)) / 2
        sums.append(truncate(np.clip(errors, 0.0, 1.0), _STEP).sum())
    return np.array(sums)


@dataclass(frozen=True, eq=False)
class PowerChoice:
    """The public plan of the choice of a power."""

    release: Release
    event: PrivacyEvent

    @classmethod
    def of(cls, epsilon: float, delta: float) -> PowerChoice:
        mechanism, event = choice_mechanism(epsilon, delta, POWER_SHARE, 1.0)
        return cls(Release(POWER, mechanism, POWER_SHARE, Theorem("Additive models", 5)), event)

    def chosen(self, session: ReleaseSession, link: Link, logits: Any, labels: Any, count: float) -> Link:
        """Return the link with a power, chosen by the errors that logits have, for a released number of records."""
        errors = folded(errors_of_powers, [logits, labels])
        scale = getattr(self.release.mechanism, "scale", 0.0)
        logs = np.log(POWERS)
        beside = (POWERS != 1) * ((_LEAST_GAIN + _CURVATURE * logs**2) * count + scale * (_DOUBT + _SLOPE * logs))
        # Then all scores are exact.
        beside = np.rint(beside / _STEP) * _STEP
        (position,) = session.release(POWER, -(errors + beside)[None])
        return replace(link, power=float(POWERS[int(position)]))


#: Number of pseudo-records.
N_PSEUDO = 2048

# Logarithms of the variance s². The prior of columns has the first standard deviation, and that of single coefficients,
# given their column, has the second.
_GRID, _PRIOR, _OF_COEFFICIENTS = np.linspace(-16.0, 4.0, 81), 1.5, 2.0
_SPREAD = special.softmax(-0.5 * ((_GRID[:, None] - _GRID) / _OF_COEFFICIENTS) ** 2, axis=1)

# The largest factors of coefficients of two classes, and of more. Large factors also multiply the effect of noise on
# the shapes of curves, which costs accuracy if few columns distinguish two classes.
_MOST_FACTOR, _MOST_OF_CLASSES = 1.0, 2.0

# Directions of features with a smaller variance, relative to the largest, are rounding errors.
_LEAST = 1e-10


@dataclass(frozen=True, eq=False)
class Directions:
    """Orthogonal functions of a column's bins. They are indicators if `functions` is None."""

    shares: Array  # Shares of records in the bins.
    squares: Array  # Variances of the features in their directions.
    functions: Array | None  # Of shape (n_bins, n_directions), times the roots of the shares.

    @classmethod
    def of(cls, features: Centred, t: int) -> Directions:
        """Return the functions of the features of column `t`."""
        shares = features.probabilities[t]
        rows, wide = features.rows_of_bins(t)
        if wide:
            # One of many bins holds few records. Therefore its centred indicator is nearly the indicator.
            return cls(shares, wide**2 * shares, None)
        vectors, lengths, _ = np.linalg.svd(np.sqrt(shares)[:, None] * rows, full_matrices=False)
        some = lengths**2 > _LEAST * max(float(lengths.max(initial=0.0)) ** 2, 1e-300)
        return cls(shares, lengths[some] ** 2, vectors[:, some])

    def coefficients(self, values: Array) -> Array:
        """Return the coefficients of values of bins, of shape (n_bins, n), per unit of features."""
        scaled = np.sqrt(self.shares)[:, None] * values
        projected = scaled if self.functions is None else self.functions.T @ scaled
        return projected / np.sqrt(self.squares)[:, None]

    def values(self, coefficients: Array) -> Array:
        """Return the values of bins, the inverse of `coefficients`."""
        projected = np.sqrt(self.squares)[:, None] * coefficients
        scaled = projected if self.functions is None else self.functions @ projected
        return scaled / np.sqrt(self.shares)[:, None]


def shrunk(
    engine: Averaged, features: Centred, coef: Array, intercept: Array, count: float, link: Link
) -> tuple[list[Array], list[Array], float]:
    """Return values of bins of shape (n_bins, outputs), factors of directions by column, and the mean curvature."""
    tables = [np.stack(column, axis=1) for column in zip(*(features.tables(theta) for theta in coef), strict=True)]
    scores = np.tile(intercept, (N_PSEUDO, 1))
    for column, values in zip(pseudo_records(features.probabilities), tables, strict=True):
        scores += values[column]
    bend, variance = link.clipped_moments(scores[:, 0] if scores.shape[1] == 1 else scores)
    every = [Directions.of(features, t) for t in range(len(tables))]
    parts, losses = [], []
    free = max(len(coef) - 1, 1)
    most = _MOST_FACTOR if free == 1 else _MOST_OF_CLASSES
    for directions, values in zip(every, tables, strict=True):
        squares = (directions.coefficients(values) ** 2).sum(axis=1) / free
        bends = count * bend * directions.squares
        response = engine.response_along(bends, count)
        reached = np.minimum(response * bends, 1.0)
        errors = engine.sizes_along(bends, count) ** 2 + response**2 * count * variance * directions.squares
        whole = reached**2 * np.exp(_GRID)[:, None] + errors + 1e-300
        losses.append(free / 2 * (np.log(whole) + squares / whole))
        parts.append(np.minimum(reached * np.exp(_GRID)[:, None] / whole, most))
    of_columns = _posterior(np.array([of_grid.sum(axis=1) for of_grid in losses]))
    factors = [
        (special.softmax(np.log(weights @ _SPREAD)[:, None] - of_grid, axis=0) * column).sum(axis=0)
        for weights, of_grid, column in zip(of_columns, losses, parts, strict=True)
    ]
    if free > 1:
        # Few of several classes depend on a column, and their curves are larger than the common variance says.
        factors = [np.sqrt(column) for column in factors]
    shrunk_values = [
        directions.values(column[:, None] * directions.coefficients(table))
        for directions, column, table in zip(every, factors, tables, strict=True)
    ]
    return shrunk_values, factors, bend


def _posterior(losses: Array) -> Array:
    """Return weights of the grid for each column, from negative log likelihoods of shape (n_columns, n_grid)."""
    prior = special.log_softmax(-0.5 * ((_GRID[:, None] - _GRID) / _PRIOR) ** 2, axis=0)
    centre = int(np.argmax(special.logsumexp(prior[None] - losses[:, :, None], axis=1).sum(axis=0)))
    return special.softmax(prior[:, centre] - losses, axis=1)


def pseudo_records(counts: list[Array]) -> Codes:
    """Return the cells of records whose columns are independent, with the released counts."""
    # The points of a Kronecker sequence (fractional parts of multiples of square roots of primes) fill the cube evenly.
    # Therefore no random numbers are drawn.
    n = np.arange(N_PSEUDO)
    codes = np.empty((len(counts), N_PSEUDO), dtype=np.int32)
    for cells, released, prime in zip(codes, counts, _primes(len(counts)), strict=True):
        weights = np.maximum(released, 0.0)
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        places = (n + 0.5) * np.sqrt(prime) % 1.0
        cells[:] = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], places, side="right")
    return codes


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes if prime * prime <= number):
            primes.append(number)
        number += 1
    return primes


# The variance of curves must exceed the variance of the noise by this number of standard deviations, and this factor.
_SURE_BY, _TIMES = 3.0, 2.0


@dataclass(frozen=True, eq=False)
class Moved:
    """The effect of the noise on curves: a matrix for most columns, and one number for each bin of wide columns."""

    features: Centred
    rows: list[Array]  # For each column, the features of its bins in coordinates of the matrix, after shrinkage.
    parts: list[Array]  # For each column, the effect on these features, and the effect on the intercept.
    wide: dict[int, Array]  # For each column of many indicators, standard deviations of its values.

    @classmethod
    def of(
        cls, engine: Averaged, features: Centred, codes: Codes, count: float, bend: float, factors: list[Array]
    ) -> Moved:
        """Return the effect for the bins of these records, if the loss has the curvature `bend`, which may be 0."""
        layout = features.layout
        wide, rows = {}, []
        for t, size in enumerate(layout.sizes):
            in_term, length = features.rows_of_bins(t)
            if length:
                shares = np.bincount(codes[t], minlength=size + 1)[:-1] / max(codes.shape[1], 1)
                wide[t] = length * engine.sizes_along(length**2 * count * bend * shares, count)
            rows.append(_reduced(in_term))
        of_columns = (_with_none(in_bins)[of_records] for in_bins, of_records in zip(rows, codes, strict=True))
        dense = np.column_stack([*of_columns, np.full(codes.shape[1], layout.constant)])
        values, vectors = np.linalg.eigh((bend * count / len(dense)) * (dense.T @ dense))
        matrix = vectors * engine.sizes_along(values, count)
        parts = np.split(matrix, np.cumsum([in_bins.shape[1] for in_bins in rows]))
        parts[-1] = layout.constant * parts[-1]
        if factors:
            for t, factor in enumerate(factors):
                directions = Directions.of(features, t)
                if t in wide:
                    wide[t] = wide[t] * factor
                else:
                    rows[t] = directions.values(factor[:, None] * directions.coefficients(rows[t]))
        return cls(features, rows, parts, wide)

    def times(self, factor: float) -> Moved:
        """Return the effect on curves that are multiplied by a factor."""
        wide = {t: factor * sizes for t, sizes in self.wide.items()}
        return replace(self, parts=[factor * effect for effect in self.parts], wide=wide)

    def in_scores(self, codes: Codes) -> Array:
        """Return standard deviations of the scores of rows, from their bins."""
        moved = self.parts[-1]
        for rows, effect, bins in zip(self.rows, self.parts, codes, strict=False):
            moved = moved + _with_none(rows)[bins] @ effect
        variance = (moved**2).sum(axis=-1)
        for t, sizes in self.wide.items():
            variance = variance + np.append(sizes, 0.0)[codes[t]] ** 2
        return np.broadcast_to(np.sqrt(variance), codes.shape[1:]).copy()

    def in_cells(self) -> list[Array]:
        """Return standard deviations of the values of each column's cells, which are centred."""
        out = []
        for t, (rows, bins, weights) in enumerate(
            zip(self.rows, self.features.layout.bins, self.features.probabilities, strict=True)
        ):
            matrix = rows @ self.parts[t]
            variance = ((matrix - weights @ matrix) ** 2).sum(axis=1)
            if t in self.wide:
                variance = variance + self.wide[t] ** 2
            out.append(np.sqrt(variance)[bins])
        return out


def _reduced(rows: Array) -> Array:
    """Return rows with the same products, and no more features than rows."""
    # The noise is the same in all directions. Therefore any rows with these products are equivalent.
    if rows.shape[1] <= len(rows):
        return rows
    triangle: Array = np.asarray(np.linalg.qr(rows.T, mode="r"))
    return triangle.T


def _with_none(rows: Array) -> Array:
    """Append a row for values in no cell."""
    return np.vstack([rows, np.zeros((1, rows.shape[1]))])


def without_noise(
    engine: Averaged,
    features: Centred,
    cells: Cells,
    tables: list[Array],
    intercept: float,
    lone_intercept: Array | None,
) -> tuple[float, float]:
    """Return the factor that removes the noise from all curves (1 if they clearly exceed it), and the intercept."""
    # Columns are assumed to be independent, because the released counts do not contain correlations. Features of
    # different terms are then uncorrelated, because their means are 0.
    count, bends = cells.total, spectrum(features)
    parts = bends * engine.sizes_along(count * bends, count) ** 2
    noise, squares = float(parts.sum()), float(parts @ parts)
    means = [float(weights @ curve) for curve, weights in zip(tables, features.probabilities, strict=True)]
    variance = sum(
        float(weights @ (curve - mean) ** 2)
        for curve, weights, mean in zip(tables, features.probabilities, means, strict=True)
    )
    if variance > max(noise + _SURE_BY * math.sqrt(2 * squares), _TIMES * noise):
        return 1.0, intercept
    # The variance is 0 where all curves are zeros.
    factor = max(0.0, 1.0 - noise / variance) if variance > 0 else 0.0
    lone = intercept + sum(means)
    if lone_intercept is not None:
        # The mean of the curves is not known, because counts are noisy. The steps of the intercept alone also estimate
        # the mean of the targets, with the noise of some steps. The two estimates are averaged by their variances.
        by_counts = sum(float(curve @ curve) for curve in tables) * (cells.noise / count) ** 2
        first = engine.engines[0]
        by_steps = (first.mechanism.scale / (count * features.layout.constant)) ** 2 / first.lone_steps
        share = by_counts / (by_counts + by_steps) if by_counts > 0 else 0.0
        lone += share * (float(lone_intercept[0]) - lone)
    return factor, factor * intercept + (1 - factor) * lone
