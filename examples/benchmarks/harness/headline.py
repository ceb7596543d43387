"""The figures that the documentation quotes, the picture of its home page, and contests won and lost by peer."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean

import many_tables
import report_tables
import summary
from results import FOLDER, csv_table, delta_text, figure, read
from tasks import DELTA, TASKS

#: Okabe and Ito's colours, which most colour-blind readers can tell apart. Black is white on a dark page.
BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION = "#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00"
DARK = {BLUE: "#56B4E9", "black": "#dddddd"}


METRICS = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "log_loss": "log loss",
    "r2": "R²",
    "inertia": "inertia / scikit-learn's",
    "captured": "captured variance / scikit-learn's",
    "mean_error": "error of the means, in standard deviations",
    "scale_error": "error of the scales, in logarithms",
}


#: The score that decides a contest, so that a fit counts once. A scaler is no model, and has no contest.
DECIDING = {"classification": "auc", "regression": "r2", "clustering": "inertia", "components": "captured"}


def figures(table, scores, of_tables=()):
    """All that the documentation may quote, by key: ``task/method/delta/metric/epsilon``."""
    quoted = {}
    held_out = report_tables.read(read(FOLDER / "held_out.csv"))
    for (task, metric), methods in (table | held_out).items():
        for (library, method, delta), by_epsilon in methods.items():
            name = method if library in ("skdp", "scikit-learn") else f"{library} {method}"
            for epsilon, entry in by_epsilon.items():
                if entry.by_split:
                    place = "not private" if math.isinf(epsilon) else f"{delta_text(delta)}/{metric}/{epsilon:g}"
                    key = f"{task}/{name}/{place}" + ("" if math.isfinite(epsilon) else f"/{metric}")
                    quoted[key] = figure(entry.mean)
                    if entry.spent and math.isfinite(epsilon):
                        quoted[f"{task}/{name}/spent"] = f"{entry.spent / epsilon:.2f}"
    for key in ("total", "won", "tied", "lost"):
        quoted[f"contests/{key}"] = f"{sum(getattr(score, key) for score in scores):,}"
    return {**quoted, **many_tables.figures(of_tables), **of_difficult_tables(), **of_statistics(), **of_coverage()}


def of_difficult_tables(path=FOLDER / "difficult.csv"):
    """Mean scores by key, ``difficult/estimator/table/delta/epsilon``, and gaps to a constant, ``.../gap``. The table
    ``gap`` is the mean over the tables of the gap, where gaps below -1 count as -1.
    """
    scores, gaps = defaultdict(list), defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            place = row["estimator"], row["table"], f"{float(row['delta']):g}", f"{float(row['epsilon']):g}"
            scores[place].append(float(row["score"]))
            gaps[place].append(float(row["score"]) - float(row["constant"]))
    by_table = defaultdict(list)
    for (estimator, _, *place), values in gaps.items():
        by_table[(estimator, "gap", *place)].append(max(fmean(values), -1.0))
    quoted = {f"difficult/{'/'.join(key)}": f"{fmean(values):.2f}" for key, values in (scores | by_table).items()}
    return quoted | {f"difficult/{'/'.join(key)}/gap": figure(fmean(values)) for key, values in gaps.items()}


def of_statistics(path=FOLDER / "statistics.csv"):
    """Root mean square errors by key, ``statistics/library/statistic/rows/width/epsilon``. The library ``ratio`` is the
    error of skdp over the least of the others.
    """
    cells = defaultdict(dict)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            place = "/".join([row["statistic"], *(f"{float(row[name]):g}" for name in ("rows", "width", "epsilon"))])
            cells[place][row["library"]] = float(row["rmse"])
    quoted = {f"statistics/{of}/{at}": f"{error:.2f}" for at, errors in cells.items() for of, error in errors.items()}
    for place, errors in cells.items():
        others = [error for library, error in errors.items() if library != "skdp"]
        if "skdp" in errors and min(others, default=0.0) > 0:
            quoted[f"statistics/ratio/{place}"] = f"{errors['skdp'] / min(others):.2f}"
    return quoted


def of_coverage(path=FOLDER / "statistics_coverage.csv"):
    """Least shares of intervals that hold, by key, ``coverage/statistic/distribution/width/epsilon``."""
    with open(path, newline="") as file:
        return {
            f"coverage/{row['statistic']}/{row['law']}/{row['width']}/{float(row['epsilon']):g}": row["least"]
            for row in csv.DictReader(file)
        }


def table_of(table, name, titles):
    """What a method of skdp and its variants reach on all data sets, for the page about it."""
    rows, epsilons = [], sorted({e for of in table.values() for by in of.values() for e in by if math.isfinite(e)})
    for task in dict.fromkeys(task for task, _ in table):
        shown = [m for m in TASKS[task].metrics if m != "log_loss"]
        for library, method, delta in table[task, shown[0]]:
            if library == "skdp" and (method == name or method.startswith(f"{name} (")):
                entries = [table[task, m][library, method, delta] for m in shown]
                cells = [" / ".join(figure(of[e].mean) if e in of else "–" for of in entries) for e in epsilons]
                variant = method.removeprefix(name)
                title = f"{titles[task]}{variant}: {' / '.join(METRICS[m] for m in shown)}"
                # The hyphen does not end a line in a narrow column.
                rows.append([title, delta_text(delta).replace("-", "\N{NON-BREAKING HYPHEN}"), *cells])
    header = ["", "δ", *(f"ε {e:g}" for e in epsilons)]
    return csv_table(f"{name} in the benchmark", header, rows)


def style(dark):
    """Settings of matplotlib for a light or a dark page."""
    ink = DARK["black"] if dark else "black"
    return {
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink),
        **{"figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none"},
        **{"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25},
        **{"font.size": 11, "svg.hashsalt": "skdp", "legend.frameon": False},
    }


def shade(color, dark):
    """A colour as it is on a light or a dark page."""
    return DARK.get(color, color) if dark else color


def pair(draw, folder, name, description=""):
    """Draw a picture for light pages and one for dark pages: ``draw(dark)`` returns a figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        with matplotlib.rc_context(style(dark)):
            drawing = draw(dark)
            path = folder / f"{name}_{'dark' if dark else 'light'}.svg"
            drawing.savefig(path, metadata={"Date": None, "Description": description})
            pyplot.close(drawing)


@dataclass(frozen=True)
class Score:
    """Numbers of cells that are won, tied, and lost against one peer."""

    name: str
    won: int
    tied: int
    lost: int

    @property
    def total(self):
        """Cells in which the peer has a figure."""
        return self.won + self.tied + self.lost


PEERS = (
    ("diffprivlib", "diffprivlib", 0.0),
    ("DP-EBM", "interpret", DELTA),
    ("tuned DP-SGD", "opacus", DELTA),
)


def scores(table, families):
    """The best of skdp against the best of each peer, at the delta of the peer: one contest a data set and epsilon."""
    by_peer = []
    for name, library, delta in PEERS:
        decisive = {
            (task, metric): {m: by_epsilon for m, by_epsilon in methods.items() if m[0] in ("skdp", library)}
            for (task, metric), methods in table.items()
            if metric == DECIDING.get(TASKS[task].kind)
        }
        cells = [c for c in summary.contests(decisive, families) if c.family == summary.ANY and c.delta == delta]
        clear = [c for c in cells if c.clear]
        lost = sum(c.lost for c in clear)
        by_peer.append(Score(name, len(clear) - lost, len(cells) - len(clear), lost))
    return [score for score in by_peer if score.total]


def wins_and_losses(found, dark):
    """A bar for each peer."""
    from matplotlib import pyplot

    drawing, axis = pyplot.subplots(figsize=(6, 0.75 * len(found) + 1.3), layout="constrained")
    kinds = (
        ("won", "skdp is better", BLUE),
        ("tied", "tied", "0.72"),
        ("lost", "the peer is better", VERMILION),
    )
    left = [0.0] * len(found)
    for name, label, color in kinds:
        shares = [100 * getattr(score, name) / score.total for score in found]
        axis.barh(range(len(found)), shares, left=left, color=color, label=label, height=0.5)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    for i, score in enumerate(found):
        text = f"{score.name}: {score.won} better, {score.tied} tied, {score.lost} worse"
        axis.text(0, i - 0.32, text, va="bottom", fontsize=10)
    axis.set(ylim=(len(found) - 0.6, -0.75), xlim=(0, 100), xlabel="% of the contests with this peer")
    axis.set_yticks([])
    axis.grid(False)
    axis.spines["left"].set_visible(False)
    drawing.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return drawing


def write(table, families, titles, output, static=None, more=()):
    """Write the figures, with `more` of them, and the pictures of wins and losses; the committed picture too, if its
    folder is given.
    """
    output.mkdir(parents=True, exist_ok=True)
    by_peer, of_tables = scores(table, families), many_tables.cells()
    quoted = figures(table, by_peer, of_tables) | dict(more)
    (output / "figures.json").write_text(json.dumps(quoted, indent=0, ensure_ascii=False))
    (output / "tables.inc").write_text(many_tables.for_page(of_tables))
    header = ["table", "ε", "additive model", "other method", "name"]
    lines, _ = many_tables.better()
    (output / "tables_better.inc").write_text(csv_table("Cases in which another method is better", header, lines))
    for name in {method.split(" (")[0] for of in table.values() for library, method, _ in of if library == "skdp"}:
        (output / f"{name}.inc").write_text(table_of(table, name, titles))
    if by_peer:
        pair(lambda dark: wins_and_losses(by_peer, dark), output, "wins")
    if static is not None:
        colors = (BLUE, VERMILION, "black")

        def draw(dark):
            return many_tables.picture(of_tables, [shade(color, dark) for color in colors])

        pair(draw, static, "tables", many_tables.described(of_tables))
