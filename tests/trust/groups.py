"""The unit is a group: neighbours differ by all rows of one group, of which a public number count."""

from functools import partial
from unittest.mock import patch

import numpy as np

from skdp import (
    DPNaiveBayes,
    DPStandardScaler,
    FunctionalMechLinReg,
    FunctionalMechLogReg,
    HistogramClassifier,
    HistogramRegressor,
    NoisyHistogram,
)
from skdp.release import counts as _counts
from skdp.release import units as _groups
from skdp.solvers import moments, target_range
from tests.trust.subjects import Subject
from tests.trust.targets import measure_the_rest

#: How many rows of a group count.
MOST = 3

BOX = {"bounds": (-1, 1)}
LABELS = {"classes": [0, 1]}


def by_first_column(kind):
    """Return the estimator with groups in the first column of X."""

    def fit(self, X, y=None):
        return kind.fit(self, X[:, 1:], y, groups=X[:, 0])

    return type(kind.__name__, (kind,), {"fit": fit, "__init__": kind.__init__, "__module__": kind.__module__})


def group(model, with_target, n_columns):
    """Some groups of few rows; and one more with many, all at the bounds."""
    of_groups = np.repeat([0, 1, 2, 9], [1, 2, MOST, 5 * MOST])
    X = np.column_stack([of_groups, *n_columns * [np.where(of_groups == 9, 1.0, -0.5)]])
    y = (of_groups == 9).astype(int)
    before = of_groups < 9
    return ((X[before], y[before]), (X, y)) if with_target else ((X[before],), (X,))


def all_rows_count():
    return patch.object(_groups, "drawn_rows", lambda members, most, stream: np.arange(len(members)))


def one_row_more():
    draw = _groups.drawn_rows
    return patch.object(_groups, "drawn_rows", lambda members, most, stream: draw(members, most + 1, stream))


class NoiseForOneRow:
    """The sensitivity of a record, in all modules that ask for that of a group."""

    def __enter__(self):
        self.patches = [
            patch.object(module, "group_sensitivity", lambda sensitivity, rows: sensitivity)
            for module in (_counts, moments, target_range)
        ]
        for one in self.patches:
            one.start()

    def __exit__(self, *error):
        for one in self.patches:
            one.stop()


def grouped(name, kind, with_target=True, fits=150, n_columns=2, survives=None, **parameters):
    own = by_first_column(kind)
    return Subject(
        f"{name}-by group",
        lambda epsilon, delta: own(epsilon=epsilon, delta=delta, rows_per_group=MOST, **parameters),
        partial(group, with_target=with_target, n_columns=n_columns),
        fits=fits,
        # 150 fits tell the noise to some percent.
        floor=0.85,
        reading=measure_the_rest,
        runs={},
        mutants={
            "all rows count": all_rows_count,
            "one row more counts": one_row_more,
            "noise for one row": NoiseForOneRow,
        },
        survives=survives or {},
    )


SUBJECTS = [
    grouped("DPNaiveBayes", DPNaiveBayes, **BOX, **LABELS, numeric="gaussian"),
    grouped("DPStandardScaler", DPStandardScaler, False, **BOX),
    grouped("NoisyHistogram", NoisyHistogram, False, **BOX, n_bins=6, fits=50),
    grouped("HistogramClassifier", HistogramClassifier, **BOX, **LABELS, n_bins=6, fits=20),
    grouped("HistogramRegressor", HistogramRegressor, **BOX, n_bins=6, bounds_y=(-1, 1), fits=10),
    grouped("FunctionalMechLinReg", FunctionalMechLinReg, **BOX, bounds_y=(-1, 1)),
    grouped("FunctionalMechLogReg", FunctionalMechLogReg, **BOX, **LABELS, fits=400),
]
