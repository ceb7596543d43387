"""Leaves and bins that are found once and kept, and those of mapped rows, which are found whenever they are needed."""

import numpy as np
import pytest

from skdp.tree import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor

N_CATEGORIES = 3
COMMON = {
    "bounds": ([0.0] * 5, [N_CATEGORIES, 1.0, 1.0, 1.0, 1.0]),
    "categorical_features": [0],
    "n_categories": [N_CATEGORIES],
    "random_state": 0,
}
MODELS = [
    DPRandomTree(classes=[0, 1], **COMMON),
    DPRandomTree(classes=[0, 1], n_estimators=1, delta=1e-6, **COMMON),
    DPRandomTree(classes=[0, 1], n_estimators=100, **COMMON),
    DPRandomTree(classes=[0, 1], max_depth=16, max_features=5, weights="equal", **COMMON),
    DPRandomTreeRegressor(bounds_y=(0, 1), delta=1e-6, **COMMON),
    DPGreedyTree(classes=[0, 1], **COMMON),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS)
def test_mapped_rows_have_the_same_trees(model, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((9000, 5)).astype(dtype)
    # The last category is none that was declared.
    X[:, 0] = rng.integers(N_CATEGORIES + 1, size=len(X))
    y = (X[:, 1] > 0.5).astype(int)
    mapped = np.memmap(tmp_path / "rows", dtype=dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    found = [model.fit(rows, y).predict(X) for rows in (X, np.asfortranarray(X), mapped)]
    assert len(np.unique(found[0])) > 1
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
