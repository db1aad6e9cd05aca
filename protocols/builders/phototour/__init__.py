"""Makes a scene in the format of PhotoTour out of photographs, by structure from motion."""
