"""One budget over a pipeline: what each step gets, that the whole is not exceeded, and what cannot be counted."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import BudgetAccountant, FunctionalMechLogReg, ObjPertLogReg, OutputPertLogReg, allocate
from skdp.accounting import Budget
from skdp.exceptions import BudgetError, PrivacyAssumptionWarning
from skdp.model_selection import DPGridSearchCV
from skdp.model_selection._allocation import nine_digits
from skdp.preprocessing import DPQuantileBinner, NormClipper
from skdp.tree import DPRandomTree
from tests.linear_model.data import blobs

DELTA = 1e-5

# Searches choose by the data, and that is what the warning says; its own tests catch it.
pytestmark = pytest.mark.filterwarnings("ignore:not private, and a function of the data")


def objective(**parameters):
    return ObjPertLogReg(data_norm=3.0, **{"classes": [0, 1], **parameters})


def output(**parameters):
    return OutputPertLogReg(data_norm=3.0, **{"classes": [0, 1], **parameters})


class PrivateTransformer(BaseEstimator):
    """A step of another library: it has the three parameters, and charges by hand."""

    def __init__(self, epsilon=1.0, delta=0.0, accountant=None):
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant

    def fit(self, X, y=None):
        if self.accountant is not None:
            self.accountant.spend(self.epsilon, self.delta, label="transformer")
        return self

    def transform(self, X):
        return X


def pair(**parameters):
    return VotingClassifier([("a", objective(**parameters)), ("b", output(**parameters))])


@pytest.mark.parametrize("rule", ["auto", "basic", "gdp", "rdp"])
@pytest.mark.parametrize("weights", [None, {"a": 3}, {"a": 0.1, "b": 0.2}])
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_the_whole_is_charged_and_nearly_all_of_it_is_used(rule, weights, delta):
    accountant = BudgetAccountant(1.0, delta, composition=rule)
    model = pair()
    allocation = allocate(model, 1.0, delta, weights, accountant)
    model.fit(*blobs())
    assert len(accountant) == 2
    total = accountant.total()
    assert total.epsilon <= 1.0
    assert total.delta <= delta
    assert accountant.remaining().epsilon < 0.01
    for name in "ab":
        step = model.get_params()[name]
        assert (step.epsilon, step.delta) == allocation[name]
        assert step.accountant is accountant


@pytest.mark.parametrize("rule", [None, "auto", "basic", "gdp", "rdp"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_single_step_gets_all_of_it(rule, wrapped):
    accountant = None if rule is None else BudgetAccountant(3.0, DELTA, composition=rule)
    model = make_pipeline(Normalizer(), objective()) if wrapped else objective()
    allocation = allocate(model, 1.0, DELTA, accountant=accountant)
    assert list(allocation.values()) == [Budget(1.0, DELTA)]
    assert "add up" not in repr(allocation)
    if accountant is not None:
        # As without `allocate`, nothing is decided yet.
        assert accountant.composition == rule
        model.fit(*blobs())
        assert len(accountant) == 1


def test_epsilons_that_add_up_to_more_are_explained():
    assert "add up to more than the total" in repr(allocate(pair(), 1.0, DELTA))
    assert "add up" not in repr(allocate(pair(), 1.0))


def test_without_delta_epsilon_is_split_in_proportion():
    model = pair()
    allocation = allocate(model, 1.0, weights={"a": 1, "b": 3})
    assert dict(allocation) == {"a": Budget(0.25, 0.0), "b": Budget(0.75, 0.0)}
    assert model.get_params()["b__epsilon"] == 0.75
    assert model.get_params()["b__accountant"] is None


def test_portions_that_are_no_decimal_numbers_do_not_exceed_the_whole():
    model = VotingClassifier([(name, objective()) for name in "abc"])
    for epsilon in (1.0, 0.1, 0.7, 3.3):
        accountant = BudgetAccountant(epsilon)
        allocation = allocate(model, epsilon, accountant=accountant)
        for _ in range(3):
            accountant.spend(allocation["a"].epsilon)
        assert accountant.remaining().epsilon < 1e-12


def test_with_delta_each_step_gets_more_than_its_proportional_part():
    allocation = allocate(pair(), 1.0, DELTA)
    assert min(budget.epsilon for budget in allocation.values()) > 0.6
    # The broken twin: handing each step the whole would be refused.
    accountant = BudgetAccountant(1.0, DELTA)
    model = pair(epsilon=1.0, delta=DELTA, accountant=accountant)
    with pytest.raises(BudgetError):
        model.fit(*blobs())


@pytest.mark.parametrize("rule", ["auto", "gdp", "rdp", "basic"])
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
@pytest.mark.parametrize("loss", ["log_loss", "huber"])
def test_what_is_planned_is_what_is_charged(rule, classes, loss):
    # The cost that allocate counts with is the one that fits have, whatever the number of columns.
    for make in (objective, output):
        for n_features in (1, 40):
            model = make(classes=classes, loss=loss, epsilon=0.5, delta=DELTA)
            accountant = BudgetAccountant(100.0, 0.1, composition="basic")
            X = np.zeros((3, n_features))
            clone(model).set_params(accountant=accountant).fit(X, [0, 1, 0])
            assert accountant.records[0].cost == model._fixed_cost()


def test_nested_pipelines():
    model = Pipeline(
        [
            (
                "columns",
                ColumnTransformer(
                    [
                        ("left", PrivateTransformer(), [0, 1]),
                        ("right", Pipeline([("norm", Normalizer()), ("inner", PrivateTransformer())]), [2, 3]),
                        ("none", "passthrough", [4]),
                    ],
                    remainder="drop",
                ),
            ),
            ("union", FeatureUnion([("one", PrivateTransformer()), ("two", FunctionTransformer())])),
            ("skip", "passthrough"),
            ("clf", objective()),
        ]
    )
    accountant = BudgetAccountant(2.0)
    names = ["columns__left", "columns__right__inner", "union__one", "clf"]
    allocation = allocate(model, 2.0, weights={"clf": 5}, accountant=accountant)
    assert list(allocation) == names
    assert [allocation[name].epsilon for name in names] == [0.25, 0.25, 0.25, 1.25]
    assert allocation.not_private == ()
    model.fit(*blobs())
    assert len(accountant) == 4
    assert accountant.remaining() == Budget(0.0, 0.0)


def test_a_selection_by_a_private_model_is_charged_once():
    accountant = BudgetAccountant(50.0)
    model = make_pipeline(SelectFromModel(objective()), objective())
    assert list(allocate(model, 50.0, accountant=accountant)) == ["selectfrommodel__estimator", "objpertlogreg"]
    X, y = blobs(n_rows=200)
    model.fit(X, y)
    assert len(accountant) == 2
    assert accountant.remaining().epsilon < 1e-9


def test_a_selection_whose_function_sees_all_rows_is_not_private():
    model = make_pipeline(SelectFromModel(objective(), max_features=lambda X: len(X) // 2), objective())
    with pytest.warns(PrivacyAssumptionWarning):
        allocation = allocate(model, 1.0)
    assert [name.rpartition("__")[2] for name in allocation.not_private] == ["max_features"]


def test_frozen_and_prefitted_steps_cost_nothing():
    fitted = objective().fit(*blobs())
    model = (
        make_pipeline(FrozenEstimator(fitted), objective())
        if False
        else VotingClassifier([("done", FrozenEstimator(fitted)), ("new", objective())])
    )
    assert list(allocate(model, 1.0)) == ["new"]
    assert fitted.epsilon == 1.0
    with pytest.raises(ValueError, match="no private step"):
        allocate(SelectFromModel(fitted, prefit=True), 0.5)
    assert fitted.epsilon == 1.0


def test_the_estimator_itself_may_be_the_step():
    model = objective()
    allocation = allocate(model, 0.5, 1e-6)
    assert (model.epsilon, model.delta) == (0.5, 1e-6)
    assert "ObjPertLogReg  epsilon=0.5" in repr(allocation)
    allocate(model, math.inf)
    assert model.epsilon == math.inf


def test_steps_that_learn_without_privacy_are_named():
    model = make_pipeline(StandardScaler(), Normalizer(), objective())
    with pytest.warns(PrivacyAssumptionWarning, match="standardscaler") as caught:
        allocation = allocate(model, 1.0)
    assert "normalizer" not in str(caught[0].message)
    assert allocation.not_private == ("standardscaler",)
    assert "standardscaler  depends on the data, and is not private" in repr(allocation)


def test_without_private_steps_there_is_nothing_to_split():
    for model in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression()), Normalizer()):
        with pytest.raises(ValueError, match="no private step"):
            allocate(model, 1.0)
    with pytest.raises(ValueError, match="no private step"):
        allocate(TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler()), 1.0)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (OneVsRestClassifier, "OneVsRestClassifier"),
        (lambda e: make_pipeline(OneVsRestClassifier(e)), "OneVsRestClassifier"),
        (lambda e: StackingClassifier([("x", e)], cv=3), "StackingClassifier"),
        (lambda e: CalibratedClassifierCV(e, cv=3), "CalibratedClassifierCV"),
    ],
)
def test_what_may_fit_a_part_several_times_is_refused(make, name):
    model = objective(epsilon=0.125)
    with pytest.raises(ValueError, match=f"^{name} is not known to fit each of its parts once.*yourself"):
        allocate(make(model), 1.0)
    assert model.epsilon == 0.125


@pytest.mark.parametrize("outer", [BaggingClassifier, AdaBoostClassifier, AdaBoostRegressor, RANSACRegressor])
def test_bagging_and_boosting_are_refused_and_say_why(outer):
    with pytest.raises(ValueError, match=rf"^{outer.__name__} seeds .*Use PATEClassifier"):
        allocate(outer(objective()), 1.0)


@pytest.mark.parametrize("outer", [GridSearchCV, RandomizedSearchCV])
def test_searches_by_exact_scores_are_refused_and_named(outer):
    search = outer(make_pipeline(Normalizer(), objective()), {"objpertlogreg__C": [0.1, 1.0]}, cv=2)
    with pytest.raises(ValueError, match=f"^{outer.__name__} compares candidates by exact scores.*DPGridSearchCV"):
        allocate(search, 1.0)
    # A pipeline around such a search can still be fitted, and each fit is charged.
    accountant = BudgetAccountant(100.0)
    search.set_params(estimator__objpertlogreg__accountant=accountant)
    if outer is RandomizedSearchCV:
        search.set_params(n_iter=2)
    with pytest.warns(PrivacyAssumptionWarning, match="cross-validation of scikit-learn"):
        make_pipeline(Normalizer(), search).fit(*blobs())
    assert len(accountant) == 5


def test_one_object_at_two_places_is_refused():
    model = objective()
    with pytest.raises(ValueError, match="two places"):
        allocate(VotingClassifier([("a", model), ("b", model)]), 1.0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"c": 1}, "name no private step: c"),
        ({"a": 0}, "positive"),
        ({"a": -1}, "positive"),
        ({"a": math.nan}, "posit"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        allocate(pair(), 1.0, weights=weights)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_bad_budgets(bad):
    with pytest.raises(ValueError, match="epsilon"):
        allocate(pair(), bad)
    with pytest.raises(ValueError, match="too little"):
        allocate(pair(), 2.0**-20)
    with pytest.raises(TypeError, match="accountant"):
        allocate(pair(), 1.0, accountant=1.0)


@pytest.mark.parametrize("rule", ["auto", "basic", "gdp", "rdp"])
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_nothing_is_set_when_the_accountant_has_too_little(rule, delta):
    accountant = BudgetAccountant(1.0, delta, composition=rule)
    accountant.spend(0.5)
    model = pair(epsilon=0.125)
    with pytest.raises(BudgetError, match="remains"):
        allocate(model, 1.0, delta, accountant=accountant)
    for name in "ab":
        step = model.get_params()[name]
        assert (step.epsilon, step.delta, step.accountant) == (0.125, 0.0, None)


@pytest.mark.parametrize("delta", [DELTA, 1e-6])
def test_an_open_accountant_counts_what_was_given(delta):
    # It settles on a rule at the first fit, and the split has to be the one that this rule counts.
    accountant = BudgetAccountant(3.0, delta)
    model = VotingClassifier([(name, objective()) for name in "abcdefg"])
    allocate(model, 2.0, delta, accountant=accountant)
    model.fit(*blobs())
    assert len(accountant) == 7
    assert 1.9 < accountant.total().epsilon <= 2.0


@pytest.mark.parametrize("rule", ["basic", "gdp", "rdp"])
def test_part_of_a_larger_budget(rule):
    accountant = BudgetAccountant(5.0, 1e-4, composition=rule)
    for _ in range(2):
        model = pair()
        allocate(model, 1.0, DELTA, accountant=accountant)
        model.fit(*blobs())
    assert accountant.total().epsilon <= 2.0 + 1e-9 if rule == "basic" else accountant.total().epsilon < 5.0
    assert len(accountant) == 4


def test_parts_of_the_records_have_budgets_to_split():
    accountant = BudgetAccountant(3.0, DELTA, composition="gdp")
    accountant.charge(objective(epsilon=0.1, delta=1e-6)._fixed_cost())
    X, y = blobs()
    with accountant.parallel(by=y, parts=[0, 1]) as parts:
        for part in parts:
            model = pair()
            allocate(model, 1.0, DELTA, accountant=part.accountant)
            # Both models see one label only; what counts is what they are charged.
            for name in "ab":
                model.get_params()[name].fit(*part.take(X, y))
    assert len(accountant) == 5
    assert accountant.total().epsilon < 1.2


@pytest.mark.parametrize("rule", ["auto", "gdp", "rdp"])
def test_an_unknown_cost_needs_basic_composition(rule):
    model = make_pipeline(PrivateTransformer(), objective())
    with pytest.raises(ValueError, match="composition='basic'"):
        allocate(model, 1.0, DELTA, accountant=BudgetAccountant(1.0, DELTA, composition=rule))
    accountant = BudgetAccountant(1.0, DELTA, composition="basic")
    allocation = allocate(model, 1.0, DELTA, accountant=accountant)
    assert set(allocation.values()) == {Budget(0.5, 5e-6)}
    model.fit(*blobs())
    assert accountant.remaining() == Budget(0.0, 0.0)
    # Without an accountant the proportional split is a guarantee as well.
    assert allocate(clone(model), 1.0, DELTA)["privatetransformer"] == Budget(0.5, 5e-6)


def test_classes_that_are_not_declared_have_an_unknown_cost():
    model = pair(classes=None)
    with pytest.raises(ValueError, match="classes"):
        allocate(model, 1.0, DELTA, accountant=BudgetAccountant(1.0, DELTA, composition="gdp"))


def test_a_declared_plan_leaves_nothing_to_split():
    plan = [objective(delta=DELTA).privacy_plan(n_features=2)]
    with pytest.raises(ValueError, match="plan"):
        allocate(pair(), 1.0, DELTA, accountant=BudgetAccountant(1.0, DELTA, plan=plan))


def test_it_works_inside_cross_validation():
    accountant = BudgetAccountant(3.0, DELTA)
    model = make_pipeline(Normalizer(), objective())
    allocate(model, 0.6, 1e-6, accountant=accountant)
    cross_val_score(model, *blobs(), cv=3)
    assert len(accountant) == 3


# --- what a search must not set ---------------------------------------------------------------------------------------


# --- what depends on the data besides the private steps ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda e: TransformedTargetRegressor(transformer=e), ("regressor",)),
        (lambda e: make_pipeline(Normalizer(), e), ()),
        (lambda e: VotingClassifier([("x", e), ("y", LogisticRegression())]), ("y", "label encoder")),
        (lambda e: VotingClassifier([("x", e)]), ("label encoder",)),
        (lambda e: make_pipeline(Normalizer(), VotingClassifier([("x", e)])), ("votingclassifier__label encoder",)),
        # It says that it needs no fit, and keeps the rows.
        (lambda e: FeatureUnion([("x", e), ("y", GaussianProcessRegressor())]), ("y",)),
        (lambda e: FeatureUnion([("x", e), ("y", GaussianProcessClassifier())]), ("y",)),
    ],
)
def test_everything_else_that_learns_from_the_data_is_named(make, expected):
    model = make(objective())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        allocation = allocate(model, 1.0)
    assert allocation.not_private == expected
    assert [warning.category for warning in caught] == [PrivacyAssumptionWarning] * bool(expected)
    assert all(name in str(warning.message) for warning in caught for name in expected)


def test_a_label_that_one_record_brings_renumbers_the_others():
    # Why the vote is named: 400 labels change for the part when one record comes.
    seen = []

    class Spy(ObjPertLogReg):
        def fit(self, X, y):
            seen.append(np.array(y))
            return super().fit(X, y)

    X, y = blobs()
    for rows, labels in [(X, 2 * y), (np.vstack([X, X[:1]]), np.append(2 * y, 1))]:
        VotingClassifier([("x", Spy(data_norm=3.0, classes=[0, 1, 2]))]).fit(rows, labels)
    assert np.count_nonzero(seen[0] != seen[1][:-1]) == np.count_nonzero(y) > 100


def test_as_an_error_the_warning_comes_before_anything_is_set():
    accountant = BudgetAccountant(1.0, DELTA)
    model = make_pipeline(StandardScaler(), objective(epsilon=0.125))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyAssumptionWarning):
            allocate(model, 1.0, DELTA, accountant=accountant)
    assert model[-1].epsilon == 0.125
    assert model[-1].accountant is None
    assert accountant.composition == "auto"


# --- the rule that was split by is the one that counts ----------------------------------------------------------------


@pytest.mark.parametrize("ceiling", [(1.0, DELTA), (2.0, DELTA), (20.0, 1e-3)])
@pytest.mark.parametrize("rule", ["auto", "gdp", "rdp"])
def test_an_empty_accountant_with_a_larger_ceiling_counts_no_more(ceiling, rule):
    # Rényi divergences are counted at the order of its ceiling.
    accountant = BudgetAccountant(*ceiling, composition=rule)
    model = make_pipeline(Normalizer(), VotingClassifier([(name, objective(C=0.1)) for name in "abc"]))
    allocate(model, 1.0, DELTA, accountant=accountant)
    assert accountant.composition in ("gdp", "rdp", "basic", "mixed")
    model.fit(*blobs())
    assert len(accountant) == 3
    assert accountant.total().epsilon <= 1.0


def test_an_open_accountant_settles_before_anything_else_can_be_charged():
    accountant = BudgetAccountant(1.0, DELTA)
    model = VotingClassifier([(name, objective()) for name in "abc"])
    allocate(model, 1.0, DELTA, accountant=accountant)
    rule = accountant.composition
    assert rule != "auto"
    model.fit(*blobs())
    assert accountant.total().epsilon <= 1.0


def test_a_smaller_accountant_is_no_reason_for_smaller_steps():
    for rule in ("auto", "basic", "gdp", "rdp"):
        accountant = BudgetAccountant(0.5, DELTA, composition=rule)
        with pytest.raises(BudgetError, match="does not admit"):
            allocate(pair(), 1.0, DELTA, accountant=accountant)
        assert accountant.composition == rule


def test_steps_too_small_to_be_numbers_are_refused():
    model = VotingClassifier([(f"{k}", objective()) for k in range(50)])
    with pytest.raises(ValueError, match="too little"):
        allocate(model, 1e-5, DELTA, accountant=BudgetAccountant(1e-3, DELTA))


# --- encoders with public categories ----------------------------------------------------------------------------------

PUBLIC_ENCODERS = [
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="infrequent_if_exist"),
    OrdinalEncoder(categories=[["a", "b"]], handle_unknown="use_encoded_value", unknown_value=-1),
]

LEARNING_ENCODERS = [
    OneHotEncoder(),
    OneHotEncoder(categories=[["a", "b"]]),
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="infrequent_if_exist", min_frequency=10),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="infrequent_if_exist", max_categories=2),
    # These warn of values that are not in the list.
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="warn"),
    OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", drop="first"),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
]


@pytest.mark.parametrize("encoder", PUBLIC_ENCODERS + LEARNING_ENCODERS, ids=str)
def test_encoders_learn_nothing_if_their_categories_are_given_and_others_pass(encoder):
    model = make_pipeline(encoder, objective())
    name = type(encoder).__name__.lower()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyAssumptionWarning)
        assert allocate(model, 1.0, DELTA).not_private == (() if encoder in PUBLIC_ENCODERS else (name,))


@pytest.mark.parametrize(
    ("imputer", "learns"),
    [
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), False),
        # A column without values is dropped, and one record has the value that keeps it.
        (SimpleImputer(strategy="constant", fill_value=0.0), True),
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True, add_indicator=True), True),
        (SimpleImputer(strategy="median", keep_empty_features=True), True),
        (SimpleImputer(), True),
    ],
    ids=str,
)
def test_constants_for_what_is_missing_are_not_learned(imputer, learns):
    model = make_pipeline(imputer, objective())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyAssumptionWarning)
        assert allocate(model, 1.0, DELTA).not_private == (("simpleimputer",) if learns else ())


KNOTS = np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])

#: Steps, settings with which they learn from rows, and what the warning says to do; None if they never learn.
COLUMNS_ONLY = [
    (PolynomialFeatures(), None, None),
    (PolynomialCountSketch(random_state=0), None, None),
    (SkewedChi2Sampler(skewedness=9.0, random_state=0), None, None),
    (RBFSampler(random_state=0), {"gamma": "scale"}, "gamma to a number"),
    (GaussianRandomProjection(2, random_state=0), {"n_components": "auto"}, "'auto' counts the rows"),
    (SparseRandomProjection(2, random_state=0), {"n_components": "auto"}, "'auto' counts the rows"),
    (MissingIndicator(features="all"), {"features": "missing-only"}, "features='all'"),
    (SplineTransformer(knots=KNOTS, degree=1), {"knots": "quantile"}, "knots to an array"),
    (TfidfTransformer(use_idf=False), {"use_idf": True}, "use_idf=False"),
]


@pytest.mark.parametrize(("step", "learning", "advice"), COLUMNS_ONLY, ids=lambda value: type(value).__name__)
def test_steps_that_learn_the_number_of_columns_only_are_not_named(step, learning, advice):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyAssumptionWarning)
        assert allocate(make_pipeline(step, objective()), 1.0, DELTA).not_private == ()
    # What it keeps of some rows is what it keeps of others, of another number.
    rows = [np.arange(18.0).reshape(9, 2), np.array([[0.5, np.pi], [3.0, 4.0], [1e3, -8.0]])]
    kept = [pickle.dumps(clone(step).fit(X)) for X in rows]
    assert kept[0] == kept[1]
    if learning is not None:
        name = type(step).__name__
        with pytest.warns(PrivacyAssumptionWarning, match=rf"public\. Instead: {name}: .*{advice}"):
            allocated = allocate(make_pipeline(clone(step).set_params(**learning), objective()), 1.0, DELTA)
        assert allocated.not_private == (name.lower(),)


@pytest.mark.parametrize(
    ("step", "learns"),
    [
        (CountVectorizer(vocabulary=["a", "b"]), False),
        (CountVectorizer(), True),
        (TfidfVectorizer(vocabulary=["a", "b"], use_idf=False), False),
        (TfidfVectorizer(vocabulary=["a", "b"]), True),
        (TfidfVectorizer(use_idf=False), True),
    ],
)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyAssumptionWarning")
def test_vocabularies_that_are_given_are_not_learned(step, learns):
    assert bool(allocate(make_pipeline(step, objective()), 1.0, DELTA).not_private) == learns


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        (OrdinalEncoder(), "OrdinalEncoder: set categories, and handle_unknown='use_encoded_value'"),
        (OrdinalEncoder(categories=[[0]]), "handle_unknown='use_encoded_value' with unknown_value"),
        (OneHotEncoder(), "OneHotEncoder: set categories, and handle_unknown='ignore'"),
        (SimpleImputer(strategy="constant"), "SimpleImputer: set strategy='constant', keep_empty_features=True"),
        (StandardScaler(), "StandardScaler: use DPStandardScaler, or BoundsScaler"),
    ],
)
def test_the_option_that_would_do_is_named(step, advice):
    with pytest.warns(PrivacyAssumptionWarning, match=advice):
        allocate(make_pipeline(step, objective()), 1.0, DELTA)


def test_a_given_encoder_says_nothing_about_the_rows():
    frame = np.array([["a"], ["b"], ["a"]], dtype=object)
    other = np.array([["b"], ["patient-7731"]], dtype=object)
    for encoder in PUBLIC_ENCODERS:
        one, two = clone(encoder).fit(frame), clone(encoder).fit(other)
        assert {k: str(v) for k, v in vars(one).items()} == {k: str(v) for k, v in vars(two).items()}


@pytest.mark.parametrize("make", [objective, output, lambda: FunctionalMechLogReg(bounds=(-3, 3), classes=[0, 1])])
def test_an_open_accountant_settles_on_a_rule_that_leaves_much(make):
    # Basic composition would use up delta with the first of these.
    accountant = BudgetAccountant(3.0, DELTA)
    for _ in range(4):
        model = make_pipeline(Normalizer(), make())
        allocate(model, 0.8, DELTA, accountant=accountant)
        model.fit(*blobs())
    assert accountant.composition in ("gdp", "rdp", "mixed")
    assert accountant.total().epsilon < 3.0


def test_epsilons_of_nine_digits_are_rounded_down():
    # Rounding the second of these up once made a search use 0.2 % less of its budget.
    for value in (1.7, 1.8291568272415333, 0.123456789999, 9.99999999999, 1e-6, 123456.7891):
        short = nine_digits(value)
        assert value * (1 - 1e-8) <= short <= value
        assert float(f"{short:.9g}") == short


@pytest.mark.parametrize("nested", [False, True])
def test_a_normalizer_before_bins_is_named(nested):
    def build(first, last):
        inner = make_pipeline(first, last)
        return make_pipeline(inner) if nested else inner

    binner = DPQuantileBinner(4, bounds=(-1.0, 1.0), encode="ordinal")
    for last in (binner, DPRandomTree(bounds=(-1.0, 1.0), classes=[0, 1])):
        with pytest.warns(PrivacyAssumptionWarning, match="normalizer.*NormClipper"):
            allocate(build(Normalizer(), last), 1.0)
        # The filter of warnings makes an error of any.
        allocate(build(NormClipper(1.0), last), 1.0)
    allocate(build(Normalizer(), objective()), 1.0, 1e-6)
    allocate(DPGridSearchCV(make_pipeline(Normalizer(), DPRandomTree(bounds=(-1.0, 1.0), classes=[0, 1])), {}), 1.0)


@pytest.mark.parametrize(
    ("step", "exact"),
    [
        (RBFSampler(gamma=0.1, random_state=0), False),
        (SkewedChi2Sampler(random_state=0), False),
        (GaussianRandomProjection(2, random_state=0), False),
        (PolynomialFeatures(), True),
    ],
)
def test_products_of_matrices_before_bins_are_named(step, exact):
    tree = DPRandomTree(bounds=(-1.0, 1.0), classes=[0, 1])
    allocate(make_pipeline(step, objective()), 1.0, DELTA)
    if exact:
        allocate(make_pipeline(step, tree), 1.0)
        return
    with pytest.warns(PrivacyAssumptionWarning, match=f"{type(step).__name__.lower()}.*the number of rows"):
        allocate(make_pipeline(step, tree), 1.0)
