"""Labelled texts for the scrubber. `write.py` makes the YAML files; `load.py` reads them."""
