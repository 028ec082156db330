"""Sessions become memories: what is worth keeping of a dialogue, with a language model or without one."""
