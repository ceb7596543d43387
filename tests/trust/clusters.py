"""k-means: a tight cluster, and one record at a corner of the bounds, beyond the radius of every cell."""

import contextlib
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from skdp import DPKMeans, SampleAggKMeans
from skdp.cluster import _refinement, _sample_aggregate
from skdp.sensitivity import SUM_BITS, nearest
from tests.trust.redrawn import BY_RUNS, FEW_RUNS, redrawn, row_count_kept, unseen_without_runs
from tests.trust.subjects import PURE, Subject, replaced

BOUNDS = (-1, 1)
MARK = 1.0


class Turncoat(BaseEstimator):
    """Puts all centres at one corner of the bounds, or at the opposite one if the record is in the block."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.cluster_centers_ = np.full((self.n_clusters, X.shape[1]), 1.0 if np.any(X == MARK) else -1.0)
        return self


def cells(epsilon, delta):
    return DPKMeans(2, epsilon=epsilon, delta=delta, bounds=BOUNDS)


def blocks(epsilon, delta, *, k=2, n_blocks=2, **parameters):
    parameters = {"bounds": BOUNDS, "estimator": Turncoat(k), "n_blocks": n_blocks, **parameters}
    return SampleAggKMeans(k, epsilon=epsilon, delta=delta, **parameters)


def corner(model, rows=500, n_features=2):
    X = np.full((rows, n_features), -0.5)
    return (X,), (np.vstack([X, np.full((1, n_features), MARK)]),)


def unclipped_cells():
    """Differences of a record to its centre."""

    def sums(encode, X, centres, radii, a, b):
        points = encode(X)
        which = nearest(points, centres)
        moves = (points - centres[which]) / radii[which][:, None]
        squares = np.minimum(1.0, np.einsum("ij,ij->i", moves, moves))
        total = np.zeros((len(centres), centres.shape[1] + 2))
        np.add.at(total, which, np.column_stack([np.full(len(points), a), moves, b * squares]))
        return total

    return replaced(_refinement, "cell_sums", lambda whole: sums)


def means_of_cells(guess=20):
    """Means in place of sums, with noise for a guess of the rows of a cell."""

    def divided(whole):
        def sums(encode, X, centres, radii, a, b):
            found = whole(encode, X, centres, radii, a, b)
            found[:, 1:] *= guess / np.maximum(found[:, :1] / a, 1)
            return found

        return sums

    return replaced(_refinement, "cell_sums", divided)


@contextlib.contextmanager
def undivided():
    """Each release has the noise of the whole budget, and states its share."""

    def greedy(whole):
        def noisy(epsilon, delta, share, *rest):
            return whole(epsilon, delta, 1.0, *rest)[0], whole(epsilon, delta, share, *rest)[1]

        return noisy

    with replaced(_refinement, "noisy", greedy), replaced(_sample_aggregate, "noisy", greedy):
        yield


@contextlib.contextmanager
def only_sums():
    """Forget that a record changes counts and sums of squares as well."""
    with (
        replaced(_refinement, "cells_l2", lambda whole: lambda d, a, b: whole(d, 0.0, 0.0)),
        replaced(_refinement, "cells_l1", lambda whole: lambda d, a, b: whole(d, 0.0, 0.0)),
    ):
        yield


@contextlib.contextmanager
def radius_of_blocks():
    """Say that a block's differences move by the radius, and not by the diameter."""
    with (
        replaced(_sample_aggregate, "blocks_l2", lambda whole: lambda k, d: whole(k, d) / 2),
        replaced(_sample_aggregate, "blocks_l1", lambda whole: lambda k, d: whole(k, d) / 2),
    ):
        yield


@contextlib.contextmanager
def one_cluster():
    """Forget the number of clusters."""
    with (
        replaced(_sample_aggregate, "blocks_l2", lambda whole: lambda k, d: whole(1, d)),
        replaced(_sample_aggregate, "blocks_l1", lambda whole: lambda k, d: whole(1, d)),
    ):
        yield


def unclipped_blocks():
    def differences(centres, reference, radii):
        return np.rint((centres - reference) / radii[:, None] * 2.0**SUM_BITS).astype(np.int64)

    return replaced(_sample_aggregate, "clipped_differences", lambda whole: differences)


def true_blocks():
    """Divide by the number of blocks with rows, for a public number of blocks that most are empty of."""

    def divided(whole):
        def total(X, labels, n_blocks, *rest):
            return whole(X, labels, n_blocks, *rest) * n_blocks / max(len(np.unique(labels)), 1)

        return total

    return replaced(_sample_aggregate, "block_sum", divided)


#: Claims that a subject has if it says nothing else.
BOTH = (*PURE, (1.0, 1e-5))

SUBJECTS = [
    Subject(
        "DPKMeans",
        cells,
        corner,
        reading=partial(redrawn, draws=40, histories=3),
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, DPKMeans), BY_RUNS),
            "no clip": unclipped_cells,
            "division by true counts": (means_of_cells, {"pair": partial(corner, rows=0)}),
            "budget not divided": undivided,
            "counts forgotten": only_sums,
        },
        survives=unseen_without_runs("row count kept", BOTH, FEW_RUNS),
    ),
    Subject(
        "SampleAggKMeans",
        blocks,
        corner,
        reading=partial(redrawn, draws=30, histories=3),
        runs=FEW_RUNS,
        mutants={
            "row count kept": (partial(row_count_kept, SampleAggKMeans), BY_RUNS),
            "no clip": unclipped_blocks,
            "budget not divided": undivided,
            "radius for diameter": radius_of_blocks,
            "number of clusters forgotten": one_cluster,
        },
        survives=unseen_without_runs("row count kept", BOTH, FEW_RUNS),
    ),
    Subject(
        "SampleAggKMeans, public reference",
        partial(blocks, reference=np.zeros((2, 2))),
        corner,
        claims=((0.1, 0.0), (3.0, 0.0), (1.0, 1e-5)),
        reading=partial(redrawn, draws=100),
        runs={},
        mutants={
            "no clip": (unclipped_blocks, {"make": partial(blocks, reference=np.zeros((2, 2)), radius=0.5)}),
            "radius for diameter": radius_of_blocks,
            "number of clusters forgotten": one_cluster,
            "division by true blocks": (
                true_blocks,
                {
                    "make": partial(blocks, k=1, reference=np.zeros((1, 2)), n_blocks=40),
                    "pair": partial(corner, rows=0),
                },
            ),
        },
    ),
]
