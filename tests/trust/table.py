"""All subjects."""

from tests.trust import linear

SUBJECTS = [*linear.SUBJECTS]
