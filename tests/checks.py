"""scikit-learn's own checks as parameters of a test.

`parametrize_with_checks` names each of them by what the estimator prints as, which takes longer than to collect all
other tests.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.estimators import name_of


def every_check(estimators, expected_failures):
    """Parametrise a test by estimators and checks; ``expected_failures(estimator)`` gives reasons by check."""
    found = []
    for estimator in estimators:
        checks = estimator_checks_generator(
            estimator, expected_failed_checks=expected_failures(estimator), mark="xfail"
        )
        for each in checks:
            # A check that is expected to fail comes as pytest's own kind of parameter.
            values, marks = getattr(each, "values", each), getattr(each, "marks", ())
            options = [str(value) for value in values[1].keywords.values()]
            name = "-".join([name_of(estimator), values[1].func.__name__, *options])
            found.append(pytest.param(*values, marks=marks, id=name))
    return pytest.mark.parametrize(("estimator", "check"), found)
