"""
One budget for a pipeline
=========================

A scaler that learns from private records makes a release, as a classifier does. Both are charged to one budget. This
example splits a budget among the steps of a pipeline with ``allocate``, reads the ledger, and measures which part of
the budget the preparation should get.
"""

# %%
# Six laboratory values
# ---------------------
# The records are simulated. They are the results of six laboratory tests of 5,000 people, and who was admitted to
# hospital. The range of each instrument is printed on it, and is therefore public. The values of sodium and haemoglobin
# are symmetric, with a centre well within the range. The other four columns are skewed. Nearly all of their values are
# in a small part of the range, near zero.

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BoundsScaler,
    BudgetAccountant,
    DPQuantileBinner,
    DPStandardScaler,
    Number,
    ObjPertLogReg,
    Schema,
    allocate,
)
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.exceptions import SchemaMismatchWarning
from skdp.preprocessing import private_bounds

schema = Schema(
    {
        "sodium": Number(100, 200, missing="error"),
        "haemoglobin": Number(0, 25, missing="error"),
        "CRP": Number(0, 1000, missing="error"),
        "creatinine": Number(0, 50, missing="error"),
        "ALT": Number(0, 10_000, missing="error"),
        "ferritin": Number(0, 10_000, missing="error"),
    }
)
SYMMETRIC, SKEWED = list(schema)[:2], list(schema)[2:]
EPSILON, DELTA = 0.3, 1e-6


def patients(n, rng):
    """Draw test results and labels: 1 for admitted people."""
    Z = rng.normal(size=(n, 6))
    X = np.column_stack(
        [
            140 + 4 * Z[:, 0],
            14 + 1.7 * Z[:, 1],
            np.exp(Z[:, 2:] * [1.2, 0.4, 0.7, 1.0]),
        ]
    )
    X[:, 2:] *= [5, 1, 25, 100]
    admitted = rng.uniform(size=n) < 1 / (
        1 + np.exp(-1.5 * Z @ [-1, -1.5, 2, 1, 1, -0.5])
    )
    return pd.DataFrame(X, columns=list(schema)), admitted.astype(int)


rng = np.random.default_rng(0)
X, y = patients(5000, rng)
X_test, y_test = patients(20_000, rng)

# %%
# A pipeline with two private steps before the classifier
# -------------------------------------------------------
# ``DPStandardScaler`` learns means and variances of the first two columns. ``DPQuantileBinner`` learns bins of the
# other four columns, on a grid that is finer near zero. Both are private steps. The scaled columns are mostly between
# -2 and 2, and each binned column becomes indicators, of which one is 1. Therefore few rows have a norm above 3.
#
# ``allocate`` finds the private steps, sets the budget of each, and gives them the accountant. The weights are parts of
# the total budget.


def pipeline():
    """Return the pipeline before a budget is allocated."""
    scaler = DPStandardScaler(schema=schema.select(*SYMMETRIC))
    binner = DPQuantileBinner(8, schema=schema.select(*SKEWED), scale="symlog")
    columns = make_column_transformer((scaler, SYMMETRIC), (binner, SKEWED))
    return make_pipeline(columns, ObjPertLogReg(data_norm=3.0, classes=[0, 1]))


SCALER, BINNER = (
    "columntransformer__dpstandardscaler",
    "columntransformer__dpquantilebinner",
)
CLASSIFIER = "objpertlogreg"

budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
model = pipeline()
print(
    allocate(
        model,
        EPSILON,
        DELTA,
        weights={SCALER: 1, BINNER: 1, CLASSIFIER: 8},
        accountant=budget,
    )
)

# %%
# The ledger
# ----------
# One fit of the pipeline makes three charges. Their epsilons add up to more than 0.3, but the composed total is 0.3,
# because with ``delta > 0`` epsilons do not simply add up.

model.fit(X, y)
for record in budget.records:
    print(f"  {record.estimator:<17} epsilon {record.cost.epsilon:.4f}")
sum_of_epsilons = sum(record.cost.epsilon for record in budget.records)
print(f"  sum of epsilons   epsilon {sum_of_epsilons:.4f}")
print(f"  composed          epsilon {budget.total().epsilon:.4f}")

# %%
# The epsilon of each step
# ------------------------
# The length of a bar is the part of the budget, and the number in it is the epsilon of the step. Without a delta, a
# tenth of the budget is a tenth of epsilon. With a delta, a tenth of the budget is more than a quarter of epsilon.

splits = {
    "equal weights": (None, DELTA),
    "weights 1 : 1 : 8": ({CLASSIFIER: 8}, DELTA),
    "weights 1 : 1 : 8,\nno delta": ({CLASSIFIER: 8}, 0.0),
}


def plot_split(axis, row, weights, delta):
    """Plot the parts of the budget of the steps as one bar."""
    steps = allocate(pipeline(), EPSILON, delta, weights=weights).steps
    left = 0.0
    for step, colour in zip(steps, ["C5", "C4", "0.75"], strict=True):
        label = None if row else step.estimator
        bar = axis.barh(row, step.weight, left=left, color=colour, label=label)
        axis.bar_label(
            bar, [f"{step.budget.epsilon:.3f}"], label_type="center"
        )
        left += step.weight


figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for row, (weights, delta) in enumerate(splits.values()):
    plot_split(axis, row, weights, delta)
axis.set_yticks(range(len(splits)), splits)
axis.invert_yaxis()
axis.set(xlabel="part of the budget", xlim=(0, 1))
axis.set_title(f"The epsilon of each step; the total is {EPSILON:g}")
figure.legend(loc="outside lower center", ncols=3, fontsize=9)

# %%
# A step that is not private
# --------------------------
# ``allocate`` also warns about steps that learn from the records without a charge. With ``StandardScaler``, the
# guarantee would only cover the classifier.

exact = make_pipeline(
    StandardScaler(), ObjPertLogReg(data_norm=3.0, classes=[0, 1])
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    allocate(exact, EPSILON, DELTA)
print(textwrap.fill(f"warning: {caught[0].message}", 79))

# %%
# Private bounds
# --------------
# ``private_bounds`` finds a range for each column. The ends of the range are public powers of two, here from an eighth
# to 16,384, or zero. It is a function and not a step of the pipeline. Therefore it is charged first, and ``allocate``
# splits the rest.


def with_bounds(part):
    """Release bounds with a part of the budget, and fit with the rest."""
    budget = BudgetAccountant(epsilon=EPSILON, delta=DELTA)
    price = gaussian_epsilon(part**0.5 * gaussian_mu(EPSILON, DELTA), DELTA)
    bounds = private_bounds(
        X, epsilon=price, delta=DELTA, exponents=(-3, 14), accountant=budget
    )
    model = make_pipeline(
        BoundsScaler(bounds), ObjPertLogReg(data_norm=6**0.5, classes=[0, 1])
    )
    allocate(model, *budget.remaining(), accountant=budget)
    return model.fit(X, y), bounds, budget


_, bounds, budget = with_bounds(0.3)
print(pd.DataFrame(bounds, ["from", "to"], list(schema)).T)
print(budget)

# %%
# Accuracy by the part of the preparation
# ---------------------------------------
# The preparation gets between a fiftieth and nine tenths of the budget. The figure compares three preparations: the
# pipeline above, where scaler and bins share the part equally; a ``DPStandardScaler`` for all six columns; and
# ``private_bounds``. Marks are means over three fits with fresh noise, and bars go from the lowest to the highest
# accuracy. ``BoundsScaler`` uses the public ranges of the instruments and nothing of the budget. The test rows are
# simulated, too.

PARTS = [0.02, 0.1, 0.3, 0.6, 0.9]


def accuracies_of(model, preparation, part):
    """Give a part of the budget to the preparation, and score three fits."""
    weights = {name: part / len(preparation) for name in preparation}
    allocate(model, EPSILON, DELTA, weights=weights | {CLASSIFIER: 1 - part})
    return [model.fit(X, y).score(X_test, y_test) for _ in range(3)]


def accuracies_with_bounds(part):
    """Give a part of the budget to private bounds, and score three fits."""
    return [with_bounds(part)[0].score(X_test, y_test) for _ in range(3)]


def plot_accuracies(axis, shift, accuracies, label):
    """Plot the mean accuracy for each part, with bars for all fits."""
    means = accuracies.mean(axis=1)
    below = means - accuracies.min(axis=1)
    above = accuracies.max(axis=1) - means
    places = np.add(PARTS, shift)
    axis.errorbar(
        places, means, [below, above], fmt="o-", capsize=3, label=label
    )
    print(f"{label}:", *(f"{mean:.3f}" for mean in means))


# The scaler warns that the bounds of CRP and ALT are far too wide for it.
warnings.simplefilter("ignore", SchemaMismatchWarning)
scaled = make_pipeline(
    DPStandardScaler(schema=schema),
    ObjPertLogReg(data_norm=3.0, classes=[0, 1]),
)
preparations = {
    "scaler for two, bins for four": lambda part: accuracies_of(
        pipeline(), [SCALER, BINNER], part
    ),
    "scaler for all": lambda part: accuracies_of(
        scaled, ["dpstandardscaler"], part
    ),
    "private_bounds": accuracies_with_bounds,
}

figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
for k, (name, score_part) in enumerate(preparations.items()):
    accuracies = np.array([score_part(part) for part in PARTS])
    plot_accuracies(axis, 0.006 * k, accuracies, name)

not_learned = make_pipeline(
    BoundsScaler(schema=schema),
    ObjPertLogReg(data_norm=6**0.5, classes=[0, 1]),
)
allocate(not_learned, EPSILON, DELTA)
scores = [not_learned.fit(X, y).score(X_test, y_test) for _ in range(3)]
print(f"BoundsScaler, no charge: {np.mean(scores):.3f}")
label = "BoundsScaler, no charge"
axis.axhline(np.mean(scores), color="k", linestyle=":", label=label)
axis.set_xlabel("part of the budget for the preparation")
axis.set_ylabel("accuracy on fresh records")
axis.set_ylim(0.4, 0.9)
axis.set_title(f"5,000 records, epsilon {EPSILON} for all steps together")
axis.set_xticks(PARTS, [f"{part:g}" for part in PARTS])
axis.legend(fontsize=9, loc="lower right")

# %%
# Scaler and bins need a tenth of the budget or less, because they learn a few numbers from all records. More budget for
# them leaves less for the classifier. At the right end, the classifier has too little. The scaler for all columns gains
# slowly, because its noise is proportional to the wide ranges. With a fiftieth of the budget, ``private_bounds``
# returns some bounds close to zero, so that larger values are clipped. The choice of the preparation matters more than
# the split.
#
# Summary
# -------
# Give the preparation about a tenth of the budget. Use public bounds if they are close to the range of the records, a
# scaler if they are ten times too wide, and bins if a column is skewed. ``private_bounds`` is for many records with
# unknown ranges. :ref:`preprocessing` describes these estimators, and :ref:`ledger` budgets that outlive a script.

plt.show()
