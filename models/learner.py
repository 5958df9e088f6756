"""A learner: a network, its running average and its optimizer, moved one step at a time."""

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn

from .card import Card
from .losses import masked_loss
from .recipe import Recipe
from .samples import Batch
from .state import State, optimizer_tensors, restore_optimizer
from .unet import bf16_pays, build_unet, normalise


class Learner:
    """One training process's own model. The same batches and rates make the same weights."""

    def __init__(self, card: Card, recipe: Recipe, device: torch.device) -> None:
        self.card, self.recipe, self.device = card, recipe, device
        self.bf16 = bf16_pays(device)
        self.net = build_unet(card, recipe.weights, recipe.seed).to(device).train()
        self.average = deepcopy(self.net).eval().requires_grad_(False)
        """Running average of weights and of normalisation's statistics: what is scored and kept."""
        self.optimizer = torch.optim.AdamW(
            _groups(self.net, recipe.weight_decay), lr=recipe.learning_rate, fused=True
        )

    def step(self, batch: Batch, number: int, rate: float) -> float:
        """Learn from one batch as step `number` (from 0) at a learning rate; the loss before it."""
        data, valid, labels = (
            torch.from_numpy(part).to(self.device)
            for part in (batch.data_NCHW, batch.valid_NHW, batch.labels_NKHW)
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.net(normalise(data, valid, self.card))
        loss = masked_loss(logits, labels, self.recipe.jaccard)
        self.optimizer.zero_grad()
        # torch tells no type of it.
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._follow(number)
        return float(loss.detach())

    def parts(self) -> dict[str, Mapping[str, Tensor]]:
        """Everything that the next step depends on."""
        return {
            "net": self.net.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": optimizer_tensors(self.net, self.optimizer),
        }

    def restore(self, state: State) -> None:
        """Undo `parts`."""
        self.net.load_state_dict(state.part("net"))
        self.average.load_state_dict(state.part("average"))
        restore_optimizer(self.net, self.optimizer, state.part("optimizer"))

    @torch.no_grad()
    def _follow(self, number: int) -> None:
        """Move the average; in the first steps it forgets faster, so that it has no stale start."""
        keep = min(self.recipe.ema, (1 + number) / (10 + number))
        own = self.net.state_dict()
        for name, mean in self.average.state_dict().items():
            if mean.is_floating_point():
                mean.lerp_(own[name], 1 - keep)
            else:
                mean.copy_(own[name])


def _groups(net: nn.Module, decay: float) -> list[dict[str, object]]:
    """Parameters with weight decay and without: biases and normalisation are not drawn to 0."""
    parameters = list(net.parameters())
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
