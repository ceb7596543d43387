"""
Search for parameters with one budget
=====================================

The choice of a parameter by scores on private records is a release, and so is each fit that is compared. This example
compares the budget of ``DPGridSearchCV`` with that of scikit-learn's ``GridSearchCV``. It shows a search that loses
accuracy, and a search that gains accuracy.
"""

# %%
# A questionnaire
# ---------------
# The 2,000 records are simulated: eight answers between -1 and 1, by the form. Therefore no row has a norm above the
# square root of 8. The whole analysis may use epsilon 0.5 and delta 1e-6. The test rows are simulated, too, so that the
# exact accuracy is no release.

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdp import BudgetAccountant, DPGridSearchCV, ObjPertLogReg, stats
from skdp.exceptions import PrivacyAssumptionWarning

EPSILON, DELTA = 0.5, 1e-6
rng = np.random.default_rng(0)
truth = 3 * rng.normal(size=8)


def survey(n):
    """Draw answers between -1 and 1 and a label."""
    X = rng.uniform(-1, 1, (n, 8))
    return X, (X @ truth + rng.logistic(size=n) > 0).astype(int)


X, y = survey(2000)
X_test, y_test = survey(20_000)

# %%
# One budget for the whole search
# -------------------------------
# ``epsilon`` and ``delta`` are those of the whole search: of all fits, of the choice, and of the last fit. The
# accountant is charged once. ``privacy_`` lists how the budget was split. Half of the budget is for the last fit to all
# records. The candidates share the other half. The choice uses other records than the candidates were fitted to.
# Therefore the choice takes no budget from them. The search returns the best parameters and the model, and no scores.

model = ObjPertLogReg(data_norm=8**0.5, classes=[0, 1])
grid = {"C": [0.0003, 0.001, 0.01, 0.03]}

budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
search = DPGridSearchCV(
    model, grid, epsilon=EPSILON, delta=DELTA, accountant=budget
)
search.fit(X, y)
print(search.privacy_)
print(f"\nchosen: {search.best_params_}, by the strategy {search.strategy_!r}")
print(budget)

# %%
# The same search in scikit-learn
# -------------------------------
# ``GridSearchCV`` does not account for privacy, but the models that it fits share the accountant. Five folds of each
# candidate and the last fit are charged, which are 21 fits. The accountant computes the largest budget of each. The
# first fit in a fold warns of what is not charged: exact scores choose the candidate.

budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
part = budget.remaining(21, like=clone(model).set_params(delta=DELTA))
public = GridSearchCV(
    clone(model).set_params(**part._asdict(), accountant=budget), grid, cv=5
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", PrivacyAssumptionWarning)
    public.fit(X, y)
print(part)
print(textwrap.fill(f"warning: {caught[0].message}", 79))
print(f"\n{budget}")

# %%
# Each of the 21 fits has about a fifth of the epsilon of a single fit. The last fit, which is the model, has no more
# than the others.
#
# A norm of unknown size
# ----------------------
# The second task has four features: changes of bank balances in an unknown currency. The size of a row is not even
# known to within a factor of ten, but a model needs ``data_norm``. A cautious value is 10,000. One alternative is a
# search among powers of ten. Another alternative is to release a high quantile of the row norms with a fifth of
# epsilon, and to fit one model with the rest of the budget.


def balances(n):
    """Draw changes of four balances and a label."""
    X = 7 * rng.standard_t(4, size=(n, 4))
    return X, (X @ [3, -3, 1.5, -1.5] / 7 + rng.logistic(size=n) > 0).astype(
        int
    )


def fit_with_released_norm(X, y):
    """Release a quantile of the row norms, and fit with it."""
    budget = BudgetAccountant(
        epsilon=EPSILON, delta=DELTA, composition="basic"
    )
    norm = stats.quantile(
        np.linalg.norm(X, axis=1),
        0.9,
        bounds=(0, 10_000),
        interval=False,
        epsilon=EPSILON / 5,
        accountant=budget,
    )
    model = ObjPertLogReg(
        epsilon=budget.remaining().epsilon,
        delta=DELTA,
        data_norm=max(norm.value, 0.01),
        classes=[0, 1],
        accountant=budget,
    )
    return model.fit(X, y)


# %%
# Accuracy with and without a search
# ----------------------------------
# The upper panel compares searches for the penalty ``C``, among two and among four values. Without a search, ``C``
# follows from epsilon, delta and ``data_norm`` by a formula, without a charge. The lower panel compares methods to
# choose ``data_norm``. Marks are single runs, and horizontal lines are their means. All methods have the same budget.


def fit_once(X, y, norm):
    """Fit a model with this ``data_norm``."""
    model = ObjPertLogReg(
        epsilon=EPSILON, delta=DELTA, data_norm=norm, classes=[0, 1]
    )
    return model.fit(X, y)


def fit_search(X, y, grid, **declared):
    """Search a grid under one budget."""
    model = ObjPertLogReg(classes=[0, 1], **declared)
    search = DPGridSearchCV(model, grid, epsilon=EPSILON, delta=DELTA)
    return search.fit(X, y)


def fit_sklearn_search(X, y):
    """Search with scikit-learn, with a part of the budget for each fit."""
    charged = clone(model).set_params(**part._asdict(), accountant=None)
    return GridSearchCV(charged, grid, cv=5).fit(X, y)


NORM = 8**0.5
NORMS = [10, 100, 1000, 10_000]
penalty_methods = {
    "formula": lambda X, y: fit_once(X, y, NORM),
    "search\nof 2": lambda X, y: fit_search(
        X, y, {"C": [0.0003, 0.03]}, data_norm=NORM
    ),
    "search\nof 4": lambda X, y: fit_search(X, y, grid, data_norm=NORM),
    "GridSearchCV\nof 4, charged": fit_sklearn_search,
}
norm_methods = {
    "cautious:\n10,000": lambda X, y: fit_once(X, y, 10_000),
    "search\nof 4": lambda X, y: fit_search(X, y, {"data_norm": NORMS}),
    "quantile,\nthen fit": fit_with_released_norm,
    "10, if it\nwere known": lambda X, y: fit_once(X, y, 10),
}


def accuracies(fit, train, test, n_runs=6):
    """Return the accuracy on fresh records of several runs."""
    return np.array([fit(*train).score(*test) for _ in range(n_runs)])


def plot_methods(axis, methods, train, test):
    """Plot the accuracy of several runs of each method."""
    for column, (name, fit) in enumerate(methods.items()):
        scores = accuracies(fit, train, test)
        positions = column + np.linspace(-0.2, 0.2, len(scores))
        axis.plot(positions, scores, "o", color=f"C{column}", alpha=0.6)
        axis.hlines(scores.mean(), column - 0.3, column + 0.3, f"C{column}")
        label = name.replace("\n", " ")
        print(
            f"{label:>22}: mean {scores.mean():.3f}, from {scores.min():.3f}"
        )
    not_private = ObjPertLogReg(epsilon=np.inf, data_norm=10, classes=[0, 1])
    best = not_private.fit(*train).score(*test)
    axis.axhline(best, color="k", linestyle=":", label="without privacy")
    axis.set_xticks(range(len(methods)), methods)
    axis.set_ylabel("accuracy on fresh records")
    axis.legend()


figure, axes = plt.subplots(2, 1, figsize=(7, 7.6), layout="constrained")
figure.suptitle(f"The same budget for all: epsilon {EPSILON}, delta {DELTA}")
plot_methods(axes[0], penalty_methods, (X, y), (X_test, y_test))
axes[0].set_title("The penalty C: the formula is better")
plot_methods(axes[1], norm_methods, balances(2000), balances(20_000))
axes[1].set_title("data_norm: the search is better than a cautious value")

# %%
# In the upper panel, no value of the grid is so much better than the default that the search is worth its cost.
# ``GridSearchCV`` with a charge for each fit loses much of the accuracy. In the lower panel, the parameter values
# differ by much more than a search costs, because the cautious value causes far too much noise. The released quantile
# is about as good as the search, and faster.
#
# Summary
# -------
# Try the defaults first. Search only for parameters that may be wrong by a factor of ten, with few candidates that
# differ widely. Do not search for values that are known, or that a single release can measure. Choose penalties and
# learning rates on public or simulated records. :ref:`model_selection` has the proofs, and the same comparison on
# Adult. :class:`~skdp.model_selection.DPRandomizedSearchCV` draws candidates at random.

plt.show()
