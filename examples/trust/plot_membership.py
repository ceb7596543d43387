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
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skdp import ObjPertLogReg
from skdp.audit import MembershipInferenceDisplay

N, FEATURES = 160, 30

rng = np.random.default_rng(0)
X = rng.normal(size=(N, FEATURES))
y = (rng.uniform(size=N) < 1 / (1 + np.exp(-X[:, :3].sum(axis=1)))).astype(int)

# %%
# The attack
# ----------
# ``MembershipInferenceDisplay`` fits a model to a random half of the records, and measures how well the model fits each
# of all records. A threshold on this measure gives a guess: records above the threshold are taken for members. The
# curve shows all thresholds, over several halves. The attack is an experiment on known records, and its result is not
# private.
#
# The attack targets four models: a decision tree and a logistic regression without privacy, and a private logistic
# regression at two epsilons. ``data_norm`` comes from the simulation, because 30 standard normal numbers have a norm of
# about 5.5.

models = {
    "decision tree": DecisionTreeClassifier(),
    "logistic regression": LogisticRegression(C=10.0, max_iter=1000),
}
private = {epsilon: ObjPertLogReg(epsilon=epsilon, delta=1e-5, data_norm=5.5, classes=[0, 1]) for epsilon in (0.5, 2.0)}


def attack(model, **options):
    """Attack a model; all models get the same halves."""
    return MembershipInferenceDisplay.from_estimator(model, X, y, n_repeats=40, random_state=0, **options)


figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), sharey=True, layout="constrained")
found = {}
for (name, model), colour in zip(models.items(), ["C3", "C1"], strict=True):
    found[name] = attack(model, ax=axes[0], name=name, color=colour)
for (epsilon, model), colour in zip(private.items(), ["C0", "C2"], strict=True):
    name = f"private, epsilon={epsilon:g}"
    found[name] = attack(model, ax=axes[1], name=name, color=colour)
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
for name, display in found.items():
    limit = ""
    if display.epsilon is not None:
        fpr = np.linspace(0, 1, 1001)
        limit = f"{(display.allowed(fpr) - fpr).max():12.3f}"
    print(f"{name:<24}{display.roc_auc:.3f}  {display.advantage:9.3f}  {limit}")

# %%
# Summary
# -------
# A model without privacy can reveal who was in its training data. A private model limits the success of every attack.
# For a simple attack such as this one, the limit is loose. The failure of an attack is not a proof of privacy.
# :ref:`auditing` describes audits, which test the guarantee itself.

plt.show()
