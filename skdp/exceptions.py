"""Exceptions and warnings. Their messages are made of public quantities only."""


class BudgetError(RuntimeError):
    """A charge does not fit into what is left of a budget.

    Raised before any noise is drawn and before anything is computed from the data.
    """


class ReleaseError(RuntimeError):
    """An estimator asked for a release that its plan does not hold, or asked for one twice."""


class CertificateError(RuntimeError):
    """The solver cannot prove its tolerance in the arithmetic it has; nothing was released, the charge stands.

    It takes far more rows than `tol` is meant for, or a `tol` near its least value with large coefficients.
    """


class NotEnoughDataError(ValueError):
    """A private release holds too little to go on: an outcome of the mechanism, which was paid for."""


class PrivacyAssumptionWarning(UserWarning):
    """The guarantee rests on an assumption that the user has not stated."""


class SeededNoiseWarning(UserWarning):
    """Noise comes from a seed while a budget is being charged: who knows the seed can remove the noise."""


class LedgerError(OSError):
    """A ledger's file is missing, damaged, newer than this library, locked or not writable. Nothing was charged."""
