"""The attacker's curve, and the line that privacy draws."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier

from skdp import DPRandomTree
from skdp.audit import MembershipInferenceDisplay
from skdp.audit._fits import coins

X, _ = make_classification(n_samples=400, n_features=5, random_state=0)
Y = np.arange(400) % 2
PRIVATE = DPRandomTree(epsilon=0.5, bounds=(-5.0, 5.0), classes=[0, 1])


def display(estimator, **parameters):
    return MembershipInferenceDisplay.from_estimator(
        estimator, X, Y, n_repeats=4, random_state=0, plot=False, **parameters
    )


def test_members_are_told_from_others_and_not_with_privacy():
    assert display(DecisionTreeClassifier()).roc_auc > 0.7
    private = display(PRIVATE)
    assert 0.4 < private.roc_auc < 0.6
    assert private.advantage < 0.2


def test_the_line():
    private = display(PRIVATE)
    ratio = np.exp(0.5)
    np.testing.assert_allclose(private.allowed([0.0, 0.1, 0.9, 1.0]), [0.0, 0.1 * ratio, 1 - 0.1 / ratio, 1.0])
    # The largest advantage is where the two parts of the line meet.
    grid = np.linspace(0, 1, 10_001)
    assert (private.allowed(grid) - grid).max() == pytest.approx((ratio - 1) / (ratio + 1), abs=1e-4)
    assert display(DecisionTreeClassifier()).allowed(0.3) == 1
    some = MembershipInferenceDisplay(fpr=grid, tpr=grid, roc_auc=0.5, epsilon=1.0, delta=0.1)
    assert some.allowed(0.0) == pytest.approx(0.1)


@pytest.mark.sample(every=3)
def test_the_picture():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("Agg")
    shown = MembershipInferenceDisplay.from_estimator(PRIVATE, X, Y, n_repeats=2, random_state=0, name="trees")
    assert shown.ax_.get_xlabel() == "others taken for members"
    assert "trees" in shown.line_.get_label()
    assert "0.5" in shown.bound_.get_label()
    other = MembershipInferenceDisplay.from_estimator(DecisionTreeClassifier(), X, Y, n_repeats=2, ax=shown.ax_)
    assert other.ax_ is shown.ax_
    assert other.bound_ is None
    pyplot.close(shown.figure_)


def test_names_and_claims_are_kept():
    shown = display(DecisionTreeClassifier(), name="by heart", epsilon=1.0, delta=0.1)
    assert shown.estimator_name == "by heart"
    assert shown.allowed(0.0) == pytest.approx(0.1)
    assert display(PRIVATE).epsilon == 0.5
    assert MembershipInferenceDisplay.from_estimator(SVR(), X[:30], X[:30, 0], n_repeats=1, plot=False).epsilon is None


def test_scores_that_are_not_finite():
    """The order counts: no number comes first, then minus infinity and the others."""
    members = np.concatenate([coins(0, f"half {k}", 400) for k in range(4)]).reshape(4, 400)
    fits = iter(members)

    def score(model, X, y):
        return np.where(next(fits), -1.0, np.nan)

    assert display(DecisionTreeClassifier(), score=score).roc_auc == 1
    with pytest.raises(ValueError, match="one number for each record"):
        display(DecisionTreeClassifier(), score=lambda model, X, y: np.zeros((len(X), 1)))


def test_the_same_with_the_same_seed():
    one, two = display(PRIVATE), display(PRIVATE)
    np.testing.assert_array_equal(one.tpr, two.tpr)
