"""Plans of random trees from public numbers and released counts: shares of the budget, numbers of trees, and depth."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..checks.params import Checked
from ..mechanisms import (
    Mechanism,
    choice_mechanism,
    coordinate_variance,
    even_levels,
    l2_mechanism,
    pure_share,
    quantile_mechanism,
)
from ..release.session import PrivacyGuarantee, Release, Reserved, Theorem
from ..solvers.target_range import TargetRange
from ._outcomes import Labels, Outcome, count_mechanism
from ._smoothing import Step

CUTS = "cut points"
TREES = "leaf counts and weights"
COUNTS = "leaf counts"
SCALE = "scale of the weights"
STEP = "Newton step"
LENGTH = "length of the step"

#: Parts of the budget, of epsilon or of the square of the GDP parameter. Leaf counts get the rest.
_CUT_SHARE, _CLASS_SHARE, _SCALE_SHARE, _STEP_SHARE = 0.1, 0.04, 0.02, 0.2

#: Cut points: levels of bisection, and cells of the grid.
LEVELS, GRID = 3, 1024

#: Depth if the number of trees is given and the number of records is not, and the largest depth otherwise.
_DEPTH, _DEEPEST = 5, 8

#: Required mean number of records of a class, in standard deviations of the noise in a count ...
_RECORDS_FOR_NOISE = 8

#: For trees of two features, the noise must be so many times smaller.
_LESS_NOISE = 4

#: ... for a step of the weights to be worth its part of the budget.
_RECORDS_FOR_STEP = 16

#: Records of each class that count as much as one standard deviation of the noise, on average.
_RECORDS_IN_LEAF = 2.0

#: The smallest default number of trees.
_FEWEST = 4


def most_trees(parameters: Checked, n_features: int) -> int:
    """Return the number of trees if the noise is small."""
    if parameters.n_estimators is not None:
        return int(parameters.n_estimators)
    return min(2 * n_features, max(n_features, 64), 256)


def number_of_trees(
    parameters: Checked, n_features: int, n_classes: int, n_rows: float | None, noise: Callable[[int], float]
) -> int:
    """Return the largest number of trees for which each class has eight standard deviations of a count's noise."""
    most = most_trees(parameters, n_features)
    if n_rows is None or parameters.n_estimators is not None or not parameters.private:
        return most
    tolerable = n_rows / (_RECORDS_FOR_NOISE * n_classes)
    # At least four trees are used, because the accuracy of a single tree of random splits varies much.
    number = max(min(_FEWEST, most), bisect.bisect_right(range(1, most + 1), tolerable, key=noise))
    # Trees of two features are added to those of one if there is little noise.
    added = bisect.bisect_right(range(1, number + 1), tolerable / _LESS_NOISE, key=noise)
    return max(min(number, n_features), added)


def features_of_trees(parameters: Checked, n_trees: int, n_features: int) -> list[int]:
    """Return the number of features of each tree. All features are used, and additional trees have two features."""
    if parameters.max_features is not None:
        return [min(parameters.max_features, n_features)] * n_trees
    fewest = -(-n_features // max(n_trees, 1))
    on_top = min(max(2, fewest), n_features)
    return [fewest if t < n_features else on_top for t in range(n_trees)]


def depth_of_trees(
    parameters: Checked, noise: float, n_features: int, n_classes: int, n_trees: int, n_rows: float | None
) -> int:
    """Return a depth at which leaves of a balanced tree should hold four standard deviations of the noise."""
    if parameters.max_depth is not None:
        return int(parameters.max_depth)
    if n_rows is None:
        return _DEPTH
    # If there are fewer trees than features, more splits are needed to use the features, down to one deviation.
    deviations = 4 / min(max(n_features / n_trees, 1.0), 4.0)
    leaves = n_rows / (deviations * max(noise, _RECORDS_IN_LEAF * n_classes))
    return min(max(math.floor(math.log2(max(leaves, 1.0))), 1), _DEEPEST)


@dataclass(frozen=True)
class Shares:
    """Hold the parts of the budget, from which mechanisms are made."""

    epsilon: float
    delta: float
    releases: list[Release] = field(default_factory=list)
    events: list[PrivacyEvent] = field(default_factory=list)

    def add(self, label: str, made: tuple[Mechanism, PrivacyEvent], share: float, theorem: int) -> None:
        self.releases.append(Release(label, made[0], share, Theorem("Trees", theorem)))
        self.events.append(made[1] if self.epsilon < math.inf else PureEvent(self.epsilon))

    def reserve(self, label: str, share: float) -> None:
        event: GaussianEvent | PureEvent = PureEvent(pure_share(self.epsilon, share))
        if self.epsilon < math.inf and self.delta > 0:
            # The limit is slightly above the sum of the parts, because of rounding. `gaussian_mu` has a larger margin.
            event = GaussianEvent(gaussian_mu(self.epsilon, self.delta) * math.sqrt(share) * (1 + 2.0**-48))
        elif self.epsilon < math.inf:
            # Slightly more than the sum of parts by `pure_share`, and less than what other parts leave of epsilon.
            event = PureEvent(self.epsilon * share * (1 - 2.0**-51))
        self.add(label, (Reserved(event), event), share, 6)

    def guarantee(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(self.epsilon, self.delta, tuple(self.events), tuple(self.releases))


@dataclass(frozen=True)
class Trees:
    """Describe the trees before they are drawn, by functions of public and of released numbers."""

    n_trees: int
    depth: int
    few: bool  # Whether the noise limits, or nearly limits, the number of trees.
    mechanisms: dict[str, Mechanism]

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the count of a leaf."""
        return math.sqrt(coordinate_variance(self.mechanisms[COUNTS]))


def plan_trees(
    parameters: Checked, n_features: int, outcome: Outcome, n_rows: float | None, share: float, shares: Shares
) -> Trees:
    """Add the leaf counts, and the releases for the weights. Together, they take `share` of the budget."""
    epsilon, delta, n_classes = parameters.epsilon, parameters.delta, outcome.n_classes

    # The size of the vector depends on the depth, and the noise depends slightly on the size. The choices depend on its
    # scale only.
    def noise(weight_share: float, n_trees: int) -> float:
        return math.sqrt(coordinate_variance(outcome.mechanism(epsilon, delta, share - weight_share, n_trees, 1)[0]))

    def trees(weight_share: float) -> int:
        return number_of_trees(parameters, n_features, n_classes, n_rows, partial(noise, weight_share))

    newton = parameters.weights == "newton"
    weight_share = 2 * _SCALE_SHARE + _STEP_SHARE if newton else 0.0
    n_trees = trees(weight_share)
    few = n_trees < min(n_features, most_trees(parameters, n_features))
    if n_rows is not None and parameters.n_estimators is None and parameters.private:
        # There is too much noise for a step of the weights.
        few = few or noise(weight_share, n_trees) * _RECORDS_FOR_STEP * n_classes > n_rows
    if newton and few:
        # If noise limits the number of trees, or nearly so, counts need this part of the budget more than weights.
        weight_share = _SCALE_SHARE
        n_trees = trees(weight_share)
    depth = depth_of_trees(parameters, noise(weight_share, n_trees), n_features, n_classes, n_trees, n_rows)
    before = len(shares.releases)
    count_share = share - weight_share
    shares.add(COUNTS, outcome.mechanism(epsilon, delta, count_share, n_trees, 2**depth), count_share, outcome.theorem)
    if newton:
        shares.add(SCALE, choice_mechanism(epsilon, delta, _SCALE_SHARE, 1.0), _SCALE_SHARE, 7)
    if weight_share > _SCALE_SHARE:
        step = Step(n_trees, n_classes, outcome.least_difference)
        shares.add(STEP, l2_mechanism(epsilon, delta, _STEP_SHARE, step.sensitivity, step.size), _STEP_SHARE, 2)
        shares.add(LENGTH, choice_mechanism(epsilon, delta, _SCALE_SHARE, 1.0), _SCALE_SHARE, 7)
    mechanisms = {release.label: release.mechanism for release in shares.releases[before:]}
    return Trees(n_trees, depth, few, mechanisms)


@dataclass(frozen=True)
class Plan:
    """The planned releases. The trees are included if they depend on public numbers only."""

    guarantee: PrivacyGuarantee
    remaining: float
    trees: Trees | None
    target_range: TargetRange | None

    @property
    def has_cuts(self) -> bool:
        return any(release.label == CUTS for release in self.guarantee.releases)


def make_plan(parameters: Checked, n_features: int, outcome: Outcome, n_numeric: int) -> Plan:
    """Return the planned releases: cut points, sums over all records if trees depend on them, and the trees."""
    epsilon, delta = parameters.epsilon, parameters.delta
    shares = Shares(epsilon, delta)
    remaining = 1.0
    if parameters.thresholds == "quantile" and n_numeric:
        remaining -= _CUT_SHARE
        shares.add(CUTS, quantile_mechanism(epsilon, delta, _CUT_SHARE, *even_levels(LEVELS), n_numeric), _CUT_SHARE, 3)
    trees, target_range = None, None
    # Noisy sums over all records determine the number of trees and their depth.
    adaptive = parameters.n_estimators is None and parameters.expected_n is None
    if isinstance(outcome, Labels):
        if adaptive:
            remaining -= _CLASS_SHARE
            made = count_mechanism(epsilon, delta, _CLASS_SHARE, 1, outcome.n_classes + 1)
            shares.add(outcome.first, made, _CLASS_SHARE, outcome.theorem)
    else:
        target_range = TargetRange.of(epsilon, delta)
        remaining -= target_range.share
        shares.releases.extend(target_range.releases)
        shares.events.extend(target_range.events)
    if adaptive:
        shares.reserve(TREES, remaining)
    else:
        trees = plan_trees(parameters, n_features, outcome, parameters.expected_n, remaining, shares)
    return Plan(shares.guarantee(), remaining, trees, target_range)
