"""Summaries of fits: cells of a table, and the cells in which skdp is not first."""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from scipy.stats import t
from scores import INCREASING
from tasks import DELTA, TASKS

REASONS = Path(__file__).resolve().parent.parent / "reasons.toml"
ANY = "any"

#: Metrics that are divided by what scikit-learn reaches on the same split.
RELATIVE = {"inertia": ("scikit-learn", "KMeans"), "captured": ("scikit-learn", "PCA")}


@dataclass(frozen=True)
class Entry:
    """One method at one epsilon and delta: the mean over splits of means over draws."""

    by_split: dict  # split: mean over draws
    n_fits: int
    n_tried: int
    spent: float | None
    failure: str  # of the first fit that failed

    @property
    def mean(self):
        """Mean over splits, or None without fits."""
        return float(np.mean(list(self.by_split.values()))) if self.by_split else None

    @property
    def half_width(self):
        """Half the width of a 95 % interval for the mean over splits, or None for fewer than three."""
        return half_width(list(self.by_split.values()))


def half_width(values):
    """Return half the width of Student's 95 % interval for a mean; None for fewer than three values."""
    n = len(values)
    return float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)) if n > 2 else None


def entries(rows, metrics=None):
    """Return entries by task, metric, (library, method, delta) and epsilon. `metrics` maps tasks to their metrics."""
    metrics = metrics or {name: task.metrics for name, task in TASKS.items()}
    values, tried, spent, failures = defaultdict(list), defaultdict(set), {}, {}
    for row in rows:
        key = (row["task"], (row["library"], row["method"], row["delta"]), row["epsilon"])
        tried[key].add((row["split"], row["draw"]))
        spent[key] = row["spent"]
        if row["status"] != "ok":
            failures.setdefault(key, row["status"])
        elif row["value"] is not None:
            values[(*key, row["metric"])].append((row["split"], row["value"]))
    ceilings = {}
    for (task, (library, method, _), _, metric), pairs in values.items():
        if RELATIVE.get(metric) == (library, method):
            ceilings[task, metric] = dict(pairs)
    table = defaultdict(lambda: defaultdict(dict))
    for (task, method, epsilon), attempts in tried.items():
        for metric in metrics.get(task, ()):
            by_split = defaultdict(list)
            for split, value in values.get((task, method, epsilon, metric), ()):
                if metric not in RELATIVE:
                    by_split[split].append(value)
                elif split in ceilings.get((task, metric), {}):
                    by_split[split].append(value / ceilings[task, metric][split])
            table[task, metric][method][epsilon] = Entry(
                {split: float(np.mean(v)) for split, v in by_split.items()},
                sum(map(len, by_split.values())),
                len(attempts),
                spent[task, method, epsilon],
                failures.get((task, method, epsilon), ""),
            )
    return table


@dataclass(frozen=True)
class Contest:
    """The best method of skdp and the best method of the peers, among all methods or within one family."""

    task: str
    metric: str
    family: str
    delta: float  # of the peer; methods of skdp with this delta, or less
    epsilon: float
    ours: tuple | None  # (library, method, delta), None if there is none
    our_mean: float | None
    peer: tuple
    peer_mean: float
    difference: float | None  # ours minus theirs, over splits that both have; positive is better
    interval: float | None  # half its width

    @property
    def our_method(self):
        """Name of the method of skdp, for patterns."""
        return "none" if self.ours is None else self.ours[1]

    @property
    def peer_library(self):
        """Library of the peer, for patterns."""
        return self.peer[0]

    @property
    def peer_method(self):
        """Name of the method of the peer, for patterns."""
        return self.peer[1]

    @property
    def lost(self):
        """Whether the mean of a peer is better."""
        return self.ours is None or self.difference < 0

    @property
    def clear(self):
        """Whether the interval of the difference excludes 0."""
        return self.difference is None or (self.interval is not None and abs(self.difference) > self.interval)


def best(candidates, metric):
    """Return the candidate with the best mean: (method, entry)."""
    sign = 1 if INCREASING[metric] else -1
    known = [(method, entry) for method, entry in candidates if entry.by_split]
    return max(known, key=lambda pair: sign * pair[1].mean, default=None)


def contests(table, families):
    """Return every cell with a figure of a peer of its delta. `families` maps (library, method) to a family."""
    found = []
    for (task, metric), methods in table.items():
        private = {m: by_epsilon for m, by_epsilon in methods.items() if m[0] != "scikit-learn"}
        epsilons = sorted({e for by_epsilon in private.values() for e in by_epsilon})
        kinds = list(dict.fromkeys(families[m[:2]] for m in private if m[0] != "skdp"))
        for family in [ANY, *kinds]:
            for delta in (0.0, DELTA):
                members = {m: v for m, v in private.items() if family in (ANY, families[m[:2]])}
                for epsilon in epsilons:
                    at = [(m, v[epsilon]) for m, v in members.items() if epsilon in v]
                    ours = best([(m, entry) for m, entry in at if m[0] == "skdp" and m[2] <= delta], metric)
                    peer = best([(m, entry) for m, entry in at if m[0] != "skdp" and m[2] == delta], metric)
                    if peer is not None:
                        found.append(contest(task, metric, family, delta, epsilon, ours, peer))
    return found


def contest(task, metric, family, delta, epsilon, ours, peer):
    """Compare two entries on their common splits."""
    cell = (task, metric, family, delta, epsilon)
    if ours is None:
        return Contest(*cell, None, None, peer[0], peer[1].mean, None, None)
    sign = 1 if INCREASING[metric] else -1
    common = sorted(set(ours[1].by_split) & set(peer[1].by_split))
    if not common:
        difference = sign * (ours[1].mean - peer[1].mean)
        return Contest(*cell, ours[0], ours[1].mean, peer[0], peer[1].mean, difference, None)
    our_values, peer_values = ([entry.by_split[s] for s in common] for entry in (ours[1], peer[1]))
    differences = [sign * (a - b) for a, b in zip(our_values, peer_values, strict=True)]
    our_mean, peer_mean = float(np.mean(our_values)), float(np.mean(peer_values))
    return Contest(*cell, ours[0], our_mean, peer[0], peer_mean, float(np.mean(differences)), half_width(differences))


def read_reasons(path=REASONS, kind="reason"):
    """Return the reasons for lost cells, or for longer times (`kind="slower"`): patterns and a text."""
    return tomllib.loads(Path(path).read_text()).get(kind, []) if Path(path).exists() else []


def reason_for(lost, reasons):
    """Return the first reason whose patterns match a cell or a measurement, or None."""
    for reason in reasons:
        fields = (field for field in reason if field != "text")
        if all(matches(getattr(lost, field), reason[field]) for field in fields):
            return reason["text"]
    return None


def matches(value, pattern):
    """Return whether a value equals a pattern, is in a list of patterns, or matches its wild cards."""
    patterns = pattern if isinstance(pattern, list) else [pattern]
    if isinstance(value, str):
        return any(fnmatch(value, p) for p in patterns)
    return value in patterns


def without_reason(found, reasons):
    """Return lost cells without a reason."""
    return [c for c in found if c.lost and reason_for(c, reasons) is None]
