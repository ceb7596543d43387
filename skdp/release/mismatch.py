r"""Warnings about declarations that the data do not seem to follow, from released counts only.

Theorem. Let released counts have independent noise, each a sum of independent Gaussian and Laplace variables of total
variance :math:`\sigma^2`. For :math:`0 < c < 1`, the noise is beyond :math:`\sigma(\ln(1/p) - \ln(1 - c^2))/(c\sqrt2)`
on one side with probability at most p.

Proof. The moment generating function of such a sum at :math:`\lambda = c\sqrt2/\sigma` is at most
:math:`1/(1 - \lambda^2\sigma^2/2)`: this is the function of one Laplace variable of variance :math:`\sigma^2`, it is
above that of a Gaussian, and :math:`\prod(1 - x_i) \ge 1 - \sum x_i`. Chernoff's bound gives the rest. Noise of density
proportional to :math:`e^{-\lVert b\rVert/s}` in `D` dimensions has the same bound along every direction: with
:math:`m=(D+1)/2\ge1` and a variance of :math:`2ms^2`, its function is :math:`(1-\lambda^2s^2)^{-m} \le
1/(1-m\lambda^2s^2)`.

For Gaussian noise, the margin is a quantile of the normal distribution. The standard deviation of a sum is at most the
sum of standard deviations, for dependent numbers, too. A part of the declarations is named if a linear combination of
released counts exceeds its margin, and the expectation of the combination is at most 0 unless the part does not fit.
Everything here is post-processing of released counts and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..checks.warn import warn
from ..exceptions import SchemaMismatchWarning

#: Probability that a call warns although the data follow the declarations.
FALSE_ALARM = 5e-3

#: A declared label, or the declared values of a column, with at least this share of the records count as present.
LEAST_SHARE_OF_LABEL, LEAST_SHARE = 0.02, 0.05

#: Entries in no category of a column are named if they are more than this share of the records.
LARGEST_SHARE = 0.5

#: Entries in the last of many cells of an ordered column, where numbers beyond the upper bound count, are named if they
#: are more than this share of the records.
LARGEST_SHARE_AT_END, _MANY_CELLS = 8 / 9, 16

#: Declared labels fit if at least this share of the records has one, or if that is not known, this number.
LEAST_KNOWN, FEWEST = 0.25, 25

_MOST_NAMED = 10

_MOST = "most records have a label that is not in classes"

_C = np.linspace(0.5, 0.999, 100)


def margin(deviation: float, probability: float, gaussian: bool = False) -> float:
    """Return a number that noise of this standard deviation exceeds on one side with at most this probability."""
    if gaussian:
        return -deviation * float(special.ndtri(probability))
    return deviation / math.sqrt(2) * float(np.min((-math.log(probability) - np.log1p(-(_C**2))) / _C))


@dataclass(frozen=True)
class Part:
    """Declared values, as a description, with a released count and the standard deviation of its noise."""

    what: str
    count: float
    deviation: float
    share: float  # The least share of the count, or the largest share if the count is of other values.
    of_others: bool = False

    def shows(self, total: float, of_total: float, probability: float, gaussian: bool) -> bool:
        """Tell whether the count and a total with noise of standard deviation `of_total` show that it does not fit."""
        difference = self.share * total - self.count
        excess = -difference if self.of_others else difference
        if excess <= margin(self.deviation + self.share * of_total, probability, gaussian):
            return False
        # Rare values that are known to occur are not named.
        return self.of_others or self.count <= margin(self.deviation, probability, gaussian)


def label_parts(classes: NDArray, counts: NDArray, deviation: float) -> list[Part]:
    """Return the declared labels and their released counts."""
    pairs = zip(classes.tolist(), counts.tolist(), strict=True)
    return [Part(f"the label {label!r}", n, deviation, LEAST_SHARE_OF_LABEL) for label, n in pairs]


def column_part(name: Any, known: float, deviation: float) -> Part:
    """Return the declared values of a column and their released count."""
    return Part(values_of(name), known, deviation, LEAST_SHARE)


def values_of(name: Any) -> str:
    """Describe the declared values of a column."""
    return f"the declared values of the column {name!r}"


def declared_parts(
    name: Any, counts: NDArray, n_declared: int, total: float, noise: tuple[float, float], ordered: bool = False
) -> list[Part]:
    """Return the first `n_declared` of a column's released counts, and the count of entries in no category."""
    # The sum of the first counts is also the total minus the other counts, which has less noise if these are few.
    # `noise` holds the standard deviations of the noise in a count and in the total. If only the others were counted,
    # `n_declared` is 0.
    known, others = counts[:n_declared], counts[n_declared:]
    of_known, of_others = noise[0] * math.sqrt(known.size), noise[1] + noise[0] * math.sqrt(others.size)
    part = column_part(name, float(known.sum()), of_known)
    if others.size and (of_others < of_known or n_declared == 0):
        part = column_part(name, total - float(others.sum()), of_others)
    parts = [part]
    if ordered and n_declared >= _MANY_CELLS:
        parts.append(Part(part.what, float(known[-1]), noise[0], LARGEST_SHARE_AT_END, of_others=True))
    # Most entries of a column may be missing. Of two other cells, the first is for entries in no category.
    if others.size >= 2:
        parts.append(Part(part.what, float(others[0]), noise[0], LARGEST_SHARE, of_others=True))
    return parts


def encoded_parts(
    undeclared: Mapping[str, Sequence[int]], counts: NDArray, total: float, noise: tuple[float, float]
) -> list[Part]:
    """Return parts for columns by the counts of their indicators of undeclared entries, at these positions."""
    parts = []
    for name, places in undeclared.items():
        parts += declared_parts(name, counts[list(places)], 0, total, noise)
    return parts


def warn_of_labels(
    total: float, deviation: float, others: float | None, probability: float = FALSE_ALARM, gaussian: bool = False
) -> bool:
    """Warn if hardly any record has a declared label, and tell whether. `others` counts the records without one."""
    excesses = {f"fewer than {FEWEST} records have a label that is in classes": FEWEST - total}
    if others is not None:
        # The weights of the two counts, whose noise has the same standard deviation, add up to 1.
        excess = LEAST_KNOWN * others - (1 - LEAST_KNOWN) * total
        excesses[_MOST] = excess
    reach = margin(deviation, probability / len(excesses), gaussian)
    shown = [message for message, excess in excesses.items() if excess > reach]
    if shown:
        _warn_of_classes(shown[-1])
    return bool(shown)


def warn_of_targets(labels: bool) -> None:
    """Warn that most records have no declared label, or a target beyond its bounds."""
    if labels:
        return _warn_of_classes(_MOST)
    warn(
        "the released counts show that most targets are beyond the declared bounds. Check the units of y, and the "
        "bounds of the target. The budget was charged",
        SchemaMismatchWarning,
    )


def _warn_of_classes(shown: str) -> None:
    warn(
        f"the released counts show that {shown}. Check that the labels in y are spelled as in classes (case, numbers "
        "for text). The budget was charged",
        SchemaMismatchWarning,
    )


def warn_of_mismatch(
    total: float,
    deviation: float,
    parts: Sequence[Part],
    *,
    labels: bool,
    n_totals: int = 1,
    gaussian: bool = False,
    others: float | None = None,
) -> None:
    """Warn of declared parts that do not fit the data, if released counts with Gaussian or other noise show it."""
    # `total` counts records with declared labels, and `others` those with other labels. `labels` says whether records
    # with other labels were left out. If no count is of all records, `total` is the largest of `n_totals` counts. Each
    # part has two events, and each total has one.
    probability = FALSE_ALARM / (2 * len(parts) + n_totals)
    if labels and warn_of_labels(total, deviation, others, probability, gaussian):
        return
    off = list(dict.fromkeys(part.what for part in parts if part.shows(total, deviation, probability, gaussian)))
    warn_of_parts(off)


def warn_of_parts(off: Sequence[str]) -> None:
    """Warn of declared parts that do not fit the data."""
    if off:
        more = "" if len(off) <= _MOST_NAMED else ", and others"
        warn(
            f"the released counts show too few records for {', '.join(off[:_MOST_NAMED])}{more}. Check that the "
            "declared values are spelled as the data hold them, and that bounds are in their units. The budget was "
            "charged",
            SchemaMismatchWarning,
        )
