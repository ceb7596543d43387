"""Tables and figures of the page on synthetic tables, from the file of `bench_synthetic`.

Two methods are compared by their means on the splits that both have. A difference within `TIE` is a tie.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import results
from results import csv_table

TITLES = {
    "adult": "Adult",
    "bank": "Bank marketing",
    "default": "Default of credit cards",
    "compas": "COMPAS",
    "nursery": "Nursery",
    "hpc": "Computing jobs",
    "bike": "Bike rentals",
    "diamonds": "Diamond prices",
}
REGRESSION = ("bike", "diamonds")
OURS, DIRECT, REAL = ("skdp", "DPTableGenerator"), ("skdp", "DPAdditive"), ("scikit-learn", "real rows")
METHODS = {
    REAL: "real rows, not private",
    DIRECT: "one direct model: additive",
    OURS: "DPTableGenerator",
    ("skdp", "DPTableGenerator(independent)"): "independent columns",
    ("mbi", "AIM"): "AIM of mbi",
    ("mbi", "AIM(max_model_size=1)"): "AIM of mbi, 1 MB of model",
    ("mbi", "MST"): "MST of mbi",
}
PEERS = [key for key in METHODS if key[0] == "mbi"]
EPSILONS = (0.1, 1.0, 3.0)
ERRORS, SCORES = ("tv1", "tv2", "tv3"), ("boosting", "linear")

#: Differences of at most so much are ties.
TIE = 0.005


def read(path):
    """Return values by split: ``[table][library, method][epsilon][metric][split]``, and what happened without one."""
    values = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(dict))))
    failures = {}
    for row in results.read(path):
        key = row["library"], row["method"]
        at = values[row["task"]][key][row["epsilon"]]
        if row["status"] != "ok":
            failures[row["task"], key, row["epsilon"]] = row["status"]
            continue
        at[row["metric"]][row["split"]] = row["value"]
        at["seconds"][row["split"]] = row["seconds"]
    return values, failures


def mean(by_split):
    return float(np.mean(list(by_split.values()))) if by_split else None


def number(value):
    """A number with three digits after its point, and none before."""
    return "–" if value is None else f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def cell(at, metrics, failure):
    """Return the means of some metrics, with the number of splits if it is below three."""
    found = [mean(at.get(metric, {})) for metric in metrics]
    if all(value is None for value in found):
        return failure.split(":")[0].replace("timeout", "no table in time") if failure else "–"
    n_splits = max(len(at.get(metric, {})) for metric in metrics)
    text = " / ".join(number(value) for value in found if value is not None)
    return text + (f" ({n_splits})" if n_splits < 3 else "")


def block(title, values, failures, metrics, of_method):
    """Return a table with a row for each data table and method, and a column for each epsilon."""
    rows = []
    for task in TITLES:
        name = TITLES[task]
        for key, shown in METHODS.items():
            if task not in values or key not in values[task] or not of_method(key):
                continue
            wanted = ("direct",) if key == DIRECT else metrics
            by_epsilon = values[task][key]
            cells = [
                cell(by_epsilon.get(math.inf if key == REAL else e, {}), wanted, failures.get((task, key, e), ""))
                for e in EPSILONS
            ]
            if key == REAL:
                cells = [cells[0], "", ""]
            if any(text not in ("–", "") for text in cells):
                rows.append([name, shown, *cells])
                name = ""
    return csv_table(title, ["table", "method", *(f"ε {e:g}" for e in EPSILONS)], rows, [18, 28, 20, 20, 20])


def comparisons(values, ours, other, metric, ours_metric=None):
    """Yield (table, epsilon, ours minus the other) where both have a value on a common split."""
    for task in (task for task in TITLES if task in values):
        for epsilon in EPSILONS:
            first = values[task][ours][epsilon].get(ours_metric or metric, {})
            second = values[task][other][math.inf if other == REAL else epsilon].get(metric, {})
            common = sorted(set(first) & set(second))
            if common:
                yield task, epsilon, float(np.mean([first[split] - second[split] for split in common]))


def counts(differences, better):
    """Return the numbers of cells that are ahead, tied and behind. `better` is the sign of a better difference."""
    signed = [better * difference for _, _, difference in differences]
    return {
        "cells": len(signed),
        "ahead": sum(one > TIE for one in signed),
        "ties": sum(abs(one) <= TIE for one in signed),
        "behind": sum(one < -TIE for one in signed),
    }


def against_peers(values):
    """Return a table: in how many cells the generator is ahead of each peer, tied, and behind."""
    rows = []
    for key in PEERS:
        for metric, title, better in (
            ("tv2", "tables of two columns", -1),
            ("tv3", "tables of three columns", -1),
            ("boosting", "boosting", 1),
            ("linear", "linear model", 1),
        ):
            found = counts(list(comparisons(values, OURS, key, metric)), better)
            if found["cells"]:
                rows.append([METHODS[key], title, *(str(found[name]) for name in ("ahead", "ties", "behind"))])
    return csv_table(
        f"DPTableGenerator against peers: cells with a difference above {TIE:g}, and ties",
        ["peer", "error or score", "ahead", "tie", "behind"],
        rows,
    )


def behind(values):
    """Return a table of the cases in which a peer is better, by an error or a score, by more than a tie."""
    rows = []
    for key in PEERS:
        for metric, title, better in (("tv2", "tables of two columns", -1), ("boosting", "boosting", 1)):
            for task, epsilon, difference in comparisons(values, OURS, key, metric):
                if better * difference < -TIE:
                    ours, theirs = (values[task][one][epsilon][metric] for one in (OURS, key))
                    common = sorted(set(ours) & set(theirs))
                    shown = [number(float(np.mean([one[split] for split in common]))) for one in (ours, theirs)]
                    rows.append([METHODS[key], TITLES[task], f"{epsilon:g}", title, *shown, str(len(common))])
    if not rows:
        return "There is no such case.\n"
    header = ["peer", "table", "ε", "error or score", "DPTableGenerator", "peer", "splits"]
    return csv_table(f"Cases in which a peer is better by more than {TIE:g}", header, rows)


def times(values):
    """Return a table of processor seconds at an epsilon of 1."""
    rows = []
    for task in (task for task in TITLES if task in values):
        ours = mean(values[task][OURS][1.0].get("seconds", {}))
        for key in PEERS:
            theirs = mean(values[task][key][1.0].get("seconds", {}))
            if ours and theirs:
                rows.append([TITLES[task], METHODS[key], f"{theirs / ours:.0f}"])
    return csv_table(
        "Processor time at epsilon 1, in multiples of that of DPTableGenerator", ["table", "peer", "ratio"], rows
    )


def coverage(values, failures):
    """Return a table: in how many cases each method was run, and how often it did not finish."""
    rows = []
    for key, shown in METHODS.items():
        cases = [(task, at) for task in values for e, at in values[task][key].items() if at]
        splits = [len(next(iter(at.values()))) for _, at in cases]
        failed = sum(one == key for _, one, _ in failures)
        rows.append([shown, len(cases), f"{min(splits)} to {max(splits)}" if splits else "–", failed])
    return csv_table("What was run", ["method", "cases", "splits", "not finished"], rows)


def figures(values):
    """Figures that the documentation may quote."""
    quoted = {}
    for task, methods in values.items():
        for (_, method), by_epsilon in methods.items():
            for epsilon, at in by_epsilon.items():
                for metric, by_split in at.items():
                    if by_split and metric not in ("seconds", "memory"):
                        quoted[f"synthetic/{task}/{method}/{metric}/{epsilon:g}"] = number(mean(by_split))
    direct = list(comparisons(values, OURS, DIRECT, "direct", "boosting"))
    for name, count in counts(direct, -1).items():
        quoted[f"synthetic/direct/{name}"] = str(count)
    if direct:
        quoted["synthetic/direct/mean"] = number(-float(np.mean([difference for *_, difference in direct])))
    independent = list(comparisons(values, OURS, ("skdp", "DPTableGenerator(independent)"), "tv2"))
    for name, count in counts(independent, -1).items():
        quoted[f"synthetic/independent/{name}"] = str(count)
    real = list(comparisons(values, OURS, REAL, "boosting"))
    for name, count in counts(real, 1).items():
        quoted[f"synthetic/real/{name}"] = str(count)
    return quoted


def write(folder, output):
    """Write the tables of the page, and return figures that the documentation may quote."""
    values, failures = read(folder / "synthetic.csv")

    def is_generator(key):
        return key not in (REAL, DIRECT)

    def trains(key):
        return key[1] != "DPTableGenerator(independent)"

    title = "Mean total variation distance of tables of one / two / three columns from the real ones"
    (output / "synthetic_errors.inc").write_text(block(title, values, failures, ERRORS, is_generator))
    title = "Score on real rows: boosting / linear model"
    (output / "synthetic_scores.inc").write_text(block(title, values, failures, SCORES, trains))
    (output / "synthetic_peers.inc").write_text(against_peers(values))
    (output / "synthetic_behind.inc").write_text(behind(values))
    (output / "synthetic_run.inc").write_text(coverage(values, failures))
    (output / "synthetic_times.inc").write_text(times(values))
    return figures(values)
