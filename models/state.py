"""The state of a training on disk: one safetensors file, from which it goes on as if unbroken."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..tiling.files import written_beside
from .errors import ModelError

_KEY = "orthotrace-state"
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class State:
    """What a training has come to."""

    facts: Mapping[str, Any]
    """Step, budget, figures so far, and the fingerprint of what is trained on what; as JSON."""

    tensors: Tensors
    """By "part/name": the parts are `net`, `average`, `best` and the optimizer's."""

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part, without its prefix."""
        prefix = f"{name}/"
        return {k.removeprefix(prefix): v for k, v in self.tensors.items() if k.startswith(prefix)}


def save_state(path: Path, facts: Mapping[str, Any], parts: Mapping[str, Tensors]) -> None:
    """Write a state beside its place and rename it: a killed training keeps its last one."""
    tensors = {
        f"{part}/{name}": tensor.detach().cpu().contiguous()
        for part, named in parts.items()
        for name, tensor in named.items()
    }
    with written_beside(path) as part:
        save_file(tensors, part, {_KEY: json.dumps(facts, sort_keys=True)})


def load_state(path: Path) -> State:
    """Read a state; ModelError for anything else."""
    try:
        with safe_open(path, "pt") as opened:
            facts = json.loads((opened.metadata() or {})[_KEY])
            return State(facts, {name: opened.get_tensor(name) for name in opened.keys()})  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, ValueError) as problem:
        raise ModelError(
            f"{path} is no state of a training ({problem}); remove it to begin anew"
        ) from problem


def optimizer_tensors(net: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory by "parameter/quantity"; parameters that had no gradient have none."""
    return {
        f"{name}/{quantity}": value
        for name, parameter in net.named_parameters()
        for quantity, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(net: nn.Module, optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Undo `optimizer_tensors`, onto the devices and layouts of the parameters."""
    for name, parameter in net.named_parameters():
        prefix = f"{name}/"
        found = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        if found:
            optimizer.state[parameter] = {
                quantity: value
                if value.ndim == 0
                else torch.empty_like(parameter, requires_grad=False).copy_(value)
                for quantity, value in found.items()
            }
