"""Draw the cheat sheet, one page as PNG and PDF: ``python docs/cheat_sheet.py FOLDER``.

A test runs all code on the sheet. The list of estimators is that of docs/which_estimator.rst.
"""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).resolve().parent
BLUE, INK, GREY, PAPER = "#00538a", "#1a1a1a", "#e4eaf0", "#f6f8fa"
# A4 in landscape, in inches, and the sizes of letters in points.
WIDTH, HEIGHT = 11.69, 8.27
MARGIN, GAP, PADDING, TITLE = 0.3, 0.16, 0.06, 0.56
HEADING_SIZE, CODE_SIZE, NOTE_SIZE, LIST_SIZE, LINE = 9.5, 7.3, 7.4, 6.8, 1.32
# Letters of a note that fit into a column.
NOTE_LETTERS = 60


@dataclass(frozen=True)
class Card:
    """A part of the sheet: code that a test runs, and a note."""

    title: str
    code: str = ""
    note: str = ""
    language: str = "python"

    def code_lines(self):
        """Return the lines of code."""
        return textwrap.dedent(self.code).strip().splitlines()

    def note_lines(self):
        """Return the lines of the note."""
        return textwrap.wrap(self.note, NOTE_LETTERS)

    def height(self):
        """Return the height in inches."""
        lines = len(self.code_lines()) * CODE_SIZE + len(self.note_lines()) * NOTE_SIZE
        return (LINE * (lines + HEADING_SIZE) / 72) + 3 * PADDING


COLUMNS = [
    [
        Card(
            "Declare what is public",
            """
            from skdp import Number, Schema
            schema = Schema(
                {
                    "age": Number(18, 90, step=1),
                    "income": Number(1, 1e6, scale="log"),
                    "town": ["Bonn", "Ulm"],
                },
                target={"repaid": ["no", "yes"]},
            )
            """,
            "Bounds and categories come from the code book, never from the records. Missing entries are allowed.",
        ),
        Card(
            "One budget for all releases",
            """
            import pandas as pd
            from skdp import BudgetAccountant
            table = pd.read_csv("loans.csv")
            budget = BudgetAccountant(
                epsilon=3.0, delta=1e-6, ledger="loans.db"
            )
            private = {"schema": schema, "accountant": budget}
            """,
            "A fit is charged before noise is drawn. Programs that open the same ledger share one budget.",
        ),
        Card(
            "Fit and predict",
            """
            from skdp import DPAdditiveClassifier
            model = DPAdditiveClassifier(
                epsilon=1.0, delta=1e-7, **private
            ).fit(table)
            model.predict(table.head())
            """,
            "Choose delta far below one over the number of records. Never set random_state: who knows the seed can "
            "remove the noise.",
        ),
        Card(
            "Read the guarantee",
            """
            from skdp.inspection import model_card
            print(model.privacy_)
            print(model_card(model, accountant=budget))
            """,
            "privacy_ lists each release with its sensitivity and noise, and what an attacker can find out at most.",
        ),
        Card(
            "What may be published",
            note="Models, released statistics, synthetic rows, scores of private_score, and guarantees. Not: exact "
            "scores, counts of schema.check, the number of records, predictions for private rows, and the seed.",
        ),
    ],
    [
        Card(
            "Several fits on one accountant",
            """
            from skdp import ObjPertLogReg
            print(budget.remaining())
            linear = ObjPertLogReg(
                epsilon=0.5, delta=1e-7, **private
            ).fit(table)
            print(budget.to_text(last=2))
            """,
            "With delta > 0, costs compose to less than their sum. A fit beyond the budget raises BudgetError.",
        ),
        Card(
            "Score on private rows",
            """
            from skdp import private_score
            rows = pd.read_csv("new_loans.csv")
            score = private_score(
                model, rows, epsilon=0.2, delta=1e-7, **private
            )
            low, high = score.confidence_interval(0.95)
            """,
            "model.score is exact. Use it on public rows only.",
        ),
        Card(
            "Search under one budget",
            """
            from skdp import DPGridSearchCV
            search = DPGridSearchCV(
                ObjPertLogReg(),
                {"C": [0.001, 0.1]},
                epsilon=0.5,
                delta=1e-7,
                **private,
            ).fit(table)
            print(search.best_params_)
            """,
            "epsilon covers all fits, the choice and the last fit.",
        ),
        Card(
            "Statistics with intervals",
            """
            from skdp import describe, stats
            print(describe(table, epsilon=0.3, **private))
            mean = stats.mean(
                table, columns="income", epsilon=0.1, **private
            )
            low, high = mean.confidence_interval(0.95)
            """,
            "Intervals cover the noise and the sampling error.",
        ),
        Card(
            "Share a synthetic table",
            """
            from skdp import DPTableGenerator
            generator = DPTableGenerator(
                epsilon=0.5, delta=1e-7, **private
            ).fit(table)
            generator.sample(1000).to_csv("shared.csv")
            """,
        ),
    ],
    [
        Card(
            "Several rows of one person",
            """
            by_person = Schema(
                {"pressure": (70, 220)},
                target={"returned": ["no", "yes"]},
                group="patient",
                rows_per_group=3,
            )
            patients = BudgetAccountant(epsilon=1.0, unit="group")
            """,
            "Then the guarantee covers all rows of a person.",
        ),
        Card(
            "Save and export",
            """
            import joblib
            from skdp.export import to_sklearn
            model.set_params(accountant=None)
            joblib.dump(model, "model.joblib")
            joblib.dump(to_sklearn(model), "sklearn.joblib")
            schema.save("loans.toml")
            """,
            "skdp.export.to_onnx makes an ONNX model. A model without its accountant may be published.",
        ),
        Card(
            "Command line",
            """
            $ python -m skdp ledger loans.db
            $ python -m skdp schema check loans.toml loans.csv
            $ python -m skdp describe loans.csv \\
                --schema loans.toml --ledger loans.db \\
                --epsilon 0.1
            """,
            language="console",
        ),
    ],
]


def recommended_estimators():
    """Return the tasks and estimators of the table of docs/which_estimator.rst."""
    page = (HERE / "which_estimator.rst").read_text(encoding="utf-8")
    section = re.split(r"\n.+\n={4,}\n", page.split("Recommended estimators\n")[1])[0]
    rows = re.findall(r"\* - (.+)\n +- :class:`~skdp\.[\w.]*?(\w+)`", section)
    return [(task.replace("``", ""), estimator) for task, estimator in rows]


class Sheet:
    """A figure whose coordinates are inches from the upper left corner."""

    def __init__(self):
        """Make an empty page."""
        self.figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
        FigureCanvasAgg(self.figure)
        self.texts = []

    def write(self, x, y, text, size, **style):
        """Write a line whose upper left corner is at a place."""
        style = {"color": INK, "family": "DejaVu Sans"} | style
        place = (x / WIDTH, 1 - y / HEIGHT)
        self.texts.append(self.figure.text(*place, text, size=size, va="top", **style))

    def box(self, x, y, width, height, colour):
        """Draw a box."""
        corner = (x / WIDTH, 1 - (y + height) / HEIGHT)
        size = (width / WIDTH, height / HEIGHT)
        box = FancyBboxPatch(corner, *size, boxstyle="square,pad=0", facecolor=colour, edgecolor="none", zorder=-1)
        self.figure.add_artist(box)

    def heading(self, x, y, width, text):
        """Write a heading, and return its lower end."""
        height = LINE * HEADING_SIZE / 72
        self.box(x, y, width, height, BLUE)
        self.write(x + PADDING, y + 0.015, text, HEADING_SIZE, color="white", weight="bold")
        return y + height + PADDING

    def card(self, x, y, width, card):
        """Draw a card, and return its lower end."""
        self.box(x, y, width, card.height(), PAPER)
        lower = self.heading(x, y, width, card.title)
        for line in card.code_lines():
            self.write(x + PADDING, lower, line, CODE_SIZE, family="DejaVu Sans Mono")
            lower += LINE * CODE_SIZE / 72
        lower += PADDING / 2
        for line in card.note_lines():
            self.write(x + PADDING, lower, line, NOTE_SIZE)
            lower += LINE * NOTE_SIZE / 72
        return y + card.height()

    def estimators(self, x, y, width):
        """List tasks and estimators, and return the lower end."""
        lower = self.heading(x, y, width, "Which estimator?")
        for task, estimator in recommended_estimators():
            self.write(x + PADDING, lower, task, LIST_SIZE)
            self.write(x + width - PADDING, lower, estimator, LIST_SIZE, family="DejaVu Sans Mono", ha="right")
            lower += LINE * LIST_SIZE / 72
        return lower


def draw():
    """Return the sheet, and the lower end of each column."""
    sheet = Sheet()
    sheet.write(MARGIN, 0.17, "skdp", 17, weight="bold", color=BLUE)
    sheet.write(MARGIN + 0.8, 0.255, "Differentially private estimators for scikit-learn: the cheat sheet", 10.5)
    width = (WIDTH - 2 * MARGIN - 2 * GAP) / 3
    ends = []
    for k, cards in enumerate(COLUMNS):
        x, y = MARGIN + k * (width + GAP), TITLE
        for card in cards:
            y = sheet.card(x, y, width, card) + 0.08
        ends.append(y)
    x = MARGIN + 2 * (width + GAP)
    ends[-1] = sheet.estimators(x, ends[-1], width)
    return sheet, ends


def main(folder):
    """Write the sheet into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sheet, _ = draw()
    with mpl.rc_context({"pdf.fonttype": 42}):
        sheet.figure.savefig(folder / "cheat_sheet.png", dpi=200)
        sheet.figure.savefig(folder / "cheat_sheet.pdf", metadata={"CreationDate": None})


if __name__ == "__main__":
    main(sys.argv[1])
