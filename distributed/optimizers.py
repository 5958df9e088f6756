"""Optimizers for gradients that grow with the slope, where clipping would otherwise be needed."""

import math
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from .errors import DistributedError


class GeneralizedSignSGD(torch.optim.Optimizer):
    """Generalized SignSGD (Crawshaw et al. 2022): Adam's form, with the momentum squared.

        g = gradient + weight_decay x
        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) m^2
        x = x - lr m / (sqrt(v) + eps)

    With beta2 = 0 it is SignSGD with momentum. Nothing corrects the bias of m and v, so the first
    steps are 1/sqrt(1 - beta2) times lr and less, 31.6 at the default: over the first `warmup`
    steps lr therefore rises straight from lr/warmup (0: not at all, as published). This is no
    schedule, and any may be laid over it. The paper's theorem asks for sqrt(beta2) < beta1, which
    its own settings, the defaults here, are not.

    State carries torch's names, `exp_avg` (m) and `exp_avg_sq` (v).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 2e-4,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        warmup: int = 100,
    ) -> None:
        """DistributedError for a number out of its range, in any group of parameters.

        `lr`, `eps`, `weight_decay` and `warmup` (steps) are not negative, `betas` in [0, 1).
        """
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "warmup": warmup,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As any optimizer's, after a look at the group's numbers."""
        told = {**self.defaults, **param_group}
        for name in ("lr", "eps", "weight_decay", "warmup"):
            if not (told[name] >= 0 and math.isfinite(told[name])):
                raise DistributedError(f"{name} is {told[name]}, and must be finite and at least 0")
        if not all(0 <= beta < 1 for beta in told["betas"]):
            raise DistributedError(f"betas are {told['betas']}, and must be in [0, 1)")
        super().add_param_group(param_group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step of every parameter with a gradient; the closure's loss, if there is one.

        DistributedError, before anything is changed, for a gradient that is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = [(p, group) for group in self.param_groups for p in _moving(group["params"])]
        for parameter, group in moving:
            _step(parameter, self.state[parameter], group)
        return loss


def _moving(parameters: Iterable[Tensor]) -> list[Tensor]:
    moving = [parameter for parameter in parameters if parameter.grad is not None]
    for parameter in moving:
        if parameter.grad is not None and parameter.grad.layout is not torch.strided:
            raise DistributedError(
                f"a parameter of shape {tuple(parameter.shape)} has a sparse gradient, "
                "and GeneralizedSignSGD needs dense ones"
            )
    return moving


def _step(parameter: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    gradient = parameter.grad
    if gradient is None:
        return
    if not state:
        state["step"] = 0
        state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
    state["step"] += 1
    beta1, beta2 = group["betas"]
    momentum, square = state["exp_avg"], state["exp_avg_sq"]
    if group["weight_decay"]:
        gradient = gradient.add(parameter, alpha=group["weight_decay"])
    momentum.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(momentum, momentum, value=1 - beta2)
    rise = min(1.0, state["step"] / group["warmup"]) if group["warmup"] else 1.0
    parameter.addcdiv_(momentum, square.sqrt().add_(group["eps"]), value=-group["lr"] * rise)
