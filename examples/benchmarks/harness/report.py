"""Make the tables and plots of the benchmark page from the files of results.

    make bench-report

The documentation build calls `write`, which needs no peers. If a peer is better than skdp in a cell, the file
``examples/benchmarks/reasons.toml`` must have a reason. Without the reason, no page is made.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import growth_summary
import headline
import history
import report_synthetic
import results
import speed_summary
import summary
from headline import METRICS
from methods import all_methods
from results import csv_table, delta_text, dropdown, figure, image
from tasks import TASKS

OUTPUT = results.FOLDER.parent / "generated" / "benchmarks"
#: The same, as the page sees it.
IMAGES = "generated/benchmarks"
#: A figure in a page.
QUOTED = r"(?<=:figure:`)(?P<value>[^`<]+?)\s*<(?P<key>.+?)>(?=`)"

NAMES = {
    "adult": "Adult",
    "nursery": "Nursery",
    "nursery-binary": "Nursery, two classes",
    "digits": "digits",
    "cancer": "breast cancer",
    "housing": "California housing",
    "housing-log": "California housing, log totals",
    "clusters-mixture-2d": "mixture of ten, 2 columns",
    "clusters-mixture-10d": "mixture of ten, 10 columns",
    "clusters-housing": "California housing",
    "clusters-digits": "digits",
    "components-adult-2": "Adult, 2 components",
    "components-adult-10": "Adult, 10 components",
    "components-digits-2": "digits, 2 components",
    "components-digits-10": "digits, 10 components",
    "components-cancer-2": "breast cancer, 2 components",
    "components-cancer-10": "breast cancer, 10 components",
    "scaling-housing": "California housing",
    "scaling-cancer": "breast cancer",
}
KINDS = {
    "classification": "Classification",
    "regression": "Regression",
    "clustering": "Clustering",
    "components": "Principal components",
    "scaling": "Standardisation",
}
#: Lines of plots and of the first tables: a library, and its methods of one delta or of any.
SIDES = (
    ("skdp, δ 1e-5", "skdp", None),
    ("skdp, δ 0", "skdp", 0.0),
    ("diffprivlib, δ 0", "diffprivlib", None),
    ("interpret, δ 1e-5", "interpret", None),
    ("Opacus, δ 1e-5", "opacus", None),
)
LOOKS = {
    "skdp": (headline.BLUE, "o"),
    "diffprivlib": (headline.VERMILION, "v"),
    "interpret": (headline.PURPLE, "D"),
    "opacus": (headline.ORANGE, "^"),
}
#: Shorter names of metrics, for panels.
TITLES = {
    "mean_error": "error of the means",
    "scale_error": "error of the scales",
}


def label(method):
    """Return the name of a method with its library and delta."""
    library, name, delta = method
    if library == "scikit-learn":
        return f"scikit-learn {name}"
    return f"{'' if library == 'skdp' else library + ' '}{name}, δ {delta_text(delta)}"


def entry_text(entry, bold=False):
    """Return the mean and the interval, and the number of fits if some are missing."""
    if entry is None:
        return "–"
    if not entry.by_split:
        return "no fit in time" if entry.failure.startswith("timeout") else "fails"
    text = figure(entry.mean)
    if entry.half_width is not None:
        text += f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{figure(entry.half_width)}"
    if bold:
        text = f"**{text}**"
    if entry.n_fits < entry.n_tried:
        text += f" ({entry.n_fits} of {entry.n_tried} fits)"
    return text


def heading(epsilon):
    """Return the head of a column."""
    return f"ε {epsilon:g}"


def epsilons_of(table):
    """Return all epsilons of private methods."""
    return sorted({e for methods in table.values() for by in methods.values() for e in by if math.isfinite(e)})


def overview(table, kind, epsilons):
    """Return a table of skdp and each peer, with the best method of each library in each cell."""
    rows = []
    for task in (task for task in TASKS.values() if task.kind == kind):
        for metric in task.metrics:
            methods = table.get((task.name, metric), {})
            ceiling = summary.best([(m, by[math.inf]) for m, by in methods.items() if math.inf in by], metric)
            limit = f"{entry_text(ceiling[1])} ({ceiling[0][1]})" if ceiling else "–"
            titles = [NAMES[task.name], METRICS[metric]]
            for side, library, delta in SIDES:
                cells = []
                for epsilon in epsilons:
                    at = at_side(methods, epsilon, library, delta)
                    found = summary.best(at, metric)
                    cells.append(entry_text(found[1] if found else at[0][1] if at else None))
                if any(cell != "–" for cell in cells):
                    rows.append([*titles, side, *cells, limit])
                    titles, limit = ["", ""], ""
    title = f"{KINDS[kind]}: the best method of each library, cell by cell"
    widths = [12, 11, 15, *[11] * len(epsilons), 16]
    return csv_table(title, ["", "metric", "library", *map(heading, epsilons), "no privacy"], rows, widths)


def at_side(methods, epsilon, library, delta):
    """Return the methods of a library at an epsilon, with a given delta or any delta."""
    return [
        (m, by[epsilon]) for m, by in methods.items() if m[0] == library and epsilon in by and delta in (None, m[2])
    ]


def details(table, kind, epsilons, families):
    """Return tables of all methods of all libraries."""
    parts = []
    for task in (task for task in TASKS.values() if task.kind == kind):
        blocks = []
        for metric in task.metrics:
            methods = table.get((task.name, metric), {})
            firsts = {
                e: summary.best([(m, by[e]) for m, by in methods.items() if e in by and m[0] != "scikit-learn"], metric)
                for e in epsilons
            }
            rows = []
            order = list(dict.fromkeys(families[m[:2]] for m in methods))
            for method, by in sorted(methods.items(), key=lambda pair: order.index(families[pair[0][:2]])):
                fits = max(entry.n_fits for entry in by.values())
                name = label(method)
                ratios = [entry.spent / e for e, entry in by.items() if entry.spent and math.isfinite(e)]
                if ratios and abs(ratios[0] - 1) > 0.005:
                    name += f" (spends {ratios[0]:.2f} ε)"
                if math.inf in by:
                    cells = [*[""] * (len(epsilons) - 1), f"no ε: {entry_text(by[math.inf])}"]
                else:
                    cells = [entry_text(by.get(e), firsts[e] is not None and firsts[e][0] == method) for e in epsilons]
                rows.append([families[method[:2]], name, fits, *cells])
            block = csv_table(
                f"{NAMES[task.name]}: {METRICS[metric]}", ["family", "method", "fits", *map(heading, epsilons)], rows
            )
            blocks.append(block)
        parts.append(dropdown(f"{KINDS[kind]}, {NAMES[task.name]}: every method", "\n".join(blocks)))
    return "\n".join(parts)


def failures(rows):
    """Return failed fits and their numbers."""
    found = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["status"] != "ok":
            status = row["status"].split("(")[0].strip()
            found[row["library"], row["method"], status][row["task"]] += 1
    lines = [
        [f"{library} {method}", status, ", ".join(f"{task} ({n})" for task, n in sorted(tasks.items()))]
        for (library, method, status), tasks in sorted(found.items())
    ]
    if not lines:
        return "All fits came to an end.\n"
    return csv_table("Fits without a result", ["method", "what happened", "tasks (fits tried)"], lines, [25, 35, 40])


def lost_rows(lost, reasons, notes):
    """Return one row for the lost cells of a task, metric, family and delta with one reason. The reason is added to the
    notes.
    """
    lines = defaultdict(list)
    for c in lost:
        lines[c.task, c.metric, c.family, c.delta, summary.reason_for(c, reasons)].append(c)
    rows = []
    for (task, metric, family, delta, reason), cells in lines.items():
        pairs = [
            f"ε {c.epsilon:g}: {'none' if c.ours is None else figure(c.our_mean)} "
            f"against {figure(c.peer_mean)}{'' if c.clear else ' (*)'}"
            for c in cells
        ]
        peers = ", ".join(dict.fromkeys(f"{c.peer[0]} {c.peer[1]}" for c in cells))
        among = "" if family == summary.ANY else f"{family}, "
        note = notes.setdefault(reason or "No reason given.", len(notes) + 1)
        place = f"{among}δ {delta_text(delta)}"
        rows.append([f"{NAMES[task]}: {METRICS[metric]}", place, peers, "; ".join(pairs), note])
    return rows


def short_list(found, reasons):
    """Return the cells in which skdp is not first, among all methods and within families."""
    parts = [
        "A cell is a task, a metric, an epsilon and a delta. Those marked (*) are lost by less than the 95 % interval "
        "of the difference over the splits, or on fewer than three splits.\n"
    ]
    header = ["cell", "δ", "first", "skdp against the first", "why"]
    for title, of_any in (("All methods", True), ("Within a family of methods", False)):
        cells = [c for c in found if (c.family == summary.ANY) == of_any]
        lost = [c for c in cells if c.lost]
        clear = sum(c.clear for c in lost if c.ours is not None)
        none = sum(c.ours is None for c in lost)
        text = f"**{title}.** In {len(cells)} cells a peer has a figure. The mean of skdp is first in "
        text += f"{len(cells) - len(lost)}, and not in {len(lost)}: clearly in {clear}"
        text += f", because it has no such method in {none}.\n" if none else ".\n"
        parts.append(text)
        if lost:
            notes = {}
            rows = lost_rows(lost, reasons, notes)
            table = csv_table(f"Where skdp is not first: {title.lower()}", header, rows, [23, 15, 25, 32, 5])
            table += "\n" + "\n".join(f"{number}. {note}" for note, number in notes.items()) + "\n"
            parts.append(dropdown(f"{title}: the cells that are lost", table))
    return "\n".join(parts)


def panels_of(table, kind):
    """Pairs of panels, each a task and a metric. Log loss is in the tables alone."""
    tasks = [task for task in TASKS.values() if task.kind == kind]
    panels = [(task.name, m) for task in tasks for m in task.metrics if m != "log_loss" and (task.name, m) in table]
    return [panels[i : i + 2] for i in range(0, len(panels), 2)]


def plot(table, panels, dark):
    """Plot the best of each library against epsilon, in two panels."""
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(1, 2, figsize=(5.6, 3.5), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    handles = {}
    for axis, (task, metric) in zip(axes.flat, panels, strict=False):
        methods = table[task, metric]
        for name, library, delta in SIDES:
            found = {e: summary.best(at_side(methods, e, library, delta), metric) for e in epsilons_of(table)}
            points = [(e, pair[1].mean, pair[1].half_width or 0) for e, pair in found.items() if pair]
            if points:
                color, marker = LOOKS[library]
                handles[name] = axis.errorbar(
                    *zip(*points, strict=True),
                    color=headline.shade(color, dark),
                    linestyle="--" if delta == 0 else "-",
                    marker=marker,
                    markersize=5,
                    capsize=2,
                )
        ceiling = summary.best([(m, by[math.inf]) for m, by in methods.items() if math.inf in by], metric)
        if ceiling:
            line = axis.axhline(ceiling[1].mean, color=headline.shade("black", dark), linestyle=":")
            handles["scikit-learn, no privacy"] = line
        axis.set_xscale("log")
        if metric in ("inertia", "mean_error", "scale_error"):
            axis.set_yscale("log")
        if metric == "r2":  # diffprivlib's is below
            axis.set_ylim(-0.1, 0.9)
        axis.set_title(f"{NAMES[task]}\n{TITLES.get(metric, METRICS[metric])}", fontsize=9.5)
        axis.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axis.tick_params(labelsize=9, which="both")
        axis.set_xlabel("ε", fontsize=10)
    drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=9)
    return drawing


def completeness(rows):
    """Return versions and numbers of fits and splits."""
    counts, versions, splits = defaultdict(set), defaultdict(set), defaultdict(set)
    for row in rows:
        cell = results.cell_of(row)
        counts[cell.library].add(cell)
        splits[cell.library].add((cell.split, cell.draw))
        if row["version"]:
            versions[cell.library].add(row["version"])
    lines = [
        [library, ", ".join(sorted(versions[library])), len(cells), len({s for s, _ in splits[library]})]
        for library, cells in counts.items()
    ]
    return csv_table("What was run", ["library", "version", "fits", "splits"], lines)


def families_of_methods():
    """Return the family of each library and method."""
    return {(method.library, method.name): method.family for _, method in all_methods()}


def read(folder):
    """Return the rows of the file of results for existing methods."""
    known = families_of_methods()
    return [row for row in results.read(folder / "utility.csv") if (row["library"], row["method"]) in known]


def unexplained(folder=results.FOLDER, reasons=summary.REASONS):
    """Return lost cells without a reason."""
    found = summary.contests(summary.entries(read(folder)), families_of_methods())
    return summary.without_reason(found, summary.read_reasons(reasons))


def write(folder=results.FOLDER, output=OUTPUT, reasons=summary.REASONS, static=None):
    """Write tables and plots, and return the lost cells and longer times without a reason."""
    output.mkdir(parents=True, exist_ok=True)
    releases = history.table(history.known(folder / "speed_history.csv"))
    longer = speed_summary.write(folder, output, summary.read_reasons(reasons, "slower"), releases)
    growth_summary.write(folder / "growth.csv", output)
    rows, families = read(folder), families_of_methods()
    table = summary.entries(rows)
    epsilons = epsilons_of(table)
    found = summary.contests(table, families)
    known = summary.read_reasons(reasons)
    headline.write(table, families, NAMES, output, static, report_synthetic.write(folder, output))
    (output / "lost.inc").write_text(short_list(found, known))
    for kind, title in KINDS.items():
        if any(TASKS[task].kind == kind for task, _ in table):
            (output / f"{kind}.inc").write_text(section(table, kind, title, epsilons, families, output))
    (output / "run.inc").write_text(completeness(rows) + "\n" + failures(rows))
    return summary.without_reason(found, known), longer


def section(table, kind, title, epsilons, families, output):
    """Plots of the tasks of a kind, and tables that unfold."""
    parts = []
    for number, panels in enumerate(panels_of(table, kind), 1):
        headline.pair(lambda dark, shown=panels: plot(table, shown, dark), output, f"{kind}_{number}")
        text = " and ".join(f"{NAMES[task]}, {METRICS[metric]}" for task, metric in panels)
        parts.append(image(f"{IMAGES}/{kind}_{number}", f"{text}: scores against epsilon"))
    parts.append(dropdown(f"{title}: the best method of each library", overview(table, kind, epsilons)))
    return "\n".join([*parts, details(table, kind, epsilons, families)])


def refresh(docs, output=OUTPUT):
    """Write the figures of `output` into the pages that quote other values: ``:figure:`value <key>```."""
    figures = json.loads((output / "figures.json").read_text())
    for page in docs.rglob("*.rst"):
        text = page.read_bytes().decode()
        new = re.sub(QUOTED, lambda m: m[0].replace(m["value"], figures.get(m["key"], m["value"]), 1), text)
        if new != text:
            page.write_bytes(new.encode())


def main():
    parser = argparse.ArgumentParser(description="Makes the tables and plots of the benchmark page.")
    parser.add_argument("--results", type=Path, default=results.FOLDER)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--docs", type=Path, help="draw the picture and write the figures of these pages anew, too")
    arguments = parser.parse_args()
    static = arguments.docs and arguments.docs / "_static"
    missing, longer = write(arguments.results, arguments.output, static=static)
    if arguments.docs:
        refresh(arguments.docs, arguments.output)
    for m in longer:
        print(
            f"no reason: {m.model} {m.operation}, {m.rows} x {m.columns}: {m.ratio:.2f} of {m.library} {m.counterpart}"
        )
    for c in missing:
        print(
            f"no reason: {c.task} {c.metric} among {c.family}, delta {c.delta:g}, epsilon {c.epsilon:g}: "
            f"{figure(c.our_mean)} {c.ours and c.ours[1]} against {figure(c.peer_mean)} {c.peer[0]} {c.peer[1]}"
            f"{'' if c.clear else ' (within the interval)'}"
        )
    print(f"tables and plots are in {arguments.output}")
    sys.exit(1 if missing or longer else 0)


if __name__ == "__main__":
    main()
