"""Neighbouring relations of guarantees."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """The neighbouring relation of a guarantee or a charge.

    The values are text, for ledgers and JSON. Charges with different relations add up to a statement about the
    *contents* of one record. A release with the relation ``ADD_OR_REMOVE_RECORD`` compares the data with and without
    the record. A release with the relation ``REPLACE_RECORD`` compares the record with any other row in its place. A
    charge about groups adds up with other charges about groups only.

    Examples
    --------
    >>> from skdp import BudgetAccountant
    >>> from skdp.accounting import PrivacyCost, Relation
    >>> budget = BudgetAccountant(epsilon=1.0)
    >>> budget.charge(PrivacyCost.of_pair(0.5, 0.0), relation=Relation.REPLACE_RECORD)
    >>> print(budget.records[0].relation)
    replace one record; their number is public
    """

    ADD_OR_REMOVE_RECORD = "add or remove one record"
    ADD_OR_REMOVE_GROUP = "add or remove all records of one group"
    REPLACE_RECORD = "replace one record; their number is public"

    @property
    def unit(self) -> str:
        """Unit of the relation: "record" or "group"."""
        return "group" if self is Relation.ADD_OR_REMOVE_GROUP else "record"

    @classmethod
    def of_unit(cls, unit: str) -> Relation:
        """Return the relation that adds or removes one unit.

        Parameters
        ----------
        unit : {"record", "group"}
            The unit.

        Returns
        -------
        relation : Relation
        """
        return cls.ADD_OR_REMOVE_GROUP if unit == "group" else cls.ADD_OR_REMOVE_RECORD
