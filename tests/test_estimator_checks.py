"""scikit-learn's own checks, all of them; an expected failure that passes fails the suite."""

import pytest

from skdp.preprocessing import TableEncoder
from tests.checks import every_check, run
from tests.estimators import ANY_TABLE, ESTIMATORS, FREE, LOCAL, expected_failures

# The columns of a schema are fixed, and those of the checks are not.
SUBJECTS = [each for each in ESTIMATORS + FREE + LOCAL if not isinstance(each, TableEncoder)] + ANY_TABLE

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning"),
    pytest.mark.usefixtures("notes_of_modules_are_left"),
]


@every_check(SUBJECTS, expected_failures)
def test_scikit_learn_check(estimator, check, reason):
    run(estimator, check, reason)
