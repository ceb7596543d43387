"""scikit-learn without privacy, as an upper limit of the scores."""

from __future__ import annotations

from methods import Method, tasks_of
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor

CLASSIFICATION = tasks_of("classification")
REGRESSION = tasks_of("regression")


def method(name, family, tasks, view, build, **options):
    return Method(
        "scikit-learn",
        name,
        family,
        tasks,
        view,
        lambda task, *cost: build(task, cost[-1]),
        draws=1,
        private=False,
        **options,
    )


METHODS = [
    method(
        "LogisticRegression (C=1)",
        "logistic regression",
        CLASSIFICATION,
        "norm",
        lambda task, seed: LogisticRegression(max_iter=1000),
    ),
    method(
        "LogisticRegression (C=100)",
        "logistic regression",
        CLASSIFICATION,
        "norm",
        lambda task, seed: LogisticRegression(C=100, max_iter=1000),
        tables=("classification",),
    ),
    method("GaussianNB", "naive Bayes", CLASSIFICATION, "ordinal", lambda task, seed: GaussianNB()),
    method(
        "RandomForestClassifier",
        "trees",
        CLASSIFICATION,
        "ordinal",
        lambda task, seed: RandomForestClassifier(random_state=seed),
    ),
    method(
        "HistGradientBoostingClassifier",
        "additive",
        CLASSIFICATION,
        "columns",
        lambda task, seed: HistGradientBoostingClassifier(early_stopping=False, random_state=seed),
        tables=("classification",),
    ),
    method(
        "MLPClassifier",
        "network",
        CLASSIFICATION,
        "unit",
        lambda task, seed: MLPClassifier(hidden_layer_sizes=(64,), early_stopping=True, random_state=seed),
    ),
    method(
        "LinearRegression",
        "linear regression",
        REGRESSION,
        "unit",
        lambda task, seed: LinearRegression(),
        tables=("regression",),
    ),
    method(
        "HistGradientBoostingRegressor",
        "additive",
        REGRESSION,
        "columns",
        lambda task, seed: HistGradientBoostingRegressor(early_stopping=False, random_state=seed),
        tables=("regression",),
    ),
    method(
        "MLPRegressor",
        "network",
        REGRESSION,
        "centred",
        lambda task, seed: MLPRegressor(hidden_layer_sizes=(64,), early_stopping=True, random_state=seed),
    ),
    method(
        "KMeans",
        "k-means",
        tasks_of("clustering"),
        "unit",
        lambda task, seed: KMeans(task.parameters["k"], n_init=10, random_state=seed),
    ),
    method(
        "PCA",
        "components",
        tasks_of("components"),
        "norm",
        lambda task, seed: PCA(task.parameters["k"], svd_solver="covariance_eigh"),
    ),
]
