"""A training is a function of its steps: cut off and gone on with, it makes the same bytes."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from orthotrace.models.card import load_model
from orthotrace.models.errors import ModelError
from orthotrace.models.figures import score_tiles
from orthotrace.models.held import hold_back
from orthotrace.models.log import Event, Report
from orthotrace.models.recipe import Recipe
from orthotrace.models.train import train
from orthotrace.models.unet import model_of
from orthotrace.tiling.grid import Window
from orthotrace.tiling.layer import Layer
from shapely import box

Place = tuple[Layer, Layer]
EVERYWHERE = box(-1e7, -1e7, 1e7, 1e7)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums are the same bits for the same number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(
    place: Place,
    recipe: Recipe,
    folder: Path,
    *,
    region: str = "made-up",
    clock: Callable[[], float] = time.monotonic,
    also: Report = lambda event: None,
) -> list[Event]:
    """Train to FOLDER/g0.safetensors with a fifth of the tiles held back; what was told."""
    events: list[Event] = []

    def report(event: Event) -> None:
        events.append(event)
        also(event)

    imagery, labels = place
    held = hold_back(imagery.grid, imagery.cells(), EVERYWHERE, 0.2, 0)
    train(
        imagery,
        labels,
        recipe,
        path=folder / "g0.safetensors",
        held_back=held.__contains__,
        device="cpu",
        data={"region": region},
        clock=clock,
        report=report,
    )
    return events


def test_a_training_leaves_a_model_its_card_a_log_and_a_picture(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    events = run(place, tiny, tmp_path)
    model = load_model(tmp_path / "g0.safetensors")
    card = model.card
    assert card.classes == ("road", "building") and card.bands == ("red", "green", "blue")
    assert card.recipe["steps"] == 6 and card.recipe["flips"] is False
    assert card.data["region"] == "made-up" and card.data["tiles"] > 0
    assert set(card.thresholds) == set(card.scores) == {"road", "building"}
    assert all(0 < card.threshold(name) <= 1 for name in card.classes)
    assert card.pixel_m == pytest.approx(1.0, abs=0.05)
    assert not model_of(model, torch.device("cpu")).training
    assert [event.step for event in events if event.kind == "figures"] == [3, 6]
    logged = (tmp_path / "g0.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in logged] == [event.kind for event in events]
    assert imread(tmp_path / "g0.png").shape == (32, 3 * 32 + 2 * 8, 4)


def test_interrupted_and_gone_on_with_it_is_the_same_bytes(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    def interrupt(event: Event) -> None:
        if event.kind == "picture" and event.step > 3:
            raise KeyboardInterrupt

    run(place, tiny, tmp_path / "unbroken")
    with pytest.raises(KeyboardInterrupt):
        run(place, tiny, tmp_path / "broken", also=interrupt)
    assert not (tmp_path / "broken" / "g0.safetensors").exists()
    events = run(place, tiny, tmp_path / "broken")
    assert "going on from step 3" in events[0].text
    for name in ("g0.safetensors", "g0.state.safetensors", "g0.png"):
        whole, mended = (tmp_path / way / name for way in ("unbroken", "broken"))
        assert whole.read_bytes() == mended.read_bytes(), name


def test_the_state_of_another_training_is_not_gone_on_from(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    run(place, tiny, tmp_path)
    events = run(place, tiny, tmp_path, region="another")
    assert "going on" not in events[0].text
    assert [event.step for event in events if event.kind == "figures"] == [3, 6]


def test_minutes_become_steps_once_and_the_same_steps_are_the_same_weights(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    """With a clock that gains a second whenever it is read, a budget is exact."""

    class Clock:
        now = 0.0

        def __call__(self) -> float:
            self.now += 1.0
            return self.now

    clock = Clock()
    timed = tiny.model_copy(update={"minutes": 0.75, "steps": None})
    events = run(place, timed, tmp_path / "timed", clock=clock)
    steps = next(event.steps for event in events if event.kind == "budget")
    assert steps is not None and steps > tiny.warmup
    counted = tiny.model_copy(update={"steps": steps})
    run(place, counted, tmp_path / "counted")
    weights = [
        load_model(tmp_path / way / "g0.safetensors").weights for way in ("timed", "counted")
    ]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_held_back_tiles_are_never_read_for_training(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    """Other pixels in them change the figures, and not one weight."""
    imagery, labels = place
    other = replace(imagery, folder=tmp_path / "imagery").save()
    held = hold_back(imagery.grid, imagery.cells(), EVERYWHERE, 0.2, 0)
    for cell in imagery.cells():
        pixels = imagery.read(imagery.grid.window(cell))
        for tile in held:
            if tile.overlap(imagery.grid.window(cell)):
                at = tile.slices(imagery.grid.window(cell))
                pixels.data_CHW[:, *at] = np.where(pixels.valid_HW[at], 7, 0)
        other.write(cell, pixels)
    run(place, tiny, tmp_path / "one")
    run((other, labels), tiny, tmp_path / "other")
    one, two = (load_model(tmp_path / way / "g0.safetensors") for way in ("one", "other"))
    assert one.card.mean == two.card.mean and one.card.scores != two.card.scores
    assert all(torch.equal(one.weights[name], two.weights[name]) for name in one.weights)


def test_without_held_back_tiles_thresholds_are_one_half(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    def none(tile: Window) -> bool:
        return False

    path = train(*place, tiny, path=tmp_path / "g0.safetensors", held_back=none, device="cpu")
    card = load_model(path).card
    assert card.threshold("road") == 0.5 and card.scores == {}


def test_it_learns(place: Place, tiny: Recipe, tmp_path: Path) -> None:
    recipe = tiny.model_copy(update={"steps": 40, "batch": 4, "ema": 0.9, "learning_rate": 1e-2})
    events = run(place, recipe, tmp_path)
    losses = [event.values["loss"] for event in events if event.kind == "step"]
    assert losses[-1] < 0.7 * losses[0]
    assert load_model(tmp_path / "g0.safetensors").card.scores["road"]["iou"] > 0.5


def test_nothing_to_learn_leaves_nothing_behind(place: Place, tiny: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no tile to train on"):
        train(
            *place,
            tiny,
            path=tmp_path / "models" / "g0.safetensors",
            held_back=lambda tile: True,
            device="cpu",
        )
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize("rate", [1e30, 1e10])
def test_a_training_that_diverges_is_one_sentence_and_leaves_no_model(
    place: Place, tiny: Recipe, tmp_path: Path, rate: float
) -> None:
    """With nothing held back too: there no figures would tell."""
    recipe = tiny.model_copy(update={"learning_rate": rate})  # more than a recipe may have
    imagery, labels = place
    with pytest.raises(ModelError, match=r"not finite.*lower recipe\.learning_rate"):
        train(
            imagery,
            labels,
            recipe,
            path=tmp_path / "g0.safetensors",
            held_back=lambda tile: False,
            device="cpu",
        )
    assert not (tmp_path / "g0.safetensors").exists()


def test_a_network_whose_answers_are_no_numbers_is_not_scored(
    place: Place, tiny: Recipe, tmp_path: Path
) -> None:
    """After the last step no loss tells."""
    run(place, tiny, tmp_path)
    model = load_model(tmp_path / "g0.safetensors")
    net = model_of(model, torch.device("cpu"))
    next(net.parameters()).data.fill_(float("nan"))
    imagery, labels = place
    tile = next(iter(imagery.grid.window(imagery.cells()[0]).lattice(32)))
    with pytest.raises(ModelError, match="not finite"):
        score_tiles(net, model.card, imagery, labels, [tile], False)
