"""scikit-learn's own checks as parameters of a test.

`parametrize_with_checks` names each of them by what the estimator prints as, which takes longer than to collect all
other tests.
"""

import warnings

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from skdp.exceptions import SchemaMismatchWarning
from tests.estimators import name_of


def every_check(estimators, expected_failures, about=""):
    """Parametrise a test by estimators and checks; ``expected_failures(estimator)`` gives reasons by check.

    With `about`, only checks whose names hold it.
    """
    found = []
    for estimator in estimators:
        name, reasons = name_of(estimator), expected_failures(estimator)
        for each, check in estimator_checks_generator(estimator):
            if about not in check.func.__name__:
                continue
            options = [str(value) for value in check.keywords.values()]
            reason = reasons.get(check.func.__name__)
            found.append(pytest.param(each, check, reason, id="-".join([name, check.func.__name__, *options])))
    return pytest.mark.parametrize(("estimator", "check", "reason"), found)


def run(estimator, check, reason):
    """Run a check that has to fail if there is a reason for it: without pytest's mark, which prints where it failed."""
    try:
        with warnings.catch_warnings():
            # The rows of some checks are far beyond the bounds.
            warnings.simplefilter("ignore", SchemaMismatchWarning)
            check(estimator)
    except Exception:
        if reason is None:
            raise
    else:
        assert reason is None, f"expected to fail: {reason}"
        return
    pytest.xfail(reason)
