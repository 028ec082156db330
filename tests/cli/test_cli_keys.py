"""`wellworn keys`: who may call the service."""

from __future__ import annotations

from .conftest import Cli


def test_keys_are_made_listed_rotated_and_revoked(cli: Cli) -> None:
    made = cli.json("keys", "create", "laptop", "--role", "reader", "--user", "ada", "--expires", "2999-01-01")
    assert made["key"].startswith(f"ww_{made['id']}_")
    assert (made["role"], made["layers"], made["tenant"]) == ("reader", {"user": ["ada"]}, "default")
    wide = cli.json("keys", "create", "--tenant", "acme")
    assert (wide["role"], wide["layers"], wide["tenant"]) == ("writer", {}, "acme")
    listed = cli.json("keys", "list")["keys"]
    assert [one["id"] for one in listed] == [wide["id"], made["id"]]
    assert "digest" not in str(listed)
    assert made["key"].split("_", 2)[2] not in cli.ok("keys", "list").out
    rotated = cli.json("keys", "rotate", made["id"][:8], "--grace-hours", "1")
    assert (rotated["layers"], rotated["name"]) == (made["layers"], "laptop")
    assert cli.json("keys", "revoke", wide["id"])["revoked_at"] is not None
    assert cli("keys", "revoke", "nope").code == 1
    assert cli("keys", "create", "--role", "king").code == 2
    twice = cli("keys", "create", "--team", "core", "--team", "web")
    assert (twice.code, "--team" in twice.err, "give it once" in twice.err) == (2, True, True)
    assert cli("keys", "create", "--expires", "2001-01-01").code == 2


def test_keys_do_not_ask_which_embedder_the_memory_has(cli: Cli) -> None:
    made = cli.json("keys", "create", "first")  # a new file takes the embedder of whoever remembers first
    cli.ok("remember", "Ada likes jam.", "--embedder", "hash")
    assert [one["id"] for one in cli.json("keys", "list", "--embedder", "static")["keys"]] == [made["id"]]
    assert cli("recall", "jam", "--embedder", "static").code != 0
