"""
A search for settings has a price, and defaults have none
=========================================================

To choose a setting by scores on private records is a release, and so is each fit that is compared. Here we learn what
``DPGridSearchCV`` does with a budget, what scikit-learn's ``GridSearchCV`` does with it, where a search is lost money,
and where it is well spent.
"""

# %%
# Two thousand records
# --------------------
# Simulated: eight features between -1 and 1, as the questionnaire has it, so that no row is longer than the root of 8.
# All that is done with the records may cost epsilon 0.5 and delta 1e-6. The rows that accuracy is counted on below are
# simulated as well, and nobody's.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdp import BudgetAccountant, DPGridSearchCV, ObjPertLogReg, allocate
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.preprocessing import private_quantiles

EPSILON, DELTA = 0.5, 1e-6
rng = np.random.default_rng(0)
truth = 3 * rng.normal(size=8)


def survey(n):
    """Draw answers between -1 and 1, and a label."""
    X = rng.uniform(-1, 1, (n, 8))
    return X, (X @ truth + rng.logistic(size=n) > 0).astype(int)


X, y = survey(2000)
X_test, y_test = survey(20_000)

# %%
# One budget for the whole search
# -------------------------------
# ``epsilon`` and ``delta`` are those of the search: of all fits, of the choice, and of the last fit. The accountant is
# charged once. ``privacy_`` says how the budget was split: a half is kept for a last fit to all records, and the
# candidates share the other half. The choice looks at other records than they were fitted to, and so does not compete
# with them. Out come the best setting and its model; there are no scores to look at.

model = ObjPertLogReg(data_norm=8**0.5, classes=[0, 1])
grid = {"C": [0.0003, 0.001, 0.01, 0.03]}

budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
search = DPGridSearchCV(model, grid, epsilon=EPSILON, delta=DELTA, accountant=budget)
search.fit(X, y)
print(search.privacy_)
print(f"\nchosen: {search.best_params_}, by the strategy {search.strategy_!r}")
print(budget)

# %%
# The same by scikit-learn's search
# ---------------------------------
# ``GridSearchCV`` knows nothing of privacy, but the models that it fits share the accountant: each of the five folds of
# each candidate is charged, and so is the last fit. ``allocate`` counts them, and gives each what it may spend. It also
# warns of what is *not* paid for: exact scores make the choice, and folds go by row number.

budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
public = GridSearchCV(clone(model), grid, cv=5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", PrivacyAssumptionWarning)
    allocation = allocate(public, EPSILON, DELTA, accountant=budget)
print(allocation)
print("warning:", caught[0].message)
public.fit(X, y)
print(f"\n{budget}")

# %%
# Each of the 21 fits has about an eighth of what one fit could have had, and the last one, which is the model, has no
# more than the others.
#
# When nothing is known of a norm
# -------------------------------
# For the comparison below, a second task. Its features are changes of four balances, in a currency that nobody wrote
# down. How long a row is, is not known to within orders of magnitude, and a model needs a ``data_norm``. Caution says
# 10,000. One may search, among powers of ten. Or one releases a high quantile of the rows' lengths for a fifth of
# epsilon, and has the rest for one fit with it: what can be measured directly needs no comparison of models.


def balances(n):
    """Draw changes of four balances, and a label."""
    X = 7 * rng.standard_t(4, size=(n, 4))
    return X, (X @ [3, -3, 1.5, -1.5] / 7 + rng.logistic(size=n) > 0).astype(int)


def measured(X, y):
    """Release a quantile of the rows' lengths, and fit with it as the norm."""
    budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA, composition="basic")
    norm = private_quantiles(
        np.linalg.norm(X, axis=1), 0.9, epsilon=EPSILON / 5, bounds=(0, 10_000), scale="symlog", accountant=budget
    )
    rest = budget.remaining().epsilon
    model = ObjPertLogReg(epsilon=rest, delta=DELTA, data_norm=max(norm, 0.01), classes=[0, 1], accountant=budget)
    return model.fit(X, y)


# %%
# Lost, and well spent
# --------------------
# In the upper panel the penalty is searched for, among two and among four values. Without a search it follows from
# epsilon, delta and ``data_norm`` by a formula, which costs nothing. In the lower panel it is the norm. Points are
# single runs, and bars their means; all ways have the same budget.


def private_search(grid, **declared):
    """Return a function that searches a grid."""
    model = ObjPertLogReg(classes=[0, 1], **declared)
    return DPGridSearchCV(model, grid, epsilon=EPSILON, delta=DELTA).fit


def public_search(X, y):
    """Search with scikit-learn, and give each fit its part of the budget, as above."""
    part = allocation["estimator"]
    paid = clone(model).set_params(epsilon=part.epsilon, delta=part.delta, accountant=None)
    return GridSearchCV(paid, grid, cv=5).fit(X, y)


def one_fit(norm):
    """Return a function that fits a model with this norm."""
    return ObjPertLogReg(epsilon=EPSILON, delta=DELTA, data_norm=norm, classes=[0, 1]).fit


of_penalty = {
    "formula": (one_fit(8**0.5), 20),
    "search\nof 2": (private_search({"C": [0.0003, 0.03]}, data_norm=8**0.5), 4),
    "search\nof 4": (private_search(grid, data_norm=8**0.5), 4),
    "GridSearchCV\nof 4, paid": (public_search, 4),
}
of_norm = {
    "caution:\n10,000": (one_fit(10_000), 20),
    "search\nof 4": (private_search({"data_norm": [10, 100, 1000, 10_000]}), 4),
    "quantile,\nthen fit": (measured, 20),
    "if 10\nwere known": (one_fit(10), 20),
}


def draw(axis, ways, train, test, title, limits):
    """Draw the accuracy of several runs of each way."""
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
draw(axes[0], of_penalty, (X, y), (X_test, y_test), "A penalty: the formula is better, and free", (0.4, 0.9))
draw(axes[1], of_norm, balances(2000), balances(20_000), "A norm of unknown size: a search pays", (0, 1))

# %%
# Above, no penalty of the grid is so much better that it could pay for its search. Where each fit is paid in full, and
# no step was made for privacy, much of the accuracy is gone. Below, settings differ by much more than a search costs:
# caution drowns everything in noise. To measure is about as good as to search, and quicker.
#
# To take away: try the defaults first. Search for what may be wrong by a factor of ten, among few candidates that
# differ by much; and do not search for what can be looked up, or measured. Whether a penalty or a learning rate is
# worth its search cannot be seen without paying for it: settle these on public or simulated records.
#
# See :ref:`model_selection` for the proofs, and for the same on Adult; and
# :class:`~skdp.model_selection.DPRandomizedSearchCV` for settings that are drawn.

plt.show()
