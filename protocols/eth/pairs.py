"""Which images of a scene are matched: all pairs, or in large scenes those that look alike."""
