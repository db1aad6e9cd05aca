"""Batches of matching vectors for tests of losses, with degenerate batches."""

import torch


def unit_rows(n, dim, seed=0, dtype=torch.float32):
    rows = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (rows / rows.norm(dim=1, keepdim=True)).to(dtype)


def matching_pairs(n, dim=16, seed=0, noise=0.5, dtype=torch.float32):
    anchor = unit_rows(n, dim, seed, torch.float64)
    positive = anchor + noise * unit_rows(n, dim, seed + 1, torch.float64)
    return anchor.to(dtype), (positive / positive.norm(dim=1, keepdim=True)).to(dtype)


def awkward_pairs(n):
    anchor, positive = matching_pairs(n)
    return {
        "usual": (anchor, positive),
        "duplicates": (anchor[torch.arange(n) // 2], positive[torch.arange(n) // 2]),
        "all equal": (anchor[:1].repeat(n, 1), anchor[:1].repeat(n, 1)),
        "equal in pairs": (anchor, anchor.clone()),
        "anchor is negative": (anchor, anchor.roll(1, 0)),
        "opposite": (anchor, -anchor),
        "nearly equal": (anchor, anchor + 1e-7),
    }
