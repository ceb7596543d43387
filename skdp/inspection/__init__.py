"""Displays of accuracy, budgets, coefficients and curves under privacy, and model cards."""

from ._additive import AdditiveTermsDisplay
from ._card import model_card
from ._displays import CoefficientUncertaintyDisplay, LedgerDisplay, PrivacyUtilityDisplay
from ._trusted import TRUSTED_TYPES

__all__ = [
    "TRUSTED_TYPES",
    "AdditiveTermsDisplay",
    "CoefficientUncertaintyDisplay",
    "LedgerDisplay",
    "PrivacyUtilityDisplay",
    "model_card",
]
