"""Scripts that measure speed and memory, beside the tools that people use today."""
