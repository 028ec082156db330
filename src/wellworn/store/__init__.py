"""Where memories are kept: one small port (`base`), one file or folder per engine."""
