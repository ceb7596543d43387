"""Functions of upper packages that lower ones call. ``skdp/__init__`` names their modules, which calls import."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Register the module of the function `name`."""
    _HOME[name] = module


def call(name: str, *args: Any) -> Any:
    """Call a registered function."""
    return getattr(import_module(_HOME[name]), name)(*args)
