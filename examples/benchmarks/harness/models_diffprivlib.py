"""diffprivlib's models, with public bounds and otherwise their defaults. All of them have delta = 0.

The epsilons that KMeans and LinearRegression spend are the sums over the mechanisms that a fit calls (version 0.6.6).
KMeans exchanges the two parts of the budget of an iteration. LinearRegression spends one part twice, for the means of
the columns and for the mean of the target.
"""

from __future__ import annotations

from math import cbrt

from methods import Method, tasks_of

CLASSIFICATION = tasks_of("classification")
REGRESSION = tasks_of("regression")


def method(name, family, tasks, view, build, **options):
    def imported(task, epsilon, delta, seed):
        from diffprivlib import models

        return build(models, task, epsilon=epsilon, random_state=seed)

    return Method("diffprivlib", name, family, tasks, view, imported, **options)


def spent_by_kmeans(task, epsilon):
    """Return the spent epsilon, with the two parts exchanged."""
    d = task.n_columns
    ratio = cbrt(4 * d * 0.225**2)
    return epsilon * (1 + d * ratio) / (d + ratio)


def spent_by_linear_regression(task, epsilon):
    """Return the spent epsilon, with one share of d + 1 spent twice."""
    return epsilon * (1 + 1 / (task.n_columns + 1))


def forest(models, task, **budget):
    return models.RandomForestClassifier(bounds=(0, 1), classes=task.classes, shuffle=True, **budget)


# Without categories, the two views are one.
VIEWS = (("ordinal", CLASSIFICATION, ("classification",)), ("unit", ("adult", "nursery", "nursery-binary"), ()))

METHODS = [
    *(
        method(
            name,
            "logistic regression",
            tasks,
            view,
            lambda models, task, **budget: models.LogisticRegression(data_norm=1.0, **budget),
            tables=tables,
        )
        for name, tasks, view, tables in (
            ("LogisticRegression", CLASSIFICATION, "norm", ("classification",)),
            ("LogisticRegression (centred)", ("digits", "cancer"), "centred", ()),
        )
    ),
    *(
        method(
            f"GaussianNB ({view})",
            "naive Bayes",
            tasks,
            view,
            lambda models, task, **budget: models.GaussianNB(bounds=(0, 1), **budget),
            tables=tables,
        )
        for view, tasks, tables in VIEWS
    ),
    *(
        method(f"RandomForestClassifier ({view})", "trees", tasks, view, forest, tables=tables)
        for view, tasks, tables in VIEWS
    ),
    method(
        "DecisionTreeClassifier",
        "trees",
        CLASSIFICATION,
        "ordinal",
        lambda models, task, **budget: models.DecisionTreeClassifier(bounds=(0, 1), classes=task.classes, **budget),
    ),
    method(
        "LinearRegression",
        "linear regression",
        REGRESSION,
        "unit",
        lambda models, task, **budget: models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), **budget),
        spent=spent_by_linear_regression,
        tables=("regression",),
    ),
    method(
        "KMeans",
        "k-means",
        tasks_of("clustering"),
        "unit",
        lambda models, task, **budget: models.KMeans(task.parameters["k"], bounds=(0, 1), **budget),
        spent=spent_by_kmeans,
    ),
    method(
        "PCA",
        "components",
        tasks_of("components"),
        "norm",
        lambda models, task, **budget: models.PCA(
            task.parameters["k"], data_norm=1.0, bounds=(0, task.upper), **budget
        ),
        # Of the fits that return, nearly all do within a second; of others, none did within 70 seconds.
        limit=10,
    ),
    method(
        "StandardScaler",
        "scaler",
        tasks_of("scaling"),
        "unit",
        lambda models, task, **budget: models.StandardScaler(bounds=(0, 1), **budget),
    ),
]
