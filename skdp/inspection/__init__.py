"""Displays of accuracy against privacy, of a budget over time, and of coefficients and curves within their noise."""

from ._additive import AdditiveTermsDisplay
from ._coefficients import CoefficientUncertaintyDisplay
from ._ledger import LedgerDisplay
from ._trusted import TRUSTED_TYPES
from ._utility import PrivacyUtilityDisplay

__all__ = [
    "TRUSTED_TYPES",
    "AdditiveTermsDisplay",
    "CoefficientUncertaintyDisplay",
    "LedgerDisplay",
    "PrivacyUtilityDisplay",
]
