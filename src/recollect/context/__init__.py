"""Contexts for prompts: what to put before a model within a token budget."""
