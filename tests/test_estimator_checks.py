"""scikit-learn's own checks, all of them; an expected failure that passes fails the suite (xfail_strict)."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.estimators import ESTIMATORS, FREE, LOCAL, expected_failures

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")


@parametrize_with_checks(ESTIMATORS + FREE + LOCAL, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
