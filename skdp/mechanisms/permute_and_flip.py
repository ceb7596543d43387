r"""Permute-and-flip: never worse in expected score than the exponential mechanism, at the same epsilon.

Theorem (McKenna and Sheldon 2020). Visit the candidates in uniformly random order, and stop at the first one for which
a coin of bias :math:`e^{-\varepsilon(q^* - q)/\rho}` shows heads. With :math:`\rho` as in
:mod:`skdp.mechanisms.exponential`, this is :math:`\varepsilon`-DP. Proof: it has the law of adding
Exponential(:math:`\rho/\varepsilon`) noise to each score and reporting the largest (Ding and others 2021). For general
scores, :math:`\rho = 2\Delta` is theirs. For monotone scores, let adding a record raise every score by between 0 and
:math:`\Delta`, and fix all noises except that of :math:`o`. Under either data set, :math:`o` wins if its noise exceeds
a threshold, and the two thresholds differ by at most :math:`\Delta`. Exponential noise of scale
:math:`\Delta/\varepsilon` has tail :math:`e^{-\varepsilon t/\Delta}` above 0 and 1 below, whose ratio over that
distance is at most :math:`e^\varepsilon`.

The mechanism is not bounded-range. The only zCDP bound is the generic one of an :math:`\varepsilon`-DP mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._bits import BitStream
from ._exact import random_permutation
from ._selection import SelectionMechanism, check_scores


@dataclass(frozen=True)
class PermuteAndFlip(SelectionMechanism):
    __doc__ = SelectionMechanism.__doc__

    name = "permute-and-flip"

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
        order = random_permutation(values.size, stream)
        # The coin of the best candidate always shows heads. Therefore one candidate is always found.
        return int(order[np.argmax(self._accept(values, order, stream))])
