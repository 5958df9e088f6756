import json
import math
from pathlib import Path

import pytest
from orthotrace.mapping.errors import MappingError
from orthotrace.mapping.viewer.report import Report, Section, Table, words, write_report

TABLE = Table(
    "F1 against the truth",
    ("", "road", "building"),
    (("OpenStreetMap", 0.81, 0.7), ("model | 0", 0.9, None)),
    "Unknown is left out.",
)
REPORT = Report(
    "Map of demo",
    (
        Section(
            "scores",
            "How good it is",
            ("The *best* of <b>three</b> seeds.",),
            {"cells": 12345, "complete": True, "IoU": 0.5},
            (TABLE,),
        ),
        Section("coverage", "What was looked at", facts={"km_2": 4.0}),
    ),
)


def test_programs_find_every_figure_by_name(tmp_path: Path) -> None:
    told = json.loads(write_report(tmp_path, REPORT)[0].read_text())
    assert told["scores"]["facts"] == {"cells": 12345, "complete": True, "IoU": 0.5}
    assert told["scores"]["tables"][TABLE.title][1] == {
        "": "model | 0",
        "road": 0.9,
        "building": None,
    }
    assert told["coverage"]["facts"]["km_2"] == 4.0


def test_people_read_sentences_and_an_even_table(tmp_path: Path) -> None:
    text = write_report(tmp_path, REPORT)[1].read_text()
    assert "- cells: 12,345\n- complete: yes\n- IoU: 0.500\n" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and len(set(map(len, rows))) == 1
    assert rows[-1].startswith("| model \\| 0") and rows[-1].endswith(" – |")


def test_what_stands_in_a_text_is_never_markup(tmp_path: Path) -> None:
    text = write_report(tmp_path, REPORT)[1].read_text()
    assert r"The \*best\* of \<b\>three\</b\> seeds." in text
    assert "- km_2: 4.000" in text


def test_the_same_report_is_the_same_bytes(tmp_path: Path) -> None:
    one, other = write_report(tmp_path / "a", REPORT), write_report(tmp_path / "b", REPORT)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_a_figure_that_is_no_number_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    broken = Report("r", (Section("s", "S", facts={"IoU": math.nan}),))
    with pytest.raises(MappingError, match="not finite"):
        write_report(tmp_path, broken)
    assert not list(tmp_path.iterdir())


def test_uneven_tables_and_twin_names_are_refused() -> None:
    with pytest.raises(MappingError, match="2 entries"):
        Table("t", ("a", "b"), ((1,),))
    with pytest.raises(MappingError, match="different names"):
        Table("t", ("a", "a"), ())
    with pytest.raises(MappingError, match="different keys"):
        Report("r", (Section("s", "S"), Section("s", "T")))
    with pytest.raises(MappingError, match="title"):
        Report("r", (Section("title", "S"),))
    with pytest.raises(MappingError, match="different titles"):
        Section("s", "S", tables=(TABLE, TABLE))


def test_facts_in_words() -> None:
    assert [words(fact) for fact in (False, -3, 12.0, 9.9996, "x", math.inf)] == [
        "no",
        "-3",
        "12.0",
        "10.000",
        "x",
        "–",
    ]
