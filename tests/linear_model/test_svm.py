"""Support vector machines: the same releases as logistic regression's classes with the Huber hinge."""

import math

import numpy as np
import pytest
from scipy import optimize
from sklearn.svm import LinearSVC

from skdp.linear_model import ObjPertLogReg, ObjPertSVC, OutputPertLogReg, OutputPertSVC
from skdp.sensitivity import clip_rows
from skdp.solvers.losses import HuberHinge
from tests.linear_model.data import blobs

PAIRS = [(ObjPertSVC, ObjPertLogReg), (OutputPertSVC, OutputPertLogReg)]
both = pytest.mark.parametrize(("machine", "regression"), PAIRS, ids=lambda c: c.__name__)


@both
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("C", ["auto", 0.01])
def test_the_release_is_that_of_the_huber_hinge(machine, regression, n_classes, delta, C):
    X, y = blobs(n_classes)
    shared = {"epsilon": 0.8, "delta": delta, "data_norm": 2.0, "C": C, "classes": range(n_classes)}
    ours = machine(**shared, random_state=4).fit(X, y)
    theirs = regression(**shared, loss="huber", random_state=4).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.intercept_, theirs.intercept_)
    assert ours.privacy_ == theirs.privacy_ == ours.privacy_plan(n_features=X.shape[1])
    assert ours.C_ == theirs.C_
    assert ours.decision_function(X).shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))


@both
def test_there_are_no_probabilities_and_no_choice_of_loss(machine, regression):
    X, y = blobs()
    model = machine(epsilon=1.0, data_norm=2.0, classes=[0, 1]).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    assert set(regression().get_params()) - set(model.get_params()) == {"loss"}
    assert not isinstance(model, regression)


@both
def test_without_noise_it_is_the_minimiser(machine, regression):
    X, y = blobs()
    model = machine(epsilon=math.inf, data_norm=3.0, C=0.3, classes=[0, 1]).fit(X, y)
    rows, loss = clip_rows(X, 3.0, 0.9).array, HuberHinge()
    target = loss.encode(y)

    def objective(w):
        z = (rows @ w)[:, None]
        cost = 0.3 * loss.value(z, target).sum() + w @ w / 2
        return cost, 0.3 * (loss.derivative(z, target).T @ rows)[0] + w

    best = optimize.minimize(objective, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(model.coef_[0], best[:-1], atol=1e-5)
    np.testing.assert_allclose(model.intercept_[0], 0.9 * best[-1], atol=1e-5)


@both
def test_without_noise_it_predicts_as_scikit_learns(machine, regression):
    X, y = blobs(3)
    ours = machine(epsilon=math.inf, data_norm=5.0, C=1.0, classes=range(3)).fit(X, y)
    theirs = LinearSVC(C=1.0, loss="hinge", max_iter=100_000).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.95
