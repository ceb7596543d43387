"""All subjects."""

from tests.trust import linear, local

SUBJECTS = [*linear.SUBJECTS, *local.SUBJECTS]
