"""Care of a store: integrity checks and repair, change of the embedding model, export and import."""
