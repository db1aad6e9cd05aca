"""One training loop for every method of the zoo."""
