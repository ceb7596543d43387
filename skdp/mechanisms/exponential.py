r"""The exponential mechanism under add-or-remove-one.

Theorem. Let :math:`h(o) = q(D', o) - q(D, o)` and let :math:`\rho` be the largest :math:`\max_o h - \min_o h` over
neighbours. Drawing :math:`o` with probability proportional to :math:`e^{\varepsilon q(D, o)/\rho}` is
:math:`\varepsilon`-DP, and :math:`\varepsilon`-bounded-range, hence :math:`\varepsilon^2/8`-zCDP (Cesar and Rogers
2021).

Proof. :math:`P_{D'}(o)/P_D(o) = e^{\varepsilon h(o)/\rho} / \mathbb{E}_{P_D}[e^{\varepsilon h/\rho}]`, and the
denominator lies between the smallest and the largest value of the numerator, whose ratio is at most
:math:`e^\varepsilon`.

For scores of sensitivity :math:`\Delta`, :math:`\rho = 2\Delta` in general. If one more record moves all scores in one
direction, :math:`\rho = \Delta`, which is twice the exponent of the textbook form (McSherry and Talwar 2007).

Drawing is exact: a uniform candidate is accepted with probability :math:`e^{-\varepsilon(q^* - q)/\rho}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._bits import BitStream
from ._exact import uniform_below
from ._selection import SelectionMechanism, check_scores


@dataclass(frozen=True)
class ExponentialMechanism(SelectionMechanism):
    __doc__ = SelectionMechanism.__doc__

    name = "exponential"

    def select(self, scores: ArrayLike, stream: BitStream) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,)
            Finite scores. Larger is better.
        stream : BitStream
            Source of bits.

        Returns
        -------
        index : int
            Position in `scores`.
        """
        values = check_scores(scores)
        while True:
            drawn = uniform_below(values.size, 2 * min(values.size, 4096), stream)[0].astype(np.intp)
            accepted = np.flatnonzero(self._accept(values, drawn, stream))
            if accepted.size:
                return int(drawn[accepted[0]])
