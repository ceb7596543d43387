"""
Membership inference: was a record in the training data?
========================================================

An attacker with a model can measure how well it fits a record, and guess that the training data contained a record with
a good fit. This example measures how often the guess is right, without privacy and with it. It also draws the proved
limit for *every* attack, which differential privacy guarantees.
"""

# %%
# Records with little to learn
# ----------------------------
# The records are simulated: 30 numbers for each person, and a label that is mostly random. A model can learn little
# from them, and memorise a lot. Such models reveal the most about their training data.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc, roc_curve
from sklearn.tree import DecisionTreeClassifier

from skdp import ObjPertLogReg

N, FEATURES = 160, 30

rng = np.random.default_rng(0)
X = rng.normal(size=(N, FEATURES))
y = (rng.uniform(size=N) < 1 / (1 + np.exp(-X[:, :3].sum(axis=1)))).astype(int)

# %%
# The attack
# ----------
# The attack fits a model to a random half of the records, and measures how well the model fits each of all records, by
# the probability of its label. A threshold on this measure gives a guess: records above the threshold are taken for
# members. The curve shows all thresholds, over several halves. The attack is an experiment on known records, and its
# result is not private.
#
# The attack targets four models: a decision tree and a logistic regression without privacy, and a private logistic
# regression at two epsilons. ``data_norm`` comes from the simulation, because 30 standard normal numbers have a norm of
# about 5.5.

models = {
    "decision tree": DecisionTreeClassifier(),
    "logistic regression": LogisticRegression(C=10.0, max_iter=1000),
}
private = {
    epsilon: ObjPertLogReg(
        epsilon=epsilon, delta=1e-5, data_norm=5.5, classes=[0, 1]
    )
    for epsilon in (0.5, 2.0)
}


halves = rng.uniform(size=(40, N)) < 0.5


def attack(model):
    """Return the rates of false and true positives of the attack."""
    fits = [
        clone(model)
        .fit(X[inside], y[inside])
        .predict_proba(X)[np.arange(N), y]
        for inside in halves
    ]
    return roc_curve(halves.ravel(), np.ravel(fits))[:2]


def allowed(fpr, epsilon, delta=1e-5):
    """Return the largest rate of true positives that any attack can have."""
    return np.minimum(
        np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 - delta - fpr)
    ).clip(0, 1)


figure, axes = plt.subplots(
    1, 2, figsize=(11, 5.4), sharey=True, layout="constrained"
)
found = {}
for (name, model), colour in zip(models.items(), ["C3", "C1"], strict=True):
    found[name] = (*attack(model), None)
    axes[0].plot(
        *found[name][:2],
        color=colour,
        label=f"{name} (AUC {auc(*found[name][:2]):.3f})",
    )
grid = np.linspace(0, 1, 1001)
for (epsilon, model), colour in zip(
    private.items(), ["C0", "C2"], strict=True
):
    name = f"private, epsilon={epsilon:g}"
    found[name] = (*attack(model), epsilon)
    axes[1].plot(
        *found[name][:2],
        color=colour,
        label=f"{name} (AUC {auc(*found[name][:2]):.3f})",
    )
    axes[1].plot(
        grid,
        allowed(grid, epsilon),
        "--",
        color=colour,
        linewidth=1,
        label=f"limit at epsilon={epsilon:g}",
    )
for axis in axes:
    axis.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    axis.set(
        xlabel="others taken for members",
        ylabel="members found",
        aspect="equal",
    )
    axis.legend(loc="lower right")
axes[0].set_title("Without privacy")
axes[1].set_title("With privacy: result and proved limit")
axes[1].set_ylabel("")
figure.suptitle("ROC curves of membership inference; the diagonal is guessing")

# %%
# Results of the attack
# ---------------------
# The advantage of an attack is the largest difference between its true positive rate and its false positive rate.
# Guessing has an advantage of 0. The tree puts every training record into a leaf with its own label, with full
# confidence. It has the same confidence for other records, but is often wrong. Logistic regression memorises less, but
# enough for the attack.
#
# The private curves are closer to the diagonal, most of all at the smaller epsilon. They are the results of this
# attack. The dashed lines are the proved limits for every attack, with any knowledge about the other records.

print(f"{'':<24}area  advantage  proved limit")
for name, (fpr, tpr, epsilon) in found.items():
    limit = (
        ""
        if epsilon is None
        else f"{(allowed(grid, epsilon) - grid).max():12.3f}"
    )
    print(f"{name:<24}{auc(fpr, tpr):.3f}  {(tpr - fpr).max():9.3f}  {limit}")

# %%
# Summary
# -------
# A model without privacy can reveal who was in its training data. A private model limits the success of every attack.
# For a simple attack such as this one, the limit is loose. The failure of an attack is not a proof of privacy.
# :ref:`auditing` describes audits, which test the guarantee itself.

plt.show()
