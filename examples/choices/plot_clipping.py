"""
Gradient clipping: bias of means and of rare labels
===================================================

Private gradient descent clips the gradient of each record, and adds noise in proportion to the clipping bound. A
small bound therefore needs little noise. But it also biases the fit, because the records that disagree with the model
are clipped most. More records do not reduce this bias. This example measures bias and noise, and finds the clipping
bound with the smallest total error. (:ref:`sphx_glr_auto_examples_choices_plot_bounds.py` does the same for clipped
data.)
"""

# %%
# Days in hospital
# ----------------
# The records are simulated: the age of 3,000 patients and the length of their stay. Most stays are short, and some are
# long. To plan beds, a hospital needs the mean. Two facts are public: patients are between 20 and 90 years old, and
# they are moved to another hospital after 60 days.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier, DPSGDRegressor, Number, Schema

DELTA = 1e-6
rng = np.random.default_rng(0)
age = rng.uniform(20, 90, (3000, 1))
days = np.clip(3 + 0.05 * (age[:, 0] - 55) + rng.exponential(6, 3000), 0, 60)
schema = Schema(
    {"age": Number(20, 90, missing="error")}, target={"days": (0, 60)}
)
# At 55 years; a stay beyond 60 days is too rare to count.
MEAN, MEDIAN = 3 + 6.0, 3 + 6 * np.log(2)


def stay(clip, epsilon, seed=None):
    """Fit once, and predict the days of a patient of 55 years."""
    model = DPSGDRegressor(
        schema=schema,
        epsilon=epsilon,
        delta=DELTA,
        max_grad_norm=clip,
        random_state=seed,
    )
    return model.fit(age, days).predict([[55.0]])[0]


# %%
# Bias, noise and total error
# ---------------------------
# The gradient of a record grows with its residual. With clipping, a residual has an effect only up to a limit, as in
# Huber's loss. For a very small clipping bound, the loss becomes the absolute error, whose minimiser is the *median*
# and not the mean. A fit without noise (``epsilon=inf``) shows this bias alone. The noise in the figure is the standard
# deviation of ten private fits with epsilon 0.3 and delta 1e-6 each. The seeds only make the figure reproducible.

CLIPS = np.array([0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
# By default, gradients are clipped at 0.3 times that of a residual of half the
# range. A row has a norm of at most the root of 1.09, with the intercept.
AUTO = 0.3 * 1.09**0.5

bias = np.array([stay(clip, np.inf) - MEAN for clip in CLIPS])
fits = np.array(
    [[stay(clip, 0.3, seed) for seed in range(10)] for clip in CLIPS]
)
noise = fits.std(axis=1, ddof=1)
both = np.sqrt(np.mean((fits - MEAN) ** 2, axis=1))

errors, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
axis.plot(CLIPS, np.abs(bias), "s-C0", label="bias: days without noise")
axis.plot(CLIPS, noise, "^-C1", label="noise: standard deviation of fits")
axis.plot(CLIPS, both, "o-k", label="both: root mean squared error")
axis.axhline(MEAN - MEDIAN, color="C0", ls=":", label="mean minus median")
axis.axvline(AUTO, color="0.85", lw=6, zorder=0, label="default")
axis.set(xscale="log", yscale="log", xlabel="max_grad_norm")
axis.set_ylabel("error of the mean stay, days")
axis.set_title(f"{len(age):,} stays, epsilon 0.3")
ticks = [0.01, 0.03, 0.1, 0.3, 1, 3]
axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
axis.minorticks_off()
axis.legend(fontsize=9, loc="lower right")
table = pd.DataFrame({"bias": bias, "noise": noise, "both": both}, CLIPS)
print(table.rename_axis("max_grad_norm").round(3))

# %%
# At the left, the private fits agree with each other, but all are too short by almost two days, because they estimate
# the median. At the right, single fits differ widely. The total error is smallest in between, at a clipping bound of
# 0.8. At the default, it is twice as large. The private fits have more bias than the blue line, which is drawn without
# noise. With more records, there is less noise, and the best clipping bound is larger.
#
# A rare label
# ------------
# The same happens to labels. If one record in twenty has the label yes, a model predicts "no" for most records, and the
# records with yes disagree with the model. Clipping reduces their effect, so that the scores become too low.
# ``predict_proba`` knows the clipping bound and corrects the probabilities. The figure shows the mean probability of
# yes on fresh simulated records, with and without this correction, for four fits at each clipping bound. Without bias,
# this mean is the share of yes.


def events(n):
    """Draw three features and a rare label."""
    X = rng.uniform(-1, 1, (n, 3))
    return X, (
        rng.uniform(size=n) < 1 / (1 + np.exp(3.6 - X @ [2, 1, 0]))
    ).astype(int)


X, y = events(4000)
X_test, y_test = events(20_000)
# The largest gradient of the log loss is the norm of a row with the intercept.
LARGEST = (1.09 * 3) ** 0.5
PARTS = [0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]

rare, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
means, uncorrected, orders = [], [], []
for part in PARTS:
    models = [
        DPSGDClassifier(
            epsilon=1.0,
            delta=DELTA,
            data_norm=3**0.5,
            max_grad_norm=part * LARGEST,
            classes=[0, 1],
        )
        for _ in range(4)
    ]
    found = [model.fit(X, y).predict_proba(X_test)[:, 1] for model in models]
    means.append([p.mean() for p in found])
    scores = [model.decision_function(X_test) for model in models]
    uncorrected.append(np.mean(1 / (1 + np.exp(-np.array(scores)))))
    orders.append(np.mean([roc_auc_score(y_test, p) for p in found]))
    print(
        f"max_grad_norm {part:<4g} of the largest: "
        f"mean probability {np.mean(means[-1]):.3f}, AUC {orders[-1]:.3f}"
    )
dots = axis.plot(PARTS, means, "oC0", alpha=0.6, markeredgewidth=0)
dots[0].set_label("one fit")
axis.plot(PARTS, np.mean(means, axis=1), "C0", label="predict_proba, mean")
axis.plot(PARTS, uncorrected, "C3", label="without the correction")
axis.axhline(y_test.mean(), color="k", ls="--", label="share of yes")
axis.axvline(0.3, color="0.85", lw=6, zorder=0, label="default")
axis.set_xlabel("max_grad_norm, as a part of the largest gradient")
axis.set_ylabel("mean predicted probability of yes")
axis.set_title("A label of 5 %, 4,000 records, epsilon 1")
axis.set_ylim(0, 0.12)
axis.legend(fontsize=9, loc="lower right")

# %%
# At the default, almost half of the probability is missing in the scores, and ``predict_proba`` makes up for it. With a
# much smaller clipping bound, the correction is not exact, and the mean probability is too high. The AUC hardly
# changes, because it only depends on the order of the predictions.
#
# Summary
# -------
# Agreement between private fits does not show that the clipping bound is large enough, because all fits have the same
# bias. To see the bias, fit simulated records with ``epsilon=inf`` and a number for ``max_grad_norm``. Look for it if
# targets are skewed or a label is rare. :ref:`gradient_descent` describes the estimators, and :ref:`erm` a regression
# that estimates the median on purpose.

plt.show()
