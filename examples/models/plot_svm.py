"""
Support vector machines, or logistic regression?
================================================

:class:`~skdp.linear_model.ObjPertSVC` and :class:`~skdp.linear_model.OutputPertSVC` are linear support vector machines,
with a hinge that is rounded off so that the theorems hold. Without privacy the choice between them and logistic
regression hardly matters. Here we see whether it does with privacy, and what people far from the border have to do with
it.
"""

# %%
# Three losses
# ------------
# The loss of a record against its margin: how far it is on the right side. The slope is what the record pulls with, and
# it is never more than 1, whatever the loss: that is what the noise is made for. Beyond the hinge, a record pulls no
# more, while the log loss goes on a little.

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
# Two groups, and a far one
# -------------------------
# Simulated: two groups of people that a line divides, and a third far away, on its right side. The columns are known to
# lie in [-1, 1], so that no row is longer than the root of 2.

rng = np.random.default_rng(0)


def people(n, far):
    """Draw rows and labels; a part of the second group is far away."""
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
    ax.set(xscale="log", xlabel="epsilon", title="none far away" if far == 0 else "three in ten of a group far away")
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
axes[0].set_ylabel("accuracy on people near the border")
_ = axes[0].legend(loc="lower right")

# %%
# To take away: at epsilon 1 the three can hardly be told apart. With a tenth or a third of that, and people far away,
# logistic regression is ahead (the hinge's kink asks for more regularisation), and it has probabilities, of which a
# support vector machine has none. So take it, unless a support vector machine is what was agreed on. See
# :ref:`support_vector_machines` and :ref:`output_perturbation`.

plt.show()
