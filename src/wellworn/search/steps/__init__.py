"""Recursive recall: a router, plans of typed actions, an executor with hard limits, and reasoning on what it finds."""
