"""One default call on many tables beside the best peer: counts, a table and a picture for README and the pages."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import numpy as np
from report_tables import DECIDING, gains, is_public, is_variant, read
from results import FOLDER, csv_table, figure
from results import read as read_rows
from summary import best, half_width
from tables import DELTA
from tasks import TRAIN_SHARE

PATH = FOLDER / "tables.csv"

#: What is shown of a table: its name, and what is predicted.
TITLES = {
    "adult": "Adult, income",
    "bank": "Bank marketing",
    "default": "Default of credit cards",
    "compas": "COMPAS, two years",
    "nursery": "Nursery, 5 classes",
    "hpc": "Computing jobs, 4 classes",
    "covtype": "Forest cover, 7 classes",
    "digits": "Digits, 10 classes",
    "bike": "Bike rentals by the hour",
    "california": "California house prices",
    "computers": "Computer prices",
    "diamonds": "Diamond prices",
}
RECORDS = {
    **{"adult": 45_222, "bank": 45_211, "default": 30_000, "compas": 7_214, "nursery": 12_960, "hpc": 4_331},
    **{"covtype": 10_000, "digits": 1_797, "bike": 17_376, "california": 20_640, "computers": 6_259},
    "diamonds": 53_940,
}
PEERS = {"interpret": "DP-EBM", "opacus": "DP-SGD", "diffprivlib": "diffprivlib"}
METRICS = {"auc": "AUC", "r2": "R²"}

#: An estimator is useful if it gains this share of what it gains with the largest epsilon.
SHARE = 0.9

#: The epsilons with figures of peers, and the one of the picture.
EPSILONS = (0.1, 1.0, 10.0)
DRAWN = 1.0


@dataclass(frozen=True)
class Cell:
    """A table at an epsilon: the recommended estimator of skdp, the best peer, and the best model without privacy."""

    task: str
    metric: str
    epsilon: float
    ours: float
    peer: str
    theirs: float
    ceiling: float
    difference: float  # over the splits that both have
    interval: float | None  # half its width

    @property
    def clear(self):
        """Whether the 95 % interval of the difference excludes 0."""
        return self.interval is not None and abs(self.difference) > self.interval


def cells(path=PATH):
    """Return the cells of all tables in the order of their titles."""
    return [
        cell
        for task in TITLES
        for (name, metric), methods in read(read_rows(path)).items()
        if name == task and metric in DECIDING
        for cell in cells_of(task, metric, methods)
    ]


def cells_of(task, metric, methods):
    """Yield the cells of a table."""
    ours = methods["skdp", DECIDING[metric][0], DELTA]
    ceiling = max(v[math.inf].mean for key, v in methods.items() if is_public(key))
    for epsilon in EPSILONS:
        of_peers = [
            (key, v[epsilon])
            for key, v in methods.items()
            if key[0] in PEERS and key[2] in (0.0, DELTA) and epsilon in v and not is_variant(key)
        ]
        (library, _, _), theirs = best(of_peers, metric)
        gain = gains(ours[epsilon], theirs, metric)
        values = (ours[epsilon].mean, PEERS[library], theirs.mean, ceiling, float(np.mean(gain)), half_width(gain))
        yield Cell(task, metric, epsilon, *values)


def figures(found, path=PATH):
    """Figures that the documentation may quote."""
    counts = {
        "": len({cell.task for cell in found}),
        "/cells": len(found),
        "/ahead": sum(cell.difference > 0 for cell in found),
        "/clear": sum(cell.difference > 0 and cell.clear for cell in found),
    }
    quoted = {f"tables{key}": str(count) for key, count in counts.items()}
    behind, n_cells = better(path)
    quoted |= {"tables/behind": str(len(behind)), "tables/all": str(n_cells)}
    return quoted | {f"records/{name}": f"{n:,}" for name, n in records_needed(path).items()}


def records_needed(path=PATH):
    """Return, for each estimator of skdp, from how many records times epsilon on it is useful, with two digits.

    That is the median over the tables of the smallest number from which on it gains nine tenths of what it gains at the
    largest epsilon, compared with a guess.
    """
    numbers = defaultdict(list)
    for (task, metric), methods in read(read_rows(path)).items():
        for (library, name, _), by_epsilon in methods.items():
            if library != "skdp" or metric not in DECIDING:
                continue
            guess = 0.5 if metric == "auc" else 0.0
            gained = {e: by_epsilon[e].mean - guess for e in sorted(by_epsilon) if by_epsilon[e].by_split}
            most = gained[max(gained)]
            enough = [e for e in gained if all(gained[f] >= SHARE * most for f in gained if f >= e)]
            numbers[name].append(TRAIN_SHARE * RECORDS[task] * enough[0])
    return {name: round(round(median(of), 1 - math.floor(math.log10(median(of))))) for name, of in numbers.items()}


def rows(found):
    """Return the lines of a table: a title, records, the score, three epsilons, the best peer, and without privacy."""
    lines = []
    for task in dict.fromkeys(cell.task for cell in found):
        by_epsilon = {cell.epsilon: cell for cell in found if cell.task == task}
        drawn = by_epsilon[DRAWN]
        ours = [figure(cell.ours) for cell in by_epsilon.values()]
        peer = f"{figure(drawn.theirs)} ({drawn.peer})"
        lines.append([TITLES[task], f"{RECORDS[task]:,}", METRICS[drawn.metric], *ours, peer, figure(drawn.ceiling)])
    return lines


HEADER = ("table", "records", "score", "ε 0.1", "ε 1", "ε 10", "best peer, ε 1", "no privacy")


def for_page(found):
    """Return the table in reStructuredText."""
    return csv_table("One default call with a schema, delta 1e-6", list(HEADER), rows(found))


def better(path=PATH):
    """Return the cells in which another private method has a better score: title, epsilon, both scores, the method; and
    the number of cells.
    """
    lines, n_cells = [], 0
    of_tables = read(read_rows(path))
    for task, (metric, methods) in ((t, (m, of)) for t in TITLES for (name, m), of in of_tables.items() if name == t):
        if metric not in DECIDING:
            continue
        name = DECIDING[metric][0]
        for epsilon, ours in sorted(methods["skdp", name, DELTA].items()):
            others = [
                (key, by_epsilon[epsilon])
                for key, by_epsilon in methods.items()
                if key[:2] != ("skdp", name) and key[2] in (0.0, DELTA) and epsilon in by_epsilon and not is_public(key)
            ]
            n_cells += 1
            (library, other, _), theirs = best(others, metric)
            if round(theirs.mean - ours.mean, 3) > 0:
                other = PEERS.get(library, other)
                lines.append([TITLES[task], f"{epsilon:g}", figure(ours.mean), figure(theirs.mean), other])
    return lines, n_cells


def described(found):
    """What the picture shows, as a text in its file, so that a test can compare it with the results."""
    return json.dumps([line[:1] + line[2:] for line in rows(found)], ensure_ascii=False)


def picture(found, colors):
    """Draw the first picture of README: scores at one epsilon. `colors` are ours, theirs, and the ceiling's."""
    from matplotlib import pyplot

    shown = [cell for cell in found if cell.epsilon == DRAWN]
    drawing, axis = pyplot.subplots(figsize=(6.4, 4.9), layout="constrained")
    looks = (
        ("boosted trees or a linear model, not private", [cell.ceiling for cell in shown], "|", colors[2]),
        ("best of diffprivlib, DP-EBM and tuned DP-SGD", [cell.theirs for cell in shown], "o", colors[1]),
        ("skdp, one default call", [cell.ours for cell in shown], "D", colors[0]),
    )
    lines = range(len(shown))
    for i, cell in enumerate(shown):
        axis.plot([max(cell.theirs, 0), cell.ceiling], [i, i], color=colors[2], linewidth=0.8, alpha=0.5, zorder=1)
    for label, values, marker, color in looks:
        size = 90 if marker == "|" else 42
        axis.scatter(np.maximum(values, 0), lines, marker=marker, s=size, color=color, label=label, zorder=2)
    axis.set_yticks(lines, [f"{TITLES[cell.task]} ({METRICS[cell.metric]})" for cell in shown])
    axis.invert_yaxis()
    axis.set(xlim=(0.45, 1.01), xlabel="test score at ε = 1, δ = 1e-6")
    drawing.legend(loc="outside lower center", ncols=2, fontsize=9.5, columnspacing=1.2)
    return drawing
