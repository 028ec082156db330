"""How rankings learn from use: citations in, weights out; and when the learned ranking may serve.

`ranker`, `guard`, `policy` and `residual` are plain functions over values, without clock, chance or I/O: the
same outcomes in the same order give the same state, bit for bit.
"""
