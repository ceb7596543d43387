"""What one record changes in what goes into each release, as `fit` computes it: no more than the noise is made for.

Both neighbours are given the same released values, so that what is compared follows them. This sees what audits of
single statistics do not: a statistic of unreleased data, or one in other units than its mechanism's.
"""

from functools import partial

import numpy as np
import pytest

from tests.estimators import data_for, declared, name_of, needs_y
from tests.neighbours import COMPARED, IN_ALL_GROUPS, MOVED, inputs, records


@pytest.mark.usefixtures("notes_of_modules_are_left")
@pytest.mark.parametrize("estimator", COMPARED, ids=name_of)
@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_no_release_moves_by_more_than_it_says(estimator, epsilon):
    rng = np.random.default_rng(0)
    most = {}
    for n_rows in (0, 1, 60):
        X, y = data_for(estimator, n_rows=max(n_rows, 2), seed=n_rows)
        X, y = X[:n_rows], (y[:n_rows] if n_rows else y[:0])
        pool = data_for(estimator, n_rows=50)
        model = declared(estimator, epsilon=epsilon, random_state=3)
        without = inputs(model, (X, y)[: 1 + needs_y(model)], n_rows + 1)
        for row, label in records(*pool, rng):
            data = (np.concatenate([X, row]), np.concatenate([y, label]))[: 1 + needs_y(model)]
            with_it = inputs(model, data, n_rows + 1, without)
            assert without.keys() == with_it.keys()
            for name, release in without.items():
                mechanism, difference = release.mechanism, with_it[name].value - release.value
                if mechanism.norm == "score" and type(estimator).__name__ not in IN_ALL_GROUPS:
                    assert (difference != 0).any(axis=1).sum() <= 1
                moved = MOVED[mechanism.norm]
                if not getattr(mechanism, "monotone", True):
                    moved = partial(moved, monotone=False)
                part = moved(difference) / mechanism.sensitivity
                most[name] = max(most.get(name, 0.0), part)
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) > (0.05 if type(estimator).__name__ in IN_ALL_GROUPS else 0.1), most
