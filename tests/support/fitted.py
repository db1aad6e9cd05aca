"""Small data sets and files of learned parameters, for wrappers."""

import hashlib

import numpy as np
from toy import toy_dataset

import harness
from harness import Block


def of_patches(patches, name="toy-training"):
    """A data set of these patches in one block."""
    sha256 = hashlib.sha256(patches.tobytes()).hexdigest()
    rows = np.arange(len(patches))
    block = Block(name, len(patches), sha256, lambda: patches)
    return toy_dataset(name=name, blocks=(block,), point=rows, image=0 * rows)


def fitted(model, wrapper, file, patches, **options):
    """The model in a wrapper whose parameters were learned from patches."""
    harness.fit(model, wrapper, [of_patches(patches)], file, **options)
    return harness.wrap(model, f"{wrapper}({file})")
