"""What the fits of `bench_tables` say: the best private methods, how far the recommended one is behind, and changes.

A *cell* is a table with a delta, and an epsilon. Methods with ``delta=0`` take part in the cells of every delta.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations

import numpy as np
from results import csv_table
from scores import INCREASING
from summary import best, entries

#: The score that decides, the recommended estimator, and how far it may be behind.
DECIDING = {"auc": ("DPAdditiveClassifier", 0.005), "r2": ("DPAdditiveRegressor", 0.01)}

#: A method that has more than this less at a larger epsilon is reported.
LOSS = 0.003

#: Estimators whose calibration error is reported where it is larger than this, from an epsilon of 1 on.
CALIBRATED = ("DPAdditiveClassifier", "DPSGDClassifier")
MISCALIBRATED = 0.03

#: Scores that are shown.
SHOWN = ("auc", "log_loss", "calibration", "r2")
OF_GUIDE = ("accuracy", "auc", "log_loss", "calibration", "r2")
WIDTH, FIRST_WIDTH = 16, 56


def is_public(key):
    """Return whether a method has no privacy."""
    return key[0] == "scikit-learn"


def is_variant(key):
    """Return whether a method of skdp has other parameters than its defaults."""
    return key[0] == "skdp" and "(" in key[1]


def name_of(key, delta=None):
    """Return the name of a method, with its library if that is a peer, and with delta 0 in a cell of another delta."""
    name = key[1] if key[0] == "skdp" else f"{key[0]} {key[1]}"
    return f"{name}, delta 0" if delta and key[2] == 0 and not is_public(key) else name


def number(value, digits=4):
    """Return a number without a zero before its point."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def mean_and_error(values):
    """Return a mean, with its standard error over splits if there are several."""
    values = list(values)
    if not values:
        return "-"
    text = number(np.mean(values))
    return f"{text} ±{number(np.std(values, ddof=1) / math.sqrt(len(values)))}" if len(values) > 1 else text


def gains(entry, other, metric):
    """Return by how much an entry is better than another on their common splits."""
    sign = 1 if INCREASING[metric] else -1
    common = sorted(set(entry.by_split) & set(other.by_split))
    return [sign * (entry.by_split[s] - other.by_split[s]) for s in common]


def line(title, cells):
    return f"  {title:{FIRST_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def read(rows):
    """Return entries by table and score, then by method, then by epsilon."""
    rows, metrics = list(rows), defaultdict(dict)
    for row in rows:
        if row["metric"]:
            metrics[row["task"]][row["metric"]] = None
    return entries(rows, metrics)


def groups(found):
    """Yield each table, delta and score with its methods."""
    for (task, metric), by_method in found.items():
        if metric not in SHOWN:
            continue
        # Peers with `delta=0` have no cells of their own.
        for delta in sorted({key[2] for key in by_method if key[0] == "skdp"} or {key[2] for key in by_method}):
            yield task, delta, metric, {key: v for key, v in by_method.items() if key[2] in (0.0, delta)}


def shown(entry, is_first=False):
    """Return the cell of an entry, with a mark if it is the best."""
    return "-" if entry is None else "*" * is_first + mean_and_error(entry.by_split.values())


def report(rows):
    """Return lines: scores, the cells where the recommended estimator is behind, and losses with a larger epsilon.

    An asterisk marks the best private method, variants left out.
    """
    table, lines, cells, losses, uncalibrated = read(rows), [], [], [], []
    for task, delta, metric, by_method in groups(table):
        private = {key: v for key, v in by_method.items() if not is_public(key)}
        epsilons = sorted({epsilon for v in private.values() for epsilon in v})
        candidates = {e: [(k, v[e]) for k, v in private.items() if e in v and not is_variant(k)] for e in epsilons}
        winners = {e: (best(pairs, metric) or (None, None))[1] for e, pairs in candidates.items()}
        lines += ["", line(f"{task}, delta {delta:g}: {metric}", [f"{e:g}" for e in epsilons])]
        for key, v in by_method.items():
            at = [(e, v.get(math.inf if is_public(key) else e)) for e in epsilons or [math.inf]]
            lines.append(line(name_of(key, delta), [shown(entry, entry is winners.get(e)) for e, entry in at]))
        if metric == "calibration":
            by_chance = table[task, "calibration_by_chance"]
            uncalibrated += [
                (task, delta, name_of(key), epsilon, entry.mean, by_chance[key][epsilon].mean)
                for key, v in private.items()
                for epsilon, entry in v.items()
                if key[1] in CALIBRATED and epsilon >= 1 and entry.by_split and entry.mean > MISCALIBRATED
            ]
        if metric not in DECIDING:
            continue
        of_skdp = {key: v for key, v in private.items() if key[0] == "skdp" and key[2] == delta}
        losses += [(task, delta, name_of(key), *loss) for key, v in of_skdp.items() for loss in losses_of(v, metric)]
        recommended, tolerance = DECIDING[metric]
        behind = []
        for epsilon in epsilons:
            default = dict(candidates[epsilon]).get(("skdp", recommended, delta))
            gap, first = [], None
            if default is not None and default.by_split:
                gaps = [(gains(entry, default, metric), name_of(key, delta)) for key, entry in candidates[epsilon]]
                gap, first = max((pair for pair in gaps if pair[0]), key=lambda pair: np.mean(pair[0]))
            behind.append(mean_and_error(gap))
            if gap and math.isfinite(epsilon):
                cells.append((task, delta, epsilon, float(np.mean(gap)), tolerance, first))
        lines.append(line(f"({recommended} is behind by)", behind))
    return [*lines, "", *verdict(cells), "", *told(losses), "", *said(uncalibrated)]


def losses_of(by_epsilon, metric):
    """Yield the largest loss of a method from a smaller epsilon to a larger one, if it is to be reported."""
    pairs = [(gains(by_epsilon[e], by_epsilon[f], metric), e, f) for e, f in combinations(sorted(by_epsilon), 2)]
    loss = max((pair for pair in pairs if pair[0]), key=lambda pair: np.mean(pair[0]), default=([0.0],))
    if np.mean(loss[0]) > LOSS:
        yield loss


def verdict(cells):
    """Return lines on the cells in which the recommended estimator is behind."""
    within = sum(gap <= tolerance for *_, gap, tolerance, _ in cells)
    lines = [f"recommended estimator within .005 (R2 .01) of the best private method: {within} of {len(cells)} cells"]
    for epsilon in sorted({cell[2] for cell in cells}):
        at = [gap <= tolerance for _, _, e, gap, tolerance, _ in cells if e == epsilon]
        lines.append(f"  epsilon {epsilon:g}: {sum(at)} of {len(at)}")
    lines.append("behind by more:")
    for task, delta, epsilon, gap, tolerance, first in sorted(cells, key=lambda cell: -cell[3]):
        if gap > tolerance:
            lines.append(f"  {task:12} delta {delta:g}, epsilon {epsilon:4g}: {number(gap)} behind {first}")
    return lines


def told(losses):
    """Return lines on the methods that have less at a larger epsilon."""
    lines = [f"loses more than {number(LOSS, 3)} as epsilon grows:"]
    for task, delta, method, loss, small, large in losses:
        lines.append(f"  {task:12} delta {delta:g}: {method} loses {mean_and_error(loss)} from {small:g} to {large:g}")
    return lines


def said(uncalibrated):
    """Return lines on probabilities that are not calibrated."""
    lines = [f"calibration error above {number(MISCALIBRATED, 2)} (in parentheses what calibrated ones would have):"]
    for task, delta, method, epsilon, error, by_chance in uncalibrated:
        cell = f"{task:12} delta {delta:g}, epsilon {epsilon:4g}"
        lines.append(f"  {cell}: {method} {number(error, 3)} ({number(by_chance, 3)})")
    return lines


def guide(rows):
    """Return a table in reStructuredText for each table, with all scores, and those without privacy below."""
    table, out = read(rows), []
    for task in dict.fromkeys(name for name, _ in table):
        by_method = defaultdict(lambda: defaultdict(list))
        for metric in OF_GUIDE:
            for key, v in table.get((task, metric), {}).items():
                for epsilon, entry in v.items():
                    by_method[key][epsilon].append(number(entry.mean, 3) if entry.by_split else "fails")
        private = {key: v for key, v in by_method.items() if not is_public(key)}
        epsilons = sorted({epsilon for v in private.values() for epsilon in v})
        lines = [[name_of(key), *(" / ".join(v[e]) for e in epsilons)] for key, v in private.items()]
        public = [f"{key[1]} {' / '.join(v[math.inf])}" for key, v in by_method.items() if is_public(key)]
        out += [csv_table(task.capitalize(), ["", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)]
        out += [f"Without privacy: {', '.join(public)}.\n\n"]
    return "".join(out).rstrip() + "\n"


def compare(before, after):
    """Return lines with the gains of methods, on splits that both files have, and their means over tables.

    A method with parameters that the first file does not have is compared with its defaults.
    """
    before, changes = read(before), defaultdict(lambda: defaultdict(dict))
    for (task, metric), by_method in read(after).items():
        for key, by_epsilon in by_method.items():
            if is_public(key) or metric not in SHOWN:
                continue
            known = before[task, metric]
            reference = known.get(key) or known.get((key[0], key[1].split("(")[0], key[2])) or {}
            for epsilon, entry in by_epsilon.items():
                if epsilon in reference and (gain := gains(entry, reference[epsilon], metric)):
                    changes[metric, name_of(key)][task, key[2]][epsilon] = gain
    lines = []
    for (metric, method), tables in changes.items():
        epsilons = sorted({epsilon for v in tables.values() for epsilon in v})
        lines += ["", line(f"{method}: gain of {metric}", [f"{e:g}" for e in epsilons])]
        for (task, delta), by_epsilon in tables.items():
            gain = [mean_and_error(by_epsilon.get(epsilon, ())) for epsilon in epsilons]
            lines.append(line(f"{task}, delta {delta:g}", gain))
        means = [[float(np.mean(v[e])) for v in tables.values() if e in v] for e in epsilons]
        lines.append(line("mean over tables", [number(np.mean(one)) for one in means]))
        lines.append(line("worst table", [number(min(one)) for one in means]))
    return lines
