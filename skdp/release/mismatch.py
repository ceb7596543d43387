r"""Warnings about declarations that the data do not seem to follow, from released counts only.

Theorem. Let released counts have independent noise, each a sum of independent Gaussian and Laplace variables of total
variance :math:`\sigma^2`. For :math:`0 < c < 1`, the noise is beyond :math:`\sigma(\ln(1/p) - \ln(1 - c^2))/(c\sqrt2)`
on one side with probability at most p.

Proof. The moment generating function of such a sum at :math:`\lambda = c\sqrt2/\sigma` is at most
:math:`1/(1 - \lambda^2\sigma^2/2)`: this is the function of one Laplace variable of variance :math:`\sigma^2`, it is
above that of a Gaussian, and :math:`\prod(1 - x_i) \ge 1 - \sum x_i`. Chernoff's bound gives the rest.

Everything here is post-processing of released counts and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.warn import warn
from ..exceptions import SchemaMismatchWarning

#: Probability that a call warns although each declared part has its minimum share.
FALSE_ALARM = 1e-3

#: A declared part with at least this share of the records counts as present.
LEAST_SHARE = 0.05

_MOST_NAMED = 10

_C = np.linspace(0.5, 0.999, 100)


def margin(deviation: float, probability: float) -> float:
    """Return a number that noise of this standard deviation exceeds on one side with at most this probability."""
    return deviation / math.sqrt(2) * float(np.min((-math.log(probability) - np.log1p(-(_C**2))) / _C))


def label_parts(classes: NDArray, counts: NDArray, deviation: float) -> list[tuple[str, float, float]]:
    """Return the declared labels and their released counts as parts for `warn_of_mismatch`."""
    return [(f"the label {label!r}", n, deviation) for label, n in zip(classes.tolist(), counts.tolist(), strict=True)]


def column_part(name: Any, known: float, deviation: float) -> tuple[str, float, float]:
    """Return the declared values of a column and their released count as a part for `warn_of_mismatch`."""
    return f"the declared values of the column {name!r}", known, deviation


def declared_part(name: Any, counts: NDArray, n_declared: int, total: float, noise: tuple[float, float]) -> Any:
    """Return the first `n_declared` of a column's released counts as a part for `warn_of_mismatch`."""
    # Their sum is also the total minus the other counts, which has less noise if these are few. `noise` holds the
    # standard deviations of the noise in a count and in the total.
    known, others = counts[:n_declared], counts[n_declared:]
    of_known, of_others = noise[0] * math.sqrt(known.size), math.hypot(noise[1], noise[0] * math.sqrt(others.size))
    if others.size and of_others < of_known:
        return column_part(name, total - float(others.sum()), of_others)
    return column_part(name, float(known.sum()), of_known)


def warn_of_mismatch(
    total: float, deviation: float, parts: Sequence[tuple[str, float, float]], *, labels: bool, n_totals: int = 1
) -> None:
    """Warn of declared parts with hardly any record, and of a data set that seems to be empty."""
    # A part is a description, its released count, and the standard deviation of the noise in it. `total` counts records
    # with declared labels. `labels` says whether records with other labels were left out. If no count is of all
    # records, `total` is the largest of `n_totals` counts.
    # Each part has one event, and each total has one on either side.
    probability = FALSE_ALARM / (len(parts) + 2 * n_totals)
    reach = margin(deviation, probability)
    if labels and total <= reach:
        warn(
            "the released counts cannot be told from those of an empty data set. Either the labels in y are not those "
            "in classes (spelling, case, numbers for text), or there are too few records for this epsilon. The budget "
            "was charged",
            SchemaMismatchWarning,
        )
        return
    least = LEAST_SHARE * (total - reach)
    missing = []
    for what, count, noise in parts:
        own = margin(noise, probability)
        # The count cannot be told from 0, and it is not one that a large share of the records would have.
        if count <= own and count + own < least:
            missing.append(what)
    if missing:
        more = "" if len(missing) <= _MOST_NAMED else ", and others"
        warn(
            f"the released counts cannot be told from 0, and are below {LEAST_SHARE:.0%} of the records, for "
            f"{', '.join(missing[:_MOST_NAMED])}{more}. Check that the declared values are spelled as the data "
            "hold them. The budget was charged",
            SchemaMismatchWarning,
        )
