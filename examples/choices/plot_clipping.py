"""
Clipped gradients: a mean becomes a median, and a rare label rarer
==================================================================

Private gradient descent clips what one record may say in a step, and adds noise in proportion. A small clip means
little noise. But it is the records that disagree with the model that are clipped, and so the answer is moved, by an
amount that no number of records takes away. Here we learn in which direction, and where both errors together are least.
(For clipped data instead of clipped gradients, see :ref:`sphx_glr_auto_examples_choices_plot_bounds.py`.)
"""

# %%
# Days in hospital
# ----------------
# Simulated: 3000 stays, by age. Most are short, and some are long. To plan beds, one needs the mean. It is known that
# patients are between 20 and 90 years old, and that after 60 days they are moved elsewhere.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from skdp import BoundsScaler, DPSGDClassifier, DPSGDRegressor

DELTA = 1e-6
rng = np.random.default_rng(0)
age = rng.uniform(20, 90, (3000, 1))
days = np.clip(3 + 0.05 * (age[:, 0] - 55) + rng.exponential(6, 3000), 0, 60)
X = BoundsScaler((20, 90)).fit_transform(age)
MEAN, MEDIAN = 3 + 6.0, 3 + 6 * np.log(2)  # At 55 years; a stay beyond 60 days is too rare to count.


def stay(clip, epsilon):
    """Fit once, and predict how long patients of 55 years stay."""
    model = DPSGDRegressor(epsilon=epsilon, delta=DELTA, data_norm=1.0, bounds_y=(0, 60), max_grad_norm=clip)
    return model.fit(X, days).predict([[0.0]])[0]


# %%
# Bias, noise, and their sum
# --------------------------
# The gradient of a record grows with its residual. Clipped, residuals count up to a limit only: that is Huber's loss,
# and, as the clip shrinks, the absolute error, which is minimised by the *median*. Without noise (``epsilon=inf``), one
# sees this alone. The noise is the standard deviation of ten private fits, at epsilon 0.3 and delta 1e-6 each.

CLIPS = np.array([0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
AUTO = 0.3 * 1.09**0.5  # 0.3 times the gradient of a residual of half the range; the intercept's feature is 0.3.

bias = np.array([stay(clip, np.inf) - MEAN for clip in CLIPS])
fits = np.array([[stay(clip, 0.3) for _ in range(10)] for clip in CLIPS])
noise = fits.std(axis=1, ddof=1)
both = np.sqrt(np.mean((fits - MEAN) ** 2, axis=1))

errors, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
axis.plot(CLIPS, np.abs(bias), "s-", color="C0", markersize=5, label="bias: too short by so much")
axis.plot(CLIPS, noise, "^-", color="C1", markersize=5, label="noise: standard deviation of fits")
axis.plot(CLIPS, both, "o-", color="k", markersize=5, label="both: root mean squared error")
axis.axhline(MEAN - MEDIAN, color="C0", linestyle=":", linewidth=1)
axis.text(0.45, (MEAN - MEDIAN) * 1.06, "mean less median", color="C0", ha="center", fontsize=9)
axis.axvline(AUTO, color="0.85", linewidth=6, zorder=0)
axis.set(xscale="log", yscale="log", xlabel="max_grad_norm (grey: the default)", ylabel="error of the mean stay, days")
axis.set_title(f"{len(X):,} stays, epsilon 0.3")
axis.set_xticks([0.01, 0.03, 0.1, 0.3, 1, 3], ["0.01", "0.03", "0.1", "0.3", "1", "3"])
axis.set_yticks([0.01, 0.03, 0.1, 0.3, 1, 3], ["0.01", "0.03", "0.1", "0.3", "1", "3"])
axis.minorticks_off()
axis.legend(fontsize=9, loc="lower right")
print(f"{'days':<19}" + "".join(f"{name:>9}" for name in ("bias", "noise", "both")))
for clip, *row in zip(CLIPS, bias, noise, both, strict=True):
    print(f"max_grad_norm {clip:<5g}" + "".join(f"{value:9.3f}" for value in row))

# %%
# At the left, private fits agree with each other, and all are short by almost two days: what they find is the median.
# At the right they have the mean in their midst, and each is somewhere else. (What is left of the blue line is chance
# in the records.) The default stands between, near the least of both together. With ten times the records, noise would
# be a tenth, and the best clip further to the right; bias would be where it is.
#
# A rare label
# ------------
# The same happens to labels. Where one record in twenty is a yes, a model says "no" to most, and it is the yes that
# disagrees with it. A clipped yes counts less, and probabilities come out too low. The figure has the mean of the
# predicted probabilities on fresh records (simulated, and nobody's), for four fits at each clip. It should be the share
# of yes.


def events(n):
    """Draw three features, and whether something rare happened."""
    X = rng.uniform(-1, 1, (n, 3))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(3.6 - X @ [2, 1, 0]))).astype(int)


X, y = events(4000)
X_test, y_test = events(20_000)
LARGEST = (1.09 * 3) ** 0.5  # The largest gradient of the log loss is the norm of a row, with the intercept's feature.
PARTS = [0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]

rare, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
means, orders = [], []
for part in PARTS:
    models = [
        DPSGDClassifier(epsilon=1.0, delta=DELTA, data_norm=3**0.5, max_grad_norm=part * LARGEST, classes=[0, 1])
        for _ in range(4)
    ]
    found = [model.fit(X, y).predict_proba(X_test)[:, 1] for model in models]
    means.append([p.mean() for p in found])
    orders.append(np.mean([roc_auc_score(y_test, p) for p in found]))
    print(f"clip at {part:<4g} of the largest: mean probability {np.mean(means[-1]):.3f}, AUC {orders[-1]:.3f}")
axis.plot(PARTS, means, "o", color="C0", alpha=0.6, markeredgewidth=0)
axis.plot(PARTS, np.mean(means, axis=1), color="C0", label="mean predicted probability of yes")
axis.axhline(y_test.mean(), color="k", linestyle="--", linewidth=1, label="share of yes")
axis.axvline(0.3, color="0.85", linewidth=6, zorder=0)
axis.set(xlabel="max_grad_norm, as a part of the largest gradient (grey: the default)", ylim=(0, 0.07))
axis.set(ylabel="probability of yes", title="A label of 5 %, 4,000 records, epsilon 1")
axis.legend(fontsize=9, loc="lower right")

# %%
# At the default, about half of the probability is missing. The area under the curve, which knows only who comes before
# whom, hardly changes: labels are ranked as well as ever. Where one only ranks, the default is right. Where
# probabilities are added up, or compared with a cost, raise the clip to the largest gradient, and pay in noise.
#
# To take away: too small a clip cannot be seen in how well private fits agree, since all are wrong alike. It can be
# seen on simulated records, with ``epsilon=inf`` and the clip given as a number. Look for it where targets are skewed,
# or a label is rare.
#
# See :ref:`gradient_descent`; and :ref:`erm` for a median that is meant.

plt.show()
