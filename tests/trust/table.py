"""All subjects."""

from tests.trust import linear, local, searches

SUBJECTS = [*linear.SUBJECTS, *local.SUBJECTS, *searches.SUBJECTS]
