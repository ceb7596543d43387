"""The pictures and the table of how time and memory of a fit grow, from the file of `growth`."""

from __future__ import annotations

import csv

import headline
import numpy as np
from results import csv_table, dropdown, image, number
from speed_summary import LEAST_MEMORY, growth

HEADER = ("axis", "size", "model", "seconds", "MiB")
COLORS = {
    "DPAdditiveClassifier": headline.BLUE,
    "ObjPertLogReg": headline.VERMILION,
    "DPSGDClassifier": headline.GREEN,
    "DPNaiveBayes": headline.ORANGE,
    "DPRandomTree": headline.PURPLE,
    "DPKMeans": "#8A6D00",
    "DPPCA": "#808080",
    "FunctionalMechLinReg": "black",
}
#: What was the same at all sizes of an axis.
FIXED = {
    "rows": "4 columns, 2 classes",
    "columns": "10,000 rows, 2 classes",
    "sparse columns": "10,000 rows with 10 stored entries each",
    "classes": "10,000 rows, 20 columns",
    "categories": "10,000 rows, one column",
}


def read(path):
    """Return axis, size, model, seconds and MiB of each measurement; None stands for a fit beyond the limits."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [(r["axis"], int(r["size"]), r["model"], number(r["seconds"]), number(r["MiB"])) for r in rows]


def curves(rows, axis):
    """Return the sizes, the times as multiples of the first, and the MiB of each model."""
    known = {}
    for name, size, model, seconds, memory in rows:
        if name == axis and seconds is not None:
            known.setdefault(model, []).append((size, seconds, max(memory, LEAST_MEMORY)))
    found = {}
    for model, points in known.items():
        sizes, seconds, memory = np.array(sorted(points)).T
        found[model] = (sizes, seconds / seconds[0], memory)
    return found


def exponent(sizes, values):
    """Return the exponent of growth from the third size on, or from the second of three, as text."""
    first = 2 if len(sizes) > 3 else 1
    slope = growth(sizes[first:], values[first:])
    return "–" if slope is None else f"{slope:.2f}".replace("-0.00", "0.00")


def plot(known, axis, dark):
    """Plot time and memory against the size, with the name and the exponent of each model beside its line."""
    from matplotlib import pyplot

    gap = 0.085
    drawing, panels = pyplot.subplots(2, 1, figsize=(5.6, 5.4), sharex=True, layout="constrained")
    titles = ("time, as a multiple of that for the smallest size", "memory that a fit adds, MiB")
    for k, (panel, title) in enumerate(zip(panels, titles, strict=True), 1):
        panel.set_title(title, fontsize=10, loc="left")
        panel.set(xscale="log", yscale="log")
        for model, curve in known.items():
            panel.plot(curve[0], curve[k], "o-", markersize=3.5, color=headline.shade(COLORS[model], dark))
        low, high = np.log(panel.get_ylim())
        heights = {model: (np.log(curve[k][-1]) - low) / (high - low) for model, curve in known.items()}
        order = sorted(heights, key=heights.get)
        # Labels in the order of the ends of the lines, as near to them as a label's height allows.
        places = np.array([heights[model] for model in order]) - gap * np.arange(len(order))
        places = np.maximum.accumulate(np.minimum(places, 1 - gap * (len(order) - 1))) + gap * np.arange(len(order))
        for model, place in zip(order, places, strict=True):
            color = headline.shade(COLORS[model], dark)
            panel.annotate(
                f"{model} {exponent(known[model][0], known[model][k])}",
                (known[model][0][-1], known[model][k][-1]),
                (1.04, place),
                textcoords="axes fraction",
                fontsize=9,
                color=color,
                va="center",
                arrowprops={"arrowstyle": "-", "linestyle": ":", "color": color},
                annotation_clip=False,
            )
    panels[1].set_xlabel(axis)
    return drawing


def table(rows):
    """Return the exponents of time and memory, and the largest size of fits within the limits."""
    axes = {axis: curves(rows, axis) for axis in FIXED}
    lines = []
    for model in COLORS:
        cells = []
        for axis, known in axes.items():
            if model not in known:
                cells.append("–")
                continue
            sizes, seconds, memory = known[model]
            beyond = any(row[0] == axis and row[2] == model and row[3] is None for row in rows)
            cells.append(f"{exponent(sizes, seconds)}, {exponent(sizes, memory)}" + f" (to {sizes[-1]:,.0f})" * beyond)
        lines.append([model, *cells])
    title = "Exponents of time and of memory"
    return csv_table(title, ["", *axes], lines)


def write(path, output):
    """Write the pictures and the table."""
    rows = read(path)
    parts = [".. tab-set::"]
    for axis, fixed in FIXED.items():
        known = curves(rows, axis)
        if known:
            name = f"growth_{axis.replace(' ', '_')}"
            headline.pair(lambda dark, known=known, axis=axis: plot(known, axis, dark), output, name)
            text = image(f"generated/benchmarks/{name}", f"Time and memory of a fit against {axis}")
            parts.append(f"\n   .. tab-item:: {axis.capitalize()}\n")
            parts += [f"      {line}" if line else "" for line in f"{fixed.capitalize()}.\n\n{text}".splitlines()]
    parts.append("\n" + dropdown("Exponents", table(rows)))
    (output / "growth.inc").write_text("\n".join(parts) if rows else "Not measured yet.\n")
