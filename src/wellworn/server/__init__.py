"""The memory as a service: REST with keys, limits and an audit trail, and its Python client.

Needs `pip install 'wellworn[server]'`; the client alone needs `httpx`.
"""
