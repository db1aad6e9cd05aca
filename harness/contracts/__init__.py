"""The laws that descriptors and protocols keep, as functions: for our tests, and for yours.

A test of a package of its own is `assert all(law.passed for law in check_descriptor(mine()))`.
"""

from harness.contracts.descriptors import check_descriptor
from harness.contracts.law import Law
from harness.contracts.protocols import check_protocol

__all__ = ["Law", "check_descriptor", "check_protocol"]
