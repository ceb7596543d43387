"""Tables that were not used to choose any constant of this library: those of statsmodels, and a simulated one.

The simulated table follows a published regression. Bounds and categories are from the documentation of statsmodels and
from general knowledge, and never from the records.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from skdp import Category, Number, Schema

YES_NO, OPINION = [0, 1], Number(1, 7, step=1)

# "Age" is that of married readers of a magazine.
FAIR = {
    "rate_marriage": Number(1, 5, step=1),
    "age": (15, 65),
    "yrs_married": (0, 40),
    "children": (0, 10),
    "religious": Number(1, 4, step=1),
    "educ": Number(9, 20, step=1),
    "occupation": [1, 2, 3, 4, 5, 6],
    "occupation_husb": [1, 2, 3, 4, 5, 6],
}
# The experiment paid a family at most some thousand dollars, and its limit on expenses was 1000 dollars.
RANDHIE = {
    "lncoins": (0.0, math.log(101)),
    "idp": YES_NO,
    "lpi": (0.0, 8.0),
    "fmde": (0.0, 9.0),
    "physlm": (0, 1),
    "disea": (0, 60),
    "hlthg": YES_NO,
    "hlthf": YES_NO,
    "hlthp": YES_NO,
}
# The population is in thousands, and no city of the United States has ten million.
ANES = {
    "logpopul": (math.log(0.1), math.log(10_000)),
    "TVnews": Number(0, 7, step=1),
    "selfLR": OPINION,
    "ClinLR": OPINION,
    "DoleLR": OPINION,
    "age": (18, 100),
    "educ": Number(1, 7, step=1),
    "income": Number(1, 24, step=1),
}
WAGE = {
    "educ": Number(0, 20, step=1),
    "exper": Number(0, 55, step=1),
    "tenure": Number(0, 50, step=1),
    "female": YES_NO,
    "married": YES_NO,
}


def _from_statsmodels(name):
    import statsmodels.api

    return statsmodels.api.datasets.__dict__[name].load_pandas().data


def _fair():
    """Whether a married woman had an affair (Fair, 1978)."""
    data = _from_statsmodels("fair")
    return data[list(FAIR)], (data["affairs"] > 0).to_numpy(int), Schema(FAIR, target=Category([0, 1]))


def _health(target, schema):
    """Return a table of RAND's experiment on health insurance, with a record for each person and year.

    The table does not name persons. Records of one person are adjacent, and have the same plan and state of health.
    """
    data = _from_statsmodels("randhie")
    same = data[["lncoins", "idp", "lpi", "fmde", "physlm", "disea"]].to_numpy()
    persons = np.append(0, np.cumsum(np.any(same[1:] != same[:-1], axis=1)))
    return data[list(RANDHIE)], target(data["mdvis"].to_numpy()), schema, persons


def _any_visit():
    """Whether a person visited a doctor in a year."""
    return _health(lambda visits: (visits > 0).astype(int), Schema(RANDHIE, target=Category([0, 1])))


def _visits():
    """The logarithm of 1 plus the number of visits, of which at most 20 count."""
    return _health(lambda visits: np.log1p(np.clip(visits, 0, 20)), Schema(RANDHIE, target=(0.0, math.log(21))))


def _election(target, column, classes):
    data = _from_statsmodels("anes96")
    columns = ANES | column
    return data[list(columns)], data[target].to_numpy(int), Schema(columns, target=Category(list(range(classes))))


def _wage(n=20_000):
    """Logarithms of hourly wages from a linear equation, with coefficients of the size that textbooks report."""
    import pandas

    rng = np.random.default_rng(714)
    educ = np.clip(np.round(rng.normal(12.6, 2.8, n)), 0, 20)
    exper = np.clip(np.round(rng.gamma(1.56, 10.9, n)), 0, 55)
    tenure = np.clip(np.round(rng.gamma(0.5, 10.2, n)), 0, exper)
    female, married = rng.random(n) < 0.479, rng.random(n) < 0.608
    y = 0.321 + 0.213 * (married & ~female) - 0.198 * (married & female) - 0.110 * (~married & female)
    y += 0.0789 * educ + 0.0268 * exper - 0.00054 * exper**2 + 0.0291 * tenure - 0.00053 * tenure**2
    X = pandas.DataFrame(dict(educ=educ, exper=exper, tenure=tenure, female=female * 1.0, married=married * 1.0))
    return X, np.clip(y + rng.normal(0, 0.393, n), -1, 4), Schema(WAGE, target=(-1.0, 4.0))


#: Functions that return features, labels or targets, their schema, and the person of each record if persons have
#: several.
LOADERS = {
    "fair": _fair,
    "any visit": _any_visit,
    # The vote for one of two candidates in the election of 1996, and one of seven degrees of identification.
    "vote": partial(_election, "vote", {"PID": Number(0, 6, step=1)}, 2),
    "party": partial(_election, "PID", {"vote": YES_NO}, 7),
    "visits": _visits,
    "wage": _wage,
}
