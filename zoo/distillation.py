"""Distillation: a student is trained by its own loss and by the vectors of a trained teacher.

The loss is that of the student's method plus `weight` times a loss of `zoo.distillation_losses`.
The teacher describes the patches that the method shows to the student with a gradient, augmented as
the student sees them. For local descriptors, Y. Liu, Q. Dong, Descriptor distillation: a
teacher-student-regularized framework for learning local descriptors, arXiv 2209.11795, train small
students by a triplet loss and a teacher, too; their regularisation is another one.

The teacher's training images decide its vectors, so the student learns from them, too. Its card
names the training data and the photographs of both, or no photographs if those of one of them are
not known; and its licence is that of both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float
from torch import nn

from harness.distances import L2
from harness.errors import InputError
from harness.loading import load_model
from harness.types import Descriptor, Patches
from zoo.adasample import AdaSample, Distance, Negatives
from zoo.distillation_losses import regression, relational
from zoo.doap import BinaryDOAP
from zoo.training.groups import Groups
from zoo.training.method import Batch, Describe, Method
from zoo.training.together import gathered, part

Grey = Float[torch.Tensor, "n 1 side side"]
Vectors = Float[torch.Tensor, "n dim"]
Follows = Literal["vectors", "distances"]
LOSSES = {"vectors": regression, "distances": relational}

TOGETHER = 4096  # patches that a network describes in one pass


@dataclass(frozen=True, eq=False)
class Watched:
    """The network of a step, which notes the patches that it describes with gradients."""

    network: Describe
    patches: list[Grey] = field(default_factory=list)
    vectors: list[Vectors] = field(default_factory=list)

    def __call__(self, patches: Grey) -> Vectors:
        """Vectors with gradients; they are noted."""
        return self._noted(patches, self.network(patches))

    def maps(self, patches: Grey, *, every: bool = False) -> tuple[torch.Tensor, ...]:
        """Maps with gradients; the vectors are noted."""
        maps = self.network.maps(patches, every=every)
        self._noted(patches, maps[-1])
        return maps

    def still(self, patches: Grey) -> Vectors:
        """Vectors without gradients, which are not noted."""
        return self.network.still(patches)

    def _noted(self, patches: Grey, vectors: Vectors) -> Vectors:
        self.patches.append(patches)
        self.vectors.append(vectors)
        return vectors


class Lesson(nn.Module):
    """The loss of distillation. It keeps the hash of the teacher's weights, not the weights."""

    def __init__(self, teacher: str, weight: float, follows: Follows) -> None:
        """Keep the options; `begin` opens the teacher."""
        super().__init__()
        self.name, self.weight, self.follows = teacher, weight, follows
        self.hash: str | None = None
        self.teach: Callable[[Grey], Vectors] | None = None

    def begin(self) -> Descriptor:
        """Open the teacher.

        Raises:
            InputError: if it has no vectors of numbers, or its training data are not known.
            HarnessError: if it can't be opened.
        """
        teacher = load_model(self.name, device="cpu")
        if not isinstance(teacher, Descriptor) or teacher.distance is not L2:
            raise InputError(
                f"teacher {self.name} has no vectors of numbers that it computes from patches:"
                " choose a descriptor that is compared by L2 with --set method.teacher=NAME"
            )
        if teacher.trained_on is None:
            raise InputError(
                f"nobody knows what teacher {self.name} was trained on, so nobody could say it of"
                " the student: choose another one with --set method.teacher=NAME"
            )
        self.hash, self.teach = teacher.weights, describing(teacher)
        return teacher

    def forward(self, patches: Grey, vectors: Vectors) -> Float[torch.Tensor, ""]:
        """`weight` times the loss of the student's vectors of patches.

        Raises:
            InputError: if vectors of another dimension than the teacher's should follow them.
        """
        assert self.teach is not None
        n = len(patches)
        with torch.no_grad():
            wanted = gathered(self.teach(patches[part(n)]), n)
        if self.follows == "vectors" and wanted.shape != vectors.shape:
            raise InputError(
                f"teacher {self.name} has vectors of {wanted.shape[1]} numbers, the network of"
                f" {vectors.shape[1]}: --set method.follows=distances, or choose another teacher"
            )
        return self.weight * LOSSES[self.follows](vectors, wanted)

    def get_extra_state(self) -> dict[str, str | None]:
        """The hash of the teacher's weights, for the state of a training."""
        return {"weights": self.hash}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Compare the teacher with the one that the training began with.

        Raises:
            InputError: if its weights are others.
        """
        if state["weights"] != self.hash:
            raise InputError(
                f"the training began with weights {state['weights']} of teacher {self.name}, which"
                f" now has weights {self.hash}: bring the old ones back, or choose another --out"
            )


def describing(teacher: Descriptor) -> Callable[[Grey], Vectors]:
    """The function by which a teacher describes patches on any device.

    On a CPU the descriptor itself describes them, with grey values rounded to 8 bits. On another
    device its network does, if it has one, so that a step does not wait for the device.
    """
    networks: dict[torch.device, nn.Module] = {}

    def describe(patches: Grey) -> Vectors:
        grey, device = patches[:, 0], patches.device
        if device.type == "cpu" or teacher.network is None:
            rounded = grey.round().clamp(0, 255).to(torch.uint8).cpu().numpy()
            return torch.tensor(teacher.describe(rounded)).to(device)
        if device not in networks:
            networks[device] = teacher.network().eval().to(device)
        return torch.cat([networks[device](few) for few in grey.split(TOGETHER)]).float()

    return describe


class Distilled(Method):
    """The loss of the next class of a method's bases, and distillation by its `lesson`."""

    lesson: Lesson

    def study(self, patches: Callable[[int], Patches], groups: Groups) -> None:
        """Open the teacher."""
        super().study(patches, groups)
        self.teacher = self.lesson.begin()

    def forward(self, batch: Batch) -> Float[torch.Tensor, ""]:
        """The loss of one batch."""
        watched = Watched(batch.describe)
        loss: torch.Tensor = super().forward(replace(batch, describe=watched))
        vectors = self.learning(torch.cat(watched.vectors))
        return loss + self.lesson(torch.cat(watched.patches), vectors)

    def learning(self, vectors: Vectors) -> Vectors:
        """The student's vectors as they are compared with the teacher's."""
        return vectors


class DistilledAdaSample(Distilled, AdaSample):
    """AdaSample's loss of a student's vectors, and distillation."""

    def __init__(
        self,
        *,
        teacher: str,
        weight: Annotated[float, Gt(0)],
        follows: Follows,
        pairs: Annotated[int, Ge(2)],
        lambda_: Annotated[float, Ge(0)],
        margin: Annotated[float, Gt(0)],
        distance: Distance = "angle",
        negatives: Negatives = "same",
        class_size: Annotated[int, Ge(2)] = 15,
        turn: Annotated[float, Ge(0), Le(180)] = 20.0,
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        separate: bool = True,
    ) -> None:
        """Keep the options.

        Args:
            teacher: an installed descriptor of numbers, or another one as `--model` takes it.
            weight: weight of the distillation; AdaSample's loss has weight 1.
            follows: "vectors": the student's vectors should be the teacher's; "distances": only
                the distances between the patches of a batch should, in proportion to their mean.
            pairs: as the following options, see AdaSample.
            lambda_: 0 draws random pairs.
            margin: of the triplet loss.
            distance: of AdaSample's loss; distillation takes Euclidean distances.
            negatives: "cross" seeks them as HardNet's code does.
            class_size: number of patches from which a pair is drawn.
            turn: most degrees by which patches that fill a class are turned.
            images: number of images that show the share of the points, drawn anew in each step.
            share: share of the points.
            separate: whether anchors and positives pass batch normalisation separately.
        """
        super().__init__(
            pairs=pairs,
            lambda_=lambda_,
            margin=margin,
            distance=distance,
            negatives=negatives,
            class_size=class_size,
            turn=turn,
            images=images,
            share=share,
            separate=separate,
        )
        self.lesson = Lesson(teacher, weight, follows)


class DistilledBinaryDOAP(Distilled, BinaryDOAP):
    """DOAP's loss of a student's bits, and distillation of the distances of its relaxed codes.

    Squared Euclidean distances of codes of -1 and 1 are four times Hamming distances.
    """

    def __init__(
        self,
        *,
        teacher: str,
        weight: Annotated[float, Gt(0)],
        patches: Annotated[int, Ge(2)],
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
    ) -> None:
        """Keep the options.

        Args:
            teacher: as in DistilledAdaSample.
            weight: weight of the distillation; DOAP's loss has weight 1.
            patches: most patches in a batch; see DOAP.
            images: number of images that show the share of the patches, drawn anew in each step.
            share: share of the patches.
        """
        super().__init__(patches=patches, images=images, share=share)
        self.lesson = Lesson(teacher, weight, "distances")

    def learning(self, vectors: Vectors) -> Vectors:
        """The relaxed codes."""
        return self.compared(vectors)[0]
