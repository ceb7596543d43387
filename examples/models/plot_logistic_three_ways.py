"""
Three private logistic regressions
==================================

Noise can be added to the coefficients (output perturbation), to the objective (objective perturbation), or to each
gradient (gradient descent). All three methods can have the same guarantee. This example measures how their errors fall
with the number of records and with epsilon, for labels and for probabilities, and shows when to use which method.
"""

# %%
# A task with a known answer
# --------------------------
# The records are simulated: 20 features between -1 and 1, which are public bounds, and a label with a known
# probability. Therefore the loss of a model is known exactly. For labels, it is the accuracy of the true probabilities
# minus the accuracy of the model. For probabilities, it is the Kullback-Leibler divergence from the true probabilities,
# which is the excess of the log loss. Both are means over 20,000 fresh rows.

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
    """Return the lost accuracy and the excess log loss."""
    p = model.predict_proba(X_test)[:, 1]
    accuracy = np.mean(np.where(p > 0.5, p_test, 1 - p_test))
    p = np.clip(p, 1e-9, 1 - 1e-9)
    divergence = p_test * np.log(p_test / p) + (1 - p_test) * np.log(
        (1 - p_test) / (1 - p)
    )
    return np.mean(np.maximum(p_test, 1 - p_test)) - accuracy, np.mean(
        divergence
    )


# %%
# The same guarantee, three mechanisms
# ------------------------------------
# No row has a norm above the square root of 20, and delta is 1e-6. All other parameters keep their defaults. Gradient
# descent is also fitted without clipping, with ``max_grad_norm`` as large as a gradient can be. Its noise is then
# larger.

LARGEST = (1.09 * D) ** 0.5
common = {"delta": 1e-6, "data_norm": D**0.5, "classes": [0, 1]}
methods = {
    "OutputPertLogReg": lambda epsilon: OutputPertLogReg(
        epsilon=epsilon, **common
    ),
    "ObjPertLogReg": lambda epsilon: ObjPertLogReg(epsilon=epsilon, **common),
    "DPSGDClassifier": lambda epsilon: DPSGDClassifier(
        epsilon=epsilon, **common
    ),
    "DPSGDClassifier without clipping": lambda epsilon: DPSGDClassifier(
        epsilon=epsilon, max_grad_norm=LARGEST, **common
    ),
    "without privacy": lambda epsilon: LogisticRegression(
        solver="newton-cholesky"
    ),
}
REPEATS = {300: 6, 1000: 6, 2000: 5, 5000: 3, 20_000: 2}


def errors(n, epsilon):
    """Return the mean losses of each method, over several fits."""
    found = [
        [losses(make(epsilon).fit(*draw(n))) for _ in range(REPEATS[n])]
        for make in methods.values()
    ]
    return np.mean(found, axis=1)


# %%
# Loss against records and epsilon
# --------------------------------
# At the left, epsilon is 1. At the right, there are 2,000 records.

SIZES, EPSILONS = list(REPEATS), [0.1, 0.3, 1, 3, 10]
by_size = np.array([errors(n, 1.0) for n in SIZES])
by_epsilon = np.array([errors(2000, epsilon) for epsilon in EPSILONS])
by_epsilon[:, -1] = by_epsilon[:, -1].mean(
    axis=0
)  # Without privacy, epsilon has no effect.

STYLES = ["C1s-", "C0o-", "C2^-", "C2^:", "k-"]
figure, axes = plt.subplots(
    2, 2, figsize=(7.5, 7), sharex="col", sharey="row", layout="constrained"
)
for column, (grid, found) in enumerate(
    [(SIZES, by_size), (EPSILONS, by_epsilon)]
):
    for row, axis in enumerate(axes[:, column]):
        for method, (name, style) in enumerate(
            zip(methods, STYLES, strict=True)
        ):
            axis.plot(
                grid,
                found[:, method, row],
                style,
                markersize=5,
                label=name if row + column == 0 else None,
            )
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

for title, grid, found in [
    ("records", SIZES, by_size),
    ("epsilon", EPSILONS, by_epsilon),
]:
    for row, loss in enumerate(["accuracy lost", "excess log loss"]):
        print(
            f"{loss + ', ' + title:<34}"
            + "".join(f"{value:>9g}" for value in grid)
        )
        for method, name in enumerate(methods):
            print(
                f"  {name:<33}"
                + "".join(f"{value:9.4f}" for value in found[:, method, row])
            )

# %%
# Output perturbation needs several times as many records as the other methods. For probabilities, it needs about ten
# times as many records, or a larger epsilon by about the same factor. Its noise is calibrated to the worst possible
# data set, and has the same size in all directions. Objective perturbation has less error in directions that the data
# determine well, because the objective is steep there.
#
# Gradient descent has the smallest loss for labels. From some number of records on, its probabilities stop improving.
# The cause is the bias of clipped gradients, and not the noise (see
# :ref:`sphx_glr_auto_examples_choices_plot_clipping.py`). The bias has almost no effect on labels. Without clipping,
# gradient descent is worse with few records or a small epsilon, and keeps improving with more. Objective perturbation
# keeps improving, too, and has no clipping bound to choose.
#
# Summary
# -------
# Use ``DPSGDClassifier`` for labels if records are few, epsilon is small, or there are many classes. Use
# ``ObjPertLogReg`` if records are many or probabilities matter. It takes a fraction of the time, has no parameter to
# tune, and allows ``delta=0``. ``OutputPertLogReg`` is for teaching, and for coefficients with intervals, because the
# distribution of its noise is known exactly. See :ref:`output_perturbation`, :ref:`objective_perturbation` and
# :ref:`gradient_descent`.

plt.show()
