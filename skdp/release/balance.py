r"""Balanced weights of labels: the counts of labels are released first, and records are kept by weights from them.

Theorem (user guide, "Units", theorem 3). Let A release the counts of labels, and let :math:`T_a` be thinning with
weights that follow from the output a of A. If M has a guarantee that does not depend on a, then A followed by
:math:`M\circ T_a` has the guarantee of A composed with M. Given a, the weight of a record depends on this record alone,
so that theorem 2 applies to :math:`M\circ T_a`, and adaptive composition gives the rest.

M is the fit of a copy of the estimator, with a smaller epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import (
    GaussianEvent,
    PrivacyEvent,
    check_delta,
    check_epsilon,
    gaussian_epsilon,
    gaussian_mu,
)
from ..checks.params import check_classes
from ..mechanisms import Mechanism, NoiseSource, coordinate_variance, pure_share
from ..parts.arrays import PartedArray, folded
from .class_sums import class_sums_mechanism
from .mismatch import ENTRIES, ENTRIES_SHARE, TARGET_SHARE, entries_mechanism
from .session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from .units import Unit, chances, check_class_weight, with_coins

Array = NDArray[np.float64]

COUNTS = "counts of labels for balanced weights"

#: Share of the budget for the counts, of epsilon or of the square of the GDP parameter.
SHARE = 0.04

#: The largest weight is at most so many times the smallest one.
LARGEST_RATIO = 100.0

#: Labels whose released count is below so many standard deviations of its noise have the largest weight.
_LEAST_DEVIATIONS = 3.0

# This is more than the rounding of the inversions of the privacy curve, and of the sum of squares.
_ROUNDING = 1 - 2.0**-28


def is_balanced(estimator: Any) -> bool:
    """Tell whether a fit starts with a release of the counts of labels."""
    weights = getattr(estimator, "class_weight", None)
    return isinstance(weights, str) and weights == "balanced" and not estimator._balances_itself


def _gaussian_rest(epsilon: float, delta: float, share: float) -> float:
    """Return an epsilon for a Gaussian fit after Gaussian releases of this share, or 0 if there is none."""
    if epsilon == math.inf or delta == 0:
        return 0.0
    rest = gaussian_epsilon(gaussian_mu(epsilon, delta) * math.sqrt(1 - share) * _ROUNDING, delta)
    # With a delta that is large for this epsilon, little of epsilon is left.
    return rest if rest > epsilon / 2 else 0.0


def _gaussian(events: Sequence[PrivacyEvent], epsilon: float, delta: float) -> bool:
    """Tell whether these events together are as private as Gaussian noise of this epsilon and delta."""
    gaussian = [event.noise_mu for event in events if isinstance(event, GaussianEvent)]
    return len(gaussian) == len(events) and math.hypot(*gaussian) <= gaussian_mu(epsilon, delta)


@dataclass(frozen=True)
class FirstRelease:
    """A release before the fit: its share of the budget, and its mechanism by the budget's epsilon and delta."""

    label: str
    share: float
    theorem: Theorem
    mechanism: Callable[[float, float, float], tuple[Mechanism, PrivacyEvent]]


def first_releases(estimator: Any, n_classes: int) -> list[FirstRelease]:
    """Return the releases before the fit of an estimator, by public facts."""
    releases = []
    columns, labels = estimator._outside()
    if size := len(columns) + labels:
        share = ENTRIES_SHARE if columns and "entries" in estimator._counts_outside else TARGET_SHARE
        releases.append(FirstRelease(ENTRIES, share, Theorem("Units", 1), partial(entries_mechanism, size)))
    if is_balanced(estimator):
        unit = Unit.of(estimator._declared("rows_per_group") if hasattr(estimator, "rows_per_group") else None)

        def counts(epsilon: float, delta: float, share: float) -> tuple[Mechanism, PrivacyEvent]:
            return class_sums_mechanism(epsilon, delta, 1, 0, n_classes, unit.rows, share)

        releases.append(FirstRelease(COUNTS, SHARE, Theorem("Units", 3), counts))
    return releases


def divide(estimator: Any, first: Sequence[FirstRelease], make: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return a guarantee or a cost, as `make` plans it for the rest of the budget, with the releases before the fit."""
    # A fit that has no known cost has None. If all events of the fit are Gaussian, so are the first releases, and the
    # squares of the GDP parameters add up. Otherwise, epsilon and delta are added up.
    epsilon, delta = check_epsilon(estimator.epsilon), check_delta(estimator.delta)
    share = math.fsum(release.share for release in first)

    def together(rest: float, own_delta: float) -> tuple[Any, Any]:
        inner = copy(estimator)
        inner.epsilon, inner.class_weight, inner._counts_outside = rest, None, ()
        plan, design = make(inner)
        if plan is None:
            return None, design
        mechanisms, events = zip(*(one.mechanism(epsilon, own_delta, one.share) for one in first), strict=True)
        plan = replace(plan, epsilon=epsilon, events=(*events, *plan.events))
        if isinstance(plan, PrivacyGuarantee):
            before = [
                Release(one.label, mechanism, one.share, one.theorem)
                for one, mechanism in zip(first, mechanisms, strict=True)
            ]
            others = (replace(release, share=release.share * (1 - share)) for release in plan.releases)
            plan = replace(plan, releases=(*before, *others))
        return plan, design

    rest = _gaussian_rest(epsilon, delta, share)
    if rest > 0:
        plan, design = together(rest, delta)
        if plan is None or _gaussian(plan.events, epsilon, delta):
            return plan, design
    return together(pure_share(epsilon, 1 - share), 0.0)


def with_counts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``privacy_plan`` or ``_fixed_cost`` include the releases before the fit."""

    @wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_class_weight(getattr(self, "class_weight", None))
        classes = check_classes(self._declared("classes")) if is_balanced(self) else None
        # The cost does not depend on the number of labels, and a plan without one is refused.
        first = first_releases(self, (kwargs.get("n_classes") or 2) if classes is None else len(classes))
        if not first:
            return method(self, *args, **kwargs)
        return divide(self, first, lambda inner: (method(inner, *args, **kwargs), None))[0]

    return wrapper


def balanced_weights(counts: Array, mechanism: Mechanism) -> Array:
    """Return weights in (0, 1] from released counts, inversely proportional to them within limits."""
    occurs = counts > max(_LEAST_DEVIATIONS * math.sqrt(coordinate_variance(mechanism)), 0.5)
    weights = np.ones(len(counts))
    if occurs.any():
        # A label that hardly occurs must not determine how many records of the others are kept.
        weights[occurs] = np.maximum(counts[occurs].min() / counts[occurs], 1 / LARGEST_RATIO)
    return weights


def balance(session: ReleaseSession, source: NoiseSource, X: Any, y: Any, n_classes: int) -> tuple[Any, Any, Array]:
    """Release the counts of labels, keep records by weights from them, and return these and the weights."""
    mechanism = session.mechanism(COUNTS)
    weights = balanced_weights(session.release(COUNTS, label_counts(y, n_classes)), mechanism)
    # Records with other labels are left out later, or only counted.
    probabilities = chances(None, np.append(weights, 1.0), X, y)
    return *with_coins(probabilities, source.stream("balanced weights"), X, y), weights


def label_counts(y: Any, n_classes: int) -> Array:
    """Return the exact number of records of each label, without records of other labels."""
    return folded(partial(_counts, n_classes), [y]) if isinstance(y, PartedArray) else _counts(n_classes, y)


def _counts(n_classes: int, y: NDArray[np.intp]) -> Array:
    return np.bincount(y[y >= 0], minlength=n_classes).astype(np.float64)
