"""What the zoo ships: trained weights come in, and cards are told what records say of them.

    python -m studies.ship --results results [--limits TEXT FOLDER ...]
        [--signs l2net+ l2net-binary]

FOLDER is what `harness train` wrote; the name on its card is the descriptor's. A maker in
`zoo.shipped` and an entry point make it known. `--signs` makes a second descriptor of what ships,
of the signs of its vectors. Called again after each evaluation, without folders, it brings the
scores on the cards up to the records.
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
    """Put the weights of a training and their card among those that are shipped; their name.

    Args:
        folder: that `harness train` wrote.
        limits: what the weights are not good for.
        into: folder of what is shipped.
    """
    card = cards.read(folder / "card.json").model_copy(update={"limits": limits})
    _put(folder / "weights.safetensors", card, into)
    return card.name


def signs(of: str, name: str, into: Path = FOLDER) -> None:
    """Put the signs of a network's vectors beside it: other bits of the same weights and training.

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
    """The files of the cards of what is shipped."""
    return [file for file in folders.entries(into) if file.suffix == ".json"]


def headlines(records: Iterable[Record], card: cards.Card) -> dict[str, cards.Measured]:
    """The headline scores in whole records, of any models, of the one that a card is of."""
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
    """Write what records say of the weights that are shipped on their cards."""
    known = list(records)
    for file in shipped_cards(into):
        card = cards.read(file)
        found = headlines(known, card)
        cards.write(file, card.model_copy(update={"scores": found}))


def main() -> None:
    """Take, and score."""
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
