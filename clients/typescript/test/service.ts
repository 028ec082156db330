/** A real `wellworn serve` on a free port, for the time of one file of tests. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Service {
  url: string;
  stop(): Promise<void>;
}

export async function serve(...options: string[]): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "wellworn-"));
  const db = ["--db", join(folder, "memory.db"), "--embedder", "hash"];
  const command = ["-m", "wellworn", "serve", "--json", "--port", "0", ...db, ...options];
  const child = spawn(process.env.WELLWORN_PYTHON ?? "python3", command, { stdio: ["ignore", "pipe", "inherit"] });
  const stop = async () => {
    const over = ended(child);
    child.kill("SIGKILL");
    await over;
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const { address } = JSON.parse(await within(60_000, firstDocument(child))) as { address: string };
    await within(60_000, ready(address));
    return { url: address, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function firstDocument(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const line of createInterface({ input: child.stdout! })) {
    text += line;
    if (line === "}") return text;
  }
  throw new Error("the service ended");
}

async function ready(address: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });
}

/** The result, or an error when it takes too long. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing happened within ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
