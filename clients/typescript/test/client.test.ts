/** The client against a real service: every verb, errors, retries, timeouts. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { Client, WellwornError } from "wellworn";

import { serve, type Service } from "./service.js";

let service: Service;
let people = 0;

before(async () => {
  service = await serve();
});
after(() => service?.stop());

/** The memory of somebody new. */
function somebody(options: ConstructorParameters<typeof Client>[1] = {}): Client {
  return new Client(service.url, options).forUser(`person-${people++}`);
}

test("what is remembered is recalled, and the outcome is learned from once", async () => {
  const ada = somebody();
  const [id] = await ada.remember("Ada prefers tokio over async-std.", { kind: "preference", tags: ["rust"], metadata: { from: "a test" } });
  const recall = await ada.recall("Which async runtime does Ada prefer?", { k: 3 });
  assert.equal(recall.hits[0]!.entry.id, id);
  assert.equal(recall.hits[0]!.entry.kind, "preference");
  assert.equal(await ada.outcome(recall.id, { cited: [0] }), true);
  assert.equal(await ada.outcome(recall.id, { cited: [0] }), false);
  assert.equal((await ada.learning()).outcomes, 1);
  assert.match((await ada.reason("Which async runtime?")).conclusion, /tokio/);
});

test("what one task taught is advice for the next", async () => {
  const ada = somebody();
  await ada.beginTask({ task_id: "t1", query: "export the report as csv", domain: "web" });
  const steps = [
    { tool: "export", args: { format: "xls" }, error: "unknown format" },
    { tool: "export", args: { format: "csv" }, result: "42 rows", ok: true },
  ];
  const over = await ada.finishTask("t1", { trajectory: { steps }, verdict: true });
  assert.equal(over.outcome, "success");
  const ids = (await ada.items({ domain: "web", kind: ["strategy", "guardrail"] })).map((item) => item.id);
  assert.deepEqual(ids.sort(), over.items.map((item) => item.id).sort());
  const begun = await ada.beginTask({ task_id: "t2", query: "export the invoices as csv" });
  assert.ok(ids.includes(begun.hits[0]!.entry.id));
  assert.equal((await ada.searchItems("export a table as csv")).hits.length, 1);
  assert.deepEqual((await ada.tasks()).map((task) => task.task_id), ["t2", "t1"]);
});

test("people do not see each other's memory", async () => {
  const [ada, ben] = [somebody(), somebody()];
  await ada.remember("Ada lives in Oslo.");
  assert.deepEqual((await ben.recall("Where does Ada live?")).hits, []);
  assert.equal((await ada.stats()).entries, 1);
});

test("who names nobody is refused, and gets nobody's memory", () => {
  const client = new Client(service.url);
  const missing = undefined as unknown as string;
  for (const call of [
    () => client.forUser(missing),
    () => client.forUser(" "),
    () => client.forScope({ user: missing }),
    () => client.forScope({ team: [] }),
    () => client.forScope({ team: [missing] }),
    () => client.forScope({ user: "ada", team: [] }),
  ])
    assert.throws(call, (error) => error instanceof WellwornError && error.kind === "ScopeError");
});

test("an entry is looked at, changed, linked, replaced and forgotten", async () => {
  const ada = somebody();
  const [old] = await ada.remember("Ada lives in Oslo.");
  const [fresh] = await ada.remember("Ada owns a green bicycle.");
  assert.ok(old && fresh);
  assert.equal((await ada.edit(old, { tags: ["home"] })).tags[0], "home");
  assert.equal((await ada.history(old)).length, 2);
  await ada.link({ source: fresh, target: old, type: "related_to" });
  assert.equal((await ada.links(old)).filter((link) => link.type === "related_to").length, 1);
  assert.equal(await ada.unlink({ source: fresh, target: old, type: "related_to" }), true);
  assert.equal(await ada.unlink({ source: fresh, target: old, type: "related_to" }), false);
  assert.notEqual((await ada.supersede(old, { new: fresh })).valid_to, null);
  assert.deepEqual((await ada.entries({ tags: "home" })).map((entry) => entry.id), [old]);
  assert.equal((await ada.entries({ kind: ["note", "fact"], limit: 1 })).length, 1);
  assert.deepEqual(await ada.entries({ kind: [] }), []);
  await assert.rejects(ada.entries({ limit: -1 }), { kind: "InvalidInput", message: /^limit: -1/ });
  assert.equal((await ada.get(old)).text, "Ada lives in Oslo.");
  assert.equal((await ada.forget([old])).entries, 1);
  await assert.rejects(ada.get(old), { kind: "NotFound", status: 404 });
});

test("a dialogue is kept verbatim and ends", async () => {
  const ada = somebody();
  const session = ada.session("monday/morning");
  await session.add("user", "My bicycle is a green Brompton.");
  await session.addTurns([{ role: "assistant", text: "Nice." }, { role: "user", text: "It squeaks." }]);
  assert.deepEqual((await session.turns()).map((turn) => turn.text), [
    "My bicycle is a green Brompton.",
    "Nice.",
    "It squeaks.",
  ]);
  assert.deepEqual(await ada.sessions(), ["monday/morning"]);
  await session.end();
  assert.ok(Array.isArray(await ada.reflect({ session_id: "monday/morning" })));
  assert.ok((await ada.jobs()).length > 0);
  assert.equal((await ada.forget({ session_id: "monday/morning" })).turns, 3);
});

test("a loop around a model takes two calls", async () => {
  const ada = somebody();
  await ada.remember("Ada prefers tokio over async-std.");
  const context = await ada.context("Which async runtime does Ada prefer?");
  assert.match(context.text, /<memory-context>[^]*tokio/);
  assert.deepEqual(await ada.answer(context, "Use tokio. [0]"), { text: "Use tokio.", cited: [0] });
});

test("an import tells how far it is, and what is wrong", async () => {
  const ada = somebody();
  const seen: number[] = [];
  const texts = Array.from({ length: 20 }, (_, number) => `note number ${number}`);
  const ids = await ada.rememberMany(texts, { tags: ["bulk"] }, { onProgress: (done, total) => seen.push(done / total) });
  assert.equal(new Set(ids).size, 20);
  assert.equal(seen.at(-1), 1);
  assert.equal((await ada.entries({ tags: "bulk", limit: 1000 })).length, 20);
  await assert.rejects(ada.rememberMany(["fine", { text: "bad", kind: "opinion" as "fact" }]), { kind: "UnknownKind" });
});

test("an error carries the problem of the service", async () => {
  const ada = somebody();
  await assert.rejects(ada.remember("x", { kind: "opinion" as "fact" }), (error) => {
    assert.ok(error instanceof WellwornError);
    assert.equal(error.status, 422);
    assert.equal(error.kind, "UnknownKind");
    assert.equal(error.problem.field, "kind");
    assert.match(error.message, /opinion/);
    assert.equal(error.retryable, false);
    return true;
  });
  const stranger = new Client(service.url, { key: "ww_no_key" });
  await assert.rejects(stranger.stats(), { kind: "AccessDenied", status: 401 });
  await assert.rejects(new Client("http://127.0.0.1:1").stats(), { kind: "ServiceFailed", status: 0, retryable: true });
  await assert.rejects(ada.get(".."), { kind: "InvalidInput", message: /^id: '\.\.'/ });
  const missing = undefined as unknown as string;
  await assert.rejects(ada.session(missing).add("user", "x"), { kind: "InvalidInput", message: /^id: 'undefined'/ });
  const half = { kind: "InvalidInput", message: /holds half a character/ };
  await assert.rejects(ada.get("\ud800"), half);
  await assert.rejects(ada.session("\ud800").turns(), half);
  await assert.rejects(new Client(service.url).forUser("eve\ud800").remember("x"), half);
  await assert.rejects(ada.remember("x", {}, { idempotencyKey: "日" }), { kind: "InvalidInput", retryable: false });
  for (const url of ["localhost:1", "http://exa mple", "http://localhost:99999"])
    assert.throws(() => new Client(url), { kind: "InvalidInput", retryable: false });
  assert.throws(() => new Client(service.url, { key: "ww_é" }), { kind: "InvalidInput", message: /^key: is no API key/ });
});

test("a write whose answer was lost is sent again and made once", async () => {
  let lost = 0;
  const losing = async function (this: unknown, ...request: Parameters<typeof fetch>) {
    assert.equal(this, undefined); // the fetch of a browser wants this
    const answer = await fetch(...request);
    if (!lost++) throw new TypeError("fetch failed", { cause: new Error("the connection broke") });
    return answer;
  };
  const ada = somebody({ fetch: losing });
  await ada.session("s").add("user", "I live in Oslo.");
  assert.equal(lost, 2);
  assert.equal((await ada.session("s").turns()).length, 1);
});

test("the same idempotency key writes once", async () => {
  const ada = somebody();
  const turn = [{ role: "user", text: "I live in Oslo." }];
  await ada.session("s").addTurns(turn, { idempotencyKey: "one" });
  await ada.session("s").addTurns(turn, { idempotencyKey: "one" });
  assert.equal((await ada.session("s").turns()).length, 1);
  await assert.rejects(ada.session("t").addTurns(turn, { idempotencyKey: "one" }), { status: 422, kind: "Conflict" });
});

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

/** A service that answers as it is told. */
async function standIn(statuses: (number | "silent" | "broken" | Answer)[], work: (client: Client, asked: () => number) => Promise<void>) {
  let asked = 0;
  const server = createServer(async (request, response) => {
    for await (const _ of request); // unread bytes would turn the end of a connection into a reset
    const status = statuses[Math.min(asked++, statuses.length - 1)]!;
    if (status === "silent") return;
    if (typeof status === "object") return response.writeHead(status.status, status.headers).end(status.body);
    if (status === "broken") {
      response.writeHead(200, { "content-length": "100", "content-type": "text/event-stream" });
      response.write('event: progress\ndata: {"done": 0, "total": 1}\n\n', () => response.destroy());
      return;
    }
    response.writeHead(status, { "content-type": "application/json", ...(status >= 409 && { "retry-after": "0" }) });
    response.end(status < 300 ? "{}" : JSON.stringify({ title: "ServiceFailed", detail: "wait", status }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    await work(new Client(`http://127.0.0.1:${port}`), () => asked);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test("a busy service is asked again, a few times", async () => {
  await standIn([503, 409, 200], async (client, asked) => {
    await client.stats();
    assert.equal(asked(), 3);
  });
  await standIn([429], async (client, asked) => {
    await assert.rejects(client.stats(), { status: 429, retryable: true });
    assert.equal(asked(), 3);
  });
  await standIn([503], async (client, asked) => {
    await assert.rejects(client.rememberMany(["x"]), { status: 503, retryable: true });
    assert.equal(asked(), 3);
  });
  await standIn([404], async (client, asked) => {
    await assert.rejects(client.stats(), { status: 404, retryable: false });
    assert.equal(asked(), 1);
  });
});

test("a wait that is longer than the time left is not begun", async () => {
  const busy = async () => new Response("", { status: 429, headers: { "retry-after": "10" } });
  const client = new Client("http://localhost", { fetch: busy, timeoutMs: 4_900 });
  await assert.rejects(client.stats(), { status: 429, retryable: true });
});

test("a redirect is an error that says where it leads", async () => {
  for (const status of [301, 302, 308])
    await standIn([{ status, headers: { location: "/elsewhere?user=ada" } }], async (client, asked) => {
      const error = { kind: "ServiceFailed", status, retryable: false, message: /leads to \/elsewhere \(/ };
      await assert.rejects(client.remember("Ada lives in Oslo."), error);
      await assert.rejects(client.stats(), error);
      await assert.rejects(client.rememberMany(["x"]), error);
      assert.equal(asked(), 3);
    });
});

test("what another server answers is an error of ours", async () => {
  const page = { "content-type": "text/html" };
  for (const answer of [{ status: 200, headers: page, body: "<p>hello" }, { status: 200, body: "null" }, { status: 204 }])
    await standIn([answer], async (client, asked) => {
      const error = { kind: "ServiceFailed", retryable: false, message: /is no wellworn service \(check the address\)/ };
      await assert.rejects(client.remember("x"), error);
      await assert.rejects(client.rememberMany(["x"]), error);
      assert.equal(asked(), 2);
    });
});

test("a connection that breaks in the middle of an answer is tried again, but no import is", async () => {
  await standIn(["broken", 200], async (client, asked) => {
    await client.stats();
    assert.equal(asked(), 2);
  });
  await standIn(["broken"], async (client, asked) => {
    await assert.rejects(client.rememberMany(["x"]), { kind: "ServiceFailed", message: /the import goes on/ });
    assert.equal(asked(), 1);
  });
});

test("a call ends when its time is over or its signal says so", async () => {
  await standIn(["silent"], async (client) => {
    await assert.rejects(client.stats({ timeoutMs: 50 }), { kind: "ServiceFailed", message: /within 50 ms/ });
    await assert.rejects(client.rememberMany(["x"], {}, { timeoutMs: 50 }), { message: /within 50 ms/ });
    const stop = new AbortController();
    const asked = client.stats({ signal: stop.signal });
    stop.abort(new Error("changed my mind"));
    await assert.rejects(asked, /changed my mind/);
    await assert.rejects(client.stats({ signal: stop.signal }), /changed my mind/);
    await assert.rejects(client.rememberMany(["x"], {}, { signal: stop.signal }), /changed my mind/);
  });
});
