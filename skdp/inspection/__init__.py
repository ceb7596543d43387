"""Pictures of what privacy costs: of accuracy, of a budget over time, and of coefficients within their noise."""

from ._coefficients import CoefficientUncertaintyDisplay
from ._ledger import LedgerDisplay
from ._utility import PrivacyUtilityDisplay

__all__ = ["CoefficientUncertaintyDisplay", "LedgerDisplay", "PrivacyUtilityDisplay"]
