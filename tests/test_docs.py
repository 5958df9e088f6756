"""The manual is true: its links lead somewhere, and the architecture page names the tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("distributed", "tiling", "models", "mapping")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *ROOT.glob("*/*.md")])


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", sorted(set(PAGES)), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name}: {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{page.name}: {target}"


def test_the_architecture_page_names_each_module_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    told = {
        (folder, module)
        for folder, rooms in re.findall(r"^\| `([\w/]+)/` \| (.*?) \|", page, re.MULTILINE)
        for module in re.findall(r"`(\w+)`", rooms)
    }
    there = {
        (str(path.relative_to(ROOT).parent), path.stem)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }
    assert told == there


def test_the_page_is_one_screen() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 60
