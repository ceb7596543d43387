"""Noise of OpenDP, at its default granularity, and at a coarse one for vectors of known size."""

from __future__ import annotations


def cases(size):
    """Return names, and functions that draw a given amount of noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = [0.5] * size
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    kinds = [("laplace", dp.m.make_laplace, dp.l1_distance), ("gaussian", dp.m.make_gaussian, dp.l2_distance)]
    found = {}
    for kind, make, metric in kinds:
        default, coarse = make(domain, metric(T=float), scale=1.0), make(sized, metric(T=float), scale=1.0, k=-40)
        found[f"OpenDP {kind}"] = lambda m=default: m(values)
        found[f"OpenDP {kind}, k=-40"] = lambda m=coarse: m(values)
    return found
