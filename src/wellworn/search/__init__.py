"""The way out: candidates → features → score → diversify → the best k, each with its reasons."""
