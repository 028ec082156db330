/** Every example runs as it stands. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { serve, type Service } from "./service.js";

const PRINTED = {
  remember: ["Ada prefers tokio over async-std.", "1 turn", "NotFound"],
  "ai-sdk": [
    "monday: My bicycle is a green Brompton. → I see.",
    "friday: Which bicycle do I have? → A green Brompton.",
    "outcomes learned from: 1",
  ],
};

let service: Service;

before(async () => {
  service = await serve();
});
after(() => service?.stop());

for (const [name, lines] of Object.entries(PRINTED))
  test(`the example ${name} runs`, async () => {
    const program = fileURLToPath(new URL(`../examples/${name}.js`, import.meta.url));
    const env = { ...process.env, WELLWORN_URL: service.url };
    const done = await promisify(execFile)(process.execPath, [program], { env, timeout: 60_000 });
    assert.deepEqual(done.stdout.trimEnd().split("\n"), lines);
    assert.equal(done.stderr, "");
  });
