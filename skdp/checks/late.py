"""Functions of upper packages that lower ones call. ``skdp/__init__`` says where they are; calling one imports it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Say that the function `name` is in `module`."""
    _HOME[name] = module


def call(name: str, *args: Any) -> Any:
    """Call a function that was provided."""
    return getattr(import_module(_HOME[name]), name)(*args)
