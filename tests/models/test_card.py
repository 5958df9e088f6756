"""The one form of a model file: what is written is read back, what is no model is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from orthotrace.models import card as module
from orthotrace.models.card import Card, Model, load_model, save_model
from orthotrace.models.errors import ModelError
from safetensors.torch import save

CARD = Card(classes=("road",), bands=("red",), dtype="uint8", pixel_m=1.0, mean=(1.0,), std=(2.0,))
WEIGHTS = {"a": torch.tensor([[1.5, float("nan")]]), "b": torch.tensor(3), "c": torch.empty(0)}

KEPT = json.loads(json.dumps({"form": 1, **{name: getattr(CARD, name) for name in CARD.__slots__}}))


def test_a_model_is_read_back(tmp_path: Path) -> None:
    save_model(tmp_path / "m.safetensors", Model(CARD, WEIGHTS))
    found = load_model(tmp_path / "m.safetensors")
    assert found.card == CARD and found.weights.keys() == WEIGHTS.keys()
    for name, tensor in WEIGHTS.items():
        torch.testing.assert_close(found.weights[name], tensor, rtol=0, atol=0, equal_nan=True)


def test_weights_that_do_not_read_back_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that turns one number: names and sizes stay."""

    def turned(tensors: dict[str, torch.Tensor], header: dict[str, str]) -> bytes:
        return save({**tensors, "b": torch.tensor(4)}, header)

    monkeypatch.setattr(module, "save", turned)
    with pytest.raises(ModelError, match="does not read back as it was written"):
        save_model(tmp_path / "m.safetensors", Model(CARD, WEIGHTS))
    assert list(tmp_path.iterdir()) == []


def with_card(told: Any) -> bytes:
    return save(WEIGHTS, {"orthotrace": json.dumps(told)})


def listed() -> bytes:
    header = b"[1]"
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (
            lambda: with_card({**KEPT, "form": 2}),
            "card is of form 2, and this version reads",
        ),
        (lambda: with_card({**KEPT, "mean": []}), "a card has one mean and std for each band"),
        (lambda: with_card({**KEPT, "window": 500}), "is a multiple of 32, got 500"),
        (lambda: with_card([KEPT]), "its card is a list and no table"),
        (listed, "its header is a list and no table"),
        (lambda: save(WEIGHTS), "its header holds no card"),
        (lambda: save(WEIGHTS)[:20], "its header is cut off"),
        (lambda: b"PK\x03\x04", "is a pickle"),
    ],
)
def test_what_is_no_model_is_refused_by_the_file_s_name(
    tmp_path: Path, made: Callable[[], bytes], wanted: str
) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(made())
    with pytest.raises(ModelError, match=wanted) as refused:
        load_model(path)
    assert str(refused.value).startswith(str(path)) and "\n" not in str(refused.value)


def test_a_card_of_the_kept_form_is_read(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(with_card(KEPT))
    assert load_model(tmp_path / "m.safetensors").card == CARD
