"""scikit-learn's own checks of a search whose settings are drawn; grids are in the common table."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import DPRandomizedSearchCV, ObjPertLogReg

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")

_SETTINGS = {"C": [0.01, 0.1, 1.0]}


@parametrize_with_checks([DPRandomizedSearchCV(ObjPertLogReg(data_norm=30.0), _SETTINGS, n_iter=2, epsilon=2000.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
