"""A second device in pure Python: PyTorch's PrivateUse1, whose memory is this computer's own.

Tensors of device "second" hold their numbers where the CPU can compute them, but PyTorch takes them
for those of another device, as it takes a GPU's. So an operation on tensors of two devices fails
here as it does there, and each place where a GPU would be waited for is counted.

PyTorch allows one such device in a process, and it stays to the end: register it in a process of
its own.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils import _pytree as pytree
from torch.utils import backend_registration

NAME = "second"
CPU, EXTERNAL = 1, 12  # types of devices in DLPack
ROOT = Path(__file__).resolve().parents[2]

# Operators whose result's size or whose Python number depends on values on the device: CUDA waits
# until all work that was given to it is done.
WAITS = {
    "aten::_local_scalar_dense",  # float(), int(), bool(), item()
    "aten::_unique2",
    "aten::bincount",
    "aten::equal",
    "aten::masked_select",
    "aten::multinomial",  # it checks the chances
    "aten::nonzero",
    "aten::repeat_interleave",
    "aten::unique_consecutive",
    "aten::unique_dim",
}
INDEXES = {"aten::index", "aten::index_put_", "aten::_index_put_impl_"}  # by a mask: nonzero
_waits: list[str] = []


class _Module:
    """What `torch.second` is: the functions that PyTorch asks for."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Its random numbers are those of the CPU's generator, which is seeded beside it."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    free = 2**30  # bytes

    def mem_get_info(self, device: object = None) -> tuple[int, int]:
        """Bytes that are free, and all bytes."""
        return self.free, 2**30


_LIBRARIES: list[torch.library.Library] = []


def register() -> torch.device:
    """Make the device known to PyTorch; returns it."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    every = torch.library.Library("_", "IMPL")
    every.fallback(_computed, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL", "PrivateUse1")
    aten.impl("empty.memory_format", _empty)
    aten.impl("empty_strided", _empty_strided)
    aten.impl("_copy_from", _copied)
    aten.impl("convolution_overrideable", _convolution)
    aten.impl("convolution_backward_overrideable", _convolution_backward)
    aten.impl("native_dropout", _dropout)
    _LIBRARIES.extend([every, aten])
    return torch.device(NAME, 0)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the waits in the block by operator and place: "nonzero zoo/doap.py:queries"."""
    before = len(_waits)
    count: Counter[str] = Counter()
    yield count
    count.update(_waits[before:])


def _wait(operator: str) -> None:
    frame = sys._getframe(1)
    while frame and not (
        frame.f_code.co_filename.startswith(str(ROOT)) and "support" not in frame.f_code.co_filename
    ):
        frame = frame.f_back
    place = "elsewhere"
    if frame:
        file = Path(frame.f_code.co_filename).relative_to(ROOT)
        place = f"{file}:{frame.f_code.co_name}"
    _waits.append(f"{operator.removeprefix('aten::')} {place}")


# --- the same memory as the tensor of another device


_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.restype, _capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _as(x: torch.Tensor, kind: int) -> torch.Tensor:
    capsule = torch._C._to_dlpack(x.detach().resolve_neg().resolve_conj())
    # A DLTensor begins with a pointer to the data, the device's type, and its number.
    place = (ctypes.c_int32 * 2).from_address(_capsule(capsule, b"dltensor") + 8)
    place[0], place[1] = kind, 0
    return torch._C._from_dlpack(capsule)


def here(x: object) -> object:
    """A tensor of the CPU with the same memory; anything else as it is."""
    return _as(x, CPU) if isinstance(x, torch.Tensor) and x.device.type == NAME else x


def there(x: object) -> object:
    """A tensor of the second device with the same memory; anything else as it is."""
    return _as(x, EXTERNAL) if isinstance(x, torch.Tensor) and x.device.type == "cpu" else x


# --- operators


def _computed(op, *args, **kwargs):
    """Any operator: the CPU computes it, on the same memory."""
    name = op._schema.name
    tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    strangers = [x for x in tensors if x.device.type != NAME and x.dim()]
    if strangers:
        shapes = [(str(x.device), tuple(x.shape)) for x in tensors]
        raise RuntimeError(f"{name} takes tensors of one device, and got {shapes}")
    by_mask = name in INDEXES and any(
        isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8)
        for x in pytree.tree_leaves(args[1])
    )
    if name in WAITS or by_mask:
        _wait("nonzero" if by_mask else name)
    given = [x for x in tensors if x.device.type == NAME]
    read = {id(x) for x in pytree.tree_leaves(args)}  # an operator in place reads its result, too
    results = [one.name for one in op._schema.arguments if one.is_out]
    results = [name for name in results if id(kwargs[name]) not in read]
    moved = {id(x): here(x) for x in given}
    moved |= {id(kwargs[name]): kwargs[name].new_empty(0, device="cpu") for name in results}

    def onto_cpu(x):
        if isinstance(x, torch.Tensor):
            return moved.get(id(x), x)
        return torch.device("cpu") if isinstance(x, torch.device) and x.type == NAME else x

    # A number in the place of a tensor comes as a number.
    kinds = [str(one.type) for one in op._schema.arguments]
    of_cpu, named = pytree.tree_map(onto_cpu, (args, kwargs))
    came = op(*map(_value, of_cpu, kinds), **named)
    for name in results:
        _fill(kwargs[name], named[name])
    back = {id(moved[id(x)]): x for x in given}
    return pytree.tree_map(lambda x: back.get(id(x), there(x)), came)


def _fill(result: torch.Tensor, computed: torch.Tensor) -> None:
    if result.shape == computed.shape:
        here(result).copy_(computed)
    else:  # an empty tensor gets its size here
        result.data = there(computed)


def _value(x: object, kind: str) -> object:
    return torch.tensor(x) if kind == "Tensor" and isinstance(x, int | float) else x


def _empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    memory_format = memory_format or torch.contiguous_format
    return there(torch.empty(size, dtype=dtype, memory_format=memory_format))


def _empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return there(torch.empty_strided(size, stride, dtype=dtype))


def _copied(source, target, non_blocking=False):
    """A copy between the devices, or on this one."""
    if target.device.type != NAME:
        _wait("to the CPU")
    elif source.device.type != NAME and not non_blocking:
        _wait("to the device")
    here(target).copy_(here(source))
    return target


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    given = here(x), here(weight), here(bias)
    return there(
        torch.ops.aten.convolution(
            *given, stride, padding, dilation, transposed, output_padding, groups
        )
    )


def _convolution_backward(
    gradient, x, weight, stride, padding, dilation, transposed, output_padding, groups, mask
):
    came = torch.ops.aten.convolution_backward(
        here(gradient), here(x), here(weight), [weight.shape[0]],
        stride, padding, dilation, transposed, output_padding, groups, mask,
    )  # fmt: skip
    return tuple(map(there, came))


def _dropout(x, p, train):
    """As the CPU draws: so a training loses the same numbers on both devices."""
    if not train or not p:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = torch.empty_like(here(x)).bernoulli_(1 - p)
    return there(here(x) * kept.div(1 - p)), there(kept.bool())
