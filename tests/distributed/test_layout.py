"""A module and its vector are the same bits, and two forms of model never share a schema."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.layout import Entry, Kind, Layout, layout_of, weights_only
from torch import nn


class Tied(nn.Module):
    """A frozen first layer, BatchNorm, one weight under two names, a mask, an unsaved buffer."""

    def __init__(self, width: int = 3, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.first = nn.Linear(2, width, dtype=dtype).requires_grad_(False)
        self.norm = nn.BatchNorm1d(width)
        self.inside = nn.Linear(width, width, bias=False)
        self.outside = nn.Linear(width, width)
        self.outside.weight = self.inside.weight
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("table", torch.arange(5))
        self.register_buffer("cache", torch.ones(7), persistent=False)


def test_what_travels_by_which_rule_and_where() -> None:
    layout = layout_of(Tied())
    names = {kind: [e.name for e in layout.entries if e.kind is kind] for kind in Kind}
    assert names == {
        Kind.WEIGHTS: [
            *("first.weight", "first.bias", "norm.weight", "norm.bias"),
            *("inside.weight", "outside.bias"),
        ],
        Kind.STATISTICS: ["norm.running_mean", "norm.running_var"],
        Kind.COUNTERS: ["norm.num_batches_tracked"],
    }
    assert [layout.segment(kind) for kind in Kind] == [
        slice(0, 27),
        slice(27, 33),
        slice(33, 34),
    ]
    assert layout.size == 34 and layout.dtype == np.float32


@given(st.integers(0, 2**32 - 1))
def test_any_bits_come_back_as_they_were(seed: int) -> None:
    module = Tied()
    layout = layout_of(module)
    drawn = np.random.default_rng(seed)
    vector = drawn.integers(0, 2**32, layout.size, dtype=np.uint32).view(np.float32)
    vector[np.isnan(vector)] = -0.0
    vector[layout.segment(Kind.COUNTERS)] = drawn.integers(0, 2**24, 1)
    layout.write(vector, module)
    assert layout.read(module).tobytes() == vector.tobytes()
    assert layout.read(module, out=np.empty_like(vector)).tobytes() == vector.tobytes()


def test_written_into_another_module_all_its_state_is_the_same() -> None:
    one, other = Tied(), Tied()
    one.norm(torch.randn(4, 3))
    layout = layout_of(one)
    vector = layout.read(one)
    vector.flags.writeable = False
    layout.write(vector, other)
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    assert other.outside.weight is other.inside.weight


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_narrow_and_wide_numbers_lose_nothing(dtype: torch.dtype) -> None:
    module = Tied(dtype=dtype)
    layout = layout_of(module)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    vector = layout.read(module)
    assert vector.dtype == (np.float64 if dtype is torch.float64 else np.float32)
    assert layout.rounds == (dtype is not torch.float64)
    layout.write(vector, module)
    assert all(torch.equal(before[name], told) for name, told in module.state_dict().items())


def test_hold_is_what_the_module_holds_after_a_write() -> None:
    module = Tied(dtype=torch.bfloat16)
    layout = layout_of(module)
    vector = layout.read(module)
    vector[layout.segment(Kind.WEIGHTS)] += 1e-3
    layout.write(vector, module)
    held = layout.read(module)
    assert not np.array_equal(held, vector)
    layout.hold(vector)
    assert np.array_equal(held, vector)


def test_a_counter_stays_where_whole_numbers_end() -> None:
    module = nn.BatchNorm1d(1)
    # torch tells a buffer as a tensor, a module or None.
    module.num_batches_tracked.fill_(2**24 + 3)  # type: ignore[operator, union-attr]
    assert layout_of(module).read(module)[-1] == 2**24


def test_the_schema_tells_every_difference() -> None:
    same = Tied()
    others = [
        Tied(4),
        Tied(dtype=torch.bfloat16),
        nn.Sequential(*Tied().children()),
        nn.Linear(2, 3),
    ]
    schemas = [layout_of(module).schema() for module in (same, *others)]
    assert len(set(schemas)) == 5 and layout_of(Tied()).schema() == schemas[0]
    one, other = (Layout((Entry("a", (2,), "float32", kind),)) for kind in list(Kind)[:2])
    assert one.schema() != other.schema()


def stepped(
    kind: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
) -> tuple[Tied, torch.optim.Optimizer]:
    module = Tied()
    optimizer = kind(module.parameters())
    module.inside(module.norm(module.first(torch.randn(4, 2)))).square().sum().backward()
    module.outside.bias.grad = torch.ones(3)
    optimizer.step()
    return module, optimizer


def test_state_of_the_optimizer_travels_by_choice() -> None:
    module, optimizer = stepped(torch.optim.AdamW)
    layout = layout_of(module, optimizer, ("exp_avg", "exp_avg_sq"))
    trained = 3 + 3 + 9 + 3
    assert layout.size == layout_of(module).size + 2 * trained
    kinds = {entry.name: entry.kind for entry in layout.entries}
    assert kinds["exp_avg of inside.weight"] is Kind.WEIGHTS
    assert kinds["exp_avg_sq of inside.weight"] is Kind.STATISTICS
    vector = layout.read(module, optimizer)
    other, optimizer_of_other = stepped(torch.optim.AdamW)
    layout.write(vector, other, optimizer_of_other)
    assert torch.equal(
        optimizer.state[module.inside.weight]["exp_avg_sq"],
        optimizer_of_other.state[other.inside.weight]["exp_avg_sq"],
    )


def test_what_cannot_travel_is_told() -> None:
    module = Tied()
    fresh = torch.optim.AdamW(module.parameters())
    with pytest.raises(DistributedError, match="no exp_avg of norm.weight: let it step once"):
        layout_of(module, fresh, ("exp_avg",))
    with pytest.raises(DistributedError, match="called velocity"):
        layout_of(module, fresh, ("velocity",))
    with pytest.raises(DistributedError, match="no optimizer was given"):
        layout_of(module, None, ("exp_avg",))
    with pytest.raises(DistributedError, match="complex64"):
        layout_of(nn.Linear(2, 2, dtype=torch.complex64))


def test_another_module_is_refused_before_anything_is_written() -> None:
    layout, other = layout_of(Tied(3)), Tied(3)
    other.outside.bias = nn.Parameter(torch.zeros(9))
    before = layout_of(other).read(other)
    with pytest.raises(DistributedError, match=r"outside.bias was \(3,\).*\(9,\)"):
        layout.write(np.ones(layout.size, np.float32), other)
    assert np.array_equal(before, layout_of(other).read(other))
    with pytest.raises(DistributedError, match="not there"):
        layout.read(nn.Linear(2, 3))


def test_a_vector_of_another_form_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"\(5,\)"):
        weights_only(4).check(np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="float64"):
        weights_only(4).check(np.zeros(4))
    with pytest.raises(ValueError, match="weights, statistics"):
        Layout((Entry("a", (), "int64", Kind.COUNTERS), Entry("b", (), "float32", Kind.WEIGHTS)))
