"""The Adult data set, prepared without using its values. Every bound and category is written down here."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

_FILES = ("adult.data.gz", "adult.test.gz")

# Ranges of the answers to the questionnaire.
_RANGES = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99999),
    "capital_loss": (0, 4356),
    "hours_per_week": (1, 99),
}

# Categories of the data set's documentation, separated by blanks.
_CATEGORIES = {
    name: names.split()
    for name, names in {
        "work_class": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
        "education": "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm "
        "Bachelors Masters Prof-school Doctorate",
        "marital_status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse",
        "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
        "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
        "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
        "sex": "Female Male",
        "native_country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
        "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
        "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
        "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
    }.items()
}


def _folders(data_home: str | os.PathLike[str] | None) -> Iterator[Path]:
    if data_home is not None:
        yield Path(data_home).expanduser()
        return
    if os.environ.get("SKDP_DATA"):
        yield Path(os.environ["SKDP_DATA"])
    yield Path("..", "shared", "data")


def load_adult(data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load the UCI Adult data set (census income).

    Rows with missing entries are left out. Numbers are scaled to [0, 1] by public ranges, and categories are one-hot by
    the documented lists. All columns are divided by the square root of 13, the number of original columns, so that the
    norm of a row is at most 1.

    Parameters
    ----------
    data_home : path-like, optional
        Folder with ``adult.data.gz`` and ``adult.test.gz``. These are the two compressed files of the UCI repository,
        with a line of column names. By default, it is the folder of the environment variable ``SKDP_DATA``, or
        ``../shared/data``.

    Returns
    -------
    adult : Bunch
        With ``data`` of shape (45222, 104), ``target`` (1 for an income above 50,000 dollars), ``feature_names``,
        ``data_norm`` and ``classes``.

    Raises
    ------
    FileNotFoundError
        If no folder holds both files.

    References
    ----------
    .. [1] B. Becker and R. Kohavi, "Adult", UCI Machine Learning Repository, 1996, CC BY 4.0.

    Examples
    --------
    >>> from skdp.datasets import load_adult
    >>> adult = load_adult("~/data/adult")  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (45222, 104)
    """
    folders = list(_folders(data_home))
    folder = next((f for f in folders if all((f / name).is_file() for name in _FILES)), None)
    if folder is None:
        raise FileNotFoundError(
            f"{' and '.join(_FILES)} are in none of {', '.join(str(f) for f in folders)}; name their folder by "
            "data_home, or by the environment variable SKDP_DATA"
        )
    records = [record for name in _FILES for record in _complete_records(folder / name)]
    scaled = [
        np.clip((np.array([float(r[name]) for r in records]) - low) / (high - low), 0, 1)
        for name, (low, high) in _RANGES.items()
    ]
    indicators = [
        np.array([r[name] for r in records])[:, None] == np.array(categories)
        for name, categories in _CATEGORIES.items()
    ]
    X = np.column_stack([*scaled, *indicators]) / math.sqrt(len(_RANGES) + len(_CATEGORIES))
    return Bunch(
        data=X,
        target=np.array([r["target"].startswith(">50K") for r in records]).astype(int),
        feature_names=[*_RANGES, *(f"{name}={c}" for name, cs in _CATEGORIES.items() for c in cs)],
        data_norm=1.0,
        classes=[0, 1],
    )


def _complete_records(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        for record in csv.DictReader(file, skipinitialspace=True):
            values = {key: value.strip() for key, value in record.items() if value is not None}
            if len(values) == len(record) and "?" not in values.values():
                yield values
