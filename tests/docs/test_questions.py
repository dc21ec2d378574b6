"""Fifteen questions are answered within two clicks from the start page of the built site (docs/tools/questions.yaml)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS: list[dict[str, Any]] = yaml.safe_load((ROOT / "docs/tools/questions.yaml").read_text())
HEADINGS = ("h1", "h2", "h3")


@dataclass
class Page(HTMLParser):
    """The links of a page, and the texts of the sections of its article, by the anchor of their heading."""

    links: list[tuple[str, str]] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)
    _anchor: str = ""
    _href: str | None = None
    _text: str = ""
    _is_article: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "article":
            self._is_article = True
        if tag == "a" and "headerlink" not in (values.get("class") or ""):
            self._href, self._text = values.get("href"), ""
        if tag in HEADINGS and values.get("id"):
            self._anchor = str(values["id"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_article = False
        if tag == "a" and self._href is not None:
            self.links.append((" ".join(self._text.split()), self._href))
            self._href = None

    def handle_data(self, data: str) -> None:
        self._text += data
        if self._is_article:
            self.sections[self._anchor] = self.sections.get(self._anchor, "") + data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: run `make docs` once")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    reference = [sys.executable, "docs/tools/reference.py"]
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    for command in (reference, build):
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


def read(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    return page


def follow(file: Path, text: str) -> tuple[Path, str]:
    """Return the file and the anchor that the link with this text leads to."""
    targets = [href for label, href in read(file).links if label == text]
    assert targets, f"{file.parent.name}: no link '{text}'"
    path, anchor = urldefrag(targets[0])
    target = (file.parent / unquote(path)).resolve() if path else file
    return (target / "index.html" if target.is_dir() else target), anchor


def test_half_of_the_questions_come_from_people_who_know_kai():
    who = [entry["who"] for entry in QUESTIONS]

    assert (who.count("knows Kubernetes"), who.count("knows KAI")) == (8, 7)
    assert len({tuple(entry["clicks"]) for entry in QUESTIONS}) == 15


@pytest.mark.integration
@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: str(entry["question"])[:40])
def test_the_answer_is_two_clicks_from_the_start_page(site: Path, entry: dict[str, Any]):
    first, second = entry["clicks"]

    page, _anchor = follow(site / "index.html", first)
    page, anchor = follow(page, second)

    shown = read(page).sections
    text = " ".join((shown[anchor] if anchor else " ".join(shown.values())).split())
    missing_words = [word for word in entry["words"] if word not in text]
    assert not missing_words, (
        f"not in the section '{second}' of {page.parent.name}: {missing_words}"
    )
