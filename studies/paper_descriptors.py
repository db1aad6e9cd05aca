"""Write one row for each descriptor in the tables and figures of the four papers, from the records.

    python -m studies.paper_descriptors --results results

writes RESULTS/studies/paper-descriptors.md. A row has scores, or says why it has none and how a
user can get them. The same records give the same bytes; nothing is measured here.
"""

import argparse
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import catalogue
from harness.catalogue import ListedModel
from harness.data import published_weights
from harness.escape import markdown
from harness.files import atomic
from harness.records import markdown_table
from harness.records import record as results
from studies.ship import shipped_cards
from studies.zoo_tables import WHOLE, board

OWN = "bring a function: `--model FILE.py:NAME`, or vectors: `--model FOLDER`"
PAIRS = (
    "it compares two patches and gives no vector for one patch, so no search of nearest neighbours"
    " is possible (L2-Net's paper, section 4.2)"
)


@dataclass(frozen=True)
class Printed:
    """A descriptor as the papers print it."""

    name: str
    where: str  # tables and figures
    models: tuple[str, ...] = ()  # of the zoo: the published ones first, then those trained here
    why: str = ""  # why there is no model


L2NET, MIXED, DOAP, ADASAMPLE = "L2-Net", "mixed-context", "DOAP", "AdaSample"

PRINTED = (
    Printed("SIFT", "all four, Table 1", ("sift", "sift.vlfeat")),
    Printed("RootSIFT", f"{DOAP}, Figure 5", ("rootsift", "rootsift.vlfeat")),
    Printed("DSP-SIFT", f"{ADASAMPLE} (first version), Table 3", ("dsp-sift",)),
    Printed("LIOP", f"{L2NET}, Figure 2; {DOAP}, Figure 6", ("liop",)),
    Printed("BinBoost", f"{L2NET} and {DOAP}, Table 1", ("binboost.64",)),
    Printed(
        "RFD_R, RFD_G",
        f"{L2NET}, Table 1",
        why=f"the authors publish code on their page (nlpr.ia.ac.cn/fanbin/rfd.htm); {OWN}",
    ),
    Printed("RMGD", f"{L2NET}, Table 1", why=f"no published code is known to us; {OWN}"),
    Printed("Boix et al.", f"{L2NET}, Table 1", why=f"no published code is known to us; {OWN}"),
    Printed(
        "MatchNet",
        f"{L2NET}, {DOAP} and {ADASAMPLE}, Table 1",
        why="a second network compares its feature vectors, in place of a distance, and of its"
        f" files only a sha1 is known; {OWN}",
    ),
    Printed("DeepCompare 2ch-2stream, 2ch-deep", f"{L2NET} and {DOAP}, Table 1", why=PAIRS),
    Printed("SNet-GLoss, CS SNet-GLoss", f"{L2NET} and {DOAP}, Table 1", why=PAIRS),
    Printed(
        "TNet-TGLoss",
        f"{L2NET}, Table 1 and Figure 2",
        ("tnet.liberty", "tnet.notredame", "tnet.yosemite"),
    ),
    Printed(
        "TNet-TLoss",
        f"{L2NET}, Table 1",
        why="the authors' repository (vijaykbg/deep-patchmatch) has only TNet-TGLoss; it is the"
        f" same network, trained without the global loss; {OWN}",
    ),
    Printed(
        "PN-Net",
        f"{L2NET}, Table 1 and Figure 2",
        why="the authors' repository (vbalnt/pnnet) has code and training statistics; no hash of"
        f" its weights is known to us; {OWN}",
    ),
    Printed(
        "DeepDesc",
        f"{L2NET} and {ADASAMPLE}, Table 1; {DOAP}, Figure 5",
        ("deepdesc.split4", "deepdesc.split1", "deepdesc.split2", "deepdesc.split3"),
    ),
    Printed(
        "TFeat",
        f"{MIXED}, {DOAP} and {ADASAMPLE}, Table 1",
        ("tfeat.liberty", "tfeat.notredame", "tfeat.yosemite"),
    ),
    Printed(
        "TL-AS-GOR",
        f"{DOAP}, Table 1",
        why=f"no published weights are known to us; {OWN}, or train `hardnet-gor`, which has the"
        " same regulariser",
    ),
    Printed(
        "L2-Net",
        f"{L2NET}, Tables 1 and 2; {MIXED} and {ADASAMPLE}, Table 1",
        ("l2net-official.liberty", "l2net-official.notredame", "l2net-official.yosemite"),
    ),
    Printed(
        "L2-Net+",
        f"{L2NET}, Tables 1 and 2; {DOAP} and {ADASAMPLE}, Table 1",
        ("l2net-official.liberty+", "l2net-official.notredame+", "l2net-official.yosemite+",
         "l2net+"),
    ),
    Printed(
        "CS L2-Net, CS L2-Net+",
        f"{L2NET}, Tables 1 and 2; {DOAP} and {ADASAMPLE}, Table 1",
        ("l2net-cs-official.liberty+", "l2net-cs-official.notredame+",
         "l2net-cs-official.yosemite+"),
    ),
    Printed(
        "Binary L2-Net+, Binary CS L2-Net+",
        f"{L2NET}, Tables 1 and 2; {DOAP}, Table 1",
        ("l2net-official.liberty+|signs", "l2net-binary"),
    ),
    Printed(
        "HardNet, HardNet+",
        f"{MIXED}, {DOAP} and {ADASAMPLE}, Table 1",
        ("hardnet-official.liberty", "hardnet-official.notredame", "hardnet-official.yosemite",
         "hardnet++", "hardnet"),
    ),
    Printed(
        "HardNet-GOR",
        f"{DOAP} and {ADASAMPLE}, Table 1",
        why="no published weights are known to us; train it: `harness train --recipe hardnet-gor`",
    ),
    Printed(
        "HardNet*",
        f"{ADASAMPLE}, Tables 1 to 3",
        why="no published weights are known to us; train it: `harness train --recipe hardnet-star`",
    ),
    Printed(
        "GeoDesc",
        f"{ADASAMPLE}, Table 1; first version, Table 3",
        ("geodesc",),
    ),
    Printed("Siamese, Triplet, Mixed (mixed-context)", f"{MIXED}, Table 1", ("mixed-context",)),
    Printed("DOAP", f"{DOAP}, Tables 1 and 2; {ADASAMPLE}, Table 1", ("doap",)),
    Printed("DOAP-ST", f"{DOAP}, Table 1", ("doap-st",)),
    Printed("Binary DOAP", f"{DOAP}, Tables 1 and 2", ("doap-binary",)),
    Printed("AdaSample", f"{ADASAMPLE}, Tables 1 to 3", ("adasample",)),
    Printed(
        "CKN-grad",
        f"{DOAP}, Table 2",
        why=f"a kernel network of 1,024 numbers; no hash of its weights is known to us; {OWN}",
    ),
    Printed(
        "AlexNet-conv3",
        f"{DOAP}, Table 2",
        why="a layer of a classifier, on patches of 99x99; RomePatches, on which it was measured,"
        f" has to be brought, too; {OWN}",
    ),
    Printed(
        "PhilippNet",
        f"{DOAP}, Table 2",
        why=f"no hash of its weights is known to us; {OWN}",
    ),
)  # fmt: skip


def page(records: Sequence[results.Record], listed: Mapping[str, ListedModel]) -> Iterator[str]:
    """Lines of the page."""
    boards = {data: board(records, *where) for data, where in WHOLE.items()}
    yield "# The descriptors of the four papers\n"
    yield "Each descriptor in the tables and figures of L2-Net, mixed-context, DOAP and AdaSample:"
    yield "measured here, or why not. Matching mAP in percent; an empty cell is not measured."
    yield f"{', '.join(f'`{card.stem}`' for card in shipped_cards())}"
    yield "were trained by this project on its own data: their rows do not reproduce the papers'"
    yield "numbers. `python -m studies.paper_descriptors --results results` makes this page.\n"
    columns = ["descriptor", "in", "model", *WHOLE]
    yield from markdown_table.lines(columns, _rows(boards, listed), align="lllr")
    yield ""


def _rows(
    boards: Mapping[str, Mapping[str, results.Record]], listed: Mapping[str, ListedModel]
) -> Iterator[list[str]]:
    published = published_weights.known()
    for printed in PRINTED:
        head = [markdown(printed.name), printed.where]
        if printed.why:
            yield [*head, f"none: {printed.why}", *[""] * len(WHOLE)]
        for model in printed.models:
            scores = [
                f"{100 * known[model].scores[known[model].protocol.headline]:.1f}"
                if model in known
                else ""
                for known in boards.values()
            ]
            told = (
                f"`{markdown(model)}`"
                if any(scores)
                else _missing(listed[model.partition("|")[0]], model, published)
            )
            yield [*head, told, *scores]
            head = ["", ""]


def _missing(base: ListedModel, model: str, published: Container[str]) -> str:
    """A model without scores, and how to get its weights if they are published."""
    files = base.row.weights if base.row and base.row.weights else (base.name,)
    fetched = " ".join(name for name in files if name in published)
    remedy = f": `harness weights fetch {markdown(fetched)}`" if fetched else ""
    return f"`{markdown(model)}`, not measured{remedy}"


def main() -> None:
    """Read the records, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    listed = {row.name: row for row in catalogue.models()}
    text = "\n".join(page(results.load(given.results), listed))
    atomic.write_text(given.results / "studies/paper-descriptors.md", text)


if __name__ == "__main__":
    main()
