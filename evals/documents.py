"""A folder of documentation pages: is the page that answers a question the first hit? Beside plain SQLite FTS5.

The pages are the README files of packages that development needs anyway and the pages of this project, written to a
folder and loaded as a person would. FTS5 gets the same pages with any word of the question, ranked by BM25. Every second
question is *tune*, the others are *check*.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from evals.report import Report, Table
from wellworn import Memory, Scope

PACKAGES = (
    "aiosqlite annotated-types anyio attrs charset-normalizer distro fsspec h11 httpcore httpx huggingface_hub idna "
    "jsonschema markdown-it-py mcp msgspec numpy openai orjson pathspec pluggy psutil pycparser pytest-benchmark "
    "pytest-recording pytest-socket python-dotenv python-multipart regex requests-toolbelt rich ruff sortedcontainers "
    "sse-starlette starlette syrupy tiktoken tokenizers toml tqdm typer truststore urllib3 uuid_utils uvicorn websockets "
    "wrapt xxhash"
)
QUESTIONS = """
jobs | How do I run background work in a separate process?
tqdm | How do I show a progress bar while looping over a list?
privacy | How are telephone numbers taken out of what is stored?
regex | Which module offers fuzzy matching that allows a number of errors?
storage | Can several processes open the same database file?
orjson | How can I serialize a numpy array to JSON quickly?
models | How do I use an embedding model of my own?
python-dotenv | Where do I put variables so that they are in the environment during development?
learning | Does feedback about a recall change the ranking?
pytest-benchmark | How do I compare the run time of a function with an earlier saved run?
several-steps | What happens when the answer needs two entries that share a name?
psutil | How much memory and CPU does a process use right now?
langchain | How do I add memory to an agent with middleware?
rich | How can I print a table with colours in the terminal?
reflection | When does a session become memories?
typer | How do I build a command line program from type hints?
tasks | How does an agent learn from a failed task?
sse-starlette | How do I push server-sent events to a browser?
recall | What does the confidence of a recall mean?
requests-toolbelt | How do I upload a large file as a stream with multipart form data?
httpx | Is there an HTTP client with both sync and async interfaces?
pathspec | How do I match file names against gitignore rules?
h11 | Which HTTP/1.1 library does no I/O of its own?
syrupy | How do I update snapshots that a test compares with?
uvicorn | Which server runs an ASGI application?
pytest-socket | How can I forbid network access in my tests?
ruff | How can I replace Flake8 and Black with one fast tool?
pytest-recording | How do I record HTTP traffic in tests and replay it later?
charset-normalizer | How do I detect the encoding of a file with unknown bytes?
sortedcontainers | Which list keeps its elements in order as I add them?
msgspec | Which library decodes JSON into structs and validates it?
attrs | How do I write classes without boilerplate such as __init__ and __repr__?
tokenizers | How do I train a byte-pair encoding vocabulary quickly?
wrapt | How do I write a decorator that works on methods and functions alike?
tiktoken | How many tokens does a prompt have for an OpenAI model?
idna | How do I encode a domain name with non-ASCII characters?
jsonschema | How do I validate a document against a draft 2020-12 schema?
pycparser | How do I parse C source code in Python?
aiosqlite | How can I query SQLite without blocking the event loop?
websockets | How do I keep a two-way connection open between client and server?
distro | How do I find out which Linux distribution a program runs on?
xxhash | Which hash function is very fast and not cryptographic?
fsspec | How do I read files on S3 and on disk with one interface?
truststore | How do I verify TLS certificates with the system's own store?
pluggy | How does pytest let plugins hook into it?
toml | How do I parse a TOML file into a dictionary?
uuid_utils | Is there a faster way to generate UUIDs, version 7 too?
markdown-it-py | How do I turn CommonMark into HTML with plugins?
python-multipart | How does a web framework parse form uploads as a stream?
anyio | How do I write code that runs on both asyncio and trio?
huggingface_hub | How do I download a model file and cache it?
mcp | How do I write a server that offers tools to a language model?
urllib3 | Which HTTP library has connection pooling and retries, and is used by requests?
httpcore | What does the lowest layer of an HTTP client offer, for example connection pools?
openai | How do I stream a response of a GPT model in Python?
starlette | Which lightweight framework routes requests for async web services?
numpy | Which package has N-dimensional arrays, linear algebra and Fourier transforms?
annotated-types | How do I say in a type that a number must be greater than zero?
start | How do I open a memory and ask it a question?
agents | How do I use a memory around any agent loop?
orjson | Does the JSON encoder refuse dictionaries whose keys are not strings?
python-dotenv | Can a value in the env file span several lines?
python-dotenv | How do I refer to one variable inside another in the file?
psutil | How do I list the partitions and the free space of a disk?
psutil | What is the temperature of the hardware sensors?
tqdm | How do nested loops show several bars at once?
tqdm | How do I print messages without breaking the bar?
tqdm | Does the bar work in a Jupyter notebook?
pycparser | What do I do about the standard library headers and the preprocessor?
rich | How do I inspect an object in the interpreter?
ruff | Can I run the linter as a pre-commit hook?
xxhash | Why should this hash not be used with HMAC?
syrupy | How do I ignore some fields when comparing with a snapshot?
openai | What happens when the request fails with a rate limit?
openai | How do I change the timeout of a request?
openai | How do I verify that a webhook comes from the service?
regex | Can two named groups have the same name?
regex | How do set operations like union and difference in a character class work?
regex | How do I stop a match after a timeout?
typer | How do I make a program with two subcommands?
sse-starlette | What happens when the client disconnects while events are sent?
sse-starlette | How do I stream rows of a database safely?
requests-toolbelt | How do I choose the SSL version for a session?
annotated-types | How do I require a minimum length of a list?
pathspec | How fast is the matching with the different backends?
tokenizers | How do I load a pretrained tokenizer from the hub?
idna | What does the UTS 46 mapping do before encoding?
mcp | What do I need to write a client in a few lines?
httpcore | Which dependencies are needed for HTTP/2 and SOCKS?
uvicorn | Which other ASGI servers are there?
websockets | When should I not use this library?
charset-normalizer | How do I use the detector on the command line?
sortedcontainers | How does its speed compare with blist and bintrees?
storage | What survives a power cut?
storage | How do I check a file for damage and repair it?
privacy | How do I refuse texts with card numbers instead of masking them?
learning | What keeps dishonest feedback from making the ranking worse?
models | How do I limit what language models may cost?
recall | How do I ask only for entries with a certain tag?
reflection | Which sentences are kept as memories by rules?
langchain | What does the agent do when the memory is down?
tasks | How is a run judged a success or a failure?
several-steps | How do I switch off the search in several steps?
start | How do I delete everything about a person?
"""
Search = Callable[[str], list[str]]


def run(docs: Path = Path("docs"), *, embedder: str = "reader") -> Report:
    """Load the pages, ask the questions, and compare."""
    with TemporaryDirectory() as name, Memory.open(":memory:", embedder=embedder, background=False) as memory:
        folder = Path(name)
        for page, text in pages(docs):
            (folder / f"{page}.md").write_text(text, encoding="utf-8")
        scope = Scope(tenant="evals", user="reader")
        memory.admin.import_from("obsidian", folder, scope=scope)
        present = {path.stem for path in folder.iterdir()}
        questions = [(page, asked) for page, asked in _questions() if page in present]
        searches = {"FTS5": _fts5(folder), "wellworn": lambda asked: _pages_of(memory, scope, asked)}
        rows = []
        for part, some in (("tune", questions[::2]), ("check", questions[1::2])):
            for label, search in searches.items():
                rows.append([part, label, *_counted(search, some)])
    title = f"{len(present)} pages: the page that answers is the first, or among five"
    table = Table(title=title, columns=["part", "search", "questions", "first", "in 5"], rows=rows)
    return Report(name="documents", about={"embedder": embedder}, tables=[table])


def pages(docs: Path) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    for path in sorted(docs.glob("*.md")):
        if path.stem not in ("reference", "measurements", "rmm-requirements"):
            yield path.stem, path.read_text("utf-8")
    for package in PACKAGES.split():
        try:
            found = metadata.metadata(package)
        except metadata.PackageNotFoundError:
            continue
        yield package, str(found.json.get("description") or package)


def _questions() -> list[tuple[str, str]]:
    lines = [line.partition(" | ") for line in QUESTIONS.strip().splitlines()]
    return [(page, asked) for page, _, asked in lines]


def _fts5(folder: Path) -> Search:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE pages USING fts5(name, text)")
    rows = [(path.stem, path.read_text("utf-8")) for path in sorted(folder.iterdir())]
    base.executemany("INSERT INTO pages VALUES (?, ?)", rows)

    def search(asked: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked))
        found = base.execute("SELECT name FROM pages WHERE pages MATCH ? ORDER BY rank LIMIT 5", (words,))
        return [name for (name,) in found]

    return search


def _pages_of(memory: Memory, scope: Scope, asked: str) -> list[str]:
    """The pages of the hits, the best first, each once."""
    hits = memory.recall(asked, scope=scope, k=20).hits
    names = [hit.entry.title.partition(" › ")[0] for hit in hits]
    return [*dict.fromkeys(names)][:5]


def _counted(search: Search, questions: Sequence[tuple[str, str]]) -> list[int]:
    found = [(page, search(asked)) for page, asked in questions]
    first = sum(names[:1] == [page] for page, names in found)
    return [len(found), first, sum(page in names for page, names in found)]
