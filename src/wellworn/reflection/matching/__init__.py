"""What the comparison of memories is made of: reading a text, its claims, and how two of them fit."""
