"""Audits of the privacy of estimators, of this library and others."""

from ._bounds import epsilon_lower_bound, mu_lower_bound, one_run_epsilon, one_run_p_value
from ._one_run import OneRunAudit, audit_one_run
from ._runs import EpsilonAudit, audit_epsilon
from ._sensitivity import LargestChange, brute_force_sensitivity

__all__ = [
    "EpsilonAudit",
    "LargestChange",
    "OneRunAudit",
    "audit_epsilon",
    "audit_one_run",
    "brute_force_sensitivity",
    "epsilon_lower_bound",
    "mu_lower_bound",
    "one_run_epsilon",
    "one_run_p_value",
]
