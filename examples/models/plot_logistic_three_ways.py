"""
Three ways to a private logistic regression
===========================================

Noise can be added to the coefficients (output perturbation), to the objective that they minimise (objective
perturbation), or to each gradient on the way there (gradient descent). All three can promise the same. Here we learn
how their errors fall with the number of records and with epsilon, for labels and for probabilities, and which to take.
"""

# %%
# A task with a known answer
# --------------------------
# Simulated: 20 features between -1 and 1, which is public, and a label whose probability is known to us. So we can say
# exactly what a model loses: how much less often its labels are right than those of the true probabilities, and how far
# its probabilities are from the true ones (the Kullback-Leibler divergence, which is the excess of the log loss). Both
# are means over 20,000 rows that are nobody's.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator
from sklearn.linear_model import LogisticRegression

from skdp import DPSGDClassifier, ObjPertLogReg, OutputPertLogReg

D = 20
rng = np.random.default_rng(0)
truth = 1.5 * rng.normal(size=D)


def probability(X):
    """Return the true probability of label 1."""
    return 1 / (1 + np.exp(-X @ truth))


def draw(n):
    """Draw features and labels."""
    X = rng.uniform(-1, 1, (n, D))
    return X, (rng.uniform(size=n) < probability(X)).astype(int)


X_test = rng.uniform(-1, 1, (20_000, D))
p_test = probability(X_test)


def losses(model):
    """Return how much accuracy is lost, and how far probabilities are off."""
    p = model.predict_proba(X_test)[:, 1]
    accuracy = np.mean(np.where(p > 0.5, p_test, 1 - p_test))
    p = np.clip(p, 1e-9, 1 - 1e-9)
    divergence = p_test * np.log(p_test / p) + (1 - p_test) * np.log((1 - p_test) / (1 - p))
    return np.mean(np.maximum(p_test, 1 - p_test)) - accuracy, np.mean(divergence)


# %%
# The same promise, three mechanisms
# ----------------------------------
# No row is longer than the root of 20, and delta is 1e-6. All is left at defaults; but gradient descent is tried once
# more without the clipping that makes its noise small (``max_grad_norm`` as large as a gradient can be).

LARGEST = (1.09 * D) ** 0.5
common = {"delta": 1e-6, "data_norm": D**0.5, "classes": [0, 1]}
ways = {
    "OutputPertLogReg": lambda epsilon: OutputPertLogReg(epsilon=epsilon, **common),
    "ObjPertLogReg": lambda epsilon: ObjPertLogReg(epsilon=epsilon, **common),
    "DPSGDClassifier": lambda epsilon: DPSGDClassifier(epsilon=epsilon, **common),
    "DPSGDClassifier, nothing clipped": lambda epsilon: DPSGDClassifier(
        epsilon=epsilon, max_grad_norm=LARGEST, **common
    ),
    "without privacy": lambda epsilon: LogisticRegression(solver="newton-cholesky"),
}
REPEATS = {300: 6, 1000: 6, 2000: 5, 5000: 3, 20_000: 2}


def errors(n, epsilon):
    """Return the mean losses of each way, over fits to fresh records with fresh noise."""
    found = [[losses(way(epsilon).fit(*draw(n))) for _ in range(REPEATS[n])] for way in ways.values()]
    return np.mean(found, axis=1)


# %%
# More records, more epsilon
# --------------------------
# At the left epsilon is 1, at the right there are 2000 records.

SIZES, EPSILONS = list(REPEATS), [0.1, 0.3, 1, 3, 10]
by_size = np.array([errors(n, 1.0) for n in SIZES])
by_epsilon = np.array([errors(2000, epsilon) for epsilon in EPSILONS])
by_epsilon[:, -1] = by_epsilon[:, -1].mean(axis=0)  # Epsilon is nothing to the line without privacy.

STYLES = ["C1s-", "C0o-", "C2^-", "C2^:", "k-"]
figure, axes = plt.subplots(2, 2, figsize=(7.5, 7), sharex="col", sharey="row", layout="constrained")
for column, (grid, found) in enumerate([(SIZES, by_size), (EPSILONS, by_epsilon)]):
    for row, axis in enumerate(axes[:, column]):
        for way, (name, style) in enumerate(zip(ways, STYLES, strict=True)):
            axis.plot(grid, found[:, way, row], style, markersize=5, label=name if row + column == 0 else None)
        axis.set(xscale="log", yscale="log")
        axis.grid(color="0.93")
axes[0, 0].set(ylabel="labels: accuracy lost", title="epsilon 1")
axes[0, 1].set(title="2,000 records")
axes[1, 0].set(ylabel="probabilities: excess log loss", xlabel="records")
axes[1, 1].set(xlabel="epsilon")
axes[1, 1].set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
axes[1, 0].set_xticks(SIZES, [f"{n:,}" for n in SIZES], rotation=30)
for axis in axes[1]:
    axis.xaxis.set_minor_locator(NullLocator())
figure.legend(loc="outside lower center", ncols=2, fontsize=9)

for title, grid, found in [("records", SIZES, by_size), ("epsilon", EPSILONS, by_epsilon)]:
    for row, loss in enumerate(["accuracy lost", "excess log loss"]):
        print(f"{loss + ', ' + title:<34}" + "".join(f"{value:>9g}" for value in grid))
        for way, name in enumerate(ways):
            print(f"  {name:<33}" + "".join(f"{value:9.4f}" for value in found[:, way, row]))

# %%
# Output perturbation needs several times the records that the others need, and for probabilities about ten times, or as
# much more epsilon. Its noise is made for the worst data there could be, and hits directions that these data determine
# well. In the objective, such directions resist the noise.
#
# Gradient descent is ahead in labels. Its probabilities stop getting better from some point on: that is the bias of
# clipped gradients, which noise has nothing to do with (see :ref:`sphx_glr_auto_examples_choices_plot_clipping.py`).
# Labels hardly feel it. With nothing clipped, it is worse where there is little to go by, and goes on falling where
# there is much. Objective perturbation has no such floor either, and no clip to choose.
#
# To take away: take ``DPSGDClassifier`` for labels from few records, small epsilon or many classes. Take
# ``ObjPertLogReg`` where records are many or probabilities matter: it takes a fraction of the time, nothing is to be
# set, and there is a pure variant, with ``delta=0``. ``OutputPertLogReg`` is to learn from, and for coefficients with
# intervals: the law of its noise is known exactly.
#
# See :ref:`output_perturbation`, :ref:`objective_perturbation` and :ref:`gradient_descent`.

plt.show()
