"""The way in: checked, scrubbed, chunked, deduplicated, embedded, linked, and written in one transaction."""
