"""Public facts about the columns of a table."""

from .declared import Category, Number
from .schema import Schema

__all__ = ["Category", "Number", "Schema"]
