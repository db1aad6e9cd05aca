"""Parts of `benchmarks.gpu` that describe patches: libraries, shipped networks, ONNX Runtime."""

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from benchmarks.gpu_found import Found, Setting
from harness import Descriptor, parallel, plugins
from harness.commands.doctor import cuda_major, other_cuda
from harness.distances import HAMMING
from harness.onnx import export as onnx_export
from harness.onnx import file as onnx_file
from harness.types import Patches, Vectors
from zoo import card as cards
from zoo import shipped as shipped_models
from zoo import trained

APART = 1e-4  # most distance between a unit vector of the CPU and of a GPU
BITS = 1e-3  # most share of bits that differ
PROFILED = "adasample"


def patches_of(n: int, side: int = 65) -> Patches:
    """Patches with some structure: noise, smoothed."""
    noise = np.random.default_rng(0).integers(0, 256, (n, side + 4, side + 4))
    smooth = sum(noise[:, i : i + side, j : j + side] for i in range(5) for j in range(5)) / 25
    return np.clip((smooth - 127.5) * 4 + 127.5, 0, 255).astype(np.uint8)


def versions(setting: Setting) -> Iterator[Found]:
    """Versions, majors of CUDA, and whether both libraries compute a convolution."""
    yield Found("python", f"{platform.python_version()} on {platform.platform()}")
    yield Found("torch", f"{torch.__version__}, CUDA {torch.version.cuda}")
    built = getattr(onnxruntime, "cuda_version", "")
    yield Found("ONNX Runtime", f"{onnxruntime.__version__}, CUDA {built or None}")
    on_gpu = setting.device.type == "cuda"
    if on_gpu:
        name, major_minor = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
        free, whole = torch.cuda.mem_get_info()
        yield Found("GPU", f"{name}, capability {major_minor}, {torch.cuda.device_count()} of them")
        yield Found("memory", f"{free / 2**30:.1f} of {whole / 2**30:.1f} GiB are free")
        yield Found("cuDNN", str(torch.backends.cudnn.version()))
    else:
        yield Found("processor", f"{platform.processor()}, {parallel.CORES} cores")
    told = other_cuda(cuda_major(built), cuda_major(torch.version.cuda))
    yield Found("majors of CUDA", told or "they fit, or one has none", "the same", told is None)
    failure = plugins.cuda_failure()
    good = failure is None if on_gpu else None
    yield Found("torch's convolution", failure or "on cuda", "on cuda" if on_gpu else "", good)
    providers, failure = onnx_file.working_providers()
    good = providers[0] == onnx_file.CUDA if on_gpu else None
    said = failure or ", ".join(providers)
    yield Found("ONNX Runtime's convolution", said, onnx_file.CUDA if on_gpu else "", good)


def shipped(setting: Setting) -> Iterator[Found]:
    """Vectors of the shipped networks on the device, by both libraries, beside those of the CPU."""
    names = sorted(file.stem for file in shipped_models.FOLDER.glob("*.safetensors"))
    names = [PROFILED] if setting.quick else names
    patches = patches_of(16 if setting.quick else 512)
    for name in names:
        wanted = plugins.model(name, device="cpu")
        assert isinstance(wanted, Descriptor)
        by_both: dict[str, Callable[[], Descriptor]] = {
            "ONNX Runtime": lambda name=name: _by_onnx(name, setting.device),  # type: ignore[misc]
            "torch": lambda name=name: _by_torch(name, _named(setting.device)),  # type: ignore[misc]
        }
        vectors = wanted.describe(patches)
        for library, make in by_both.items():
            made = make()
            yield _apart(f"{name}, {made.provider} by {library}", made, patches, vectors)


def _by_onnx(name: str, device: torch.device) -> Descriptor:
    return onnx_export.through_onnx(_by_torch(name, "cpu"), device=device.type)


def _by_torch(name: str, device: str) -> Descriptor:
    card = cards.read(shipped_models.FOLDER / f"{name}.json")
    return trained.by_torch(shipped_models.FOLDER / f"{name}.safetensors", card, device=device)


def _named(device: torch.device) -> str:
    """The device; the CPU by its number, so that it is treated as another device than the CPU."""
    return "cuda" if device.type == "cuda" else "cpu:0"


def _apart(what: str, made: Descriptor, patches: Patches, wanted: Vectors) -> Found:
    vectors = made.describe(patches)
    if made.distance is HAMMING:
        share = float(np.unpackbits(vectors ^ wanted).mean())
        return Found(what, f"{share:.1e} of the bits differ", f"at most {BITS:g}", share <= BITS)
    apart = float(np.linalg.norm(vectors.astype(float) - wanted, axis=1).max())
    return Found(what, f"apart by {apart:.1e}", f"at most {APART:g}", apart <= APART)


def profile(setting: Setting) -> Iterator[Found]:
    """Where ONNX Runtime spends its time on a shipped network."""
    contents, _ = onnx_export.contents_of(_by_torch(PROFILED, "cpu"))
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(setting.folder / "profile")
    on_gpu = setting.device.type == "cuda"
    on_cuda = [(onnx_file.CUDA, onnx_file.CUDA_OPTIONS)] if on_gpu else []
    session = onnxruntime.InferenceSession(
        contents, options, providers=[*on_cuda, ("CPUExecutionProvider", {})]
    )
    patches = patches_of(16 if setting.quick else 4096)
    for _ in range(1 if setting.quick else 5):
        session.run(None, {session.get_inputs()[0].name: patches})
    events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    nodes = [one for one in events if one.get("cat") == "Node" and "provider" in one["args"]]
    spent: Counter[str] = Counter()
    for one in nodes:
        spent[one["args"]["provider"]] += one["dur"]
    copies = sum("Memcpy" in one["args"].get("op_name", "") for one in nodes)
    for name, microseconds in spent.most_common():
        yield Found(f"{PROFILED}, {name}", f"{microseconds / 1000:.1f} ms")
    yield Found("copies between devices", str(copies))
    if on_gpu:
        share = spent[onnx_file.CUDA] / max(1, spent.total())
        yield Found("share of time on CUDA", f"{share:.2f}", "at least 0.9", share >= 0.9)


def describing(setting: Setting) -> Iterator[Found]:
    """Patches a second of a shipped network, by both libraries."""
    patches = patches_of(64 if setting.quick else 16384)
    for library, made in (
        ("ONNX Runtime", _by_onnx(PROFILED, setting.device)),
        ("torch", _by_torch(PROFILED, _named(setting.device))),
    ):
        best = 0.0
        for _ in range(1 if setting.quick else 5):
            began = time.perf_counter()
            for i in range(0, len(patches), 4096):
                made.describe(patches[i : i + 4096])
            best = max(best, len(patches) / (time.perf_counter() - began))
        yield Found(f"{PROFILED}, {made.provider} by {library}", f"{best:,.0f} patches/s")
