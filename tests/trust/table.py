"""All subjects."""

from tests.trust import counts, groups, linear, preprocessing, trees

SUBJECTS = [*linear.SUBJECTS, *counts.SUBJECTS, *groups.SUBJECTS, *preprocessing.SUBJECTS, *trees.SUBJECTS]
