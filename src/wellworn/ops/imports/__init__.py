"""Import from other memory systems and chat exports: one writer, one small reader per source."""
