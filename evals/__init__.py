"""Measurements of quality, run on the real product: `python -m evals NAME`, or `make eval`.

`data` reads public data sets, `recall`, `learn`, `extraction`, `tasks` and `judge` each measure one thing, `report` holds
what they return. No data set is shipped. `gates` compares two versions of the package.
"""
