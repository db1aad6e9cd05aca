"""Descriptors of bits that need no network: handcrafted, or learned and published as numbers."""
