"""Learning from tasks: what an agent did is judged, distilled into strategies and guardrails, and found again."""
