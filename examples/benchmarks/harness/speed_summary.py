"""Ratios with intervals, and growth exponents, from repetitions."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import headline
import numpy as np
from results import csv_table, dropdown, image
from speed import read
from speed_cases import BASE_COLUMNS, BASE_ROWS
from summary import reason_for

RESAMPLES = 2000
#: MiB. Less cannot be told from what the interpreter does at the side.
LEAST_MEMORY = 1.0


@dataclass(frozen=True)
class Measurement:
    """skdp and a counterpart, at one shape and number of threads. Memory is measured once, in MiB."""

    model: str
    library: str
    counterpart: str
    operation: str
    rows: int
    columns: int
    threads: int
    ratio: float
    interval: tuple | None

    @property
    def behind(self):
        """Whether the counterpart is better. If there is an interval, it must not contain 1."""
        return self.ratio > 1 if self.interval is None else self.interval[0] > 1


def ratio_interval(ours, other, level=0.95, seed=0):
    """Return the median of the ratios of pairs and its bootstrap interval; None for fewer than three pairs."""
    ratios = np.asarray(ours) / np.asarray(other)
    if len(ratios) < 3:
        return float(np.median(ratios)), None
    drawn = np.random.default_rng(seed).choice(ratios, (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(ratios)), (float(low), float(high))


def growth(sizes, seconds):
    """Return the exponent of a power of the size, as the slope of a line through logarithms; None for one size."""
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def pairs_of(rows):
    """Return the repetitions of each measurement, and the reasons of those left out."""
    pairs, missing = defaultdict(list), {}
    for row in rows:
        key = (
            *(row[name] for name in ("model", "library", "counterpart", "operation")),
            *(row[name] for name in ("rows", "columns", "threads")),
        )
        if row["status"] != "ok":
            missing[key] = row["status"]
        elif row["ours"] is not None and row["other"] is not None:
            least = LEAST_MEMORY if row["operation"] == "memory" else 0
            pairs[key].append((max(row["ours"], least), max(row["other"], least)))
    return pairs, missing


def measurements(rows):
    """Return all measurements of both sides."""
    pairs, _ = pairs_of(rows)
    return [Measurement(*key, *ratio_interval(*zip(*known, strict=True))) for key, known in pairs.items()]


def without_reason(rows, reasons):
    """Return measurements in which a counterpart is better without a stated reason."""
    return [m for m in measurements(rows) if m.behind and reason_for(m, reasons) is None]


def behind_tables(rows, reasons):
    """Return tables of cases in which a peer, or scikit-learn without privacy, is faster or uses less memory, with
    reasons.
    """
    known = measurements(rows)
    header = ["skdp", "first", "", "how many times as much", "why"]
    parts = []
    for title, chosen in (
        ("a peer", [m for m in known if m.library != "scikit-learn"]),
        ("scikit-learn without privacy", [m for m in known if m.library == "scikit-learn"]),
    ):
        lost = [m for m in chosen if m.behind]
        parts.append(f"Beside {title} are {len(chosen)} figures of time and memory; skdp needs more in {len(lost)}.\n")
        lines, notes = defaultdict(list), {}
        for m in lost:
            lines[m.model, f"{m.library} {m.counterpart}", m.operation, reason_for(m, reasons)].append(m)
        table = [
            [
                *(model, counterpart, operation),
                "; ".join(
                    f"{m.rows:,} × {m.columns}{', 2 threads' * (m.threads == 2)}: {short(m.ratio)}" for m in cells
                ),
                notes.setdefault(reason or "No reason given.", len(notes) + 1),
            ]
            for (model, counterpart, operation, reason), cells in lines.items()
        ]
        if table:
            block = csv_table(f"Where {title} needs less", header, table, [22, 28, 10, 35, 5])
            block += "\n" + "\n".join(f"{number}. {note}" for note, number in notes.items()) + "\n"
            parts.append(dropdown(f"Where {title} needs less", block))
    return "\n".join(parts)


def short(value):
    """Return a number with two digits, without powers of ten."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def ratio_text(pairs):
    """Return the median ratio and its interval as text."""
    ratio, interval = ratio_interval(*zip(*pairs, strict=True))
    return short(ratio) if interval is None else f"{short(ratio)} [{short(interval[0])}, {short(interval[1])}]"


def seconds_text(values):
    """Return the median time as text."""
    return f"{1000 * median(values):.3g} ms" if median(values) < 1 else f"{median(values):.3g} s"


def cell_text(pairs, missing, key):
    """Return the ratio of a measurement, or the reason why there is none."""
    if pairs.get(key):
        return ratio_text(pairs[key])
    status = missing.get(key, "")
    if status.startswith("TimeoutError"):
        return "not done in 90 s"
    return status.split(":")[0] or "–"


def shape_table(rows, operation, vary, title):
    """Return ratios by rows or columns, with the growth exponents of both sides."""
    pairs, missing = pairs_of(rows)
    base = {"rows": ("columns", BASE_COLUMNS), "columns": ("rows", BASE_ROWS)}[vary]
    chosen = [
        row
        for row in rows
        if row["operation"] in (operation, "fit") and row[base[0]] == base[1] and row["threads"] == 1
    ]
    sizes = sorted({row[vary] for row in chosen})
    lines = []
    for model, library, counterpart in dict.fromkeys((r["model"], r["library"], r["counterpart"]) for r in chosen):
        cells, known = [], []
        for size in sizes:
            shape = (size, BASE_COLUMNS) if vary == "rows" else (BASE_ROWS, size)
            key = (model, library, counterpart, operation, *shape, 1)
            cells.append(cell_text(pairs, missing, key))
            if pairs.get(key):
                known.append((size, median(o for o, _ in pairs[key]), median(t for _, t in pairs[key])))
        exponents = [growth([k[0] for k in known], [k[side] for k in known]) for side in (1, 2)]
        slopes = "–" if None in exponents else f"{exponents[0]:.2f}, {exponents[1]:.2f}"
        largest = f"{seconds_text([known[-1][1]])}, {seconds_text([known[-1][2]])}" if known else "–"
        lines.append([model, f"{library} {counterpart}", *cells, slopes, largest])
    header = ["skdp", "counterpart", *(f"{size:,} {vary}" for size in sizes), "exponents", "at the largest"]
    return csv_table(title, header, lines)


def threads_table(rows):
    """Return the speed-up of two threads."""
    pairs, _ = pairs_of(rows)
    lines = []
    for key, one in pairs.items():
        two = pairs.get((*key[:6], 2))
        if key[3] != "fit" or key[6] != 1 or not two:
            continue
        gains = [median(p[side] for p in one) / median(p[side] for p in two) for side in (0, 1)]
        lines.append(
            [key[0], f"{key[1]} {key[2]}", f"{key[4]:,} × {key[5]}", *(f"{g:.2f}" for g in gains), ratio_text(two)]
        )
    header = ["skdp", "counterpart", "rows × columns", "gain of skdp", "gain of the other", "ratio with two threads"]
    return csv_table("Time with one thread, divided by that with two", header, lines) if lines else ""


def memory_table(rows):
    """Return the memory that a fit adds to a process."""
    lines = []
    for row in rows:
        if row["operation"] == "memory":
            size = row["rows"] * row["columns"] * 8 / 2**20
            values = [
                "–" if row[side] is None else f"{row[side]:.0f} MiB ({row[side] / size:.2f})"
                for side in ("ours", "other")
            ]
            shape = f"{row['rows']:,} × {row['columns']}"
            lines.append([row["model"], f"{row['library']} {row['counterpart']}", shape, *values])
    header = ["skdp", "counterpart", "rows × columns", "skdp adds (share of X)", "the other adds (share of X)"]
    return csv_table("Memory that a fit adds at its peak, in a fresh process", header, lines) if lines else ""


def noise_table(rows):
    """Return rates of noise."""
    rates = defaultdict(list)
    for row in rows:
        rates[row["environment"], row["case"], int(row["size"])].append(float(row["rate"]))
    sizes = sorted({size for _, _, size in rates})
    lines = []
    for environment, case in dict.fromkeys((e, c) for e, c, _ in rates):
        if environment != "opendp" and not case.startswith(environment):
            continue
        cells = []
        for size in sizes:
            own, ours = rates[environment, case, size], "skdp rounded normal"
            if "aplace" in case:
                ours = "skdp discrete Laplace"
            if not own:
                cells.append("–")
                continue
            # Both have as many rounds.
            times, interval = ratio_interval(rates[environment, ours, size], own)
            text = f"{median(own) / 1000:,.1f}"
            if not case.startswith("skdp"):
                text += f" (skdp {short(times)} times as many [{short(interval[0])}, {short(interval[1])}])"
            cells.append(text)
        lines.append([case, *cells])
    return csv_table("Thousands of numbers a second", ["", *(f"vectors of {size:,}" for size in sizes)], lines)


def write(folder, output, reasons, history):
    """Write the tables of time, memory and noise, with notes for unknown figures. Return unexplained measurements."""
    rows = read(folder / "speed.csv")
    (output / "slower.inc").write_text(behind_tables(rows, reasons) if rows else "Not measured yet.\n")
    parts = [
        shape_table(rows, operation, vary, f"Time to {operation}, divided by the counterpart's: {vary}")
        for operation in ("fit", "predict")
        for vary in ("rows", "columns")
    ]
    parts += [threads_table(rows), memory_table(rows), history]
    if rows:
        headline.pair(lambda dark: plot(rows, dark), output, "speed")
        parts = [dropdown("Tables of time and memory", "\n".join(parts))]
        parts.insert(0, image("generated/benchmarks/speed", "Time to fit, divided by the time of the counterpart"))
    (output / "speed.inc").write_text("\n".join(parts) if rows else "Not measured yet.\n")
    path = folder / "noise.csv"
    if path.exists():
        with open(path, newline="") as file:
            (output / "noise.inc").write_text(noise_table(list(csv.DictReader(file))))
    else:
        (output / "noise.inc").write_text("Not measured yet.\n")
    return without_reason(rows, reasons)


def plot(rows, dark):
    """Plot ratios of times to fit, at the largest number of rows that both sides were timed with."""
    from matplotlib import pyplot

    largest = {}
    for m in measurements(rows):
        if m.operation == "fit" and m.columns == BASE_COLUMNS and m.threads == 1:
            known = largest.get((m.model, m.library, m.counterpart))
            if known is None or known.rows < m.rows:
                largest[m.model, m.library, m.counterpart] = m
    ordered = sorted(largest.values(), key=lambda m: m.ratio)
    drawing, axis = pyplot.subplots(figsize=(7.2, 0.27 * len(ordered) + 1.2), layout="constrained")
    sides = {
        "a peer": (headline.shade(headline.BLUE, dark), "o", [m.library != "scikit-learn" for m in ordered]),
        "scikit-learn without privacy": (headline.ORANGE, "s", [m.library == "scikit-learn" for m in ordered]),
    }
    for label, (color, marker, belongs) in sides.items():
        places = np.flatnonzero(belongs)
        axis.plot([ordered[i].ratio for i in places], places, marker, color=color, label=f"counterpart: {label}")
        for i in places:
            axis.plot(ordered[i].interval or [ordered[i].ratio] * 2, [i, i], color=color)
    axis.axvline(1, color=headline.shade("black", dark), linestyle=":")
    axis.set(xscale="log", xlabel="time of skdp / time of the counterpart", ylim=(len(ordered) - 0.4, -0.6))
    axis.set_yticks(range(len(ordered)), [f"{m.model.split(' (')[0]} / {m.counterpart}" for m in ordered], fontsize=9)
    drawing.legend(loc="outside lower center", ncols=2, fontsize=9)
    return drawing
