/** Every example runs as it stands, against a service of its own. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { promisify } from "node:util";

import { serve } from "./service.js";

const PRINTED = {
  remember: ["Ada prefers tokio over async-std.", "1 turn", "NotFound"],
  "ai-sdk": [
    "monday: My bicycle is a green Brompton. → I see.",
    "friday: Which bicycle do I have? → A green Brompton.",
    "outcomes learned from: 1",
  ],
};

for (const [name, lines] of Object.entries(PRINTED))
  test(`the example ${name} runs`, async () => {
    const service = await serve();
    try {
      const program = fileURLToPath(new URL(`../examples/${name}.js`, import.meta.url));
      const env = { ...process.env, WELLWORN_URL: service.url };
      const done = await promisify(execFile)(process.execPath, [program], { env, timeout: 60_000 });
      assert.deepEqual(done.stdout.trimEnd().split("\n"), lines);
      assert.equal(done.stderr, "");
    } finally {
      await service.stop();
    }
  });
