"""Synthetic tables: the number of records, the counts of columns, choices of tables, and their counts."""

import math
from functools import partial

import numpy as np

from skdp import Category, DPTableGenerator
from skdp.release import reserve
from skdp.synthetic import _cells, _rounds
from tests.trust.additive import choice_not_paid, choices_of_pairs, pure_choice_not_paid
from tests.trust.subjects import APPROXIMATE, PURE, RUNS_AT_3, Subject, replaced

# Without cells of other and of missing entries, so that all cells have many records, and none are merged.
PLAIN = {name: Category([0, 1], missing="error", other="error") for name in "abc"}
CLAIMS = (*PURE, *APPROXIMATE)


def generator(epsilon, delta, **parameters):
    return DPTableGenerator(epsilon=epsilon, delta=delta, schema=PLAIN, **parameters)


def alone(model):
    X = np.ones((1, 3), dtype=int)
    return (X[:0],), (X,)


def rivals(model):
    """One more record raises the score of one pair of columns, and lowers that of another."""
    n = math.ceil(8_000 / min(model.epsilon, 1.0) / (1 if model.delta else 0.2))
    a = np.arange(n) % 2
    # The first two columns agree in three quarters of the records, and the first and the third in a quarter.
    b, c = np.where(np.arange(n) // 2 % 4 == 0, 1 - a, a), np.where(np.arange(n) // 8 % 4 == 0, a, 1 - a)
    X = np.vstack([np.stack([a, b, c], axis=1), [[1, 1, 1]]])
    return (X[:-1],), (X,)


class Grouped(DPTableGenerator):
    """The last column holds groups."""

    def fit(self, X):
        return super().fit(X[:, :-1], groups=X[:, -1])


def group(model, n_records=2):
    X = np.ones((n_records, 4), dtype=int)
    return (X[:0],), (X,)


def first_count(model):
    return model.marginal("a").value.ravel()[-1]


def one_column():
    """Noise as if a record counted in one column only."""
    return replaced(_rounds, "columns_sensitivity", lambda true: lambda n_columns, *rest: true(1, *rest))


def one_record():
    """Noise as if a group had one record."""
    return replaced(_rounds, "group_sensitivity", lambda true: lambda sensitivity, rows: sensitivity)


def counted_in_the_first_cell():
    """A record counts in its cell, and in the first one of each column."""

    def besides(true):
        def counts(self, codes):
            out = true(self, codes)
            for _, counts in self.by_column(out):
                counts[0] += len(codes)
            return out

        return counts

    return replaced(_cells.TableCells, "counts", besides)


def quarter_of_the_noise(kind):
    def quarter(true):
        return lambda budget, sensitivity, size: true(budget, sensitivity / 4, size)

    return replaced(reserve, kind, quarter)


def tree(claims, kind, choices):
    return Subject(
        f"DPTableGenerator-tree-{kind}",
        partial(generator, structure="tree"),
        rivals,
        claims=claims,
        reading=choices_of_pairs,
        fits=24,
        floor=0.6,
        runs={},
        mutants={"choices not paid": choices, "quarter of the noise": partial(quarter_of_the_noise, kind)},
    )


SUBJECTS = [
    Subject(
        "DPTableGenerator",
        partial(generator, structure="independent"),
        alone,
        claims=CLAIMS,
        fits=60,
        statistic=first_count,
        runs={(3.0, 0.0): RUNS_AT_3},
        mutants={
            "noise of one column": one_column,
            "counted in the first cell": counted_in_the_first_cell,
        },
    ),
    tree(PURE, "l1_mechanism", pure_choice_not_paid),
    tree(APPROXIMATE, "GaussianMechanism", choice_not_paid),
    Subject(
        "DPTableGenerator-groups",
        lambda epsilon, delta: Grouped(
            epsilon=epsilon, delta=delta, schema=PLAIN, structure="independent", rows_per_group=2
        ),
        group,
        claims=CLAIMS,
        fits=60,
        runs={},
        mutants={"noise of one record": one_record},
    ),
]
