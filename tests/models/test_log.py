"""Events reach the file and the caller; a training that goes on drops what will come again."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from orthotrace.models.errors import ModelError
from orthotrace.models.log import Event, log_to


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_are_told_and_written(tmp_path: Path) -> None:
    told: list[Event] = []
    with log_to(tmp_path / "g0.jsonl", 0, told.append, None) as tell:
        tell(Event("step", 10, 20, 1.5, {"loss": 0.5}))
    assert told == [Event("step", 10, 20, 1.5, {"loss": 0.5})]
    assert lines(tmp_path / "g0.jsonl") == [
        {
            "kind": "step",
            "step": 10,
            "steps": 20,
            "seconds": 1.5,
            "values": {"loss": 0.5},
            "text": "",
        }
    ]


def test_what_came_after_the_state_is_dropped_and_so_is_a_line_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "g0.jsonl"
    with log_to(path, 0, lambda event: None, None) as tell:
        for step in (10, 20, 30):
            tell(Event("step", step, 40, 0.0))
    path.write_text(path.read_text() + '{"kind": "st')
    with log_to(path, 20, lambda event: None, None) as tell:
        tell(Event("step", 30, 40, 1.0))
    assert [(line["step"], line["seconds"]) for line in lines(path)] == [(10, 0), (20, 0), (30, 1)]


def test_a_new_training_begins_a_new_log(tmp_path: Path) -> None:
    path = tmp_path / "g0.jsonl"
    path.write_text("of another training\n")
    with log_to(path, 0, lambda event: None, None):
        pass
    assert path.read_text() == ""


def test_tensorboard_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "torch.utils.tensorboard":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        pytest.raises(ModelError, match=r'pip install "orthotrace\[tensorboard\]"'),
        log_to(tmp_path / "g0.jsonl", 0, lambda event: None, tmp_path / "board"),
    ):
        pass


def test_tensorboard_gets_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with log_to(tmp_path / "g0.jsonl", 0, lambda event: None, tmp_path / "board") as tell:
        tell(Event("figures", 1, 2, 0.0, {"iou/road": 0.5}))
    assert [found.name for found in (tmp_path / "board").glob("events*")]
