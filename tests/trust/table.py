"""All subjects."""

from tests.trust import clusters, linear

SUBJECTS = [*linear.SUBJECTS, *clusters.SUBJECTS]
