"""How a model is trained, as a region's file tells it."""

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from .unet import LITE0, Weights, known_encoder

Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""What every generator of random numbers takes."""


class Recipe(BaseModel):
    """All that decides what a training makes of given layers; frozen, and closed to typos."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )

    encoder: Annotated[str, AfterValidator(known_encoder)] = LITE0
    """Name of the encoder in segmentation-models-pytorch."""

    decoder: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2048)], ...], Field(min_length=4, max_length=5)
    ] = (64, 48, 32, 24)
    """Channels of the decoder's blocks, from the coarsest on; four end at half resolution and a
    pixel shuffle, five at the full."""

    weights: Weights = "imagenet-lite0"
    """What the encoder starts from: "imagenet-lite0" (the extra `weights`), or "none"."""

    minutes: Annotated[float, Field(ge=0.1, le=100_000)] | None = 10.0
    """Time for everything that a training does, start and figures included; turned once into
    `steps` by a measurement."""

    steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """The number of steps outright, instead of `minutes`."""

    crop: Annotated[int, Field(ge=32, le=4096, multiple_of=32)] = 192
    """Side of a training sample in pixels, at most a tile's."""

    batch: Annotated[int, Field(ge=1, le=1024)] = 8
    """Samples in a step."""

    learning_rate: Annotated[float, Field(gt=0, le=1)] = 4e-3
    """AdamW's, at its highest."""

    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-2
    """AdamW's, on all weights but biases and those of normalisation."""

    warmup: Annotated[int, Field(ge=1, le=10**6)] = 40
    """Steps over which the learning rate rises; then it falls as half a cosine to 1 % of itself."""

    jaccard: Annotated[float, Field(ge=0, le=100)] = 1.0
    """Weight of the Jaccard loss (1 - soft IoU) beside cross entropy."""

    aimed: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the samples that hold at least one pixel of a class; the others fall anywhere."""

    jitter: Annotated[float, Field(ge=0, le=1)] = 0.2
    """How far brightness, contrast and colour are changed, in standard deviations of a band."""

    ema: Annotated[float, Field(ge=0, lt=1)] = 0.98
    """How much of the averaged weights each step keeps; they are what is scored and kept."""

    flips: bool = False
    """Whether prediction takes the mean over a window's eight flips and turns: 8 x the time."""

    evaluations: Annotated[int, Field(ge=1, le=1000)] = 4
    """How often figures are made on held-back tiles, the last time at the end."""

    window: Annotated[int, Field(ge=1, le=4096)] = 512
    """Side of what one forward pass decides at prediction, in pixels."""

    margin: Annotated[int, Field(ge=0, le=1024)] = 64
    """Pixels around a window that the model sees too."""

    seed: Seed = 0
    """Of first weights, samples and augmentation."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.minutes is None) and (self.steps is None):
            raise ValueError("a recipe has minutes, or steps outright")
        if (self.window + 2 * self.margin) % 32:
            raise ValueError(
                f"window + 2 x margin is a multiple of 32, got {self.window} + 2 x {self.margin}"
            )
        if self.crop == 32 and self.batch == 1:
            raise ValueError(
                "a crop of 32 in a batch of 1 leaves one value a channel, which cannot be "
                "normalised; wanted another crop or batch"
            )
        if self.weights == "imagenet-lite0" and self.encoder != LITE0:
            raise ValueError(
                f"the weights 'imagenet-lite0' are for the encoder {LITE0!r}; "
                f"wanted weights = 'none' with {self.encoder!r}"
            )
        return self
