"""scikit-learn's own checks of a search whose settings are drawn; grids are in the common table."""

import pytest

from skdp import DPRandomizedSearchCV, ObjPertLogReg
from tests.checks import every_check, run
from tests.estimators import expected_failures

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")

_SETTINGS = {"C": [0.01, 0.1, 1.0]}


SEARCH = DPRandomizedSearchCV(ObjPertLogReg(data_norm=30.0), _SETTINGS, n_iter=2, epsilon=2000.0)


@every_check([SEARCH], expected_failures)
def test_scikit_learn_check(estimator, check, reason):
    run(estimator, check, reason)
