"""doctor; admin export, load, repair, reembed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contract.few import few
from wellworn import Memory

from .conftest import Cli


@pytest.fixture
def filled(cli: Cli) -> Cli:
    cli.ok("remember", "Ada likes tea.", "--user", "ada", "--tag", "drinks")
    cli.ok("remember", "Bob likes coffee.", "--user", "bob", "--tag", "drinks")
    return cli


@pytest.mark.parametrize("name", ["out.jsonl", "notes"])
def test_an_export_can_be_loaded_elsewhere(filled: Cli, tmp_path: Path, name: str) -> None:
    assert filled.json("admin", "export", "ada.jsonl", "--user", "ada")["entries"] == 1
    assert filled.json("admin", "export", name)["entries"] == 2
    other = Cli(tmp_path / "other.db")
    loaded = other.json("admin", "load", name)
    assert (loaded["entries"], loaded["skipped"]) == (2, 0)
    for user in ("ada", "bob"):
        assert other.json("list", "--user", user) == filled.json("list", "--user", user)
    assert other.json("admin", "load", name)["skipped"] == 2
    new = Cli(tmp_path / "new.db")
    assert "user 'bob'" in new.ok("admin", "load", name, "--user", "ada").out
    assert new.json("admin", "stats")["entries"] == 1


def test_notes_of_another_system_are_imported_once(cli: Cli) -> None:
    Path("vault").mkdir()
    Path("vault/tea.md").write_text("Ada likes green tea.\n", encoding="utf-8")
    Path("vault/empty.md").write_text("", encoding="utf-8")
    assert cli.json("import", "obsidian", "vault", "--dry-run")["memories"] == 1
    assert [path.name for path in Path().iterdir()] == ["vault"]
    cli.ok("remember", "Ada likes coffee.", "--user", "ada")
    dry = cli.ok("import", "obsidian", "vault", "--user", "ada", "--dry-run")
    assert "Nothing was written" in dry.err
    assert "1 × an empty note" in dry.out
    assert [cli.json("import", "obsidian", "vault", "--user", "ada")["memories"] for _ in range(2)] == [1, 0]
    assert len(cli.json("list", "--user", "ada")["entries"]) == 2
    assert cli("import", "gpt", "vault").err.startswith("wellworn: source: 'gpt' is not a source")


def test_a_damaged_export_changes_nothing(filled: Cli) -> None:
    Path("bad.jsonl").write_text("not json\n", encoding="utf-8")
    for name in ("bad.jsonl", "none.jsonl"):
        answer = filled("admin", "load", name)
        assert (answer.code, answer.err.count("\n")) == (2, 1)
        assert answer.err.startswith("wellworn: ")
    assert filled.json("admin", "stats")["entries"] == 2


def test_a_damaged_store_fails_until_repaired(filled: Cli) -> None:
    assert filled.ok("doctor").err.startswith("no flaws in ")
    with closing(sqlite3.connect(filled.db, isolation_level=None)) as db:
        db.execute("DELETE FROM index_records")
    broken = filled("doctor")
    assert (broken.code, "wellworn doctor --repair" in broken.out) == (1, True)
    repaired = filled.ok("doctor", "--repair")
    assert ("repaired" in repaired.out, "no flaws" in repaired.err) == (True, True)
    assert filled.json("doctor")["flaws"] == []


def test_backups_are_made_listed_verified_and_restored(filled: Cli, tmp_path: Path) -> None:
    made = filled.json("backup", "create", "--keep", "2")["made"]
    assert [one["path"] for one in filled.json("backup", "list")["backups"]] == [made["path"]]
    assert "yes" in filled.ok("backup", "verify", made["path"]).out
    assert filled.json("backup", "create", "--every", "24")["made"] is None
    refused = filled("backup", "restore", made["path"])
    assert refused.code == 2
    assert "--force" in refused.err
    filled.ok("backup", "restore", made["path"], "--db", str(tmp_path / "restored.db"))
    filled.ok("backup", "restore", made["path"], "--force")


def test_a_file_is_encrypted_and_its_key_changed(filled: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlcipher3", reason="the extra `encryption` is not installed")
    says = {"first": "is encrypted, or no database: give its key", "second": "the key does not open"}
    for name in ("first", "second"):
        (tmp_path / name).write_text(f"the {name} passphrase")
        index = filled.db.with_name(f"{filled.db.name}-index")
        index.mkdir(exist_ok=True)
        (index / ("ab" * 16)).touch()
        notes = index / "notes.txt"  # somebody's own
        if name == "first":
            notes.touch()
        filled.ok("admin", "rekey", "--new-key-file", str(tmp_path / name))
        assert index.exists() == notes.exists() == (name == "first")
        assert not (index / ("ab" * 16)).exists()
        notes.unlink(missing_ok=True)
        refused = filled("admin", "stats")
        assert refused.code == 2
        assert says[name] in refused.err
        before = filled.db.read_bytes()
        assert filled("doctor", "--repair").code == 2  # nothing of it can be read, so it is left alone
        assert filled.db.read_bytes() == before
        monkeypatch.setenv("WELLWORN_KEY_FILE", str(tmp_path / name))
        assert filled.json("admin", "stats", "--user", "ada")["entries"]
    refused = filled("admin", "export", str(tmp_path / "out.jsonl"))
    assert "--plain" in refused.err
    filled.ok("admin", "export", str(tmp_path / "out.jsonl"), "--plain")


def test_a_file_that_cannot_be_opened_is_reported_exported_and_rescued(filled: Cli, tmp_path: Path) -> None:
    path = Path(filled.db)
    path.write_bytes(b"no header at all" + path.read_bytes()[16:])
    assert filled("doctor", "--json").json["flaws"][0]["check"] == "pages"
    told = filled("doctor")
    assert ("wellworn doctor --repair" in told.out, told.err.endswith(" in what can be opened\n")) == (True, True)
    filled.ok("admin", "export", str(tmp_path / "out.jsonl"))
    rescued = filled.ok("doctor", "--repair")
    assert "Copied" in rescued.err
    assert filled.json("recall", "tea", "--user", "ada")["hits"]


@pytest.mark.parametrize("made", ["CREATE TABLE theirs (x)", "PRAGMA user_version = 99"])
def test_repair_leaves_a_file_of_another_program_or_a_newer_version_as_it_is(cli: Cli, made: str) -> None:
    if "PRAGMA" in made:
        cli.ok("remember", "I like tea.")
    with closing(sqlite3.connect(cli.db)) as db:
        db.execute(made)
    before = cli.db.read_bytes()
    for command in (["doctor", "--repair"], ["admin", "export", str(cli.db.with_name("out.jsonl"))]):
        refused = cli(*command)
        assert refused.code == 2
        assert "wellworn" in refused.err
    assert [(one.name, one.read_bytes()) for one in cli.db.parent.glob(f"{cli.db.name}*")] == [(cli.db.name, before)]


@pytest.mark.parametrize("broken", few(["entries_by_partition", "models", "a page of the list of tables"], 1))
def test_repair_copies_a_file_whose_broken_page_stops_the_check(cli: Cli, broken: str) -> None:
    with Memory(cli.db, background=False, embedder="hash") as memory:
        memory.for_user("ada").remember_many([f"Fact number {n} about bees." for n in range(300)])
    with closing(sqlite3.connect(cli.db)) as db:
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage").fetchall())
    content = bytearray(cli.db.read_bytes())
    page = roots.get(broken) or content.index(b"CREATE TABLE records") // 4096 + 1
    content[4096 * (page - 1) : 4096 * page] = b"\xa5" * 4096
    cli.db.write_bytes(content)
    rescued = cli("doctor", "--repair")
    assert "Copied" in rescued.err
    assert cli.db.with_name(f"{cli.db.name}.damaged").exists()
    after = cli("doctor", "--json").json
    assert not {flaw["check"] for flaw in after["flaws"]} & {"pages", "readable", "log"}
    assert after["checked"]["entries"] == 300


@pytest.mark.slow
def test_a_store_of_minilm_opens_without_its_name(cli: Cli) -> None:
    pytest.importorskip("onnxruntime")
    cli.ok("remember", "I like tea.", "--embedder", "minilm")
    for command in (["recall", "tea"], ["doctor"], ["list"]):
        assert cli(*command, env={"WELLWORN_EMBEDDER": ""}).code == 0
    refused = cli("recall", "tea", "--embedder", "hash:64")
    assert (refused.code, "--embedder minilm" in refused.err) == (2, True)
    moved = str(cli.db.with_name("moved.db"))
    assert cli("move", str(cli.db), moved, env={"WELLWORN_EMBEDDER": ""}).code == 0
    assert "minilm" in cli("move", str(cli.db), moved + "2", "--embedder", "hash:64").err


def test_reembed_moves_the_store_to_another_embedder(filled: Cli) -> None:
    assert filled.json("admin", "stats")["width"] != 64
    refused = filled("recall", "tea", "--user", "ada", "--embedder", "hash:64")
    assert refused.code == 2
    assert "reembed" in refused.err
    told = filled.ok("admin", "reembed", "--embedder", "hash:64").out
    assert ("hash:64" in told, "EmbeddingModel" in told) == (True, False)
    assert filled.json("admin", "stats", "--embedder", "hash:64")["width"] == 64
    assert filled.json("recall", "tea", "--user", "ada", "--embedder", "hash:64")["hits"]
    assert filled.json("doctor", "--embedder", "hash:64")["flaws"] == []


@pytest.mark.parametrize("command", [("stats",), ("costs",), ("events",), ("expire",), ("export", "out.jsonl")])
def test_an_admin_command_says_whose_data_it_touches(filled: Cli, command: tuple[str, ...]) -> None:
    filled.ok("remember", "Eve likes rain.", "--user", "eve", "--tenant", "acme")
    of_person = "user ada" if command[0] in ("stats", "export") else "tenant default"
    for named, of, entries in (
        ((), "the whole store", 3),
        (("--tenant", "acme"), "tenant acme", 1),
        (("--user", "ada"), of_person, 1),
    ):
        found = filled.json("admin", *command, *named)
        assert found["of"] == of
        assert found.get("entries", entries) in (entries, 0)
        shown = filled.ok("admin", *command, *named)
        assert of in shown.out + shown.err


def test_what_is_kept_is_set_shown_tried_and_unset(cli: Cli) -> None:
    cli.ok("remember", "Ada liked tea.", "--at", "2020-01-01")
    tried = cli.json("admin", "expire", "--keep", "note=90", "--keep", "recalls=7", "--dry-run")
    policy = {"kinds": {"note": 90}, "recalls": 7, "calls": None}
    assert (tried["entries"], tried["policies"]) == (1, {"default": policy})
    assert cli.json("admin", "expire")["policies"] == {"default": {"kinds": {}, "recalls": None, "calls": None}}
    assert cli.json("admin", "expire", "--keep", "note=90", "--keep", "recalls=7")["entries"] == 1
    cli.ok("admin", "expire", "--keep", "calls=30")
    assert "note 90 days, recalls 7 days, calls 30 days" in cli.ok("admin", "expire").out
    cli.ok("admin", "expire", "--keep", "note=always", "--keep", "recalls=always", "--keep", "calls=always")
    assert "everything" in cli.ok("admin", "expire").out
    assert cli("admin", "expire", "--keep", "rumour=3").code == 2


def test_old_kinds_expire_and_a_person_is_erased(filled: Cli) -> None:
    assert filled.json("admin", "expire", "--keep", "episode=30", "--user", "ada")["entries"] == 0
    assert "KIND=DAYS" in filled("admin", "expire", "--keep", "episode").err
    signed = filled.json("admin", "erase", "--user", "ada", "--yes")
    assert signed["receipt"]["person"]["id"] == "ada"
    assert len(signed["signature"]) == 64
    assert filled.json("admin", "stats", "--user", "ada")["entries"] == 0


def test_an_erasure_names_the_copies_that_a_restore_or_a_repair_has_kept(filled: Cli) -> None:
    filled.ok("backup", "restore", filled.json("backup", "create")["made"]["path"], "--force")
    told = filled.ok("admin", "erase", "--user", "ada", "--yes").err
    assert f"{filled.db.name}.before-restore was kept" in told
    assert "backups" not in told


# -- keys: who may call the service ------------------------------------------------------------------------------------


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
    assert [one["id"] for one in cli.json("keys", "list", "--embedder", "reader")["keys"]] == [made["id"]]
    assert cli("recall", "jam", "--embedder", "reader").code != 0
