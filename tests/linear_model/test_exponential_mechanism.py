"""Linear models by the exponential mechanism: spreads by brute force, privacy loss, known answers."""

import math
from inspect import isabstract

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from sklearn.utils import get_tags

from skdp import BudgetAccountant
from skdp.accounting import BoundedRangeEvent
from skdp.linear_model import ExpMechERM, _exponential_mechanism
from skdp.release.session import ReleaseSession
from skdp.solvers.losses import (
    AbsoluteError,
    LogLoss,
    LossSum,
    ScoreLoss,
    minimiser_on_ball,
)
from skdp.solvers.target_range import Located, TargetRange

LOSSES = [LogLoss(), AbsoluteError()]
REACHES = [0.1, 0.5, 0.99, 1.0, 1.7, 4.0, 20.0]

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}{vars(loss) or ''}")
REGRESSION = ["absolute_error"]
every_name = pytest.mark.parametrize("name", ["log_loss", *REGRESSION])


def model_of(name, **parameters):
    own = {"classes": [0, 1]} if name == "log_loss" else {"bounds_y": (-1.0, 1.0)}
    return ExpMechERM(name, **{"data_norm": 1.0, **own, **parameters})


def targets_for(loss):
    return np.array([-1.0, 1.0]) if isinstance(loss, LogLoss) else np.linspace(-1, 1, 41)


# --- what one record can change -----------------------------------------------------------------------------------


@each_loss
@pytest.mark.parametrize("reach", REACHES)
def test_spread_by_brute_force(loss, reach):
    # Scores of records of all lengths, and all targets.
    worst = 0.0
    for target in targets_for(loss):
        for part in (0.1, 0.5, 0.9, 1.0):
            values = loss.cost(np.linspace(-1, 1, 4001) * part * reach, target)
            worst = max(worst, float(np.ptp(values)))
    claim = loss.spread(reach)
    assert worst <= claim * (1 + 1e-14)
    assert worst >= (1 - 1e-3) * claim, "the claim is attained"


@every_name
@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_record_changes_the_sum_by_no_more_than_the_spread(name, size):
    # Through the estimator's own clipping and scaling, from the sums of neighbours, added and removed.
    rng = np.random.default_rng(3)
    model = model_of(name, data_norm=1.5, max_score=2.0)
    problem = _exponential_mechanism.Problem.of(model._check_parameters())
    spread = problem.loss.spread(problem.max_score)
    direction = rng.normal(size=(600, size + 1))
    ball = 2.0 * direction / np.linalg.norm(direction, axis=1)[:, None] * rng.random((600, 1)) ** 0.2
    largest = 0.0
    for trial in range(30):
        X = rng.normal(size=(12, size)) * rng.choice([0.1, 1.0, 100.0])
        y = rng.choice([-1.0, 1.0], size=12) if name == "log_loss" else rng.uniform(-1, 1, size=12)
        if trial % 3 == 0:
            # The worst record: as long as may be, along the farthest point of the ball, and on the wrong side.
            corner = np.abs(ball[:, -1]).argmax()
            X[-1] = 100.0 * ball[corner, :-1] * np.sign(ball[corner, -1])
            y[-1] = -1.0
        rows = np.vstack([ball, -ball])
        values = []
        for part in (12, 11):
            total = _exponential_mechanism.loss_sum(X[:part], y[:part], problem)
            values.append(total.values(rows @ total.frame))
        largest = max(largest, float(np.ptp(values[0] - values[1])))
    assert largest <= spread * (1 + 1e-9)
    assert largest >= 0.75 * spread


@every_name
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_privacy_loss_of_the_worst_pair(name, epsilon):
    # On a grid that holds the ends of the ball: the ratio of densities is within epsilon, and so is its range.
    model = model_of(name, epsilon=epsilon, fit_intercept=False)
    problem = _exponential_mechanism.Problem.of(model._check_parameters())
    plan = model.privacy_plan(n_features=1)
    ends = problem.max_score
    grid = np.linspace(-ends, ends, 4001)
    X, y = np.ones((6, 1)), np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])

    def log_density(rows):
        losses = _exponential_mechanism.loss_sum(X[:rows], y[:rows], problem)
        score = -losses.values(grid[:, None] @ losses.frame) / plan.releases[-1].mechanism.scale
        return score - np.log(np.exp(score - score.max()).sum()) - score.max()

    for rows in (0, 5):
        ratio = log_density(rows + 1) - log_density(rows)
        # A regression releases the range and the location of its targets with a part of epsilon.
        rest = epsilon * plan.releases[-1].share
        assert np.abs(ratio).max() <= rest
        assert np.ptp(ratio) <= rest
        assert np.ptp(ratio) == pytest.approx(rest, rel=3e-3), "no more noise than needed"


# --- known answers ------------------------------------------------------------------------------------------------


def regression_rows(n_rows=300, size=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, size)) / math.sqrt(size)
    return X, np.clip(0.3 + X @ np.linspace(-0.5, 0.7, size) + 0.1 * rng.standard_t(3, size=n_rows), -1, 1)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_noise_it_is_scikit_learns_model(size):
    X, y = regression_rows(size=size)
    label = (y > 0.35).astype(int)
    ours = model_of("log_loss", epsilon=math.inf, max_score=100.0).fit(X, label)
    theirs = LogisticRegression(C=1e10, tol=1e-12, max_iter=10_000).fit(X, label)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)
    ours = model_of("absolute_error", epsilon=math.inf, max_score=100.0).fit(X, y)
    theirs = QuantileRegressor(alpha=0.0, quantile=0.5).fit(X, y)
    # Predictions are within the range of the targets.
    cost = [np.abs(np.clip(model.predict(X), y.min(), y.max()) - y).sum() for model in (ours, theirs)]
    assert cost[0] == pytest.approx(cost[1], rel=1e-9)


@every_name
@pytest.mark.parametrize("reach", [0.3, 1.0])
def test_without_noise_it_is_the_minimiser_on_the_ball(name, reach):
    # By another route: SLSQP, with the ball as a constraint that binds.
    X, y = regression_rows(200)
    if name == "log_loss":
        y = np.where(y > 0.35, 1.0, -1.0)
    loss = LogLoss() if name == "log_loss" else AbsoluteError()
    w = minimiser_on_ball(LossSum(X, y, loss, reach), reach)

    def objective(w):
        return float(loss.cost(X @ w, y).sum())

    assert np.linalg.norm(w) <= reach * (1 + 1e-9)
    ball = {"type": "ineq", "fun": lambda v: reach**2 - v @ v}
    other = optimize.minimize(objective, 0.9 * w + 0.01, constraints=ball, method="SLSQP", tol=1e-12)
    assert objective(w) <= objective(other.x * min(1, reach / np.linalg.norm(other.x))) * (1 + 1e-7)


@each_loss
def test_slopes_and_majorants(loss):
    rng = np.random.default_rng(1)
    z, target = rng.uniform(-3, 3, 500), rng.choice(targets_for(loss), 500)
    value, slope = loss.cost_and_slope(z, target)
    np.testing.assert_allclose(value, loss.cost(z, target), rtol=1e-14, atol=1e-15)
    step = 1e-6
    numeric = (loss.cost(z + step, target) - loss.cost(z - step, target)) / (2 * step)
    away = np.abs(z - target) > 1e-3
    np.testing.assert_allclose(slope[away], numeric[away], atol=1e-6)
    for other in (-2.5, 0.0, 1.3):
        tangent = value + slope * (other - z)
        cost = loss.cost(np.full_like(z, other), target)
        assert np.all(tangent <= cost + 1e-12)
        above = tangent + loss.majorant(z, target) * (other - z) ** 2 / 2
        assert np.all(above[away] >= cost[away] - 1e-9)
    assert np.all(loss.bend(z, target) >= 0)


@each_loss
def test_sums_do_not_depend_on_the_frame(loss):
    rng = np.random.default_rng(1)
    X, u = rng.normal(size=(50, 3)) / 3, rng.choice(targets_for(loss), 50)
    total, w = LossSum(X, u, loss, 2.0), rng.normal(size=(7, 3))
    np.testing.assert_allclose(total.frame.T @ total.frame, np.eye(3), atol=1e-12)
    expected = [loss.cost(X @ row, u).sum() for row in w]
    np.testing.assert_allclose(total.values(w @ total.frame), expected, rtol=1e-12)
    values, gradients = total.slopes(w @ total.frame)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    gradient = [X.T @ loss.cost_and_slope(X @ row, u)[1] for row in w]
    np.testing.assert_allclose(gradients @ total.frame.T, gradient, atol=1e-10)


def test_every_loss_is_a_score_loss():
    def concrete(kind):
        # Other tests may define losses of their own.
        own = set() if isabstract(kind) or not kind.__module__.startswith("skdp.") else {kind}
        return own.union(*map(concrete, kind.__subclasses__()))

    assert {type(loss) for loss in LOSSES} == concrete(ScoreLoss)


@every_name
def test_much_epsilon_comes_close_to_the_minimiser(name):
    X, y = regression_rows()
    y = (y > 0.35).astype(int) if name == "log_loss" else y
    free = model_of(name, epsilon=math.inf).fit(X, y)
    near = model_of(name, epsilon=1e5, random_state=0).fit(X, y)
    assert near.score(X, y) == pytest.approx(free.score(X, y), abs=0.01)
    assert np.abs(near.coef_ - free.coef_).max() < 0.1


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log_loss", "absolute_error"])
@pytest.mark.parametrize(("n_features", "fit_intercept"), [(4, True), (5, False), (60, True)])
def test_more_than_four_parameters_are_refused_before_anything_is_spent(name, n_features, fit_intercept):
    accountant = BudgetAccountant(10.0)
    model = model_of(name, fit_intercept=fit_intercept, accountant=accountant)
    other = "ObjPertLogReg" if name == "log_loss" else "FunctionalMechLinReg"
    with pytest.raises(ValueError, match=rf"at most 4 parameters.*{other}"):
        model.fit(np.zeros((3, n_features)), [0, 1, 1])
    with pytest.raises(ValueError, match="at most 4 parameters"):
        model.privacy_plan(n_features=n_features)
    assert len(accountant) == 0
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
def test_three_classes_are_refused_before_anything_is_spent(classes):
    accountant = BudgetAccountant(10.0)
    model = ExpMechERM(data_norm=1.0, classes=classes, accountant=accountant)
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*ObjPertLogReg"):
        model.fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match="Only binary"):
        model.privacy_plan(n_features=2, n_classes=3)
    assert len(accountant) == 0


def test_the_loss_decides_what_kind_of_estimator_it_is():
    classifier, regressor = model_of("log_loss"), model_of("absolute_error")
    assert is_classifier(classifier)
    assert not is_regressor(classifier)
    assert is_regressor(regressor)
    assert not is_classifier(regressor)
    assert not get_tags(classifier).classifier_tags.multi_class
    assert get_tags(regressor).target_tags.required
    assert hasattr(classifier, "predict_proba")
    assert not hasattr(regressor, "predict_proba")
    assert not hasattr(regressor, "decision_function")


def test_another_loss_leaves_nothing_of_the_first():
    X, y = regression_rows()
    model = model_of("log_loss").fit(X, (y > 0).astype(int))
    assert model.coef_.shape == (1, 2)
    model.set_params(loss="absolute_error", bounds_y=(-1, 1)).fit(X, y)
    assert model.coef_.shape == (2,)
    assert isinstance(model.intercept_, float)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")


@every_name
def test_the_release_is_bounded_range_and_its_plan_says_so(name):
    plan = model_of(name, epsilon=0.7, delta=1e-5).privacy_plan(n_features=2)
    release = plan.releases[-1]
    assert release.mechanism.norm == "range"
    assert isinstance(plan.events[-1], BoundedRangeEvent)
    assert plan.events[-1].epsilon == pytest.approx(0.7 * release.share)
    assert sum(event.epsilon for event in plan.events) <= 0.7
    assert (plan.epsilon, plan.delta) == (0.7, 1e-5)
    assert (release.share == 1) == (len(plan.releases) == 1) == (name == "log_loss")


@pytest.mark.parametrize(
    ("name", "most", "spread"),
    [
        ("log_loss", None, 4.0),
        ("log_loss", 1.5, 1.5),
        ("absolute_error", None, 4.0),
        ("absolute_error", 0.5, 1.0),
    ],
)
def test_sensitivity_in_numbers(name, most, spread):
    release = model_of(name, max_score=most).privacy_plan(n_features=1).releases[-1]
    assert release.sensitivity == pytest.approx(spread, rel=1e-12)


def test_targets_are_in_units_of_y(monkeypatch):
    # The draw may depend on the last bits of the losses. Therefore one point is handed on. The range of the targets is
    # that of the bounds.
    X, y = regression_rows()
    monkeypatch.setattr(TargetRange, "located", lambda self, session, y, targets, centred: Located(targets, 0, 0, 1))
    losses, point = [], np.array([0.3, -0.2, 0.1])
    monkeypatch.setattr(ReleaseSession, "release", lambda session, label, value: losses.append(value) or point)
    ball = np.random.default_rng(0).uniform(-1, 1, size=(50, 3))
    for name in REGRESSION:
        small = model_of(name).fit(X, y)
        large = model_of(name, bounds_y=(300.0, 500.0)).fit(X, 100 * y + 400)
        first, second = (total.values(ball @ total.frame) for total in losses[-2:])
        np.testing.assert_allclose(second, first, rtol=1e-9)
        assert small.privacy_.releases[-1].mechanism == large.privacy_.releases[-1].mechanism
        np.testing.assert_allclose(large.coef_, 100 * small.coef_, rtol=1e-9)
        assert large.intercept_ == pytest.approx(100 * small.intercept_ + 400)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("data_norm", [1e-100, 1.0, 1e100])
def test_extreme_parameters_still_fit(epsilon, data_norm):
    X, y = regression_rows(40)
    for name in ("log_loss", "absolute_error"):
        model = model_of(name, epsilon=epsilon, data_norm=data_norm)
        model.fit(X * data_norm, (y > 0).astype(int) if name == "log_loss" else y)
        assert np.all(np.isfinite(model.predict(X)))


@every_name
def test_underflow_is_not_heard_of(name):
    X, y = regression_rows(30)
    X[0] = 1e-200
    y = (y > 0).astype(int) if name == "log_loss" else y
    with np.errstate(all="raise"):
        model_of(name, epsilon=50.0, max_score=100.0, data_norm=1e-3).fit(X, y)


NAN, INF = float("nan"), float("inf")

BAD_PARAMETERS = [
    *[("loss", value, ValueError) for value in ("hinge", None, 3)],
    *[("data_norm", value, ValueError) for value in (None, 0, -1, NAN)],
    *[("bounds_y", value, ValueError) for value in (None, (1, 0), ((0, 0), (1, 1)), 3)],
    *[("max_score", value, ValueError) for value in (0, -1, 0.01, 1e6, NAN, INF)],
    *[("max_score", value, TypeError) for value in ("auto", True)],
    *[("fit_intercept", value, TypeError) for value in (None, "yes", 1)],
]


@pytest.mark.parametrize(("name", "value", "error"), BAD_PARAMETERS, ids=str)
def test_bad_parameter_is_named_and_costs_nothing(name, value, error):
    accountant = BudgetAccountant(10.0)
    model = model_of("absolute_error", accountant=accountant).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(*regression_rows(20))
    with pytest.raises(error, match=name):
        model.privacy_plan(n_features=2)
    assert len(accountant) == 0


@every_name
def test_a_model_without_a_fit_says_so(name):
    X, y = regression_rows(20)
    for ask in (lambda model: model.score(X, y), lambda model: model.predict(X)):
        with pytest.raises(NotFittedError):
            ask(model_of(name))


def test_clone_keeps_everything():
    model = model_of("absolute_error", max_score=2.0)
    assert clone(model).get_params() == model.get_params()


def test_accuracy_on_two_columns_of_breast_cancer():
    # By public bounds of the worst texture and the worst concave points; .897 on average of held-out records.
    X, y = load_breast_cancer(return_X_y=True)
    X = np.clip(X[:, [21, 27]] / [25, 0.15] - 1, -1, 1)
    scores = [
        ExpMechERM(epsilon=1.0, data_norm=2**0.5, classes=[0, 1], random_state=i).fit(X[::2], y[::2]).score(X, y)
        for i in range(10)
    ]
    assert np.mean(scores) > 0.84
