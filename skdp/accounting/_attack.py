"""Upper bounds on attacks that tell from a release whether one record is in the data."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._budget import gaussian_delta
from ._events import GaussianEvent, PrivacyCost, PrivacyEvent, pair_profile

#: False-positive rates of attacks.
FALSE_POSITIVES = (0.1, 0.01, 0.001)

# Largest epsilon for which losses are computed, and the number of points of their lattice up to a smaller epsilon.
_MOST, _POINTS = 16.0, 512


class AttackBounds(NamedTuple):
    """Upper bounds on attacks that tell whether one record is in the data, or which of two values a member has.

    .. versionadded:: 0.2

    Parameters
    ----------
    advantage : float
        True-positive rate minus false-positive rate.
    right : float
        Share of right guesses, if the record is in the data with probability 1/2.
    true_positives : tuple of float
        True-positive rates at the false-positive rates 0.1, 0.01 and 0.001.

    Examples
    --------
    >>> from skdp import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=1.0)
    >>> budget.spend(0.5, 0.0)
    >>> bounds = budget.attack()
    >>> f"{bounds.right:.3f}", f"{bounds.true_positives[1]:.4f}"
    ('0.622', '0.0165')
    """

    advantage: float
    right: float
    true_positives: tuple[float, ...]

    def _in_short(self) -> str:
        """Return the share of right guesses in words."""
        return f"at most {_up(self.right)} of guesses of membership are right"

    def __str__(self) -> str:
        rates = (
            f"{', '.join(map(_up, self.true_positives))} at false-positive rates {', '.join(map(str, FALSE_POSITIVES))}"
        )
        return f"{self._in_short()} (advantage {_up(self.advantage)}), true-positive rates are at most {rates}"


class _ReplacedBounds(AttackBounds):
    def _in_short(self) -> str:
        return f"at most {_up(self.right)} of guesses between two values of a known member are right"


def _up(share: float) -> str:
    """Return a share with three digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(max(share, 1e-9))) - 2)
    return f"{min(math.ceil(share / unit * (1 - 1e-12)) * unit, 1.0):.3g}"


@lru_cache(maxsize=256)
def attack_bounds(
    epsilon: float, delta: float, mu: float, events: tuple[PrivacyEvent, ...] = (), replaced: bool = False
) -> AttackBounds:
    """Return the bounds that follow from a pair, from Gaussian DP, and from the losses of a fixed list of events.

    If a record is replaced, both tables P and R are neighbours of the table Q without it. Let G(f) be the largest rate
    of true positives between neighbours; then P(S) <= G(Q(S)) <= G(G(R(S))) for all S, because G increases. Lines of
    slopes exp(-t) and exp(t) above G bound G(G(f)) - f, the advantage, by 1 - exp(-t) (1 - 2 delta(t)).
    """
    most = min(epsilon + (5 * mu if mu < math.inf else 0.0), 600.0)
    t = np.append(np.linspace(0.0, most, 4001), min(epsilon, most))
    deltas = pair_profile(epsilon, delta, t)[0]
    if mu < math.inf:
        deltas = np.minimum(deltas, gaussian_delta(t, mu))
    if 0 < epsilon <= _MOST and not all(isinstance(event, GaussianEvent) for event in events):
        losses = PrivacyCost(epsilon, delta, events).privacy_loss_distribution(min(epsilon, 1.0) / _POINTS)
        deltas = np.minimum(deltas, losses.get_delta_for_epsilon(t))
    odds = np.exp(t)

    def power(f: float) -> float:
        return min(float(np.minimum(deltas + odds * f, 1 - (1 - f - deltas) / odds).min()), 1.0)

    if replaced:
        advantage = min(float((1 - (1 - 2 * deltas) / odds).min()), 1.0)
        return _ReplacedBounds(advantage, (1 + advantage) / 2, tuple(power(power(f)) for f in FALSE_POSITIVES))
    return AttackBounds(float(deltas[0]), (1 + float(deltas[0])) / 2, tuple(map(power, FALSE_POSITIVES)))
