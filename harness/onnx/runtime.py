"""Sessions of ONNX Runtime: the bytes of a model decide what they compute, and nothing else."""

from threading import Timer
from typing import Any


def session(
    contents: bytes,
    *,
    provider: str = "CPUExecutionProvider",
    options: dict[str, str] | None = None,
    level: str = "ENABLE_ALL",
) -> Any:
    """An InferenceSession of the ONNX model in these bytes.

    Args:
        contents: a whole model, looked through by `onnx_contents.parse`.
        provider: of ONNX Runtime; no other computes in its place.
        options: of the provider.
        level: of optimisation, as in `GraphOptimizationLevel`, without "ORT_".

    Raises:
        Exception: of a class of its own for each kind of failure; they have no common one.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    # Else bytes that look like ONNX Runtime's own format are read as that, though they are ONNX.
    settings.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(
        contents, settings, providers=[(provider, options or {})], enable_fallback=0
    )


def run_within(seconds: float, session: Any, inputs: dict[str, Any]) -> Any:
    """The first output of a session; a loop in the graph that goes on for longer is stopped.

    A single node can't be stopped, nor can its memory be bounded.

    Raises:
        TimeoutError: if it was stopped.
        Exception: if it fails, of a class of its own for each kind of failure.
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
