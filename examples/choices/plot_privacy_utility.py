"""
Privacy against utility: four classifiers, and what each gives up
=================================================================

Before a private model is chosen, one wants to see how its accuracy falls with epsilon, and whether the noise is to
blame, or the model. Here we learn to draw that with ``PrivacyUtilityDisplay``, with scikit-learn's accuracy as the
ceiling, and to read off which epsilon an aim asks for.
"""

# %%
# Records that may be seen
# ------------------------
# Each point of such a curve is an exact score of a model, which nobody paid for. So it is drawn on public records, or
# on simulated ones that are like those to be protected; the display wants to be told so. The breast cancer data are
# public: 569 records of 30 measurements. Their ranges are those that the data set's documentation prints, and the
# scaling uses nothing else.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skdp import DPNaiveBayes, DPSGDClassifier, FunctionalMechLogReg, ObjPertLogReg
from skdp.inspection import PrivacyUtilityDisplay
from skdp.preprocessing import BoundsScaler

MEANS = [(7, 28), (9, 40), (43, 189), (143, 2501), (0.05, 0.17), (0.01, 0.35), (0, 0.43), (0, 0.21), (0.1, 0.31)]
ERRORS = [(0.1, 2.9), (0.3, 4.9), (0.7, 22), (6, 543), (0, 0.04), (0, 0.14), (0, 0.4), (0, 0.06), (0, 0.08)]
WORST = [(7, 37), (12, 50), (50, 252), (185, 4254), (0.07, 0.23), (0.02, 1.06), (0, 1.26), (0, 0.3), (0.15, 0.67)]
FRACTAL = [(0.04, 0.1), (0, 0.03), (0.05, 0.21)]
LOWER, UPPER = np.array([*MEANS, FRACTAL[0], *ERRORS, FRACTAL[1], *WORST, FRACTAL[2]]).T

X, y = load_breast_cancer(return_X_y=True)
X = BoundsScaler((LOWER, UPPER)).fit_transform(X)
ceiling = cross_val_score(LogisticRegression(solver="newton-cholesky"), X, y).mean()
print(f"scikit-learn's logistic regression, no privacy: {ceiling:.3f}")

# %%
# Four classifiers
# ----------------
# Thirty columns in [-1, 1] make rows of length 5.5 at most. Most are far shorter, and longer ones are scaled down to
# the ``data_norm`` of 4. Delta is 1e-5 throughout, and all else is left at its default.

common = {"delta": 1e-5, "classes": [0, 1]}
models = {
    "DPSGDClassifier": DPSGDClassifier(data_norm=4.0, **common),
    "ObjPertLogReg": ObjPertLogReg(data_norm=4.0, **common),
    "FunctionalMechLogReg": FunctionalMechLogReg(bounds=(-1, 1), data_norm=4.0, **common),
    "DPNaiveBayes": DPNaiveBayes(bounds=(-1, 1), **common),
}
displays = {
    name: PrivacyUtilityDisplay.from_estimator(
        model, X, y, epsilons=[0.1, 0.3, 1, 3, 10], n_repeats=2, data_are_public=True, plot=False
    )
    for name, model in models.items()
}

# %%
# The curves
# ----------
# Lines are means over five folds, with two fits on each. The band holds eight in ten of them. The dotted line is the
# same model without noise, and the black one is scikit-learn's. What lies between these two is what the model gives up;
# what lies below the dotted line is what privacy takes. Grey lines are the other three models.

figure, axes = plt.subplots(2, 2, figsize=(7.5, 6.6), sharex=True, sharey=True, layout="constrained")
for k, (axis, (name, display)) in enumerate(zip(axes.flat, displays.items(), strict=True)):
    for other in displays.values():
        axis.plot(other.epsilons, other.scores.mean(axis=1), color="0.8", linewidth=1)
    display.plot(ax=axis, color=f"C{k}", markersize=4)
    axis.get_legend().remove()
    axis.axhline(ceiling, color="k", linewidth=1)
    axis.set(title=name, xlabel="epsilon" if k > 1 else "", ylabel="" if k % 2 else "accuracy", ylim=(0.4, 1))
    axis.grid(axis="y", color="0.93")
    axis.set_axisbelow(True)
figure.suptitle("Breast cancer, 455 records to fit, delta = 1e-5")

# %%
# Which epsilon for which aim
# ---------------------------
# Read the other way round, the curves say what an aim costs. Between the points it is interpolated on the logarithm of
# epsilon; where a curve never comes so far, there is a dash.

print(f"{'epsilon for an accuracy of':<26}" + "".join(f"{aim:>8.2f}" for aim in (0.85, 0.90, 0.94)))
for name, display in displays.items():
    means = np.maximum.accumulate(display.scores.mean(axis=1))
    needed = [
        np.exp(np.interp(aim, means, np.log(display.epsilons))) if means[0] < aim <= means[-1] else np.nan
        for aim in (0.85, 0.90, 0.94)
    ]
    print(f"  {name:<24}" + "".join(f"{'-' if np.isnan(e) else f'{e:.2g}':>8}" for e in needed))

# %%
# With so few records, gradient descent is ahead where epsilon is small, and every model is far below its dotted line at
# a tenth. At 10, all have nearly reached what they can: naive Bayes is lower there than the others by its assumption
# that features are independent, and not by its noise. More epsilon would not help it.
#
# The curves are about these records. With ten times as many, they would move to the left, by about a factor of ten. On
# Adult the order is another (see the tables in :ref:`gradient_descent` and :ref:`naive_bayes`).
#
# To take away: draw the curve before you ask for an epsilon, on records that are like yours and may be seen. Compare
# with the same model without noise, so that privacy is not blamed for a model that does not fit. Then fit the private
# records once, and judge by a paid :func:`~skdp.model_selection.private_score`.

plt.show()
