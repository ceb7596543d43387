"""What one record changes in what goes into each release, as `fit` computes it: no more than the noise is made for.

Both neighbours are given the same released values, so that what is compared follows them. This sees what audits of
single statistics do not: a statistic of unreleased data, or one in other units than its mechanism's.
"""

import pytest

from tests.estimators import name_of
from tests.neighbours import COMPARED, IN_ALL_GROUPS, most_moved


@pytest.mark.usefixtures("notes_of_modules_are_left")
@pytest.mark.parametrize("estimator", COMPARED, ids=name_of)
@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_no_release_moves_by_more_than_it_says(estimator, epsilon):
    most = most_moved(estimator, epsilon)
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) > (0.05 if type(estimator).__name__ in IN_ALL_GROUPS else 0.1), most
