"""Exports networks to ONNX, reduces their precision, checks them against torch, runs them."""
