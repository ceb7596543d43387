r"""
The worst case of objective perturbation
========================================

``ObjPertLogReg`` with two classes and ``delta > 0`` uses as much of a budget as Gaussian noise, at every epsilon. The
user guide proves this if :math:`\kappa = C R^2` is at most 3.7 times :math:`\mu`, the parameter of the noise. This
example computes the worst case for this ratio and for larger ratios.
"""

# %%
# The problem in one dimension
# ----------------------------
# Let :math:`t` be the noise in the direction of the added record, in units of its standard deviation. Without the
# record, :math:`t` has a standard normal distribution. With the record, :math:`t + \mu u(t)` has this distribution,
# where :math:`u(t)` between 0 and 1 is the derivative of the loss of the record. The other records determine which
# increasing function :math:`u` is. The regulariser limits the growth of :math:`u`: the logarithm of :math:`u / (1 - u)`
# grows at a rate of at most :math:`\kappa/\mu`. Therefore the delta for a given epsilon is the maximum of a dynamic
# program. On each cell of a grid, :math:`u` stays constant or grows as fast as the limit allows.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, ndtr

from skdp.accounting import gaussian_delta, gaussian_mu

MU = gaussian_mu(1.0, 1e-5)
STEP = 0.02
T = np.arange(-8, 8 + STEP / 2, STEP)


def worst_case(epsilon, ratio):
    """Return the largest delta of all functions u, and the worst one."""
    logit = np.arange(-16, 16, ratio * STEP)
    u = np.concatenate([[0.0], expit(logit), [1.0]])
    after = np.minimum(np.arange(len(u)) + 1, len(u) - 2)
    after[0], after[-1] = 0, len(u) - 1
    shifted, gaussian = ndtr(T[:, None] + MU * u), np.exp(epsilon) * ndtr(T)
    future, grows = np.zeros(len(u)), np.zeros((len(T), len(u)), dtype=bool)
    for k in range(len(T) - 2, -1, -1):
        price = gaussian[k + 1] - gaussian[k]
        stay = np.maximum(0, shifted[k + 1] - shifted[k] - price) + future
        grow = (
            np.maximum(0, shifted[k + 1, after] - shifted[k] - price)
            + future[after]
        )
        grows[k], future = grow > stay, np.maximum(stay, grow)
    path = [int(future.argmax())]
    for k in range(len(T) - 1):
        path.append(int(after[path[-1]]) if grows[k, path[-1]] else path[-1])
    return future.max(), u[path]


# %%
# Comparison with the Gaussian mechanism
# --------------------------------------
# Up to a ratio of 3.7, the worst function is the constant :math:`u = 1`, which is the shift of a Gaussian mechanism.
# For larger ratios, a function that grows is worse, most of all if epsilon is smaller than that of a single fit. The
# left panel shows the delta of the worst function, divided by the delta of the Gaussian mechanism. The right panel
# shows the worst functions.

RATIOS = [3.7, 5.0, 6.0]
epsilons = MU * np.linspace(0.1, 3.7, 25)
gauss = gaussian_delta(epsilons, MU)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), layout="constrained"
)
for ratio in RATIOS:
    deltas = np.array([worst_case(epsilon, ratio)[0] for epsilon in epsilons])
    left.plot(epsilons, deltas / gauss, label=f"κ = {ratio} μ")
    right.plot(T, worst_case(MU, ratio)[1], label=f"κ = {ratio} μ")
    print(
        f"ratio {ratio}: at most {np.max(deltas / gauss):.3f} "
        "times the Gaussian delta"
    )
left.set(xlabel="epsilon", ylabel="delta, divided by the Gaussian delta")
right.set(
    xlabel="noise in the direction of the record, t",
    ylabel="derivative u(t) of the worst case",
    xlim=(-5, 3),
)
right.set_title(f"epsilon = {MU:.2f}")
left.legend()
right.legend()

plt.show()
