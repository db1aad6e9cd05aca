"""A method that tells who trains, and may end the wait for it; a network that needs another one.

TOLD names a file that gets a line for each step: the process. Each step sleeps SLOW seconds. After
as many lines as STOP says, the files in the folder TOKENS are removed.
"""

import os
import time
from pathlib import Path

from small_training import Contrast, Small


class Told(Contrast):
    def forward(self, batch):
        told = Path(os.environ["TOLD"])
        with told.open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        time.sleep(float(os.environ.get("SLOW", "0")))
        if len(told.read_text().splitlines()) == int(os.environ.get("STOP", "0")):
            for file in Path(os.environ["TOKENS"]).iterdir():
                file.unlink()
        return super().forward(batch)


class Started(Small):
    def __init__(self, *, start: str = "", dropout: float = 0.0) -> None:
        super().__init__(dropout=dropout)
        self.start = start

    def study(self, patches, rows):
        self.layers[0].weight.data *= 1 + len(Path(self.start).read_bytes()) / 1e6
