"""Generalized SignSGD is its four lines, and needs no clipping where SGD does."""

import copy
from collections.abc import Callable

import pytest
import torch
from orthotrace.distributed.errors import DistributedError
from orthotrace.distributed.optimizers import GeneralizedSignSGD


def parameter(*values: float) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))


def steps(
    optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor], count: int
) -> list[float]:
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def test_three_steps_by_hand() -> None:
    """x = 1, gradients 2, -1, 4; lr .1, betas .5 and .75, decay .5, eps .25, warm-up 2."""
    x = parameter(1)
    settings = {"lr": 0.1, "betas": (0.5, 0.75), "eps": 0.25, "weight_decay": 0.5, "warmup": 2}
    optimizer = GeneralizedSignSGD([x], **settings)
    told = []
    for gradient in (2.0, -1.0, 4.0):
        x.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        told.append(x.item())
    # g = 2.5, m = 1.25, v = .390625, sqrt(v) = .625: x = 1 - .05 * 1.25 / .875
    first = 1 - 0.05 * 1.25 / 0.875
    g = -1 + 0.5 * first
    m = 0.5 * 1.25 + 0.5 * g
    v = 0.75 * 0.390625 + 0.25 * m**2
    second = first - 0.1 * m / (v**0.5 + 0.25)
    g = 4 + 0.5 * second
    m = 0.5 * m + 0.5 * g
    v = 0.75 * v + 0.25 * m**2
    third = second - 0.1 * m / (v**0.5 + 0.25)
    assert told == pytest.approx([first, second, third], abs=1e-15)


@pytest.mark.parametrize(("up", "down"), [(1.0, -1.0), (1e-3, -1e3), (1e6, -1e-6)])
def test_the_first_step_is_as_large_as_told(up: float, down: float) -> None:
    x = parameter(0, 0)
    x.grad = torch.tensor([up, down], dtype=torch.float64)
    GeneralizedSignSGD([x], lr=1, eps=0, warmup=0).step()
    assert x.tolist() == pytest.approx([-31.6227766, 31.6227766])


def test_warm_up_rises_straight_and_then_is_over() -> None:
    """With beta2 = 0 each step is the rate itself."""
    x = parameter(0)
    optimizer = GeneralizedSignSGD([x], lr=1, betas=(0.9, 0), eps=0, warmup=4)
    told = [0.0]
    for _ in range(6):
        x.grad = torch.ones_like(x)
        optimizer.step()
        told.append(x.item())
    sizes = [before - after for before, after in zip(told, told[1:], strict=False)]
    assert sizes == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])


def test_without_beta2_it_is_sign_sgd_with_momentum() -> None:
    torch.manual_seed(0)
    x, momentum = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64)), torch.zeros(5)
    wanted, momentum = torch.zeros_like(x), momentum.double()
    optimizer = GeneralizedSignSGD([x], lr=0.1, betas=(0.9, 0), eps=0, warmup=0)
    for gradient in torch.randn(20, 5, dtype=torch.float64):
        x.grad = gradient.clone()
        optimizer.step()
        momentum = 0.9 * momentum + 0.1 * gradient
        wanted = wanted - 0.1 * momentum.sign()
    assert torch.allclose(x, wanted, atol=1e-12)


def test_a_slope_that_steepens_needs_no_clipping() -> None:
    """x^4 is (L0, L1)-smooth and not smooth: SGD's step grows with it, ours does not."""

    def run(make: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]) -> list[float]:
        x = parameter(10, -8)
        return steps(make([x]), lambda: x.pow(4).sum(), 1300)

    plain = run(lambda x: torch.optim.SGD(x, lr=0.01))
    adam = run(lambda x: torch.optim.Adam(x, lr=0.01, betas=(0.9, 0.95)))
    ours = run(lambda x: GeneralizedSignSGD(x, lr=0.01, betas=(0.9, 0.95)))
    assert not plain[-1] < 1e30
    arrived = [next(k for k, value in enumerate(run) if value < 1) for run in (adam, ours)]
    assert arrived[1] <= arrived[0] * 1.15
    assert max(ours) == ours[0] and ours[-1] < 1e-2


def test_resumed_it_goes_on_to_the_same_bits() -> None:
    x = parameter(3, -2)
    optimizer = GeneralizedSignSGD([x], lr=0.1, warmup=7)
    steps(optimizer, lambda: x.square().sum(), 5)
    y = torch.nn.Parameter(x.detach().clone())
    resumed = GeneralizedSignSGD([y])
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(optimizer, lambda: x.square().sum(), 5)
    steps(resumed, lambda: y.square().sum(), 5)
    assert torch.equal(x, y)


def test_a_closure_is_called_with_gradients_on_and_its_loss_given_back() -> None:
    x = parameter(3)

    def closure() -> float:
        loss = x.square().sum()
        loss.backward()
        return loss.item()

    assert GeneralizedSignSGD([x], lr=0.1, warmup=0).step(closure) == 9
    assert x.item() < 3


def test_what_has_no_gradient_stays() -> None:
    x, frozen = parameter(3), parameter(5)
    x.grad = torch.ones_like(x)
    GeneralizedSignSGD([x, frozen]).step()
    assert frozen.item() == 5 and x.item() != 3


def test_sparse_gradients_are_refused_before_anything_moves() -> None:
    x, table = parameter(3), torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    x.grad = torch.ones_like(x)
    with pytest.raises(DistributedError, match=r"\(4, 2\) has a sparse gradient"):
        GeneralizedSignSGD([x, table.weight]).step()
    assert x.item() == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"lr": -1},
        {"eps": -1e-8},
        {"weight_decay": float("nan")},
        {"warmup": -1},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, -0.1)},
    ],
)
def test_numbers_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DistributedError, match=next(iter(wrong))):
        # Of several types, each for its own argument.
        GeneralizedSignSGD([parameter(1)], **wrong)  # type: ignore[arg-type]
    with pytest.raises(DistributedError, match=next(iter(wrong))):
        GeneralizedSignSGD([{"params": [parameter(1)], **wrong}])
