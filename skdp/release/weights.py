r"""Weights of records: each record is kept with a probability that is proportional to its weight.

The sensitivities of all releases are those of records of weight 1. Therefore a weight does not multiply the
contribution of a record to a sum. A record of weight :math:`w\in[0,1]` is kept with probability :math:`w`,
independently, and the fit continues with the kept records. In expectation, every sum over the kept records is the
weighted sum.

**Theorem** (user guide, "Units", theorem 2). Let :math:`M` be a randomised algorithm, and :math:`T` thinning by
independent coins, where the probability of a record depends on this record alone. Then :math:`M\circ T` has the
guarantee of :math:`M`: :math:`(\varepsilon,\delta)`-DP, the whole curve of such pairs, Gaussian DP and Rényi DP, for
adding or removing one record or one group.

*Proof.* Both neighbours share the coins of the records that they share. Given these coins, the kept sets are :math:`S`
and :math:`S\cup R`, where :math:`R` holds the kept records of the record or group :math:`g` by which the neighbours
differ. The pair of output laws is a mixture, over the coins, of the pairs :math:`(M(S), M(S\cup R))` with the same
weights on both sides. Each of these pairs has the guarantee of :math:`M`, because a group with fewer records is a
group, and the empty group changes nothing. All f-divergences are jointly convex. A bound of an f-divergence for all
pairs is therefore a bound for the mixtures. Hockey-stick divergences give :math:`(\varepsilon,\delta)`-DP, its curve
and with it Gaussian DP, and powers give Rényi DP. ∎

No sensitivity depends on weights, so that a weight that is not clipped cannot break the guarantee. The condition is
that the weight of a record depends on this record alone, and on public or released numbers. Nothing here can check it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.data import check_quietly
from ..checks.params import check_positive
from ..checks.values import shown
from ..mechanisms import BitStream
from ..parts.arrays import PartedArray, rowwise

Array = NDArray[np.float64]

_NO_BOUND = (
    "sample_weight is given and max_weight is None. Set max_weight, a public upper bound on the weights: a record is "
    "kept with probability sample_weight / max_weight. If bagging or boosting passes the weights, the guarantee does "
    "not hold for any max_weight: use PATEClassifier, SampleAggregate or DPRandomTree instead. The budget was not "
    "charged"
)


def relative_weights(sample_weight: Any, max_weight: Any) -> Any:
    """Check weights of records and their public bound. Return weights in [0, 1], or None if there are none."""
    bound = None if max_weight is None else check_positive(max_weight, "max_weight")
    if sample_weight is None:
        return None
    if bound is None:
        raise ValueError(_NO_BOUND)
    return rowwise(partial(_relative, bound), sample_weight)


def _relative(bound: float, sample_weight: Any) -> Array:
    weights = check_quietly(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError("sample_weight must be a 1d array: one weight for each row. The budget was not charged")
    if np.any(weights < 0):
        raise ValueError("sample_weight must not hold negative weights. The budget was not charged")
    return np.minimum(weights, bound) / bound


def check_class_weight(class_weight: Any) -> Any:
    """Return weights of labels, or refuse those of another type."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (balanced or class_weight is None or isinstance(class_weight, Mapping)):
        raise TypeError(
            f"class_weight must be a dict of weights by label, 'balanced' or None, got {shown(class_weight)}"
        )
    return class_weight


def class_weights(class_weight: Any, classes: NDArray | None) -> Array | None:
    """Check public weights of labels. Return weights in [0, 1] of all labels and of labels outside of `classes`."""
    check_class_weight(class_weight)
    if class_weight is None:
        return None
    if classes is None:
        raise ValueError("class_weight is for labels, and this fit has none: leave it at None")
    if not isinstance(class_weight, Mapping):
        # These weights follow from a release of the fit.
        return None
    labels = classes.tolist()
    for label in set(class_weight) - set(labels):
        raise ValueError(f"class_weight names {shown(label)}, which is not in classes")
    weights = np.array(
        [check_positive(class_weight.get(label, 1.0), f"class_weight[{shown(label)}]", least=0) for label in labels]
    )
    if not weights.any():
        raise ValueError("class_weight must hold a positive weight: no record would be kept")
    # Records with other labels are left out, or only counted. Their code is -1.
    return np.append(weights / weights.max(), 1.0)


def chances(relative: Any, by_class: Array | None, X: Any, y: Any) -> Any:
    """Return for each record the probability that it is kept, or None if all are kept."""
    in_parts = isinstance(relative, PartedArray)
    if relative is not None and not in_parts and len(relative) != (X.shape[0] if y is None else len(y)):
        raise ValueError("X and sample_weight must have the same number of rows. The budget was not charged")
    if by_class is None:
        return relative
    return rowwise(partial(_by_label, by_class), y, *([] if relative is None else [relative]))


def _by_label(by_class: Array, y: NDArray[np.intp], relative: Array | float = 1.0) -> Array:
    found: Array = relative * by_class[y]
    return found


def kept(probabilities: Array, stream: BitStream) -> NDArray[np.bool_]:
    """Toss a coin for each record, and return which records are kept: always with probability 1, and never with 0."""
    # The coins are words in the order of the records. A record in between changes the words of later records. This does
    # not change the law, because the words are independent and identically distributed.
    words = stream.words(len(probabilities)) >> np.uint64(11)
    # Both sides of the comparison are exact: words of 53 bits are doubles.
    coins: NDArray[np.bool_] = words.astype(np.float64) * 2.0**-53 < probabilities
    return coins
