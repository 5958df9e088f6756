"""The report of a run: report.json for programs, report.md for people; both say the same."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from ...tiling.files import written_beside
from ..errors import MappingError

Fact: TypeAlias = str | int | float | bool | None
"""None is "not known": an IoU where there is neither truth nor find, for one."""

_MARKUP = re.compile(r"([\\`*\[\]<>|#])|\b(_)|(_)\b")
"""What Markdown would take as its own; an underscore inside a word is none."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of facts under named columns."""

    title: str

    columns: tuple[str, ...]
    """The first one names the rows."""

    rows: tuple[tuple[Fact, ...], ...]

    note: str = ""
    """A sentence that says how to read it."""

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns) or not self.columns:
            raise MappingError(
                f"a table has columns of different names, got {self.columns} for {self.title!r}"
            )
        for row in self.rows:
            if len(row) != len(self.columns):
                raise MappingError(
                    f"a row of {self.title!r} has {len(self.columns)} entries, got {row}"
                )


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: sentences, then facts, then tables."""

    key: str
    """Its name for programs, such as "scores"."""

    title: str

    sentences: tuple[str, ...] = ()

    facts: Mapping[str, Fact] = field(default_factory=lambda: MappingProxyType({}))
    """By name: "cells", "seconds of training"."""

    tables: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        titles = [table.title for table in self.tables]
        if len(set(titles)) != len(titles):
            raise MappingError(f"the tables of a section have different titles, got {titles}")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did and how good it is."""

    title: str

    sections: tuple[Section, ...]

    def __post_init__(self) -> None:
        keys = [section.key for section in self.sections]
        if len({"title", *keys}) != len(keys) + 1:
            raise MappingError(
                f'the sections of a report have different keys, none of them "title", got {keys}'
            )


def write_report(folder: Path, report: Report) -> tuple[Path, Path]:
    """Write report.json and report.md into `folder`; the same report, the same bytes.

    A number that is not finite is refused: it means a figure that nobody could work out, and the
    form of that is None.
    """
    data, text = folder / "report.json", folder / "report.md"
    try:
        written = json.dumps(_for_programs(report), indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError as problem:
        raise MappingError(
            f"the report {report.title!r} holds a number that is not finite; wanted None for it"
        ) from problem
    with written_beside(data) as part:
        part.write_text(written + "\n", encoding="utf-8")
    with written_beside(text) as part:
        part.write_text(_for_people(report), encoding="utf-8")
    return data, text


def words(fact: Fact) -> str:
    """A fact as people read it.

    >>> [words(fact) for fact in (None, True, 12345, 0.61234, 1234.5678, "west")]
    ['–', 'yes', '12,345', '0.612', '1,234.6', 'west']
    """
    if fact is None or (isinstance(fact, float) and not math.isfinite(fact)):
        return "–"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, int):
        return f"{fact:,}"
    if isinstance(fact, float):
        return f"{fact:.3f}" if abs(fact) < 10 else f"{fact:,.1f}"
    return fact


def _for_programs(report: Report) -> dict[str, Any]:
    return {
        "title": report.title,
        **{
            section.key: {
                "title": section.title,
                "sentences": list(section.sentences),
                "facts": dict(section.facts),
                "tables": {
                    table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                    for table in section.tables
                },
            }
            for section in report.sections
        },
    }


def _for_people(report: Report) -> str:
    lines = [f"# {_text(report.title)}", ""]
    for section in report.sections:
        lines += [f"## {_text(section.title)}", ""]
        for sentence in section.sentences:
            lines += [_text(sentence), ""]
        if section.facts:
            facts = section.facts.items()
            lines += [f"- {_text(name)}: {_text(words(fact))}" for name, fact in facts] + [""]
        for table in section.tables:
            lines += _markdown(table)
    return "\n".join(lines)


def _markdown(table: Table) -> list[str]:
    """The table with columns of even width, numbers to the right."""
    cells = [table.columns, *(tuple(words(fact) for fact in row) for row in table.rows)]
    escaped = [[_text(cell) for cell in row] for row in cells]
    widths = [max(3, *(len(row[at]) for row in escaped)) for at in range(len(table.columns))]
    numbers = [
        bool(table.rows) and all(not isinstance(row[at], str) for row in table.rows)
        for at in range(len(table.columns))
    ]

    def line(row: list[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numbers, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        " " + "-" * (width - 1) + (": " if right else "- ")
        for width, right in zip(widths, numbers, strict=True)
    )
    head = [f"**{_text(table.title)}**", "", line(escaped[0]), f"|{rule}|"]
    foot = [_text(table.note), ""] if table.note else []
    return [*head, *(line(row) for row in escaped[1:]), "", *foot]


def _text(words: str) -> str:
    """The words on one line, with nothing in them that Markdown or HTML would take for markup."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(words.split()))
