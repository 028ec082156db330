/** Compiled against each version of the SDK: the middleware and the tools fit where they belong. */
import { generateText, streamText, wrapLanguageModel } from "ai";
import type { Client } from "wellworn";
import { memoryMiddleware, memoryTools } from "wellworn/ai";

export async function fits(memory: Client, plain: Parameters<typeof wrapLanguageModel>[0]["model"]): Promise<string> {
  const model = wrapLanguageModel({ model: plain, middleware: memoryMiddleware(memory, { k: 3, sessionId: "s" }) });
  const { text } = await generateText({ model, prompt: "hello", tools: memoryTools(memory) });
  return text + (await streamText({ model, prompt: "hello", tools: memoryTools(memory) }).text);
}
