"""The readers of foreign files that `studies.mutated_inputs` tries, each with a small valid set."""

from studies.foreign_files import kernel, protocols, zoo

READERS = (*kernel.READERS, *zoo.READERS, *protocols.READERS)
