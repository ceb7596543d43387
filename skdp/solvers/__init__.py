"""Optimisation that several models use, from losses to rules.

- `losses`: the losses, with the constants of the privacy proofs and the methods for each solver.
- `regularised`, `certified`, `objective_perturbation`: minimisers with a proved residual, and their release.
- `descent`, `linear_descent`, `clipped_gradients`: noisy gradient steps, and exact sums of clipped gradients.
- `moments`: released second moments. `calibration`: six sums that correct a regression.
- `loss_sums`: sums of losses on a ball, for the exponential mechanism.
- `threads`: the number of BLAS threads that small matrices may use.
- `scaling`, `linear_rule`: maps of bounds of columns and targets to [-1, 1], and predictions from scores.
"""
