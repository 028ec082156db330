"""What knows what a text says: the reader, its tokens, and sentences."""
