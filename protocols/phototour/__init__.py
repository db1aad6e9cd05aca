"""The PhotoTour patches of UBC (Winder & Brown 2007): their files and their protocols."""
