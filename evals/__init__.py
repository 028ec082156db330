"""Measurements on public retrieval sets, run on the real product.

One module a set (`locomo`, `realmem`, `multihop`) loads its files, feeds a memory the way a user would and asks its
questions; `metrics` scores a ranking, `report` gathers scores into tables and JSON. No set is shipped.
"""

from __future__ import annotations
