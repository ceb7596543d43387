"""What may stand around private steps in a search: nothing that looks at other rows, or fails on one."""

import pickle

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from skdp import BudgetAccountant, DPGridSearchCV, DPSGDClassifier, ObjPertLogReg, make_private_pipeline
from skdp.cluster import DPKMeans, SampleAggKMeans
from skdp.decomposition import DPPCA, ExpMechPCA
from skdp.exceptions import CertificateError, NotEnoughDataError
from skdp.model_selection import private_cross_val_score
from skdp.model_selection._stateless import FiniteRows, WithoutRecords, restore_steps, without_records
from skdp.preprocessing import BoundsScaler, DPQuantileBinner, DPStandardScaler, NormClipper, PublicBinner
from tests.linear_model.data import blobs
from tests.model_selection.stubs import NoisyCount, records

STRATEGIES = ["holdout", "repeat"]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def objective(**parameters):
    return ObjPertLogReg(data_norm=3.0, classes=[0, 1], **parameters)


def refused(model, message):
    accountant = BudgetAccountant(1.0)
    for call in (
        lambda: DPGridSearchCV(model, {}, accountant=accountant).fit(*blobs()),
        lambda: private_cross_val_score(model, *blobs(), accountant=accountant),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert len(accountant) == 0


class Subclass(Normalizer):
    """A class that says nothing new, and may do anything."""


@pytest.mark.parametrize(
    "make",
    [
        lambda e: VotingClassifier([("x", e)]),
        lambda e: StackingClassifier([("x", e)], e, cv=2),
        lambda e: CalibratedClassifierCV(e, cv=2),
        lambda e: BaggingClassifier(e),
        lambda e: GridSearchCV(e, {"C": [0.1]}, cv=PredefinedSplit([0, 1])),
        lambda e: FrozenEstimator(e),
        lambda e: GaussianProcessClassifier(),
        lambda e: make_pipeline(FunctionTransformer(np.log), e),
        lambda e: make_pipeline(FunctionTransformer(), e),
        lambda e: make_pipeline(AdditiveChi2Sampler(), e),
        lambda e: make_pipeline(HashingVectorizer(), e),
        lambda e: make_pipeline(Subclass(), e),
        lambda e: make_pipeline(make_union(Normalizer(), FunctionTransformer()), e),
        lambda e: make_pipeline(ColumnTransformer([("n", Subclass(), [0])], sparse_threshold=0), e),
    ],
)
def test_other_classes_are_refused(make):
    refused(make(objective()), "not known to map each row by itself")


def test_a_refused_step_is_named_with_its_alternative():
    for step, hint in ((SimpleImputer(), "keep_empty_features=True"), (StandardScaler(), "use DPStandardScaler")):
        with pytest.raises(ValueError, match=f"Instead: {type(step).__name__}: .*{hint}"):
            make_private_pipeline(step, objective()).fit(*blobs())
    refused(make_pipeline(SimpleImputer(), objective()), "or fail on one record. A search takes")


CATEGORIES = [["a", "b"]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), "learns its categories"),
        (OneHotEncoder(categories=CATEGORIES, sparse_output=False), "learns its categories"),
        (
            OneHotEncoder(categories=CATEGORIES, handle_unknown="ignore", min_frequency=2, sparse_output=False),
            "learns its categories",
        ),
        (OrdinalEncoder(categories=CATEGORIES), "learns its categories"),
        (
            OrdinalEncoder(categories=CATEGORIES, handle_unknown="use_encoded_value", unknown_value=np.nan),
            "makes NaN",
        ),
        (OrdinalEncoder(categories=CATEGORIES, handle_unknown="use_encoded_value", unknown_value=-1), "makes NaN"),
        (ColumnTransformer([("n", Normalizer(), [0])]), "sparse_threshold=0"),
        (ColumnTransformer([("n", Normalizer(), lambda X: [0])], sparse_threshold=0), "by a function"),
        (ColumnTransformer([("n", Normalizer(), [0])], remainder=Normalizer(), sparse_threshold=0), "remainder"),
        (Pipeline([("n", Normalizer())], memory="somewhere"), "memory"),
    ],
)
def test_parameters_that_look_at_rows_are_refused(step, message):
    refused(make_pipeline(step, objective()), message)


def test_settings_are_looked_at():
    model = Pipeline([("step", Normalizer()), ("model", objective())])
    with pytest.raises(ValueError, match="step 'step', FunctionTransformer"):
        DPGridSearchCV(model, {"step": [Normalizer(), FunctionTransformer(np.log)]}).fit(*blobs())


# ---------------------------------------------------------------- each listed class, row by row

HOSTILE = np.array([[0.0, 0.0], [1e308, 1e308], [-1e308, 1e308], [5e-324, 0.0], [1e-170, -1e-170], [1e30, 3.0]])

NUMERIC = [
    BoundsScaler((-1, 1)),
    NormClipper(1.0),
    PublicBinner([-1, 0, 1]),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
    Binarizer(threshold=0.5),
    OneHotEncoder(categories=[[0.0, 1.0]] * 2, handle_unknown="ignore", sparse_output=False),
    OrdinalEncoder(
        categories=[[0.0, 1.0]] * 2, handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    ),
]

NUMERIC_ENCODERS = (OneHotEncoder, OrdinalEncoder)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", NUMERIC, ids=repr)
def test_each_is_total_and_maps_rows_by_themselves(step, dtype):
    X = np.clip(HOSTILE, -1e38, 1e38).astype(dtype) if dtype is np.float32 else HOSTILE
    with np.errstate(all="ignore"):
        whole = WithoutRecords(step).fit(X)
        together = np.asarray(whole.transform(X))
        alone = np.vstack([whole.transform(X[k : k + 1]) for k in range(len(X))])
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(together, alone)
    # What is fitted does not depend on rows, none included.
    for rows in (X[:0], X[:1], -X):
        again = WithoutRecords(step).fit(rows)
        assert pickle.dumps(again) == pickle.dumps(whole)
        assert again.transform(X[:0]).shape == (0, together.shape[1])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(again.transform(X), together)


PRIVATE = [
    DPStandardScaler(bounds=(-3.0, 3.0)),
    DPQuantileBinner(4, bounds=(-3.0, 3.0), encode="ordinal"),
    DPPCA(10, data_norm=8.0, delta=1e-6),
    ExpMechPCA(2, data_norm=8.0, center="private", whiten=True),
    DPKMeans(3, bounds=(-3.0, 3.0)),
    SampleAggKMeans(3, bounds=(-3.0, 3.0)),
]


class Scatterbrain(DPStandardScaler):
    """A private transformer of somebody else, whose rows depend on how many there are."""

    def transform(self, X):
        return super().transform(X) + len(X)


@pytest.mark.parametrize("step", [*NUMERIC, *PRIVATE, Scatterbrain(bounds=(-3.0, 3.0))], ids=repr)
def test_each_row_has_its_bits_whatever_rows_surround_it(step):
    n_columns = len(step.categories) if hasattr(step, "categories") else 64
    X = np.random.default_rng(0).normal(size=(33, n_columns))
    if isinstance(step, NUMERIC_ENCODERS):
        X = (X > 0) * 1.0
    wrapped = FiniteRows if hasattr(step, "epsilon") else WithoutRecords
    model = wrapped(step.set_params(random_state=0) if hasattr(step, "random_state") else step).fit(X)
    alone = np.vstack([model.transform(X[k : k + 1]) for k in range(33)])
    for n in range(1, 34):
        for order in "CF":
            np.testing.assert_array_equal(model.transform(np.array(X[:n], order=order)), alone[:n])


def test_a_row_keeps_its_bin_when_another_comes():
    # Its norm differs in the last bit between one row and two, in the order in which a ColumnTransformer hands rows on.
    x = np.array([[1.7409344678958798, 4.513923774739062, 4.345875423782305, 3.7813114007004276]])
    columns = ColumnTransformer([("n", Normalizer(), [0, 1, 2, 3])], sparse_threshold=0)
    steps = without_records(Pipeline([("columns", columns), ("again", Normalizer())])).fit(x)
    both = np.asfortranarray(np.vstack([x, np.ones((1, 4))]))
    np.testing.assert_array_equal(steps.transform(x)[0], steps.transform(both)[0])


MIXED = pd.DataFrame(
    {
        "a": pd.Series(["x", "y", None, "", "z" * 99, np.nan, 3, True], dtype=object),
        "b": pd.Categorical(list("xyzxyzxy")),
    }
)


@pytest.mark.parametrize("step", [
    OneHotEncoder(categories=[["x", "y"]] * 2, handle_unknown="ignore", sparse_output=False),
    OrdinalEncoder(
        categories=[["x", "y"]] * 2, handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    ),
])  # fmt: skip
def test_encoders_take_any_text(step):
    whole = WithoutRecords(step).fit(MIXED)
    together = whole.transform(MIXED)
    alone = np.vstack([whole.transform(MIXED.iloc[k : k + 1]) for k in range(len(MIXED))])
    np.testing.assert_array_equal(together, alone)
    assert whole.transform(MIXED.iloc[:0]).shape == (0, together.shape[1])
    assert np.isfinite(together).all()


def test_entries_that_an_encoder_could_fail_on_are_refused_before_the_charge():
    accountant = BudgetAccountant(1.0)
    encoder = OneHotEncoder(categories=[["x"]], handle_unknown="ignore", sparse_output=False)
    X = pd.DataFrame({"a": ["x", ["list"], "x"]})
    with pytest.raises(TypeError, match="X must hold numbers, text"):
        DPGridSearchCV(make_pipeline(encoder, objective()), {}, accountant=accountant).fit(X, [0, 1, 0])
    assert len(accountant) == 0


# ---------------------------------------------------------------- the whole


def mixed_model():
    encoder = OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("text", encoder, ["t"]),
            ("private", DPStandardScaler(bounds=(-1, 1)), ["f"]),
            ("binary", Binarizer(), ["i"]),
            ("out", "drop", ["u"]),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )
    return make_pipeline(columns, FeatureUnion([("n", Normalizer()), ("c", NormClipper(1.0))]), objective())


def mixed_rows(n_rows):
    t = ["x", "y", "other", None]
    k = np.arange(n_rows)
    X = pd.DataFrame({"t": pd.Series([t[i % 4] for i in k], dtype=object), "f": k / 100, "i": k % 3, "u": k})
    return X, k % 2


@every_strategy
@pytest.mark.parametrize("n_rows", [0, 1, 40])
def test_composed_steps(strategy, n_rows):
    X, y = mixed_rows(n_rows)
    again = {} if strategy == "repeat" else {"refit": True}
    search = DPGridSearchCV(
        mixed_model(), {"objpertlogreg__C": [0.1, 0.2]}, strategy=strategy, epsilon=4.0, random_state=1, **again
    ).fit(X, y)
    # Data without rows are data like others: the failures of fits tell nothing.
    best = search.best_estimator_
    assert len(search.predict(mixed_rows(8)[0])) == 8
    assert type(best[0].named_transformers_["text"]) is OneHotEncoder
    assert type(best[1].transformer_list[0][1]) is Normalizer
    assert b"WithoutRecords" not in pickle.dumps(search)
    # Nor does a seed stay with which noise could be subtracted.
    assert best[-1].random_state is None
    assert best[0].named_transformers_["private"].random_state is None
    assert list(search.feature_names_in_) == list("tfiu")


def test_the_steps_are_the_users_own_again():
    model = make_pipeline(Normalizer("l1"), objective(random_state=3))
    prepared = without_records(model)
    assert type(prepared[0]) is WithoutRecords
    released = restore_steps(prepared.fit(*blobs()))
    assert type(released[0]) is Normalizer
    assert released[0].n_features_in_ == 5


def test_wrong_parameters_of_steps_cost_nothing():
    accountant = BudgetAccountant(1.0)
    for model in (make_pipeline(Normalizer("zzz"), objective()), make_pipeline(Normalizer(), objective(C=-1.0))):
        for call in (
            lambda model=model: DPGridSearchCV(model, {}, accountant=accountant).fit(*blobs()),
            lambda model=model: private_cross_val_score(model, *blobs(), accountant=accountant),
        ):
            with pytest.raises(ValueError, match=r"norm|C must"):
                call()
    assert len(accountant) == 0


# ---------------------------------------------------------------- failures of fits


@every_strategy
def test_only_what_mechanisms_release_takes_a_candidate_out(strategy):
    search = DPGridSearchCV(NoisyCount(), {"fail": [True], "label": [0, 1]}, strategy=strategy)
    with pytest.raises(NotEnoughDataError):
        search.fit(*records(50))
    accountant = BudgetAccountant(1.0)
    search = DPGridSearchCV(
        NoisyCount(), {"fail": ["error"], "label": [0, 1]}, strategy=strategy, accountant=accountant
    )
    with pytest.raises(
        RuntimeError,
        match=r"a fit of the search failed with RuntimeError, which the guarantee .*\. The budget was charged",
    ) as failure:
        search.fit(*records(50))
    assert failure.value.__context__ is None
    assert len(accountant) == 1


def test_a_missing_certificate_is_an_error_as_in_a_single_fit(monkeypatch):
    class Unproved(NoisyCount):
        def fit(self, X, y):
            if len(X):
                raise CertificateError("unproved")
            return super().fit(X, y)

    with pytest.raises(CertificateError, match="unproved"):
        DPGridSearchCV(Unproved(), {"label": [0, 1]}).fit(*records(50))
    with pytest.raises(CertificateError, match="unproved"):
        private_cross_val_score(Unproved(), *records(50))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_cost_nothing(bad):
    X, y = blobs()
    X = X.copy()
    X[3, 1] = bad
    accountant = BudgetAccountant(1.0)
    for model in (objective(), make_pipeline(Normalizer(), objective())):
        with pytest.raises(ValueError, match="contains"):
            DPGridSearchCV(model, {}, accountant=accountant).fit(X, y)
        with pytest.raises(ValueError, match="contains"):
            private_cross_val_score(model, X, y, accountant=accountant)
    assert len(accountant) == 0


def test_one_row_does_not_take_a_candidate_out():
    # A row that is far off, negative and huge: both candidates are chosen as often as without it, nearly. With small
    # budgets the law is nearly uniform; a candidate that is out for certain is never chosen in 20 searches (2 ** -20).
    X, y = blobs()
    worst = np.full((1, 5), -1e300)
    model = Pipeline([("step", Normalizer()), ("model", objective())])
    grid = {"step": [Normalizer(), Binarizer()]}
    found = [
        DPGridSearchCV(model, grid, epsilon=1e-3, strategy="holdout", refit=False, random_state=seed)
        .fit(np.vstack([X, worst]), np.append(y, 0))
        .best_index_
        for seed in range(20)
    ]
    assert 0 < sum(found) < 20


# ---------------------------------------------------------------- what would tell about single fits


@every_strategy
def test_nothing_is_printed_about_fits(strategy, capfd):
    pipeline = Pipeline([("clip", NormClipper(3.0)), ("model", objective())], verbose=True)
    with parallel_config(verbose=50):
        model = DPGridSearchCV(pipeline, {"model__C": [0.01, 0.02]}, strategy=strategy).fit(*blobs())
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""
    assert not model.best_estimator_.verbose


class Spy:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.told = 0

    def setup(self, *args, **kwargs):
        self.told += 1

    teardown = on_fit_task_begin = on_fit_task_end = setup


@every_strategy
def test_callbacks_are_not_told_about_fits(strategy):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    spies = Spy(), Spy()
    X, y = blobs()
    inner = DPSGDClassifier(data_norm=3.0, classes=[0, 1], n_steps=2, batch_size=0.5, expected_n=400)
    pipeline = make_pipeline(NormClipper(3.0), inner.set_callbacks(spies[0])).set_callbacks(spies[1])
    grid = {"dpsgdclassifier__eta0": [0.1, 0.2]}
    model = DPGridSearchCV(pipeline, grid, epsilon=2.0, delta=1e-5, strategy=strategy).fit(X, y)
    private_cross_val_score(pipeline, X, y, cv=2, epsilon=2.0, delta=1e-5)
    assert [spy.told for spy in spies] == [0, 0]
    # The user's own object keeps them; the released model does not.
    assert b"Spy" in pickle.dumps(pipeline)
    assert b"Spy" not in pickle.dumps(model.best_estimator_)


# ---------------------------------------------------------------- rows that a step cannot take


ENTRIES = ["text", None, float("nan"), float("inf"), 10**400]


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
@pytest.mark.parametrize(
    "step", [BoundsScaler((-3.0, 3.0)), NormClipper(3.0), Normalizer(), Binarizer(), "passthrough"]
)
def test_entries_that_are_no_numbers_are_found_before_the_charge(step, entry):
    X, y = blobs()
    mixed = X.astype(object)
    mixed[3, 1] = entry
    accountant = BudgetAccountant(1.0)
    pipeline = Pipeline([("step", step), ("model", objective())])
    columns = ColumnTransformer([("a", step, [0, 1]), ("b", "drop", [2])], sparse_threshold=0)
    united = FeatureUnion([("a", step), ("b", DPStandardScaler(bounds=(-3.0, 3.0)))])
    for model in (pipeline, make_pipeline(columns, objective()), make_pipeline(united, objective())):
        for data in (mixed, pd.DataFrame(mixed)):
            with pytest.raises((ValueError, TypeError)):
                DPGridSearchCV(model, {}, accountant=accountant).fit(data, y)
            assert len(accountant) == 0


def test_frames_of_objects_go_to_estimators_as_arrays_do():
    X, y = blobs()
    accountant = BudgetAccountant(1.0)
    for data in (pd.DataFrame(X.astype(object)).replace({X[0, 0]: "a"}), pd.DataFrame({"a": ["x"] * len(y)})):
        with pytest.raises((ValueError, TypeError)):
            DPGridSearchCV(objective(), {}, accountant=accountant).fit(data, y)
    assert len(accountant) == 0


def test_a_label_that_is_alone_in_a_part_does_not_fail_it():
    X = np.zeros((5, 1))
    model = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    for seed in range(15):
        y = np.array([0, 1, 0, 1, "x"], dtype=object)
        search = DPGridSearchCV(
            model, {"C": [0.01, 0.02]}, strategy="holdout", validation_fraction=0.7, random_state=seed
        )
        assert search.fit(X, y).best_index_ in (0, 1)


@pytest.mark.parametrize("step", [Normalizer(copy=False), Binarizer(copy=False)])
def test_steps_that_would_change_the_data_are_refused(step):
    refused(make_pipeline(step, objective()), "leave copy at True")


def test_weights_of_unions_are_refused():
    parts = [("a", NormClipper(3.0)), ("b", NormClipper(2.0))]
    refused(make_pipeline(FeatureUnion(parts, transformer_weights={"a": 2.0}), objective()), "transformer_weights")


@every_strategy
def test_candidates_are_tried_with_the_budgets_that_they_get(strategy):
    """One that refuses a small epsilon is refused before the charge, or not at all."""
    for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0):
        accountant = BudgetAccountant(100.0)
        model = DPGridSearchCV(
            Demanding(), {"label": [0, 1]}, epsilon=epsilon, strategy=strategy, accountant=accountant
        )
        try:
            model.fit(*records(30))
        except ValueError:
            assert len(accountant) == 0
        else:
            assert len(accountant) == 1


class Demanding(NoisyCount):
    """Refuses less than .75."""

    def fit(self, X, y):
        if self.epsilon < 0.75:
            raise ValueError("epsilon must be .75 or more")
        return super().fit(X, y)
