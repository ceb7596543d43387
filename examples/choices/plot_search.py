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
search = DPGridSearchCV(model, grid, epsilon=EPSILON, delta=DELTA, accountant=budget)
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
public = GridSearchCV(clone(model).set_params(**part._asdict(), accountant=budget), grid, cv=5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", PrivacyAssumptionWarning)
    public.fit(X, y)
print(part)
print("warning:", caught[0].message)
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
    return X, (X @ [3, -3, 1.5, -1.5] / 7 + rng.logistic(size=n) > 0).astype(int)


def measured(X, y):
    """Release a quantile of the row norms, and fit with it as ``data_norm``."""
    budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA, composition="basic")
    norms, given = np.linalg.norm(X, axis=1), {"bounds": (0, 10_000), "interval": False, "accountant": budget}
    norm = stats.quantile(norms, 0.9, epsilon=EPSILON / 5, **given).value
    rest = budget.remaining().epsilon
    model = ObjPertLogReg(epsilon=rest, delta=DELTA, data_norm=max(norm, 0.01), classes=[0, 1], accountant=budget)
    return model.fit(X, y)


# %%
# Accuracy with and without a search
# ----------------------------------
# The upper panel compares searches for the penalty ``C``, among two and among four values. Without a search, ``C``
# follows from epsilon, delta and ``data_norm`` by a formula, without a charge. The lower panel compares ways to choose
# ``data_norm``. Marks are single runs, and horizontal lines are their means. All ways have the same budget.


def private_search(grid, **declared):
    """Return a function that searches a grid."""
    model = ObjPertLogReg(classes=[0, 1], **declared)
    return DPGridSearchCV(model, grid, epsilon=EPSILON, delta=DELTA).fit


def public_search(X, y):
    """Search with scikit-learn, with a part of the budget for each fit."""
    paid = clone(model).set_params(**part._asdict(), accountant=None)
    return GridSearchCV(paid, grid, cv=5).fit(X, y)


def one_fit(norm):
    """Return a function that fits a model with this ``data_norm``."""
    return ObjPertLogReg(epsilon=EPSILON, delta=DELTA, data_norm=norm, classes=[0, 1]).fit


of_penalty = {
    "formula": (one_fit(8**0.5), 20),
    "search\nof 2": (private_search({"C": [0.0003, 0.03]}, data_norm=8**0.5), 4),
    "search\nof 4": (private_search(grid, data_norm=8**0.5), 4),
    "GridSearchCV\nof 4, charged": (public_search, 4),
}
of_norm = {
    "cautious:\n10,000": (one_fit(10_000), 20),
    "search\nof 4": (private_search({"data_norm": [10, 100, 1000, 10_000]}), 4),
    "quantile,\nthen fit": (measured, 20),
    "10, if it\nwere known": (one_fit(10), 20),
}


def draw(axis, ways, train, test, title, limits):
    """Plot the accuracy of several runs of each way."""
    print(title)
    for column, (name, (fit, runs)) in enumerate(ways.items()):
        scores = np.array([fit(*train).score(*test) for _ in range(runs)])
        across = column + np.linspace(-0.2, 0.2, runs)
        axis.plot(across, scores, "o", color=f"C{column}", alpha=0.6, markersize=6, markeredgewidth=0)
        axis.plot([column - 0.3, column + 0.3], [scores.mean()] * 2, color=f"C{column}")
        label = name.replace("\n", " ")
        print(f"  {label:>22}: mean {scores.mean():.3f}, from {scores.min():.3f} to {scores.max():.3f}")
    best = ObjPertLogReg(epsilon=np.inf, data_norm=10, classes=[0, 1]).fit(*train).score(*test)
    axis.axhline(best, color="k", linestyle=":", linewidth=1, zorder=0)
    axis.text(0.5, best + 0.02 * (limits[1] - limits[0]), "without privacy", ha="center", fontsize=9)
    axis.set_xticks(range(len(ways)), ways)
    axis.set(title=title, ylabel="accuracy on fresh records", ylim=limits)
    axis.grid(axis="y", color="0.92")
    axis.set_axisbelow(True)


figure, axes = plt.subplots(2, 1, figsize=(7, 7.6), layout="constrained")
figure.suptitle(f"The same budget for each way: epsilon {EPSILON:g}, delta {DELTA:g}")
draw(axes[0], of_penalty, (X, y), (X_test, y_test), "The penalty C: the formula is better", (0.4, 0.9))
draw(
    axes[1], of_norm, balances(2000), balances(20_000), "data_norm: the search is better than a cautious value", (0, 1)
)

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
