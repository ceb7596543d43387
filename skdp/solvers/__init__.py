"""Optimisation that models share, from losses to rules.

- `losses`: the losses, with the constants that privacy rests on and what each solver needs.
- `regularised`, `certified`, `objective_perturbation`: minimisers with a proved residual, and their release.
- `descent`, `linear_descent`, `clipped_gradients`: noisy gradient steps, and exact sums of clipped gradients.
- `moments`: released second moments. `calibration`: six sums that correct a regression.
- `loss_sums`: sums of losses on a ball, for the exponential mechanism.
- `threads`: how many threads of BLAS small matrices may use.
- `scaling`, `linear_rule`: bounds of columns and targets mapped to [-1, 1], and predictions from scores.
"""
