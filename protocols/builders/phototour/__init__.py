"""Builds a scene in the format of PhotoTour from photographs, by structure from motion."""
