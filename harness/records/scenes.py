"""The score of each scene of a record, by the headline."""

from harness.records.record import Record


def scene_scores(record: Record) -> dict[str, float]:
    """The headline's score of each scene that has one; empty if the record has none.

    Of the headline "matching/map" and the scene "wall", the first of these that the record has: the
    scene's own "matching/map"; the score "wall/map"; the mean of the scene's average precisions,
    whose names end with "/ap".
    """
    headline = record.protocol.headline
    last = headline.rpartition("/")[2]
    found = {}
    for scene, own in record.scenes.items():
        precisions = [value for name, value in own.items() if name.endswith("/ap")]
        if headline in own:
            found[scene] = own[headline]
        elif f"{scene}/{last}" in record.scores:
            found[scene] = record.scores[f"{scene}/{last}"]
        elif last == "map" and precisions:
            found[scene] = sum(precisions) / len(precisions)
    return found


def is_quantity(record: Record) -> bool:
    """Whether its headline is a count or a length, and no fraction."""
    return record.protocol.headline.rpartition("/")[2] in record.protocol.quantities
