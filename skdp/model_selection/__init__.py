"""Private model selection and evaluation."""

from ._allocation import allocate
from ._evaluation import Evaluation, private_cross_val_score, private_score
from ._pipeline import PrivatePipeline, make_private_pipeline
from ._search import DPGridSearchCV, DPRandomizedSearchCV

__all__ = [
    "DPGridSearchCV",
    "DPRandomizedSearchCV",
    "Evaluation",
    "PrivatePipeline",
    "allocate",
    "make_private_pipeline",
    "private_cross_val_score",
    "private_score",
]
