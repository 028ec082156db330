"""Personal data and secrets: what is found (`detectors`, `find`, `presidio`) and what replaces it (`mask`)."""
