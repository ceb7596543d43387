"""Which estimators are fitted to collections of Dask, and collections to fit them to."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from tests.estimators import ESTIMATORS, VARIANTS, data_for, declared, needs_y

#: One sum over the rows, or a few: the same bits as in memory.
FEW_PASSES = {
    "DPGreedyTree",
    "DPKMeans",
    "DPNaiveBayes",
    "DPPCA",
    "DPQuantileBinner",
    "DPRandomTree",
    "DPRandomTreeRegressor",
    "DPStandardScaler",
    "ExpMechPCA",
    "FunctionalMechLinReg",
    "FunctionalMechLogReg",
    "HistogramClassifier",
    "HistogramRegressor",
    "NoisyHistogram",
}

#: Rows are prepared once and kept on the workers: the same bits as in memory.
MANY_PASSES = {
    "DPAdditiveRegressor",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPTableGenerator",
}

#: Sums of doubles, and a certificate for the result: equal to within this.
CERTIFIED = {"DPAdditiveClassifier", "ObjPertLogReg", "OutputPertLogReg"}
TOLERANCE = 1e-9

#: Rows are needed in one place.
REFUSED = {
    "DPGridSearchCV",
    "DPRandomizedSearchCV",
    "ExpMechERM",
}

#: Each row is treated by itself: applied by map_partitions.
BY_ROW = {
    "AnyTable",
    "BoundsScaler",
    "HadamardResponse",
    "LocalDPNaiveBayes",
    "LocalLaplace",
    "NormClipper",
    "PiecewiseMechanism",
    "PublicBinner",
    "RandomizedResponse",
    "TableEncoder",
    "UnaryEncoder",
}

#: The rows of each block are brought to one part, where the estimator of the block is fitted: the same bits.
BLOCKS = {"PATEClassifier", "SampleAggKMeans", "SampleAggregate"}

FITTED = FEW_PASSES | MANY_PASSES | CERTIFIED | BLOCKS

#: An instance of each variant that is fitted to collections.
IN_PARTS = [
    declared(clone(estimator)).set_params(random_state=3)
    for estimator in VARIANTS
    if type(estimator).__name__ in FITTED
]

# Frames below have these names.
for generator in IN_PARTS:
    if type(generator).__name__ == "DPTableGenerator":
        generator.set_params(schema={f"x{j}": (-3, 3) for j in range(5)})

#: Numbers of rows of partitions, for 400 rows: one row, none, and many.
LENGTHS = (1, 0, 137, 262)


def rows_of(estimator):
    """Return rows of 400 records and, where there are any, their targets, as arrays in a tuple."""
    X, y = data_for(estimator)
    return (X, y) if needs_y(estimator) else (X,)


def frames(*arrays, lengths=LENGTHS):
    """Return collections of partitions of these lengths, as columns of one Dask DataFrame."""
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    pd = pytest.importorskip("pandas")
    X = arrays[0]
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    names = [list(table.columns)]
    for i, y in enumerate(arrays[1:]):
        table[f"y{i}"] = y
        names.append(f"y{i}")
    ends = np.cumsum([0, *lengths])
    parts = [table.iloc[a:b] for a, b in pairwise(ends)]
    whole = dd.from_map(lambda i: parts[i], range(len(parts)), meta=table.iloc[:0])
    return tuple(whole[name] for name in names)


def dask_arrays(*arrays, lengths=LENGTHS):
    """Return Dask Arrays with chunks of these lengths."""
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return tuple(da.from_array(a, chunks=(lengths, *a.shape[1:])) for a in arrays)


KINDS = {"DataFrame": frames, "Array": dask_arrays}

NAMES = {type(estimator).__name__ for estimator in ESTIMATORS}
