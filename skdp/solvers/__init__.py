"""Optimisation that several models use, from losses to rules.

- `losses`: the losses, with the constants of the privacy proofs and the methods for each solver.
- `regularised`, `certified`, `row_objectives`: minimisers with a proved residual; the plan of objective perturbation.
- `linear_descent`, `clipped_gradients`: noisy gradient steps, and exact sums of clipped gradients.
- `calibration`: corrections of what clipping and noise do to a fit. `target_range`: a range of the targets.
- `moments`: released second moments. `tables`: naive Bayes from noisy tables.
"""
