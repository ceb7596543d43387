"""Displays of coefficients and curves under privacy, and model cards."""

from ._additive import AdditiveTermsDisplay
from ._card import model_card
from ._displays import CoefficientUncertaintyDisplay, MarginalsDisplay
from ._trusted import TRUSTED_TYPES

__all__ = [
    "TRUSTED_TYPES",
    "AdditiveTermsDisplay",
    "CoefficientUncertaintyDisplay",
    "MarginalsDisplay",
    "model_card",
]
