"""Speed, as ratios to a bare baseline that is timed in turns in the same run: `python -m bench`, or `make bench`."""
