"""Images and their regions: reading, detection, mapping, sampling. Shared by all protocols."""
