"""ONNX: export, precision, checks against torch, running."""
