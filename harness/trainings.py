"""Recipe and seed of a training, by which trainings with several seeds are found."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

APART = {"name", "paper", "licence", "seed"}  # settings that do not make it another recipe


def recipe_and_seed(
    settings: Mapping[str, Any], *, precision: str = "fp32"
) -> tuple[str, int] | tuple[None, None]:
    """A text that is equal for trainings that differ only in the seed, and the seed.

    The text is the sha256 of precision and settings, without name, paper, licence and seed. None if
    the settings do not say "data" and "seed": then trainings on other data would look alike.

    Args:
        settings: all that decided the weights, as JSON has it; "data" are hashes of training data.
        precision: of the exported weights; another precision counts as another recipe.
    """
    seed = settings.get("seed")
    if type(seed) is not int or seed < 0 or "data" not in settings:
        return None, None
    recipe = {key: value for key, value in settings.items() if key not in APART}
    text = json.dumps([precision, recipe], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest(), seed
