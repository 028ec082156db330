/** The adapter to the AI SDK against a real service, with the SDK's own mock models, in both versions that it supports. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import * as ai7 from "ai";
import { MockLanguageModelV4 } from "ai/test";
import * as ai6 from "ai6";
import { MockLanguageModelV3 } from "ai6/test";
import { Client } from "wellworn";
import { memoryMiddleware, memoryTools, type MemorySettings } from "wellworn/ai";

import { serve, type Service } from "./service.js";

// The types of version 6 are checked by tsconfig.ai6.json; here it runs as if it were 7.
const VERSIONS = [
  { name: "ai 7", sdk: ai7, Mock: MockLanguageModelV4 },
  { name: "ai 6", sdk: ai6 as unknown as typeof ai7, Mock: MockLanguageModelV3 as unknown as typeof MockLanguageModelV4 },
];
const QUESTION = "Which async runtime does Ada prefer?";
const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

type Content =
  | { type: "text"; text: string }
  | { type: "tool-call"; toolCallId: string; toolName: string; input: string };
type Mock = InstanceType<typeof MockLanguageModelV4>;

let service: Service;
let people = 0;

before(async () => {
  service = await serve();
});
after(() => service?.stop());

async function somebody(): Promise<Client> {
  const ada = new Client(service.url).forUser(`person-${people++}`);
  await ada.remember("Ada prefers tokio over async-std.");
  return ada;
}

const text = (text: string): Content => ({ type: "text", text });
const call = (toolName: string, input: object): Content => ({
  type: "tool-call",
  toolCallId: "1",
  toolName,
  input: JSON.stringify(input),
});

function reasonFor(content: Content[]) {
  const calls = content.some((part) => part.type === "tool-call");
  return { unified: calls ? ("tool-calls" as const) : ("stop" as const), raw: undefined };
}

/** What a model streams: its texts in pieces. */
function* parts(content: Content[], pieces: number) {
  yield { type: "stream-start" as const, warnings: [] };
  for (const [number, part] of content.entries()) {
    const id = String(number);
    if (part.type === "text") {
      yield { type: "text-start" as const, id };
      for (let at = 0; at < part.text.length; at += pieces)
        yield { type: "text-delta" as const, id, delta: part.text.slice(at, at + pieces) };
      yield { type: "text-end" as const, id };
    } else yield part;
  }
  yield { type: "finish" as const, finishReason: reasonFor(content), usage: USAGE };
}

/** What the last call of a model showed to it as the user's words. */
function shown(mock: Mock, call = -1): string {
  const { prompt } = [...mock.doGenerateCalls, ...mock.doStreamCalls].at(call)!;
  const asked = prompt.findLast((message) => message.role === "user")!;
  return (asked.content as { text: string }[]).map((part) => part.text).join("|");
}

for (const { name, sdk, Mock } of VERSIONS) {
  /** A model that gives these answers one after the other. */
  const scripted = (...answers: Content[][]): Mock => {
    let next = 0;
    const given = () => answers[Math.min(next++, answers.length - 1)]!;
    return new Mock({
      doGenerate: async () => {
        const content = given();
        return { content, finishReason: reasonFor(content), usage: USAGE, warnings: [] };
      },
      doStream: async () => ({ stream: sdk.simulateReadableStream({ chunks: [...parts(given(), 3)], chunkDelayInMs: null }) }),
    });
  };
  const remembering = (mock: Mock, memory: Client, settings: MemorySettings = {}) => {
    const middleware = memoryMiddleware(memory, { timeoutMs: 60_000, ...settings }); // the machine may be busy
    return { middleware, model: sdk.wrapLanguageModel({ model: mock, middleware }) };
  };

  describe(name, () => {
    test("memories stand before the message, the turn is stored, the citation is learned from and not shown", async () => {
      const [ada, mock] = [await somebody(), scripted([text("Use tokio. [0]")])];
      const { model, middleware } = remembering(mock, ada, { sessionId: "monday" });
      const answer = await sdk.generateText({ model, prompt: QUESTION });
      assert.equal(answer.text, "Use tokio.");
      assert.match(shown(mock), /^Memories of earlier[^]*tokio over async-std[^]*<\/memory-context>\n\n\|Which async/);
      const said = (await ada.session("monday").turns()).map((turn) => `${turn.role}: ${turn.text}`);
      assert.deepEqual(said, [`user: ${QUESTION}`, "assistant: Use tokio."]);
      assert.equal((await ada.learning()).outcomes, 1);
      assert.deepEqual(middleware.faults, { recall: 0, learn: 0, store: 0 });
    });

    for (const [said, seen] of [
      ["Use tokio. [0]", "Use tokio."],
      ["Use tokio.\n\n**Citations:** [0][0]", "Use tokio."],
      ["Two reasons:\n1. speed\n2. its many users\nSo tokio it is. [NO_CITE]", "Two reasons:\n1. speed\n2. its many users\nSo tokio it is."],
      ["Use tokio: `a[0]` [1, 2", "Use tokio: `a[0]` [1, 2"],
      ["See [the book](https://tokio.rs).", "See [the book](https://tokio.rs)."],
    ] as const)
      test(`a stream shows ${JSON.stringify(said)} as ${JSON.stringify(seen)}`, async () => {
        const [ada, mock] = [await somebody(), scripted([text(said)])];
        const { model } = remembering(mock, ada, { sessionId: "monday" });
        let streamed = "";
        for await (const piece of sdk.streamText({ model, prompt: QUESTION }).textStream) streamed += piece;
        assert.equal(streamed, seen);
        assert.match(shown(mock), /tokio over async-std/);
        assert.deepEqual((await ada.session("monday").turns()).map((turn) => turn.text), [QUESTION, seen]);
      });

    for (const streams of [false, true])
      test(`a citation before an empty text is learned from and not shown (streams: ${streams})`, async () => {
        const [ada, mock] = [await somebody(), scripted([text("Use tokio. [0]"), text("")])];
        const { model } = remembering(mock, ada, { sessionId: "monday" });
        const request = { model, prompt: QUESTION };
        const said = streams ? await sdk.streamText(request).text : (await sdk.generateText(request)).text;
        assert.equal(said, "Use tokio.");
        assert.equal((await ada.learning()).outcomes, 1);
      });

    for (const streams of [false, true])
      test(`a loop through tools sees the same memories in every call and is stored once (streams: ${streams})`, async () => {
        const ada = await somebody();
        const mock = scripted(
          [text("Let me look. [0]"), call("memory_search", { query: "tokio", limit: null })],
          [call("memory_remember", { text: "Ada asked about runtimes." })],
          [text("Use tokio. [0]")],
        );
        const { model } = remembering(mock, ada, { sessionId: "monday" });
        const request = { model, prompt: QUESTION, tools: memoryTools(ada), stopWhen: sdk.stepCountIs(5) };
        const steps = streams ? await sdk.streamText(request).steps : (await sdk.generateText(request)).steps;
        const results = steps.flatMap((step) => step.toolResults.map((result) => String(result.output)));
        assert.match(results[0]!, /<memory-context>[^]*tokio over async-std/);
        assert.equal(results[1], "Remembered.");
        assert.equal(steps.at(-1)!.text, "Use tokio.");
        assert.deepEqual([shown(mock, 1), shown(mock, 2)], [shown(mock, 0), shown(mock, 0)]);
        assert.deepEqual((await ada.session("monday").turns()).map((turn) => turn.text), [QUESTION, "Use tokio."]);
        assert.equal((await ada.entries({ kind: "fact" })).length, 1);
      });

    test("an answer of a schema is asked for no citations and not stored", async () => {
      const [ada, mock] = [await somebody(), scripted([text('{"runtime": ["tokio", 0]}')])];
      const { model } = remembering(mock, ada, { sessionId: "monday" });
      const schema = sdk.jsonSchema<{ runtime: unknown }>({ type: "object", properties: { runtime: {} } });
      const { output } = await sdk.generateText({ model, prompt: QUESTION, output: sdk.Output.object({ schema }) });
      assert.deepEqual(output, { runtime: ["tokio", 0] });
      assert.match(shown(mock), /tokio over async-std/);
      assert.doesNotMatch(shown(mock), /NO_CITE/);
      assert.deepEqual((await ada.session("monday").turns()).map((turn) => turn.text), [QUESTION]);
    });

    test("without memory the agent goes on, and what was said is stored later", async () => {
      let down = true;
      const flaky: typeof fetch = (...request) =>
        down ? Promise.reject(new TypeError("fetch failed")) : fetch(...request);
      const ada = new Client(service.url, { fetch: flaky }).forUser(`person-${people++}`);
      const faults: string[] = [];
      const mock = scripted([text("I do not know. [0]")]);
      const { model, middleware } = remembering(mock, ada, { sessionId: "s", onFault: (step) => faults.push(step) });
      assert.equal((await sdk.generateText({ model, prompt: QUESTION })).text, "I do not know. [0]");
      assert.equal(await sdk.streamText({ model, prompt: "And now?" }).text, "I do not know. [0]");
      assert.equal(shown(mock), "And now?");
      assert.deepEqual(faults, ["recall", "store", "recall", "store"]);
      const search = memoryTools(ada).memory_search.execute!;
      const failed = await search({ query: "tokio" }, { toolCallId: "1", messages: [], context: {} });
      assert.match(String(failed), /^The search failed: .* cannot be reached/);
      down = false;
      await sdk.generateText({ model, prompt: "Still there?" });
      const said = (await ada.session("s").turns()).filter((turn) => turn.role === "user").map((turn) => turn.text);
      assert.deepEqual(said, [QUESTION, "And now?", "Still there?"]);
      assert.deepEqual(middleware.faults, { recall: 2, learn: 0, store: 2 });
    });

    test("a call that is ended by its signal is no fault of the memory", async () => {
      const mock = scripted([text("Use tokio.")]);
      const { model, middleware } = remembering(mock, await somebody());
      const abortSignal = AbortSignal.abort(new Error("changed my mind"));
      await sdk.generateText({ model, prompt: QUESTION, abortSignal }).catch(() => {});
      assert.equal(middleware.faults.recall, 0);
    });

    test("a model that fails leaves nothing behind", async () => {
      const ada = await somebody();
      const broken = new Mock({ doGenerate: () => Promise.reject(new Error("no model")) });
      const { model } = remembering(broken, ada, { sessionId: "monday" });
      await assert.rejects(sdk.generateText({ model, prompt: QUESTION, maxRetries: 0 }), /no model/);
      assert.deepEqual(await ada.sessions(), []);
    });
  });
}
