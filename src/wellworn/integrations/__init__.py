"""Memory inside other people's frameworks. Each file bears the name of its framework, which is an extra."""
