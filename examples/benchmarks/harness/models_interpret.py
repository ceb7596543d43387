"""DP-EBM of interpret, with public categories and bounds, and otherwise its defaults."""

from __future__ import annotations

from methods import Method
from tasks import DELTA


class OfColumns:
    """A model that gets categories as text in place of codes."""

    def __init__(self, model, categorical):
        self.model, self.categorical = model, categorical

    def table(self, X):
        """Return numbers, and codes as text."""
        table = X.astype(object)
        for j in self.categorical:
            table[:, j] = X[:, j].astype(int).astype(str)
        return table

    def fit(self, X, y):
        """Fit the model."""
        self.model.fit(self.table(X), y)
        self.classes_ = getattr(self.model, "classes_", None)
        return self

    def predict(self, X):
        """Return labels or numbers."""
        return self.model.predict(self.table(X))

    def predict_proba(self, X):
        """Return probabilities of labels."""
        return self.model.predict_proba(self.table(X))


def build(task, epsilon, delta, seed):
    from interpret import privacy

    parameters = {
        "epsilon": epsilon,
        "delta": delta,
        "random_state": seed,
        "n_jobs": 1,
        "feature_names": [f"x{j}" for j in range(task.n_columns)],
        "feature_types": ["continuous"] * task.n_numbers + [list(map(str, range(size))) for size in task.sizes],
        "privacy_bounds": {f"x{j}": (0.0, 1.0) for j in range(task.n_numbers)},
    }
    if task.kind == "regression":
        model = privacy.DPExplainableBoostingRegressor(privacy_target_min=0.0, privacy_target_max=1.0, **parameters)
    else:
        model = privacy.DPExplainableBoostingClassifier(**parameters)
    return OfColumns(model, task.categorical)


def method(name, tasks, **options):
    return Method("interpret", name, "additive", tasks, "columns", build, (DELTA,), **options)


METHODS = [
    method("DPExplainableBoostingClassifier", ("adult", "nursery-binary", "cancer"), tables=("two classes",)),
    # It takes two classes; the error is on record.
    method("DPExplainableBoostingClassifier", ("nursery", "digits"), splits=1, draws=1),
    method("DPExplainableBoostingRegressor", ("housing", "housing-log"), tables=("regression",)),
]
