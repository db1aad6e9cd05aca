"""Put trained weights into the zoo, and copy scores from the records to the models' cards.

    python -m studies.ship --results results [--limits TEXT FOLDER ...]
        [--signs l2net+ l2net-binary]

`harness train` wrote FOLDER; the name on its card becomes the descriptor's name. A maker in
`zoo.shipped` and an entry point register the descriptor. `--signs` makes a binary descriptor from
the signs of a shipped descriptor's vectors. Run the script without folders after each evaluation to
update the scores on the cards.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from harness.distances import HAMMING
from harness.files import atomic, folders
from harness.records import record as results
from harness.records.record import Record
from zoo import card as cards
from zoo.shipped import FOLDER


def take(folder: Path, limits: str, into: Path = FOLDER) -> str:
    """Copy the weights and the card of a training into the zoo; returns the model's name.

    Args:
        folder: a folder that `harness train` wrote.
        limits: uses for which the weights are not suitable.
        into: folder of the shipped weights.
    """
    card = cards.read(folder / "card.json").model_copy(update={"limits": limits})
    _put(folder / "weights.safetensors", card, into)
    return card.name


def signs(of: str, name: str, into: Path = FOLDER) -> None:
    """Add a binary descriptor with the same weights: its bits are the signs of a model's vectors.

    Args:
        of: name of the shipped model; its network's training must not depend on `binary`.
        name: name of the new descriptor.
        into: folder of the shipped weights.
    """
    card = cards.read(into / f"{of}.json")
    network = card.network.model_copy(update={"binary": True})
    update = {
        "name": name,
        "network": network,
        "distance": HAMMING.name,
        "recipe": {**card.recipe, "name": name, "network": network.model_dump()},
        "scores": {},
        "limits": f"{card.limits} Weights and curve are those of {of}; the bits are the signs of"
        " its vectors.",
    }
    _put(into / f"{of}.safetensors", card.model_copy(update=update), into)


def _put(weights: Path, card: cards.Card, into: Path) -> None:
    with atomic.writing(into / f"{card.name}.safetensors") as stream:
        stream.write(weights.read_bytes())
    cards.write(into / f"{card.name}.json", card)


def shipped_cards(into: Path = FOLDER) -> list[Path]:
    """Files of the cards of all shipped models."""
    return [file for file in folders.entries(into) if file.suffix == ".json"]


def headlines(records: Iterable[Record], card: cards.Card) -> dict[str, cards.Measured]:
    """Headline scores of a card's model, from complete records of any models."""
    scores = {}
    for record in records:
        headline, data = record.protocol.headline, record.data
        is_scored = headline in record.scores  # not if the weights were trained on tested cells
        # The name is compared, too: the signs of a network are another model with equal weights.
        is_mine = (record.model.name, record.model.weights) == (card.name, card.weights)
        if is_mine and data.complete and is_scored:
            name = f"{record.protocol.title} on {data.name}, split {data.split}: {headline}"
            scores[name] = cards.Measured(
                value=record.scores[headline], interval=record.intervals.get(headline)
            )
    return dict(sorted(scores.items()))


def score(records: Iterable[Record], into: Path = FOLDER) -> None:
    """Write the headline scores of all shipped models to their cards."""
    known = list(records)
    for file in shipped_cards(into):
        card = cards.read(file)
        cards.write(file, card.model_copy(update={"scores": headlines(known, card)}))


def main() -> None:
    """Copy weights, and update cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--limits", default="")
    parser.add_argument("--signs", nargs=2, metavar=("OF", "NAME"))
    parser.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    if given.folders and not given.limits:
        parser.error("--limits is missing: give uses for which the weights are not suitable")
    for folder in given.folders:
        print(take(folder, given.limits))
    if given.signs:
        signs(*given.signs)
    score(results.load(given.results))


if __name__ == "__main__":
    main()
