"""Personal data and secrets: what is found (`detectors`, `secrets`, `named`, `strict`, `find`) and what replaces it (`mask`)."""
