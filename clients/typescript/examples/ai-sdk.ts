/** A memory for a model of the Vercel AI SDK. Needs a running `wellworn serve`; a stand-in plays the model. */
import { generateText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Client } from "wellworn";
import { memoryMiddleware, memoryTools } from "wellworn/ai";

/** Answers from the memories that it is shown. Yours is `openai("…")` or another. */
const standIn = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const seen = JSON.stringify(prompt);
    const text = seen.includes("green Brompton") && seen.includes("Which bicycle") ? "A green Brompton. [0]" : "I see.";
    const inputTokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
    const usage = { inputTokens, outputTokens: { total: 1, text: 1, reasoning: 0 } };
    return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
  },
});

const grace = new Client(process.env.WELLWORN_URL ?? "http://127.0.0.1:8765").forUser("grace");

for (const [sessionId, prompt] of [
  ["monday", "My bicycle is a green Brompton."],
  ["friday", "Which bicycle do I have?"],
] as const) {
  const model = wrapLanguageModel({ model: standIn, middleware: memoryMiddleware(grace, { sessionId, timeoutMs: 30_000 }) });
  const { text } = await generateText({ model, prompt, tools: memoryTools(grace) });
  console.log(`${sessionId}: ${prompt} → ${text}`);
}
console.log("outcomes learned from:", (await grace.learning()).outcomes);
