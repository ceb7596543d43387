"""
Support vector machines or logistic regression
==============================================

:class:`~skdp.linear_model.ObjPertSVC` and :class:`~skdp.linear_model.OutputPertSVC` are linear support vector machines.
Their hinge is rounded, because the theorems need a smooth loss. Without privacy, they have about the same accuracy as
logistic regression. This example compares the models with privacy, also on a table with records far from the decision
boundary.
"""

# %%
# Loss functions
# --------------
# The figure shows the loss of a record against its margin, which is positive for a correct prediction. The slope is the
# influence of the record on the model. It is at most 1 for each of these losses, and the noise is calibrated to this
# limit. Beyond the hinge, a record has no influence on a support vector machine. In the log loss, it keeps a small one.

import matplotlib.pyplot as plt
import numpy as np

from skdp import ObjPertLogReg, ObjPertSVC, OutputPertSVC

margin = np.linspace(-1, 3, 200)
rounding = 0.5
huber = np.where(
    margin > 1 + rounding,
    0,
    np.where(margin < 1 - rounding, 1 - margin, (1 + rounding - margin) ** 2 / (4 * rounding)),
)
losses, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(margin, np.logaddexp(0, -margin), label="log loss: ObjPertLogReg")
ax.plot(margin, huber, label="rounded hinge: ObjPertSVC, OutputPertSVC")
ax.plot(margin, np.maximum(0, 1 - margin), color="0.6", ls=":", label="hinge")
ax.set(xlabel="margin", ylabel="loss of a record")
_ = ax.legend()

# %%
# Accuracy with and without a distant group
# -----------------------------------------
# The records are simulated. In the first table, a line separates two groups of people. In the second table, three in
# ten records of one group are far away, on the correct side of the line. All columns are in [-1, 1], which is public.
# Therefore no row has a norm above the square root of 2.

rng = np.random.default_rng(0)


def people(n, far):
    """Draw rows and labels, with a part of the second group far away."""
    y = rng.integers(2, size=n)
    centre = np.array([[-0.15, 0.0], [0.15, 0.0]])[y]
    centre[(y == 1) & (rng.uniform(size=n) < far)] = [0.8, 0.9]
    return np.clip(centre + rng.normal(0, 0.1, (n, 2)), -1, 1), y


MODELS = {"ObjPertLogReg": ObjPertLogReg, "ObjPertSVC": ObjPertSVC, "OutputPertSVC": OutputPertSVC}
EPSILONS = [0.1, 0.3, 1.0, 3.0]
X_test, y_test = people(5000, 0.0)

accuracy, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, far in zip(axes, (0.0, 0.3), strict=True):
    X, y = people(3000, far)
    for (name, kind), marker in zip(MODELS.items(), "os^", strict=True):
        means = [
            np.mean(
                [
                    kind(data_norm=2**0.5, classes=[0, 1], epsilon=epsilon, delta=1e-6).fit(X, y).score(X_test, y_test)
                    for _ in range(16)
                ]
            )
            for epsilon in EPSILONS
        ]
        ax.plot(EPSILONS, means, marker=marker, label=name)
    ax.set(xscale="log", xlabel="epsilon", title="no distant group" if far == 0 else "three in ten of a group far away")
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
axes[0].set_ylabel("accuracy near the boundary")
_ = axes[0].legend(loc="lower right")

# %%
# Summary
# -------
# At epsilon 1, the three models have about the same accuracy. At a third or a tenth of this epsilon, with the distant
# group, logistic regression is the most accurate, because the curvature of the hinge needs a stronger penalty. Logistic
# regression also has probabilities, which a support vector machine has not. Therefore use logistic regression, unless a
# support vector machine is required. See :ref:`support_vector_machines` and :ref:`output_perturbation`.

plt.show()
