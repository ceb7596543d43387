"""The Adult data set, with bounds and categories from its documentation, not from its records."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from ..schema import Number, Schema

# The file of the examples, and the two files of the UCI repository.
_SOURCES = (("adult.csv.gz",), ("adult.data.gz", "adult.test.gz"))

# The folder of the examples, in the repository and below the working directory.
_EXAMPLES = Path("examples", "data")
_REPOSITORY = Path(__file__).resolve().parents[2]

# Ranges of the answers to the questionnaire.
_NUMBERS = {
    "age": Number(17, 90, step=1),
    "education_num": Number(1, 16, step=1),
    "capital_gain": Number(0, 99_999, scale="log"),
    "capital_loss": Number(0, 4356, scale="log"),
    "hours_per_week": Number(1, 99, step=1),
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

_LABELS = ["<=50K", ">50K"]


def load_adult(data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Load the UCI Adult data set (census income).

    The data set ships with the examples of the repository and of the source distribution, but not with the wheel. Rows
    with missing entries are left out.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder with ``adult.csv.gz`` of the examples, or with ``adult.data.gz`` and ``adult.test.gz``, which are the
        two files of the UCI repository, compressed, with a line of column names. If None, three folders are searched
        in this order: ``examples/data`` of the repository, ``examples/data`` in the working directory, and the folder
        that the environment variable ``SKDP_DATA`` names.

    Returns
    -------
    adult : Bunch
        A dictionary with attributes.

        table : dict of str to ndarray of shape (45222,)
            The raw columns by name, with text, and with the labels in the column ``"income"``.
        schema : Schema
            The bounds, steps, scales and categories of the columns, and the labels, from the documentation of the data.
        data : ndarray of shape (45222, 104)
            The same columns without labels: numbers scaled to [0, 1], and an indicator for each category. All entries
            are divided by the square root of 13, the number of columns, so that the norm of a row is at most 1.
        target : ndarray of shape (45222,)
            1 for an income above 50,000 dollars, else 0.
        feature_names : list of str
            The names of the columns of `data`.
        data_norm : float
            The largest norm of a row of `data`, 1.
        classes : list of int
            The labels of `target`, 0 and 1.

    Raises
    ------
    FileNotFoundError
        If no folder holds the files.

    Notes
    -----
    **Privacy.** Everything but `table`, `data` and `target` is public. It is taken from the documentation of the data
    set, and nothing is computed from the records.

    References
    ----------
    .. [1] B. Becker and R. Kohavi, "Adult", UCI Machine Learning Repository, 1996, CC BY 4.0, doi:10.24432/C5XW20.

    Examples
    --------
    >>> from skdp.datasets import load_adult
    >>> adult = load_adult()  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (45222, 104)
    """
    records = [record for path in _files_in(data_home) for record in _complete_records(path)]
    labels = np.array(_LABELS)
    table = {name: np.array([float(r[name]) for r in records]) for name in _NUMBERS}
    table |= {name: np.array([r[name] for r in records]) for name in _CATEGORIES}
    scaled = [
        np.clip((table[name] - column.low) / (column.high - column.low), 0, 1) for name, column in _NUMBERS.items()
    ]
    indicators = [table[name][:, None] == np.array(categories) for name, categories in _CATEGORIES.items()]
    target = np.array([record["income"].startswith(_LABELS[1]) for record in records]).astype(int)
    return Bunch(
        table=table | {"income": labels[target]},
        schema=Schema({**_NUMBERS, **_CATEGORIES}, target={"income": _LABELS}),
        data=np.column_stack([*scaled, *indicators]) / math.sqrt(len(table)),
        target=target,
        feature_names=[*_NUMBERS, *(f"{name}={c}" for name, cs in _CATEGORIES.items() for c in cs)],
        data_norm=1.0,
        classes=[0, 1],
    )


def _files_in(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the files of the data set, from the first folder that has all of one form."""
    if data_home is None:
        named = os.environ.get("SKDP_DATA")
        folders = [_REPOSITORY / _EXAMPLES, Path.cwd() / _EXAMPLES, *([Path(named).expanduser()] if named else [])]
    else:
        folders = [Path(data_home).expanduser()]
    for folder in folders:
        for names in _SOURCES:
            paths = [folder / name for name in names]
            if all(path.is_file() for path in paths):
                return paths
    files = " or with ".join(" and ".join(names) for names in _SOURCES)
    raise FileNotFoundError(
        f"The Adult data set is in none of the folders {', '.join(map(str, folders))}. Set data_home, or the "
        f"environment variable SKDP_DATA, to a folder with {files}."
    )


def _complete_records(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        rows = csv.reader(file, skipinitialspace=True)
        names = [*next(rows)[:-1], "income"]
        for row in rows:
            entries = [entry.strip() for entry in row]
            if len(entries) == len(names) and not {"", "?"} & set(entries):
                yield dict(zip(names, entries, strict=True))
