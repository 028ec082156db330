"""Personal data and secrets: what is found (`find`, `secrets`) and what replaces it (`mask`)."""
