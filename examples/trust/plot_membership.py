"""
What an attacker sees: who was in the training data?
====================================================

Whoever holds a model can ask how well it fits a record, and guess that a record which it fits well was trained on. Here
we learn how often such a guess is right without privacy, how often with it, and what the promise of privacy says about
*every* attack, also those that nobody has thought of yet.
"""

# %%
# People who are hard to tell apart
# ---------------------------------
# The records are simulated: thirty numbers for each person, and a label that is to a large part chance. There is a
# little to learn and much to memorise. That is where models give their training data away.

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
# ``MembershipInferenceDisplay`` fits a model to a random half of the records, and asks for each of all records how well
# the model fits it. A threshold on that number is a guess: those above it are taken for members. The curve is what all
# thresholds give, over several halves.
#
# The attack is an experiment on records that may be seen. Its result is not private.
#
# Four models are attacked: a decision tree and a logistic regression without privacy, and a private logistic regression
# at two epsilons. ``data_norm`` comes from what is known of the simulation: rows of thirty standard normal numbers are
# about 5.5 long.

models = {
    "decision tree": DecisionTreeClassifier(),
    "logistic regression": LogisticRegression(C=10.0, max_iter=1000),
}
private = {epsilon: ObjPertLogReg(epsilon=epsilon, delta=1e-5, data_norm=5.5, classes=[0, 1]) for epsilon in (0.5, 2.0)}


def attack(model, **options):
    """Attack a model, with the same halves for all of them."""
    return MembershipInferenceDisplay.from_estimator(model, X, y, n_repeats=40, random_state=0, **options)


figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), sharey=True, layout="constrained")
found = {}
for (name, model), colour in zip(models.items(), ["C3", "C1"], strict=True):
    found[name] = attack(model, ax=axes[0], name=name, color=colour)
for (epsilon, model), colour in zip(private.items(), ["C0", "C2"], strict=True):
    name = f"private, epsilon={epsilon:g}"
    found[name] = attack(model, ax=axes[1], name=name, color=colour)
axes[0].set_title("Without privacy")
axes[1].set_title("With privacy: what was found, and what is possible")
axes[1].set_ylabel("")
figure.suptitle("Membership inference: the diagonal is guessing")

# %%
# What was found
# --------------
# The advantage is the largest difference of the two rates: members that are found, less others that are taken for
# members. Guessing has none. Every record that the tree was trained on sits in a leaf with its own label, and the tree
# is sure of it. About others it is as sure, and often wrong. Logistic regression memorises less, yet enough.
#
# The private curves rise less above the diagonal, the less the smaller epsilon is. That is what this attack finds. The
# dashed lines say more: they are proved, for every attack, whatever it knows about the other records.

print(f"{'':<24}area  advantage  most allowed")
for name, display in found.items():
    limit = ""
    if display.epsilon is not None:
        fpr = np.linspace(0, 1, 1001)
        limit = f"{(display.allowed(fpr) - fpr).max():12.3f}"
    print(f"{name:<24}{display.roc_auc:.3f}  {display.advantage:9.3f}  {limit}")

# %%
# To take away: a model without privacy can tell who was in its training data. A private one bounds what any attack can
# tell, and the bound is loose for a simple attack such as this. That an attack fails is no proof; epsilon is.

plt.show()
