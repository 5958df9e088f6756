"""A state on disk is the training itself: the optimizer goes on with the same bits."""

from pathlib import Path

import pytest
import torch
from orthotrace.models.errors import ModelError
from orthotrace.models.state import (
    load_state,
    optimizer_tensors,
    restore_optimizer,
    save_state,
)
from torch import nn


def made(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    net.to(memory_format=torch.channels_last)
    return net, torch.optim.AdamW(net.parameters(), lr=0.1, fused=True)


def move(net: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    image = torch.randn(2, 2, 6, 6, generator=torch.Generator().manual_seed(step))
    optimizer.zero_grad()
    (net(image) ** 3).sum().backward()
    optimizer.step()


def test_what_is_restored_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    net, optimizer = made(0)
    for step in range(3):
        move(net, optimizer, step)
    parts = {"net": net.state_dict(), "optimizer": optimizer_tensors(net, optimizer)}
    save_state(tmp_path / "a.safetensors", {"done": 3}, parts)
    other, its_optimizer = made(1)
    state = load_state(tmp_path / "a.safetensors")
    assert state.facts == {"done": 3}
    other.load_state_dict(state.part("net"))
    restore_optimizer(other, its_optimizer, state.part("optimizer"))
    for step in range(3, 5):
        move(net, optimizer, step)
        move(other, its_optimizer, step)
    found, wanted = other.state_dict(), net.state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_an_optimizer_that_has_not_moved_has_no_memory() -> None:
    net, optimizer = made(0)
    assert optimizer_tensors(net, optimizer) == {}
    restore_optimizer(net, optimizer, {})
    move(net, optimizer, 0)


def test_the_same_state_is_the_same_bytes(tmp_path: Path) -> None:
    net, _ = made(0)
    for name in ("a", "b"):
        save_state(tmp_path / f"{name}.safetensors", {"x": 1, "a": 2}, {"net": net.state_dict()})
    first, second = (tmp_path / f"{name}.safetensors" for name in "ab")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"\x02\0\0\0\0\0\0\0{}"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g0.state.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="g0.state.safetensors is no state .* begin anew"):
        load_state(path)
