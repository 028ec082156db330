"""Personal data and secrets in text: found by rules, put behind placeholders that stay the same within a partition."""
