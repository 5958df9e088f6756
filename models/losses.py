"""What a model is trained to make small, with "unknown" left out of it altogether."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ..tiling.values import UNKNOWN, YES


def masked_loss(logits_NKHW: Tensor, labels_NKHW: Tensor, jaccard: float = 1.0) -> Tensor:
    """Cross entropy plus `jaccard` times the soft Jaccard loss, mean over the known classes.

    The latter is 1 - IoU with probabilities for pixels (Rahman and Wang 2016): what maps are
    scored by. Both are taken by class over all known pixels of the batch, so that a crop without
    roads does not weigh as much as one full of them. Unknown pixels have a gradient of exactly
    zero; a class that is unknown in the whole batch counts for nothing, and if all are, the loss
    is 0.
    """
    if logits_NKHW.shape != labels_NKHW.shape:
        raise ValueError(
            f"logits and labels are of one shape, got {tuple(logits_NKHW.shape)} "
            f"and {tuple(labels_NKHW.shape)}"
        )
    known = labels_NKHW != UNKNOWN
    truth = (labels_NKHW == YES).float()
    # Chosen, not multiplied: what is infinite where unknown must not become NaN.
    logits = torch.where(known, logits_NKHW.float(), 0.0)
    over = (0, 2, 3)
    count_K = known.sum(over)

    entropy = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    entropy_K = torch.where(known, entropy, 0.0).sum(over) / count_K.clamp(min=1)

    found = torch.where(known, torch.sigmoid(logits), 0.0)
    both_K, sum_K = (found * truth).sum(over), (found + truth).sum(over)
    jaccard_K = 1 - (both_K + 1) / (sum_K - both_K + 1)

    loss_K = torch.where(count_K > 0, entropy_K + jaccard * jaccard_K, 0.0)
    return loss_K.sum() / (count_K > 0).sum().clamp(min=1)
