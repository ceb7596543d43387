"""Build the packages. Everything but the description is in pyproject.toml.

On an index, README has no files beside it. Links and pictures of the documentation lead to its site there, and links to
other files become text.
"""

import re
from pathlib import Path

from setuptools import setup

SITE = "https://skdp.readthedocs.io/en/stable/"


def description(readme):
    """Return README for an index."""
    readme = readme.replace("docs/_static/", f"{SITE}_static/")
    readme = re.sub(r"\(docs/([\w/]+)\.rst(#[\w-]+)?\)", rf"({SITE}\1.html\2)", readme)
    return re.sub(r"\[([^]]+)\]\((?!https?://)[^)]*\)", r"\1", readme)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(long_description=description(readme), long_description_content_type="text/markdown")
