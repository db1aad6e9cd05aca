"""Runs ONNX Runtime so that results depend only on the bytes of the model."""

from threading import Timer
from typing import Any

from harness import parallel


def session(
    contents: bytes,
    *,
    provider: str = "CPUExecutionProvider",
    options: dict[str, str] | None = None,
    level: str = "ENABLE_ALL",
) -> Any:
    """An InferenceSession of the ONNX model in `contents`.

    Args:
        contents: a complete model that `onnx_contents.parse` accepted.
        provider: of ONNX Runtime; no other provider replaces it.
        options: of the provider.
        level: of optimisation: a name in `GraphOptimizationLevel` without "ORT_".

    Raises:
        Exception: each kind of failure has its own class, without a common base.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = parallel.CORES  # it would count cores that it may not use
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    # Else ONNX bytes that look like ONNX Runtime's own format would be read as that format.
    settings.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(
        contents, settings, providers=[(provider, options or {})], enable_fallback=0
    )


def run_within(seconds: float, session: Any, inputs: dict[str, Any]) -> Any:
    """The first output of a session; stops the graph after some seconds, between two nodes.

    A single node can't be stopped, and its memory can't be limited.

    Raises:
        TimeoutError: if the graph was stopped.
        Exception: if the graph fails; each kind of failure has its own class.
    """
    import onnxruntime

    options = onnxruntime.RunOptions()
    timer = Timer(seconds, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        return session.run(None, inputs, options)[0]
    except Exception as error:
        if options.terminate:
            raise TimeoutError(f"it took more than {seconds:g} seconds") from error
        raise
    finally:
        timer.cancel()
