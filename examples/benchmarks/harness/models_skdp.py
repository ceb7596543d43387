"""skdp's estimators, with their defaults and the public facts about the task."""

from __future__ import annotations

from methods import Method, tasks_of
from tasks import DELTA

import skdp

CLASSIFICATION = tasks_of("classification")
NUMERIC = ("digits", "cancer")
REGRESSION = tasks_of("regression")
BOTH = (0.0, DELTA)
APPROXIMATE = (DELTA,)


#: Roughly how many records there are to train with, as anybody knows who has heard of the data; peers take the exact
#: number to be public.
ROUGHLY = {"adult": 40_000, "nursery": 10_000, "nursery-binary": 10_000, "digits": 1000, "cancer": 500}
ROUGHLY |= {"housing": 20_000, "housing-log": 20_000}


def budget(epsilon, delta, seed):
    """Return the parameters of every private estimator."""
    return {"epsilon": epsilon, "delta": delta, "random_state": seed}


def linear(name, view="norm", **parameters):
    """Return a linear classifier with the norm of a row."""
    return lambda task, *cost: getattr(skdp, name)(data_norm=1.0, classes=task.classes, **parameters, **budget(*cost))


def functional_classifier(task, *cost):
    """Return a functional mechanism, with symmetric bounds because (0, upper) would clip one-hot rows."""
    return skdp.FunctionalMechLogReg(bounds=(-1, 1), data_norm=1.0, classes=task.classes, **budget(*cost))


def functional_by_bounds(task, *cost):
    """Return a functional mechanism for numbers in [0, 1], which centres them itself."""
    return skdp.FunctionalMechLogReg(bounds=(0, 1), classes=task.classes, **budget(*cost))


def table(task):
    """Return the public facts about the columns of a table."""
    return {
        "bounds": (0, 1),
        "categorical_features": task.categorical or None,
        "n_categories": list(task.sizes) or None,
    }


def on_columns(name, **parameters):
    """Return a classifier for numbers and categories without encoding."""
    return lambda task, *cost: getattr(skdp, name)(classes=task.classes, **table(task), **parameters, **budget(*cost))


def told(build):
    """Return such a classifier with an approximate number of records."""
    return lambda task, *cost: build(task, *cost).set_params(expected_n=ROUGHLY[task.name])


def gaussian_naive_bayes(task, *cost):
    """Return naive Bayes for columns of numbers in [0, 1]."""
    return skdp.DPNaiveBayes(bounds=(0, 1), numeric="gaussian", classes=task.classes, **budget(*cost))


def forest(task, epsilon, delta, seed):
    """Return random trees, with a different structure for each seed, like those of the peers."""
    return told(on_columns("DPRandomTree"))(task, epsilon, delta, seed).set_params(structure_seed=seed)


def additive(name):
    """Return an additive model of numbers and categories."""

    def build(task, *cost):
        known = {"classes": task.classes} if task.kind == "classification" else {"bounds_y": (0, 1)}
        categories = dict(zip(task.categorical, task.sizes, strict=True)) or None
        return getattr(skdp, name)(bounds=(0, 1), categories=categories, **known, **budget(*cost))

    return build


def additive_by_schema(task, *cost):
    """An additive classifier of Adult as it comes, with the schema of its documentation."""
    from skdp.datasets import load_adult

    return skdp.DPAdditiveClassifier(schema=load_adult().schema, classes=task.classes, **budget(*cost))


class OfTable:
    """An estimator that gets labels and targets as the table has them."""

    def __init__(self, task, estimator):
        self.task, self.estimator = task, estimator

    def set_params(self, **parameters):
        """Set parameters of the estimator."""
        self.estimator.set_params(**parameters)
        return self

    def fit(self, X, y):
        """Fit the estimator."""
        self.estimator.fit(X, self.task.as_in_table(y))
        if self.task.kind == "classification":
            self.classes_ = self.task.as_codes(self.estimator.classes_)
            self.predict_proba = self.estimator.predict_proba
        return self

    def predict(self, X):
        """Return codes of labels, or numbers in [0, 1]."""
        return self.task.as_codes(self.estimator.predict(X))


def by_schema(name):
    """Return an estimator as it comes, with a schema."""
    return lambda task, *cost: OfTable(task, getattr(skdp, name)(schema=task.schema, **budget(*cost)))


def regressor(name, **parameters):
    """Return a regressor for a target in [0, 1]."""
    return lambda task, *cost: getattr(skdp, name)(bounds_y=(0, 1), **parameters, **budget(*cost))


def clusters(name):
    """Return k-means for rows in the unit cube."""
    return lambda task, *cost: getattr(skdp, name)(task.parameters["k"], bounds=(0, 1), **budget(*cost))


def components(name, **parameters):
    """Return principal components for rows with a norm of at most 1."""
    return lambda task, *cost: getattr(skdp, name)(
        task.parameters["k"], data_norm=1.0, center="private", **parameters, **budget(*cost)
    )


def scaler(task, *cost):
    """Return a scaler for numbers in [0, 1]."""
    return skdp.DPStandardScaler(bounds=(0, 1), **budget(*cost))


def method(name, family, tasks, view, build, deltas=BOTH, **options):
    return Method("skdp", name, family, tasks, view, build, deltas, **options)


METHODS = [
    method("ObjPertLogReg", "logistic regression", CLASSIFICATION, "norm", linear("ObjPertLogReg")),
    method("OutputPertLogReg", "logistic regression", CLASSIFICATION, "norm", linear("OutputPertLogReg")),
    method("DPSGDClassifier", "logistic regression", CLASSIFICATION, "norm", linear("DPSGDClassifier"), APPROXIMATE),
    method("FunctionalMechLogReg", "logistic regression", CLASSIFICATION, "norm", functional_classifier),
    # Numbers can be centred by their bounds, as BoundsScaler does; indicators of categories are better left alone.
    *(
        method(f"{name} (centred)", "logistic regression", NUMERIC, "centred", linear(name), deltas)
        for name, deltas in (("ObjPertLogReg", BOTH), ("OutputPertLogReg", BOTH), ("DPSGDClassifier", APPROXIMATE))
    ),
    method("FunctionalMechLogReg (centred)", "logistic regression", NUMERIC, "unit", functional_by_bounds),
    method("DPMLPClassifier (centred)", "network", NUMERIC, "centred", linear("DPMLPClassifier"), APPROXIMATE),
    method("DPNaiveBayes", "naive Bayes", CLASSIFICATION, "columns", on_columns("DPNaiveBayes")),
    # Gaussians of numbers and of the codes of categories, as peers fit them.
    method("DPNaiveBayes (ordinal)", "naive Bayes", CLASSIFICATION, "ordinal", gaussian_naive_bayes),
    method("DPRandomTree", "trees", CLASSIFICATION, "columns", forest),
    method("DPGreedyTree", "trees", CLASSIFICATION, "columns", on_columns("DPGreedyTree")),
    method("DPMLPClassifier", "network", CLASSIFICATION, "norm", linear("DPMLPClassifier"), APPROXIMATE),
    method(
        "FunctionalMechLinReg",
        "linear regression",
        REGRESSION,
        "unit",
        regressor("FunctionalMechLinReg", bounds=(0, 1)),
    ),
    method(
        "DPSGDRegressor",
        "linear regression",
        REGRESSION,
        "centred",
        regressor("DPSGDRegressor", data_norm=1.0),
        APPROXIMATE,
    ),
    method(
        "DPMLPRegressor",
        "network",
        REGRESSION,
        "centred",
        regressor("DPMLPRegressor", data_norm=1.0),
        APPROXIMATE,
    ),
    # For few columns: of these tasks, it can be asked for these.
    method(
        "HistogramClassifier",
        "histogram",
        ("nursery", "nursery-binary"),
        "columns",
        told(on_columns("HistogramClassifier")),
    ),
    method("HistogramRegressor", "histogram", REGRESSION, "unit", told(regressor("HistogramRegressor", bounds=(0, 1)))),
    method("DPAdditiveClassifier", "additive", CLASSIFICATION, "columns", additive("DPAdditiveClassifier")),
    method("DPAdditiveClassifier (schema)", "additive", ("adult",), "table", additive_by_schema),
    method("DPAdditiveRegressor", "additive", REGRESSION, "columns", additive("DPAdditiveRegressor")),
    *(
        method(name, family, (), "table", by_schema(name), deltas, tables=(kind,))
        for name, family, kind, deltas in (
            ("DPAdditiveClassifier", "additive", "classification", BOTH),
            ("DPRandomTree", "trees", "classification", BOTH),
            ("DPSGDClassifier", "logistic regression", "classification", APPROXIMATE),
            ("ObjPertLogReg", "logistic regression", "classification", BOTH),
            ("DPNaiveBayes", "naive Bayes", "classification", BOTH),
            ("DPMLPClassifier", "network", "classification", APPROXIMATE),
            ("DPAdditiveRegressor", "additive", "regression", BOTH),
            ("DPRandomTreeRegressor", "trees", "regression", BOTH),
            ("DPSGDRegressor", "linear regression", "regression", APPROXIMATE),
            ("FunctionalMechLinReg", "linear regression", "regression", BOTH),
            ("DPMLPRegressor", "network", "regression", APPROXIMATE),
        )
    ),
    method("DPKMeans", "k-means", tasks_of("clustering"), "unit", clusters("DPKMeans")),
    method("SampleAggKMeans", "k-means", tasks_of("clustering"), "unit", clusters("SampleAggKMeans")),
    method("DPPCA", "components", tasks_of("components"), "norm", components("DPPCA")),
    method(
        "DPPCA (centered_norm=.5)",
        "components",
        tasks_of("components"),
        "norm",
        components("DPPCA", centered_norm=0.5),
    ),
    method("ExpMechPCA", "components", tasks_of("components"), "norm", components("ExpMechPCA")),
    method("DPStandardScaler", "scaler", tasks_of("scaling"), "unit", scaler),
]
