"""Model cards: facts about trained weights, such as network, training data, recipe and scores."""

from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from harness import registry
from harness.distances import DISTANCES
from harness.errors import FileMissingError, InputError
from harness.files import atomic
from harness.types import Conventions
from zoo.training.recipe import Part

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


def _known_distance(name: str) -> str:
    if name not in DISTANCES:
        raise InputError(registry.unknown("distances", name, DISTANCES))
    return name


class CardTable(BaseModel):
    """A table of a card: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class TrainingData(CardTable):
    """A data set that weights were trained on."""

    name: str
    sha256: Sha256  # of `Dataset.sha256`


class CardPhotograph(CardTable):
    """An image that weights were trained on, as `harness.data.photographs` knows it."""

    file: str
    author: str
    licence: str  # SPDX name, or LicenseRef-public-domain
    stated: str  # where the licence is stated
    sha256: Sha256


class Measured(CardTable):
    """A score and its 95 % confidence interval; a fraction, or in the protocol's own unit."""

    value: float
    interval: tuple[float, float] | None = None


class Moment(CardTable):
    """Training progress since the previous moment."""

    step: Annotated[int, Ge(0)]
    loss: float | None  # mean
    fpr95: Annotated[float, Ge(0), Le(1)] | None  # of held-out points; None if there are none


class Card(CardTable):
    """Facts about one set of weights."""

    form: Literal[1] = 1
    name: str  # of the descriptor
    weights: Sha256  # of the file of weights
    network: Part  # as in a recipe: {"name": "l2net", "dropout": 0.1}
    distance: Annotated[str, AfterValidator(_known_distance)]
    dim: Annotated[int, Gt(0)]
    side: Annotated[int, Gt(0)]  # pixels of a patch that the network takes
    trained_on: tuple[str, ...]  # names of data, for example "phototour/liberty"
    licence: str
    recipe: dict[str, Any]
    data: tuple[TrainingData, ...]
    seed: Annotated[int, Ge(0)]
    steps: Annotated[int, Ge(0)]
    hours: Annotated[float, Ge(0)]  # steps times the median time of a step
    machine: str  # processor or GPU, by its product name
    torch: str  # version
    curve: tuple[Moment, ...]
    # The keys look like "hpatches/matching on hpatches-mini, split a: matching/map".
    scores: dict[str, Measured]
    limits: str  # limits of the training, in sentences
    # All of the training and of its teacher; () if one is not known.
    photographs: tuple[CardPhotograph, ...] = ()


def read(file: Path) -> Card:
    """The card in a file.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if the file is not a valid card; names the faulty keys.
    """
    if not file.is_file():
        raise FileMissingError(f"there is no model card {file}")
    try:
        return Card.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(f"{file} is not a valid model card: {problems}") from error


def write(file: Path, card: Card) -> None:
    """Write a card atomically; the same card gives the same bytes."""
    unknown = {"photographs"} if not card.photographs else None
    atomic.write_text(file, card.model_dump_json(indent=1, exclude=unknown) + "\n")


def conventions(card: Card) -> Conventions:
    """How a trained network reads a patch."""
    return Conventions(
        "the whole patch",
        card.side,
        "by the network, from 8-bit grey values to the vector",
        f"trained by this project; {card.recipe.get('paper', 'no paper')}",
    )
