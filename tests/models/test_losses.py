"""The loss knows nothing of unknown pixels, and is what a plain loop over known ones says."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.models.losses import masked_loss
from orthotrace.tiling.values import UNKNOWN


def drawn(seed: int, classes: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, classes, 5, 4, generator=random) * 3
    labels = torch.tensor([0, 1, UNKNOWN], dtype=torch.uint8)[
        torch.randint(3, logits.shape, generator=random)
    ]
    return logits, labels


@given(st.integers(0, 100))
def test_it_is_what_a_loop_over_known_pixels_says(seed: int) -> None:
    logits, labels = drawn(seed)
    of_classes = []
    for k in range(2):
        entropy, both, total, count = 0.0, 0.0, 0.0, 0
        pairs = zip(logits[:, k].flatten().tolist(), labels[:, k].flatten().tolist(), strict=True)
        for logit, label in pairs:
            if label == UNKNOWN:
                continue
            p = 1 / (1 + math.exp(-logit))
            entropy -= math.log(p if label else 1 - p)
            both, total, count = both + p * label, total + p + label, count + 1
        of_classes.append(entropy / count + 0.5 * (1 - (both + 1) / (total - both + 1)))
    assert masked_loss(logits, labels, 0.5).item() == pytest.approx(
        sum(of_classes) / len(of_classes), rel=1e-5
    )


@given(st.integers(0, 100), st.sampled_from([0.0, math.inf, -math.inf, math.nan, 1e30]))
def test_unknown_pixels_have_a_gradient_of_exactly_zero(seed: int, wild: float) -> None:
    logits, labels = drawn(seed)
    logits[labels == UNKNOWN] = wild
    logits.requires_grad_()
    loss = masked_loss(logits, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert (gradient[labels == UNKNOWN] == 0).all()
    assert (gradient[labels != UNKNOWN] != 0).any()


def test_a_class_that_is_wholly_unknown_counts_for_nothing() -> None:
    logits, labels = drawn(1)
    labels[:, 1] = UNKNOWN
    assert masked_loss(logits, labels) == masked_loss(logits[:, :1], labels[:, :1])


def test_all_unknown_is_a_loss_of_zero_and_no_gradient() -> None:
    logits, labels = drawn(2)
    logits.requires_grad_()
    loss = masked_loss(logits, torch.full_like(labels, UNKNOWN))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == 0 and (gradient == 0).all()


def test_a_better_answer_has_a_smaller_loss() -> None:
    _, labels = drawn(3)
    right = torch.where(labels == 1, 4.0, -4.0)
    assert masked_loss(right, labels) < 0.1 < masked_loss(-right, labels)


def test_shapes_that_differ_are_refused() -> None:
    logits, labels = drawn(0)
    with pytest.raises(ValueError, match=r"of one shape, got \(2, 2, 5, 4\) and \(2, 1, 5, 4\)"):
        masked_loss(logits, labels[:, :1])
