"""Networks of other authors, with their published weights."""
