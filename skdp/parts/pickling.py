"""Jobs as bytes. Objects that hold a secret, or that could draw noise or charge a budget, are refused."""

from __future__ import annotations

import io
from typing import Any

# Noise, seeds, budgets and sessions come from these packages.
_CLIENT_ONLY = ("skdp.mechanisms.", "skdp.accounting.", "skdp.release.", "numpy.random.", "random.")

# What private estimators keep.
_SECRETS = {"accountant", "random_state"}


def dumps(job: Any) -> bytes:
    """Pickle a job, functions within functions included."""
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
    return not isinstance(obj, type) and not _SECRETS.isdisjoint(getattr(obj, "__dict__", ()))
