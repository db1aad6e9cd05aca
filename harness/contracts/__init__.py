"""Checks of the laws of descriptors and protocols, for our tests and for those of plug-ins.

A plug-in's test is `assert all(law.passed for law in check_descriptor(mine()))`.
"""

from harness.contracts.descriptors import check_descriptor
from harness.contracts.law import Law
from harness.contracts.protocols import check_protocol

__all__ = ["Law", "check_descriptor", "check_protocol"]
