"""Memories without a language model: a deterministic reader of dialogues. `extract.extract` is the way in."""
