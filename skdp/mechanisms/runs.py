r"""The best of a random number of runs, by noisy scores.

The number of runs is drawn from the truncated negative binomial law of
:class:`~skdp.accounting.RepeatedSelectionEvent`, by inversion of its distribution function in double precision. It does
not depend on data. Rounding changes the law, and therefore the cost, by a relative :math:`10^{-12}`. The number stays
hidden, and so do all runs except the best.

Scores are integers. Each gets its own noise, as a part of its run. The best run has the largest noisy score. Among
equal scores, it is the first run. Because runs are independent and identically distributed, this is the order by the
score and by a uniform number of each run. It is an order on the outputs of the runs, as the theorem requires.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import runs_parameter
from ._base import Mechanism
from ._bits import BitStream


def number_of_runs(mean: float, shape: float, stream: BitStream) -> int:
    """Draw the number of runs.

    Parameters
    ----------
    mean : float
        Mean number, at least 1.
    shape : float
        Shape of the law, at least 0.
    stream : BitStream
        Source of bits.

    Returns
    -------
    runs : int
        At least 1. It must not be released.
    """
    gamma = runs_parameter(mean, shape)
    if gamma == 1:
        return 1
    log_gamma = np.log(gamma)
    probability = (1 - gamma) * (-1 / log_gamma if shape == 0 else shape / np.expm1(-shape * log_gamma))
    above = (float(stream.words(1)[0] >> np.uint64(11)) + 0.5) * 2.0**-53
    runs = 1
    while above > probability and (probability > 1e-18 or runs < mean):
        above -= probability
        probability *= (1 - gamma) * (runs + shape) / (runs + 1)
        runs += 1
    return runs


@dataclass(frozen=True)
class BestOfRuns(Mechanism):
    """Position of the run with the largest noisy score.

    Parameters
    ----------
    noise : Mechanism
        Mechanism that adds noise to the score of one run.
    mean, shape : float
        Parameters of the law of the number of runs.
    """

    noise: Mechanism
    mean: float
    shape: float

    name = "best of a random number of runs"

    @property
    def norm(self) -> str:  # type: ignore[override]
        """Norm of the sensitivity of the score."""
        return self.noise.norm

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """Largest change of the score of one run by one record."""
        return self.noise.sensitivity

    @property
    def scale(self) -> float:
        """Scale of the noise on one run's score."""
        return self.noise.scale

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the position of the best run. Only the output of the run is public, not its position.

        Parameters
        ----------
        value : array-like of shape (n_runs,)
            Scores of the runs.
        stream : BitStream
            Source of bits.

        Returns
        -------
        best : ndarray of shape ()
            Position of the run.
        """
        # Each run has independent noise.
        return np.array(float(np.argmax(self.noise.release(value, stream))))


def draw_parts(probabilities: tuple[float, ...], n_rows: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw a part for each row, independently.

    Parameters
    ----------
    probabilities : tuple of float
        Probability of each part. They add up to 1.
    n_rows : int
        Number of rows.
    stream : BitStream
        Source of bits, one word for each row.

    Returns
    -------
    parts : ndarray of shape (n_rows,)
        Parts of the rows. They are private, because the number of rows is private.
    """
    whole = sum(Fraction(p) for p in probabilities)
    ends, total = [], Fraction(0)
    for probability in probabilities[:-1]:
        total += Fraction(probability) / whole
        ends.append(min(int(total * 2**64), 2**64 - 1))
    return np.searchsorted(np.array(ends, dtype=np.uint64), stream.words(n_rows), side="right")
