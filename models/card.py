"""The one form of a model file: safetensors, with a card in its header that says what it is.

A model file is weights and a card, nothing that runs: pickles are refused.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ..tiling.files import written_beside
from .errors import ModelError

_KEY = "orthotrace"
_FORM = 1
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a model is, was trained on, and wants to see."""

    classes: tuple[str, ...]
    """One output each: ("road", "building")."""

    bands: tuple[str, ...]
    """One input each: ("red", "green", "blue", "nir")."""

    dtype: str
    """Type of the imagery's pixels: "uint8", "uint16", "float32"."""

    pixel_m: float
    """Size of a pixel on the ground in metres."""

    mean: tuple[float, ...]
    """Mean of each band over the whole training set, in the imagery's own numbers."""

    std: tuple[float, ...]
    """Standard deviation of each band over the whole training set."""

    encoder: str = "resnet18"
    """The name that segmentation-models-pytorch gives the U-Net's encoder."""

    window: int = 512
    """Side in pixels of what one forward pass decides, on the grid's absolute lattice of it."""

    margin: int = 64
    """Pixels around a window that the model sees too."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    """By class: the probability from which a pixel counts as found (0.5 if not told)."""

    recipe: Mapping[str, Any] = field(default_factory=dict)
    """How it was trained, with the number of steps that a budget of minutes became."""

    data: Mapping[str, Any] = field(default_factory=dict)
    """What it was trained on: region, generation, tiles, dates."""

    scores: Mapping[str, Any] = field(default_factory=dict)
    """Figures on the held-back tiles, by class."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """Libraries that it was made with."""

    def __post_init__(self) -> None:
        counts = {len(self.bands), len(self.mean), len(self.std)}
        if len(counts) != 1 or not self.bands or not self.classes:
            raise ModelError(
                f"a card has one mean and std for each band, got {self.bands}, "
                f"{self.mean}, {self.std}"
            )
        if min(self.std) <= 0 or self.pixel_m <= 0 or self.window <= 0 or self.margin < 0:
            raise ModelError(f"a card's sizes are positive, got {self}")
        if (self.window + 2 * self.margin) % 32:
            raise ModelError(
                f"window + 2 x margin is a multiple of 32, got {self.window} + 2 x {self.margin}"
            )

    def threshold(self, name: str) -> float:
        """The probability from which a pixel of class `name` counts as found."""
        return float(self.thresholds.get(name, 0.5))

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """The card of a header; keys that this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        tuples = ("classes", "bands", "mean", "std")
        values: dict[str, Any] = {
            key: tuple(value) if key in tuples else value
            for key, value in told.items()
            if key in known
        }
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Model:
    """A model file in memory."""

    card: Card
    weights: Mapping[str, torch.Tensor]


def save_model(path: Path, model: Model) -> None:
    """Write a model file, beside its place and read back; the same model, the same bytes."""
    header = {_KEY: json.dumps({"form": _FORM, **asdict(model.card)}, sort_keys=True)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.weights.items()}
    with written_beside(path, lambda part: _check(part, tensors)) as part:
        part.write_bytes(save(tensors, header))


def load_model(path: Path) -> Model:
    """Read a model file; ModelError for anything else, with what it was."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise ModelError(
            f"{path} cannot be read ({problem.strerror}); wanted a model file such as "
            "data/REGION/models/g0.safetensors"
        ) from problem
    if raw.startswith(_PICKLES):
        raise ModelError(
            f"{path} is a pickle (.pt), which can run code when opened; "
            "wanted a .safetensors file written by `orthotrace train`"
        )
    try:
        card = Card.from_dict(_header(raw))
        return Model(card, load(raw))
    except (ModelError, SafetensorError, ValueError, KeyError, TypeError, struct.error) as problem:
        raise ModelError(
            f"{path} is no model of OrthoTrace ({problem}); "
            "wanted a .safetensors file written by `orthotrace train`"
        ) from problem


def _header(raw: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<Q", raw[:8])
    if length > len(raw):
        raise ValueError("its header is cut off, or it is another kind of file")
    metadata = _table(raw[8 : 8 + length], "header").get("__metadata__", {})
    if _KEY not in metadata:
        raise ValueError("its header holds no card: another program's safetensors")
    told = _table(metadata[_KEY], "card")
    if told.get("form") != _FORM:
        raise ValueError(
            f"its card is of form {told.get('form')}, and this version reads form {_FORM}"
        )
    return told


def _table(text: str | bytes, name: str) -> dict[str, Any]:
    told = json.loads(text)
    if not isinstance(told, dict):
        raise ValueError(f"its {name} is a {type(told).__name__} and no table of JSON")
    return told


def _check(part: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    found = load(part.read_bytes())
    if found.keys() != tensors.keys() or not all(
        _same(found[name], tensor) for name, tensor in tensors.items()
    ):
        raise ModelError(f"{part} does not read back as it was written; is the disk whole?")


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors on the CPU are the same bytes, NaN and all."""
    alike = one.dtype == other.dtype and one.shape == other.shape
    return alike and torch.equal(_bytes(one), _bytes(other))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)
