"""The report of a folder of results: one HTML page, and figures for papers."""
