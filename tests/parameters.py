"""Public parameters without an estimator around them."""

from types import SimpleNamespace

from skdp.schema.encoding import TakesSchema


class Parameters(TakesSchema, SimpleNamespace):
    """What an estimator declares about columns."""
