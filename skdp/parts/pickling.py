"""Pickling of jobs. Objects that hold a secret, or that could draw noise or charge a budget, raise an error."""

from __future__ import annotations

import io
from typing import Any

# Classes of noise, seeds, budgets and sessions are in these packages.
_CLIENT_ONLY = ("skdp.mechanisms.", "skdp.accounting.", "skdp.release.", "numpy.random.", "random.")

# Attributes of estimators. None and the seed 0, which replaces a seed, are no secrets.
_SECRETS = ("accountant", "random_state")


def dumps(job: Any) -> bytes:
    """Pickle a job, including nested functions."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if _is_secret(obj):
                raise TypeError(f"an object of type {type(obj).__name__} must not leave the client")
            return super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file).dump(job)
    return file.getvalue()


def _is_secret(obj: Any) -> bool:
    if any(f"{base.__module__}.".startswith(_CLIENT_ONLY) for base in type(obj).__mro__):
        return True
    # A class is pickled by its name.
    own = {} if isinstance(obj, type) else getattr(obj, "__dict__", {})
    held = [own[name] for name in _SECRETS if own.get(name) is not None]
    return any(not (isinstance(value, int) and value == 0) for value in held)
