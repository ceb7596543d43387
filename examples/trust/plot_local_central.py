"""
Local and central privacy: compare their errors
===============================================

In the central model, a trusted collector has the true records and releases noisy statistics. In the local model, each
person randomises their own record, and nobody collects true records. Both can have the same epsilon. This example
measures the errors of both models. The error of the local model falls with the square root of the number of people, and
that of the central model with the number itself.

For a fair comparison, both models protect against *replacing* one record here, and the number of people is public.
"""

# %%
# A survey with sixteen answers
# -----------------------------
# The frequencies of the answers are proportional to 1, 1/2, 1/3, and so on. Each person sends a report by one of three
# mechanisms: randomised response, unary encoding or Hadamard response. The estimates are unbiased, and their standard
# errors are known. In the central model, the counts get discrete Laplace noise, and are divided by the number of
# people. A replaced record changes two counts.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp.local import (
    HadamardResponse,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)
from skdp.mechanisms import DiscreteLaplaceMechanism, NoiseSource

EPSILON = 1.0
K = 16
SIZES = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def answers(n):
    """Return answers, with frequencies proportional to 1, 1/2, 1/3, ..."""
    weights = np.cumsum(1 / np.arange(1, K + 1))
    return np.searchsorted(weights / weights[-1], (np.arange(n) + 0.5) / n)


def ages(n):
    """Return ages from 0 to 100, with more young than old people."""
    return 100 * (1 - np.sqrt(1 - (np.arange(n) + 0.5) / n))


def repeats(n):
    """Return the number of draws, which is larger for few people."""
    return max(2, min(60, 50_000 // n))


def local_frequencies(channel, n):
    """Return the mean absolute error of frequencies in the local model."""
    truth = np.bincount(answers(n), minlength=K) / n
    channel = channel.fit(answers(n)[:, None])
    reports = (
        channel.transform(answers(n)[:, None]) for _ in range(repeats(n))
    )
    return np.mean(
        [np.abs(channel.frequencies(Z)[0] - truth).mean() for Z in reports]
    )


def central_frequencies(n):
    """Return the mean absolute error of frequencies in the central model."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=2.0, size=K)
    stream = NoiseSource().stream("counts")
    counts = np.bincount(answers(n), minlength=K)
    return np.mean(
        [
            np.abs(mechanism.release(counts, stream) - counts).mean() / n
            for _ in range(200)
        ]
    )


frequencies = {
    "local: randomised response": [
        local_frequencies(RandomizedResponse(K, epsilon=EPSILON), n)
        for n in SIZES
    ],
    "local: unary encoding": [
        local_frequencies(UnaryEncoder(K, epsilon=EPSILON), n) for n in SIZES
    ],
    "local: Hadamard response": [
        local_frequencies(HadamardResponse(K, epsilon=EPSILON), n)
        for n in SIZES
    ],
    "central: Laplace noise on counts": [
        central_frequencies(n) for n in SIZES
    ],
}

# %%
# A mean
# ------
# The second statistic is the mean of a number with public bounds. In the local model, each person adds Laplace noise,
# whose scale is the width of the bounds over epsilon, or uses the piecewise mechanism with its bounded reports. In the
# central model, such Laplace noise is added to the sum once.


def local_means(mechanism, n):
    """Return the mean absolute error in the local model, in years."""
    people = ages(n)[:, None]
    mechanism = mechanism.fit(people)
    draws = [
        mechanism.means(mechanism.transform(people))[0]
        for _ in range(5 * repeats(n) if n < 300_000 else 5)
    ]
    return np.abs(np.array(draws) - people.mean()).mean()


def central_mean(n):
    """Return the mean absolute error in the central model, in years."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=100.0, size=500)
    noise = mechanism.release(np.zeros(500), NoiseSource().stream("sum"))
    return np.abs(noise).mean() / n


means = {
    "local: Laplace noise": [
        local_means(LocalLaplace((0, 100), epsilon=EPSILON), n) for n in SIZES
    ],
    "local: piecewise mechanism": [
        local_means(PiecewiseMechanism((0, 100), epsilon=EPSILON), n)
        for n in SIZES
    ],
    "central: Laplace noise on the sum": [central_mean(n) for n in SIZES],
}

# %%
# Errors against the number of people
# -----------------------------------
# The lines are theory. A normal error has a mean absolute value of :math:`\sqrt{2/\pi}` standard deviations. The
# variance of one report of the optimised unary encoding is about :math:`4e^\varepsilon/(e^\varepsilon-1)^2`. The mean
# absolute value of Laplace noise is its scale. The arrow shows how many people the local model needs for the error that
# the central model has with 100 people.

N = np.geomspace(SIZES[0], SIZES[-1], 50)
NORMAL = math.sqrt(2 / math.pi)
spread = 2 * math.exp(EPSILON / 2) / math.expm1(EPSILON)


def plot_errors(axis, errors_of, local_theory, central_theory):
    """Plot measured errors, and the errors by theory."""
    axis.plot(N, local_theory, color="0.5", label="theory, local")
    axis.plot(N, central_theory, "--", color="0.5", label="theory, central")
    for (name, errors), marker in zip(errors_of.items(), "os^D", strict=False):
        colour = "k" if name.startswith("central") else None
        axis.plot(SIZES, errors, marker, color=colour, label=name)
    axis.set(xscale="log", yscale="log", xlabel="number of people")
    axis.legend(fontsize=8, loc="lower left")


def draw_arrow(axis, local_theory, central_theory):
    """Mark the people that the local model needs for the same error."""
    error = central_theory[0]
    n_local = (local_theory[0] / error) ** 2 * N[0]
    arrow = {"arrowstyle": "->", "color": "C3"}
    axis.annotate("", (n_local, error), (N[0], error), arrowprops=arrow)
    text = f"{n_local / N[0]:.0f} times as many"
    axis.text(N[0] * 3, error / 1.2, text, color="C3", va="top")
    print(
        f"100 people in the central model are worth {n_local:,.0f} local ones"
    )


figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
theory_of_frequencies = (NORMAL * spread / np.sqrt(N), 2 / EPSILON / N)
plot_errors(axes[0], frequencies, *theory_of_frequencies)
draw_arrow(axes[0], *theory_of_frequencies)
axes[0].set_title("Frequencies of 16 answers")
axes[0].set_ylabel("mean absolute error of a frequency")
width = 100 / EPSILON
theory_of_means = (NORMAL * math.sqrt(2) * width / np.sqrt(N), width / N)
plot_errors(axes[1], means, *theory_of_means)
draw_arrow(axes[1], *theory_of_means)
axes[1].set_title("Mean age, with public bounds 0 and 100")
axes[1].set_ylabel("mean absolute error in years")
figure.suptitle(f"Errors at epsilon {EPSILON:g}, with and without a collector")

# %%
# Summary
# -------
# The local model needs no trusted collector, but its error is larger. The ratio of the two errors grows with the square
# root of the number of people. Use the local model for surveys of very many people, for few questions, or if you may
# not collect the records. :ref:`local` has the mechanisms, and a classifier.

plt.show()
