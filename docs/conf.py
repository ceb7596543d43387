"""Configuration of the documentation's builder."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import ReferenceRole

import skdp

HERE = Path(__file__).resolve().parent
# The gallery imports `conf.style_of_figures` by name, also in other processes.
sys.path.insert(0, str(HERE))
EXAMPLES = HERE.parent / "examples"

# The page of the user guide for each package, and for classes that have another.
GUIDE = {
    "accounting": "accounting",
    "additive": "additive",
    "allocate": "accounting",
    "audit": "auditing",
    "cluster": "kmeans",
    "decomposition": "pca",
    "local": "local",
    "make_private_pipeline": "meta_estimators",
    "model_selection": "model_selection",
    "naive_bayes": "naive_bayes",
    "neural_network": "neural_network",
    "preprocessing": "preprocessing",
    "schema": "schema",
    "stats": "statistics",
    "synthetic": "histograms",
    "tree": "trees",
}
GUIDE |= {
    "AdditiveTermsDisplay": "additive",
    "DPSGDClassifier": "gradient_descent",
    "DPSGDRegressor": "gradient_descent",
    "DPTableGenerator": "synthetic_tables",
    "ExpMechERM": "erm",
    "FunctionalMechLinReg": "functional_mechanism",
    "FunctionalMechLogReg": "functional_mechanism",
    "MarginalsDisplay": "synthetic_tables",
    "ObjPertLogReg": "objective_perturbation",
    "OutputPertLogReg": "output_perturbation",
    "PATEClassifier": "pate",
    "SampleAggregate": "sample_aggregate",
    "model_card": "model_cards",
}


def style_of_figures(gallery_conf, name):
    """Set the look of the gallery's figures: colours that are told apart by everyone (Okabe and Ito), readable text."""
    import matplotlib.pyplot as plt

    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
    plt.rcParams.update(
        {
            "axes.prop_cycle": plt.cycler(color=colours),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.dpi": 100,
            "figure.figsize": (7, 4),
            "font.size": 11,
            "image.cmap": "cividis",
            "savefig.bbox": "tight",
        }
    )


project = "skdp"
author = "The skdp developers"
copyright = "2026, The skdp developers"
version = release = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "benchmarks"]
default_role = "literal"

# API pages
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
# Signatures that are longer have a line for each parameter.
python_maximum_signature_line_length = 79
autosummary_context = {"guide": GUIDE}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# References
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"
# Each page has a list of its own: works that several pages cite are in several, and numbers start at 1 on each.
suppress_warnings = ["bibtex.duplicate_citation", "bibtex.duplicate_label"]

# A reference that leads nowhere is an error. There is no intersphinx, so that the build needs no network: what
# belongs to other libraries is text.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib)\..*")]

# Formulas. MathJax is part of the site, so that they can be read where there is no network. The package that holds it
# is not used as an extension, since it does not say that it can be read in parallel.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static"
mathjax_path = "mathjax/tex-chtml.js"

# Prompts are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"benchmarks|demo\.py",
    "subsection_order": [f"../examples/{name}" for name in ("tutorials", "choices", "tables", "models", "trust")],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skdp",),
    "reset_modules": ("matplotlib", "conf.style_of_figures"),
    "image_srcset": ["2x"],
    # As many scripts at once as the builder has processes (-j).
    "parallel": True,
    "show_memory": False,
    # What is printed is shown, and not what a cell happens to end with.
    "capture_repr": (),
    # Times differ from build to build.
    "min_reported_time": 10_000,
    "write_computation_times": False,
}

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"skdp {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 5,
    "logo": {"text": f"skdp {release}", "alt_text": "skdp, home"},
}
# Pages without others below them have the width for their tables.
_ALONE = (
    "index",
    "benchmarks",
    "changelog",
    "cheat_sheet",
    "citing",
    "getting_started",
    "skdp_and_others",
    "which_estimator",
)
html_sidebars = {page: [] for page in _ALONE}
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["skdp.css"]
html_show_sourcelink = False


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn's base classes bring along: those docstrings point into its own guide."""
    inherited = getattr(obj, "__module__", None) or ""
    routing = name.startswith("set_") and name.endswith("_request")
    # The methods of text, which enumerations of text have, and those of mappings.
    of_python = any(obj is getattr(kind, name, name) for kind in (str, Mapping))
    return True if routing or of_python or inherited.split(".")[0] == "sklearn" else None


def allow_missing_figures(app, config):
    """Build without the gallery (-D plot_gallery=0), whose figures the user guide shows."""
    if str(config.plot_gallery) in ("0", "False"):
        config.suppress_warnings.append("image.not_readable")


def write_benchmarks(app):
    """Make the tables and plots of the benchmark page from the files of results."""
    subprocess.run([sys.executable, EXAMPLES / "benchmarks" / "harness" / "report.py"], check=True)


def write_parts_of_pages(app):
    """Draw the cheat sheet, and write the released tables of the page with a slider."""
    for script, folder in {"cheat_sheet.py": "cheat_sheet", "epsilon_tables.py": "epsilon"}.items():
        subprocess.run([sys.executable, HERE / script, HERE / "generated" / folder], check=True)


@cache
def figures():
    """Return what the documentation may quote from the files of results."""
    return json.loads((HERE / "generated" / "benchmarks" / "figures.json").read_text())


class FigureRole(ReferenceRole):
    """Quote a figure of the benchmark: ``:figure:`0.899 <adult/DPNaiveBayes/1e-5/auc/1>```."""

    def run(self):
        """Return the value if it is that of the files of results, or else an error."""
        value = figures().get(self.target)
        if self.has_explicit_title and self.title == value:
            return [nodes.Text(value)], []
        right = "which the benchmark does not have" if value is None else f"write :figure:`{value} <{self.target}>`"
        message = self.inliner.reporter.error(f"figure {self.text!r}: {right}", line=self.lineno)
        return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]


def correct_back_links(app, pagename, templatename, context, doctree):
    """Let the links from sources back to the reference have the module that the entry has there."""
    # viewcode takes the module of one entry for all entries from the same file.
    if pagename.startswith("_modules/"):
        context["body"] = re.sub(
            r"generated/([\w.]+\.(\w+))\.html#skdp\.\2\b", r"generated/\1.html#\1", context["body"]
        )


def setup(app):
    """Connect the handlers of this file."""
    app.add_role("figure", FigureRole())
    app.connect("config-inited", allow_missing_figures)
    app.connect("builder-inited", write_benchmarks)
    app.connect("builder-inited", write_parts_of_pages)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("html-page-context", correct_back_links)
