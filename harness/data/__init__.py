"""Published data and weights: mirrors, downloads, safe extraction, verification."""
