"""scikit-learn's own checks, all of them; an expected failure that passes fails the suite."""

import pytest
from sklearn.base import clone

from tests.checks import every_check, run
from tests.estimators import ANY_TABLE, ESTIMATORS, FREE, LOCAL, ONE_EACH, expected_failures

pytestmark = [
    # Targets of the checks are beyond the bounds.
    pytest.mark.filterwarnings("ignore:bounds_y are far too wide"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning"),
    pytest.mark.usefixtures("notes_of_modules_are_left"),
]


def without_schema(estimators):
    """Leave out estimators whose columns are those of a schema. The data of the checks have other columns."""
    return [estimator for estimator in estimators if getattr(estimator, "schema", None) is None]


#: These take weights of records.
WEIGHTED = [
    clone(model).set_params(max_weight=3.0) for model in without_schema(ONE_EACH) if hasattr(model, "max_weight")
]


@every_check(without_schema(ESTIMATORS + FREE + LOCAL + ANY_TABLE), expected_failures)
def test_scikit_learn_check(estimator, check, reason):
    run(estimator, check, reason)


@every_check(WEIGHTED, expected_failures, about="sample_weight")
def test_scikit_learn_check_of_weights(estimator, check, reason):
    run(estimator, check, reason)
