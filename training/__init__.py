"""How the reader was made: data, recipe and card. Not in the wheel."""
