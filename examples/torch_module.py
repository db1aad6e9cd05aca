"""A torch module as a descriptor, for the command line, for Python, and as an ONNX file.

harness eval --model examples/torch_module.py:small --protocol hpatches
harness export --model examples/torch_module.py:small --out small.onnx
python examples/torch_module.py
"""

import numpy as np
import torch
from torch import nn

import harness
from harness.distances import L2


class Small(nn.Module):
    """Two convolutions; resizing and normalisation are in the module, so they are exported, too."""

    def __init__(self) -> None:
        """Start with random weights."""
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.Flatten(1)
        )
        # Trained weights: self.load_state_dict(torch.load("mine.pth", weights_only=True))

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """Unit vectors of 8-bit patches of any size: (n, height, width) -> (n, 800)."""
        x = nn.functional.interpolate(patches[:, None].float(), (32, 32), mode="bilinear")
        x = x - x.mean((2, 3), keepdim=True)
        x = self.layers(x)  # (n, 32, 5, 5), flat
        return x / x.square().sum(1, keepdim=True).clamp(min=1e-12).sqrt()


def small(device: str = "cpu") -> harness.Descriptor:
    """The descriptor: the harness hands it uint8 patches, and takes float32 vectors."""
    network = Small().to(device).eval()

    def describe(patches: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.tensor(patches).to(device)).cpu().numpy()

    return harness.Descriptor(
        "small",
        describe,
        L2,
        dim=800,
        trained_on=frozenset(),  # names of data, as "phototour/liberty"
        licence="CC0-1.0",
        libraries=("numpy", "torch"),
        provider=f"torch-{device}",
        network=Small,
    )


if __name__ == "__main__":
    for record in harness.evaluate(small(), "hpatches/matching"):
        print(record.model.name, record.scores["matching/map"])
