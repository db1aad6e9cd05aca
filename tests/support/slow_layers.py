"""Layers of networks written out in NumPy, at double precision, as oracles of tests."""

import numpy as np


def correlation(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *, stride: int = 1, pad: int = 0
) -> np.ndarray:
    """Each output pixel as a sum over its window; x [n, c, h, w], weight [o, c, rows, columns]."""
    x = np.pad(x.astype(float), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = weight.shape[2:]
    down, across = (
        range(0, x.shape[2] - rows + 1, stride),
        range(0, x.shape[3] - columns + 1, stride),
    )
    y = np.empty((len(x), len(weight), len(down), len(across)))
    for i, top in enumerate(down):
        for j, left in enumerate(across):
            window = x[:, :, top : top + rows, left : left + columns]
            y[:, :, i, j] = np.einsum("nchw,ochw->no", window, weight.astype(float)) + bias
    return y


def matlab_correlation(
    x: np.ndarray, filters: np.ndarray, bias: np.ndarray, *, stride: int = 1, pad: int = 0
) -> np.ndarray:
    """MatConvNet's convolution: x [row, column, c], filters [row, column, c, output].

    y(i, j, o) = bias(o) + the sum over (a, b, c) of x(stride i + a, stride j + b, c) f(a, b, c, o).
    """
    x = np.pad(x.astype(float), ((pad, pad), (pad, pad), (0, 0)))
    rows, columns = filters.shape[:2]
    down, across = (
        range(0, x.shape[0] - rows + 1, stride),
        range(0, x.shape[1] - columns + 1, stride),
    )
    y = np.empty((len(down), len(across), filters.shape[3]))
    for i, top in enumerate(down):
        for j, left in enumerate(across):
            window = x[top : top + rows, left : left + columns]
            y[i, j] = np.tensordot(window, filters.astype(float), 3) + bias.ravel()
    return y
