"""scikit-learn's own checks, all of them; an expected failure that passes fails the suite."""

import pytest

from tests.checks import every_check, run
from tests.estimators import ANY_TABLE, ESTIMATORS, FREE, LOCAL, expected_failures

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning"),
    pytest.mark.usefixtures("notes_of_modules_are_left"),
]


# The columns of the checks' data are others than those of a schema.
@every_check(ESTIMATORS + FREE + LOCAL + ANY_TABLE, expected_failures)
def test_scikit_learn_check(estimator, check, reason):
    run(estimator, check, reason)
