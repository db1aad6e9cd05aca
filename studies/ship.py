"""Put trained weights into the zoo, and copy scores from the records to the models' cards.

    python -m studies.ship --results results [--limits TEXT FOLDER ...]
        [--signs l2net+ l2net-binary]

FOLDER was written by `harness train`; the name on its card is the descriptor's name. A maker in
`zoo.shipped` and an entry point register it. `--signs` makes a binary descriptor from the signs of
the vectors of a shipped one. Run it without folders after each evaluation: it updates the scores on
the cards.
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
        folder: that `harness train` wrote.
        limits: what the weights are not good for.
        into: folder of what is shipped.
    """
    card = cards.read(folder / "card.json").model_copy(update={"limits": limits})
    _put(folder / "weights.safetensors", card, into)
    return card.name


def signs(of: str, name: str, into: Path = FOLDER) -> None:
    """Add a binary descriptor with the same weights: its bits are the signs of a model's vectors.

    Args:
        of: the name of what ships, of a network that is trained alike with `binary`.
        name: of the descriptor.
        into: folder of what is shipped.
    """
    card = cards.read(into / f"{of}.json")
    network = card.network.model_copy(update={"binary": True})
    update = {
        "name": name,
        "network": network,
        "distance": HAMMING.name,
        "recipe": {**card.recipe, "name": name, "network": network.model_dump()},
        "scores": {},
        "limits": f"{card.limits} Weights and curve are those of {of}, of whose vectors it gives"
        " the signs.",
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
    found = {}
    for record in records:
        headline, data = record.protocol.headline, record.data
        told = headline in record.scores  # else it is of cells that the weights were trained on
        # By its name, too: the signs of a network are another model of the same weights.
        mine = (record.model.name, record.model.weights) == (card.name, card.weights)
        if mine and data.complete and told:
            name = f"{record.protocol.title} on {data.name}, split {data.split}: {headline}"
            found[name] = cards.Measured(
                value=record.scores[headline], interval=record.intervals.get(headline)
            )
    return dict(sorted(found.items()))


def score(records: Iterable[Record], into: Path = FOLDER) -> None:
    """Write the headline scores of all shipped models to their cards."""
    known = list(records)
    for file in shipped_cards(into):
        card = cards.read(file)
        found = headlines(known, card)
        cards.write(file, card.model_copy(update={"scores": found}))


def main() -> None:
    """Copy weights, update cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--limits", default="")
    parser.add_argument("--signs", nargs=2, metavar=("OF", "NAME"))
    parser.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    if given.folders and not given.limits:
        parser.error("--limits is missing: say what the weights are not good for")
    for folder in given.folders:
        print(take(folder, given.limits))
    if given.signs:
        signs(*given.signs)
    score(results.load(given.results))


if __name__ == "__main__":
    main()
