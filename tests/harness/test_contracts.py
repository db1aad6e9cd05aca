"""The laws themselves: each holds for what is right, and can be broken."""

import time
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest

from harness import Block, Dataset, Descriptor, Parts, Protocol, Quantity, Scores
from harness.contracts import check_descriptor, check_protocol
from harness.distances import ANGLE, HAMMING, L2
from harness.metrics import average_precision, fpr_at_95, rank, roc_auc

# ---- descriptors


def pixels(patches):
    return patches[:, 0, :16].astype(np.float32)


def directions(patches):
    rows = pixels(patches) + 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


PIXELS = Descriptor("pixels", pixels, L2, 16)
CONSTANT = Descriptor("constant", lambda p: np.ones((len(p), 3), np.float32), L2, 3)
BITS = Descriptor("bits", lambda p: np.packbits(pixels(p) > 127, axis=1), HAMMING, 16)
ANGLES = Descriptor("angles", directions, ANGLE, 16, trained_on=None)
ODD = Descriptor("odd", lambda p: np.packbits(pixels(p)[:, :13] > 127, axis=1), HAMMING, 13)


def only_for(side):
    def describe(patches):
        if patches.shape[1] != side:
            raise ValueError(f"takes {side} x {side} patches")
        return pixels(patches)

    return replace(PIXELS, describe=describe)


@pytest.mark.parametrize(
    "descriptor",
    [PIXELS, ANGLES, CONSTANT, BITS, ODD, only_for(65), only_for(64)],
    ids=["pixels", "angle", "constant", "bits", "13 bits", "65 only", "64 only"],
)
def test_a_right_descriptor_keeps_every_law(descriptor):
    assert [law for law in check_descriptor(descriptor) if not law.passed] == []


def crashes_on_64(patches):
    if patches.shape[1] == 64:
        raise RuntimeError("kernel size can't be greater than input size")
    return pixels(patches)


def forgets_no_patches(patches):
    return patches.reshape(len(patches), -1)[:, :16].astype(np.float32)


def knows_no_white(patches):
    rows = pixels(patches)
    rows[patches.reshape(len(patches), -1).max(axis=1, initial=0) == 255] = np.nan
    return rows


def divides_by_spread(patches):
    with np.errstate(invalid="ignore", divide="ignore"):
        return pixels(patches) / patches.std(axis=(1, 2), dtype=np.float32)[:, None]


def divides_by_rounded_spread(patches):
    spread = patches.std(axis=(1, 2), dtype=np.float32)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return pixels(patches) / np.where(spread == 0, 1, spread.round())


def fills_the_last_byte(patches):
    return np.packbits(pixels(patches) > 127, axis=1)


def zero_where_flat(patches):
    return directions(patches) * (patches.std(axis=(1, 2), dtype=np.float32) > 0)[:, None]


def centres_the_batch(patches):
    rows = pixels(patches)
    return rows - rows.mean(axis=0) if len(rows) else rows


def counts_its_rows(patches):
    return pixels(patches) + np.arange(len(patches), dtype=np.float32)[:, None]


def draws():
    rng = np.random.default_rng(0)
    return lambda p: pixels(p) + rng.standard_normal((len(p), 16), dtype=np.float32)


def reuses_its_memory():
    memory = np.empty((100, 16), np.float32)

    def describe(patches):
        rows = memory[: len(patches)]
        rows[:] = pixels(patches)
        return rows

    return describe


def inverts_in_place(patches):
    np.subtract(255, patches, out=patches)
    return pixels(patches)


def ignores_the_flag(patches):
    """As torch.from_numpy does: it hands out read-only memory to be written."""
    address = patches.__array_interface__ | {"data": (patches.ctypes.data, False)}
    view = np.asarray(type("View", (), {"__array_interface__": address})())
    rows = pixels(patches)
    view[:] = 0
    return rows


BROKEN_DESCRIPTORS = [
    ("the libraries that the descriptor declares are installed",
     replace(PIXELS, libraries=("numpy", "cv2")),
     "libraries names 'cv2', but no such distribution is installed"),
    ("patches of 65, 64 or 32 pixels are described", replace(PIXELS, describe=crashes_on_64),
     "64 x 64: RuntimeError: kernel size"),
    ("patches of 65, 64 or 32 pixels are described", only_for(40), "takes 40 x 40 patches"),
    ("n patches give n rows, of the type and length declared", replace(PIXELS, dim=17),
     "float32 [7, 16] came for 7 patches; l2 and dim 17 want float32 [7, 17]"),
    ("n patches give n rows, of the type and length declared", replace(BITS, distance=L2),
     "uint8 [7, 2] came"),
    ("n patches give n rows, of the type and length declared", replace(ODD, dim=17),
     "hamming and dim 17 want uint8 [7, 3]"),
    ("n patches give n rows, of the type and length declared",
     replace(PIXELS, describe=lambda p: pixels(p).tolist()), "list came, a NumPy array is wanted"),
    ("no patches give no rows, of the same type and length",
     replace(PIXELS, describe=forgets_no_patches), "ValueError: cannot reshape array of size 0"),
    ("every row can be compared", replace(PIXELS, describe=knows_no_white), "row 0 of noise"),
    ("every row can be compared", replace(PIXELS, distance=ANGLE), "a length that is off 1 by"),
    ("every row can be compared", replace(ODD, describe=fills_the_last_byte),
     "noise: bits beyond the 13 declared are set"),
    ("flat patches are described", replace(PIXELS, describe=divides_by_spread), "patches of 0"),
    ("flat patches are described", replace(ANGLES, describe=zero_where_flat),
     "row 0 of patches of 0 has a length that is off 1 by 1"),
    ("a nearly flat patch is described", replace(PIXELS, describe=divides_by_rounded_spread),
     "one pixel of 129 is not finite"),
    ("a row does not depend on its batch", replace(PIXELS, describe=centres_the_batch),
     "alone and in a batch: row"),
    ("a row does not depend on the order of its batch", replace(PIXELS, describe=counts_its_rows),
     "reversed: row"),
    ("the same patches give the same rows again", replace(PIXELS, describe=draws()),
     "7 of 7 rows changed"),
    ("returned rows are not changed by later calls", replace(PIXELS, describe=reuses_its_memory()),
     "the next call overwrote them"),
    ("the patches are not written to", replace(PIXELS, describe=inverts_in_place), "read-only"),
    ("the patches are not written to", replace(PIXELS, describe=ignores_the_flag), "changed them"),
]  # fmt: skip
REMARK = "different patches give different rows (a remark only)"


def detail(laws, name):
    return next((law.passed, law.detail) for law in laws if law.name == name)


@pytest.mark.parametrize(("name", "descriptor", "message"), BROKEN_DESCRIPTORS)
def test_a_law_of_descriptors_can_be_broken(name, descriptor, message):
    passed, said = detail(check_descriptor(descriptor), name)
    assert not passed
    assert message in said


def test_every_law_of_descriptors_is_broken_by_a_test():
    names = {law.name for law in check_descriptor(PIXELS)}
    assert names == {name for name, _, _ in BROKEN_DESCRIPTORS} | {REMARK}


def test_a_descriptor_that_always_fails_breaks_every_law_that_runs_it():
    def describe(patches):
        raise OSError("weights are gone")

    laws = check_descriptor(replace(PIXELS, describe=describe))
    failed = [law for law in laws if not law.passed]
    assert len(failed) == len(laws) - 1
    assert all("OSError: weights are gone" in law.detail for law in failed)


def test_a_descriptor_that_exits_does_not_end_the_check():
    def describe(patches):
        raise SystemExit(3)

    failed = [law for law in check_descriptor(replace(PIXELS, describe=describe)) if not law.passed]
    assert all("SystemExit: 3" in law.detail for law in failed)
    assert failed


def test_writing_to_the_patches_breaks_no_other_law():
    laws = check_descriptor(replace(PIXELS, describe=inverts_in_place))
    assert [law.name for law in laws if not law.passed] == ["the patches are not written to"]


def test_a_collapsed_descriptor_is_remarked_on():
    assert detail(check_descriptor(CONSTANT), REMARK) == (True, "7 patches gave 1 different rows")


def test_a_refused_size_is_remarked_on():
    _, said = detail(check_descriptor(only_for(64)), "patches of 65, 64 or 32 pixels are described")
    assert said == "65 refused: takes 64 x 64 patches; 32 refused: takes 64 x 64 patches"


# ---- protocols

POINTS = 40


def noise():
    return np.random.default_rng(0).integers(0, 256, (POINTS, 16, 16), dtype=np.uint8)


DATA = Dataset(
    name="toy",
    split="all",
    blocks=tuple(Block(f"toy/{i}", POINTS, str(i) * 64, noise) for i in (1, 2)),
    point=np.tile(np.random.default_rng(1).permutation(POINTS), 2),
    image=np.repeat([0, 1], POINTS),
)


def pairs(descriptions):
    point, image = descriptions.dataset.point, descriptions.dataset.image
    first, second = np.flatnonzero(image == 0), np.flatnonzero(image == 1)
    a, b = np.repeat(first, len(second)), np.tile(second, len(first))
    return point[a] == point[b], a, b


def values(match, distance):
    ranking = rank(match, distance)
    return {
        "ap": float(average_precision(ranking)),
        "auc": float(roc_auc(ranking)),
        "fpr95": fpr_at_95(ranking),
    }


def score(descriptions):
    match, a, b = pairs(descriptions)
    of_all = values(match, descriptions.paired(a, b))
    return Scores(of_all, {"toy": of_all}, {"ap": (of_all["ap"], of_all["ap"])})


def score_fixed_rows(descriptions):
    """Pairs as a file would give them: of rows, whatever the table says now."""
    return score(replace(descriptions, dataset=DATA))


TOY = Protocol("toy", 1, DATA, score, "ap")


def in_parts(rows=slice(None), sum_up=None, alone=None):
    """The toy with one part, from whose breakdown all scores follow."""

    def part(descriptions, names):
        return Scores({}, (alone or score)(descriptions).scenes)

    def summed(found):
        of_all = found.scenes["toy"]
        return Scores(of_all, intervals={"ap": (of_all["ap"], of_all["ap"])})

    needed = np.arange(2 * POINTS)[rows]
    return replace(TOY, parts=Parts(("toy",), lambda name: needed, part, sum_up or summed))


def rounds_otherwise(found):
    of_all = {name: float(np.nextafter(x, 2)) for name, x in found.scenes["toy"].items()}
    return Scores(of_all, intervals={"ap": (of_all["ap"], of_all["ap"])})


def warns(found):
    of_all = found.scenes["toy"]
    return Scores(of_all, {}, {"ap": (of_all["ap"], of_all["ap"])}, ("Only of the sum.",))


@pytest.mark.parametrize("protocol", [TOY, replace(TOY, score=score_fixed_rows), in_parts()])
def test_a_right_protocol_keeps_every_law(protocol):
    assert [law for law in check_protocol(protocol) if not law.passed] == []


def on(dataset=DATA, **changes):
    return replace(TOY, dataset=replace(dataset, **changes))


def first_block(**changes):
    return on(blocks=(replace(DATA.blocks[0], **changes), DATA.blocks[1]))


def other_each_time():
    rng = np.random.default_rng(0)
    return lambda: rng.integers(0, 256, (POINTS, 16, 16), dtype=np.uint8)


def sharing_a_file():
    """The blocks of the toy, read from a place that all of them move before they read."""
    place = [0]

    def read(number):
        place[0] = number
        time.sleep(0.02)
        return noise() + np.uint8(place[0])

    return tuple(replace(block, read=partial(read, i)) for i, block in enumerate(DATA.blocks))


def scored(function):
    """The toy, its scores made of (match, distance) or of all descriptions by another function."""
    return replace(TOY, score=function)


def counted(function, **fields):
    """The toy, its scores declared as quantities."""
    quantities = dict.fromkeys(("ap", "auc"), Quantity(decimals=0, **fields))
    quantities["fpr95"] = Quantity(decimals=0, lower_is_better=True)
    return replace(TOY, score=function, quantities=quantities)


def test_a_protocol_of_quantities_keeps_every_law():
    laws = check_protocol(counted(in_percent))
    assert [law for law in laws if not law.passed] == []


def test_an_oracle_need_not_score_1_where_the_best_score_is_unknown():
    def halved(descriptions):
        return Scores({name: value / 2 for name, value in score(descriptions).values.items()})

    assert not detail(check_protocol(scored(halved)), "an oracle scores best")[0]
    known = replace(scored(halved), best_unknown=frozenset({"ap", "auc"}))
    assert detail(check_protocol(known), "an oracle scores best")[0]


def test_an_oracle_may_not_be_worse_than_random_vectors():
    def turned(descriptions):
        return Scores({"ap": 1 - score(descriptions).values["ap"]})

    known = replace(scored(turned), best_unknown=frozenset({"ap"}))
    passed, told = detail(check_protocol(known), "an oracle scores best")
    assert not passed and "score ap = 0" in told


def test_a_score_may_be_undefined_for_some_vectors():
    def informed(descriptions):
        found = score(descriptions).values
        return Scores(found if found["ap"] > 0.7 else {"ap": found["ap"]})

    laws = check_protocol(replace(counted(informed), headline="ap"))
    assert [law for law in laws if not law.passed] == []


def negative(descriptions):
    return Scores({name: -1 - value for name, value in score(descriptions).values.items()})


def endless(descriptions):
    return Scores(dict.fromkeys(("ap", "auc"), np.inf))


def in_percent(descriptions):
    return Scores({name: 100 * value for name, value in score(descriptions).values.items()})


def wide_interval(descriptions):
    return replace(score(descriptions), intervals={"ap": (-0.1, 0.9)})


def far_first(descriptions):
    match, a, b = pairs(descriptions)
    return Scores(values(match, -descriptions.paired(a, b)))


def step_sum(match, distance):
    """Average precision by a stable sort: among tied pairs, the order of the rows decides."""
    match = match[np.argsort(distance, kind="stable")]
    return {"ap": float((np.cumsum(match) / np.arange(1, match.size + 1))[match].mean())}


def matches_first(descriptions):
    match, a, b = pairs(descriptions)
    order = np.argsort(~match, kind="stable")
    return Scores(step_sum(match[order], descriptions.paired(a, b)[order]))


def matches_last(descriptions):
    match, a, b = pairs(descriptions)
    distance = descriptions.paired(a, b)
    return Scores({"auc": 1 - float(np.mean(distance[match][:, None] >= distance[~match]))})


def first_row_wins(descriptions):
    match, a, b = pairs(descriptions)
    return Scores(step_sum(match, descriptions.paired(a, b)))


def below_16(descriptions):
    match, a, b = pairs(descriptions)
    accepted = descriptions.paired(a, b) <= 16
    return Scores({"ap": float((accepted & match).sum() / match.sum())})


def always_l2(descriptions):
    numbers = descriptions.vectors.astype(np.float32)
    return score(replace(descriptions, vectors=numbers, distance=L2))


def jitters():
    tick = count()
    return lambda d: Scores({"ap": score(d).values["ap"] * (1 - 1e-6 * next(tick))})


def forgets():
    tick = count()
    return lambda d: Scores(dict(list(score(d).values.items())[: 1 + next(tick) % 2]))


def centres_in_place(descriptions):
    descriptions.vectors[:] -= descriptions.vectors.mean(axis=0, keepdims=True)
    return score(descriptions)


def always_l1(descriptions):
    match, a, b = pairs(descriptions)
    apart = np.abs(descriptions.vectors[a] - descriptions.vectors[b]).sum(axis=1)
    return Scores({}, {"toy": values(match, apart.astype(np.float64))})


BROKEN_PROTOCOLS = [
    ("the patches are those of the table", first_block(size=POINTS + 1),
     "blocks hold 81 patches, the table has 80 points and 80 images"),
    ("the patches are those of the table", on(blocks=DATA.blocks[:1] * 2), "one name"),
    ("the patches are those of the table", first_block(read=lambda: noise() / 255),
     "toy/1 gave float64"),
    ("the patches are those of the table", first_block(read=lambda: noise()[:, 1:]),
     "patches of 15 x 16"),
    ("the patches are those of the table", first_block(read=lambda: noise()[1:]),
     "toy/1 gave 39 patches and declares 40"),
    ("reading again gives the same patches and the same hash",
     first_block(read=other_each_time()), "toy/1 gave other patches when read again"),
    ("reading again gives the same patches and the same hash", first_block(sha256=""),
     "toy/1 has no hash"),
    ("several threads can read at once", on(blocks=sharing_a_file()),
     "gave other patches when several threads read blocks"),
    ("the headline is among the scores", replace(TOY, headline="map"), "'map' is none of ap, auc"),
    ("every score is a fraction, or a quantity", scored(in_percent), "ap is"),
    ("every score is a fraction, or a quantity", scored(wide_interval), "lower end of ap is -0.1"),
    ("every score is a fraction, or a quantity", counted(negative), "ap is -"),
    ("every score is a fraction, or a quantity", counted(endless), "ap is inf"),
    ("an oracle scores best", scored(far_first), "score ap = "),
    ("an oracle scores best", counted(in_percent, lower_is_better=True), "score ap = 100.0, not"),
    ("a constant descriptor scores chance", scored(matches_first), "a constant scores ap = 1,"),
    ("a constant descriptor scores chance", scored(matches_last), "a constant scores auc = 0,"),
    ("the scale of vectors does not matter", scored(below_16), "four times the vectors: ap is"),
    ("bits compared by Hamming score as numbers 0 and 1 by L2", scored(always_l2), "packed bits"),
    ("the same vectors score the same again", scored(jitters()), "the second time: ap is"),
    ("the same vectors score the same again", scored(forgets()),
     "the second time: auc is a score of one and not of the other"),
    ("the vectors are not written to", scored(centres_in_place), "read-only"),
    ("the order of rows does not matter", scored(first_row_wins), "rows in another order: ap is"),
    ("each part scores alone as with the others", in_parts(rows=slice(POINTS)), "toy alone: ap of"),
    ("each part scores alone as with the others", in_parts(alone=always_l1),
     "toy alone: ap of toy is"),
    ("each part scores alone as with the others", in_parts(sum_up=rounds_otherwise),
     "the parts together: ap is"),
    ("each part scores alone as with the others", in_parts(sum_up=lambda found: Scores({})),
     "the parts together lack"),
    ("each part scores alone as with the others", in_parts(sum_up=warns), "other warnings"),
    ("what is no part's own follows from the parts", in_parts(sum_up=lambda found: Scores({})),
     "ap is neither a part's own nor follows from the parts"),
    ("what is no part's own follows from the parts",
     in_parts(sum_up=lambda found: Scores({**found.scenes["toy"]})),
     "the interval of ap is neither a part's own nor follows from them"),
    ("what is no part's own follows from the parts",
     in_parts(sum_up=lambda found: Scores({"ap": 0.0})), "the sum of the parts: ap is 0.0 instead"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "protocol", "message"), BROKEN_PROTOCOLS)
def test_a_law_of_protocols_can_be_broken(name, protocol, message):
    passed, said = detail(check_protocol(protocol), name)
    assert not passed
    assert message in said


def test_every_law_of_protocols_is_broken_by_a_test():
    assert {law.name for law in check_protocol(TOY)} == {name for name, _, _ in BROKEN_PROTOCOLS}


def test_the_order_of_rows_is_left_alone_where_pairs_belong_to_rows():
    laws = check_protocol(replace(TOY, score=score_fixed_rows))
    passed, said = detail(laws, "the order of rows does not matter")
    assert passed
    assert said.startswith("does not apply")


def test_a_failure_on_rows_in_another_order_is_not_passed_over():
    def needs_sorted_images(descriptions):
        if (np.diff(descriptions.dataset.image) < 0).any():
            raise IndexError("images are not sorted")
        return score(descriptions)

    passed, said = detail(
        check_protocol(scored(needs_sorted_images)), "the order of rows does not matter"
    )
    assert not passed
    assert said == "IndexError: images are not sorted"


def test_bits_are_left_alone_where_a_protocol_takes_none():
    def numbers_only(descriptions):
        assert descriptions.distance is not HAMMING
        return score(descriptions)

    protocol = replace(scored(numbers_only), distances=frozenset({"l2"}))
    law = "bits compared by Hamming score as numbers 0 and 1 by L2"
    assert detail(check_protocol(protocol), law) == (
        True,
        "does not apply: vectors are compared by l2",
    )


def test_a_few_mislabelled_pairs_do_not_spoil_the_oracle():
    def mislabelled(descriptions):
        match, a, b = pairs(descriptions)
        match[np.flatnonzero(~match)[0]] = True
        return Scores({"auc": values(match, descriptions.paired(a, b))["auc"]})

    assert detail(check_protocol(scored(mislabelled)), "an oracle scores best")[0]


def test_a_protocol_that_always_fails_breaks_every_law_that_scores():
    def fails(descriptions):
        raise OSError("no such task file")

    laws = check_protocol(scored(fails))
    assert [law.name for law in laws if law.passed] == [
        "the patches are those of the table",
        "reading again gives the same patches and the same hash",
        "several threads can read at once",
        "each part scores alone as with the others",  # it has none
        "what is no part's own follows from the parts",
    ]
    assert all("OSError: no such task file" in law.detail for law in laws if not law.passed)


def test_training_data_that_nobody_knows_are_remarked_on():
    laws = check_descriptor(replace(PIXELS, trained_on=frozenset({"libery", "UBC/liberty"})))
    passed, said = detail(laws, "the libraries that the descriptor declares are installed")
    assert passed
    assert said.startswith(
        "no protocol knows the data 'libery' of trained_on; did you mean 'photot"
    )
