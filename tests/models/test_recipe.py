"""A recipe refuses what cannot be trained by, and says what it got."""

import pytest
from orthotrace.models.recipe import Recipe
from pydantic import ValidationError


def test_a_recipe_survives_json() -> None:
    recipe = Recipe(steps=7, decoder=(16, 16, 16, 16, 8), weights="none")
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"minuts": 5}, "minuts"),
        ({"minutes": 0}, "greater than or equal to 0.1"),
        ({"minutes": None}, "minutes, or steps outright"),
        ({"crop": 100}, "multiple of 32"),
        ({"decoder": (1, 2, 3)}, "at least 4"),
        ({"decoder": (8, 8, 8, 0)}, "greater than or equal to 1"),
        ({"window": 500}, "multiple of 32, got 500 \\+ 2 x 64"),
        ({"weights": "imagenet"}, "'imagenet-lite0' or 'none'"),
        ({"ema": 1.0}, "less than 1"),
        ({"aimed": 1.5}, "less than or equal to 1"),
    ],
)
def test_what_cannot_be_is_refused(told: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Recipe.model_validate(told)
