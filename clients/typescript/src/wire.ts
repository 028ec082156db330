/**
 * One request and its answer: types from the schema, retries that are safe, timeouts, errors.
 *
 * Knows no verb; `client.ts` has them.
 */
import type { components, paths } from "./schema.js";

type Method = "get" | "post" | "patch" | "delete";
type Json<T> = T extends { content: { "application/json": infer Value } } ? Value : never;
type Operation<Path extends keyof paths, M extends Method> = NonNullable<paths[Path][M]>;
type Body<Op> = Op extends { requestBody?: infer Given } ? Json<NonNullable<Given>> : never;
type OneOrMany<T> = T extends (infer One)[] ? T | One : T;
type Query<Op> = Op extends { parameters: { query?: infer Given } }
  ? { [Name in keyof NonNullable<Given>]: OneOrMany<NonNullable<Given>[Name]> | undefined }
  : never;
type Answer<Op> = Op extends { responses: infer All } ? Json<All[Extract<keyof All, 200 | 201>]> : never;
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];

/** What went wrong, as the service says it (RFC 9457). */
export type Problem = components["schemas"]["Problem"];

/** Whose memory a call is about. The tenant is that of the key. */
export interface Scope {
  tenant?: string;
  agent?: string;
  user?: string;
  session?: string;
  project?: string;
  team?: string | string[];
  org?: string | string[];
  company?: string | string[];
}

export interface ClientOptions {
  /** An API key (`wellworn keys create`). A service on this machine needs none. */
  key?: string;
  /** Whose memory it is, when the key does not say. */
  scope?: Scope;
  /** How long a call may take, retries included. Default: 60,000. */
  timeoutMs?: number;
  /** Another `fetch`. */
  fetch?: typeof fetch;
}

/** What every verb takes as its last argument. */
export interface CallOptions {
  /** Ends the call; it then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long this call may take, retries included. */
  timeoutMs?: number | undefined;
  /** A write that is sent again with the same key is made once. Default: a new one for each call. */
  idempotencyKey?: string | undefined;
}

const TRIES = 3;
const MOST_WAIT_MS = 5_000;
const MOST_TIMEOUT_MS = 2 ** 31 - 1; // a longer timer fires at once
const BROKEN = "the connection broke; the import goes on (send it again to see its ids)";

/** Every error of the service, and of the way to it. */
export class WellwornError extends Error {
  override readonly name = "WellwornError";
  /** The HTTP status; 0: there was no answer. */
  readonly status: number;
  /** The class of the error: `NotFound`, `InvalidInput`, `AccessDenied`, `ServiceFailed`, … */
  readonly kind: string;
  readonly problem: Problem;

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.detail, options);
    this.status = problem.status;
    this.kind = problem.title;
    this.problem = problem;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500 || this.problem.retry_after_s != null;
  }
}

type Events = AsyncGenerator<{ kind: string; data: unknown }, never>;

/** Sends requests to one service. */
export class Wire {
  readonly url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;

  constructor(url: string, { key, timeoutMs = 60_000, fetch }: ClientOptions) {
    if (!/^https?:\/\/./.test(url) || !URL.canParse(url))
      throw invalid("url", `'${url}' is no address`, "as in 'http://localhost:8765'");
    if (key !== undefined && !/^[\x21-\x7e]+$/.test(key.trim()))
      throw invalid("key", "is no API key", "as in 'ww_…', from `wellworn keys create`");
    this.url = url.replace(/\/+$/, "");
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key.trim()}` };
    this.#timeoutMs = timeoutMs;
    this.#fetch = (...request) => (fetch ?? globalThis.fetch)(...request); // browsers allow no other `this`
  }

  /** Send one request and read its answer. With `once`, a write is made once however often it is sent. */
  async call<M extends Method, Path extends PathsWith<M>, Op = Operation<Path, M>>(
    method: M,
    path: Path,
    scope: Scope,
    {
      id,
      query,
      body,
      once = method !== "get",
      options = {},
    }: { id?: string; query?: Query<Op>; body?: Body<Op>; once?: boolean; options?: CallOptions | undefined },
  ): Promise<Answer<Op>> {
    const headers: Record<string, string> = { ...this.#headers };
    if (once) headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
    if (!/^[ -~\xa0-\xff]*$/.test(headers["idempotency-key"] ?? ""))
      throw invalid("idempotencyKey", "cannot be part of a header", "use ASCII");
    if (body !== undefined) headers["content-type"] = "application/json";
    const init = { method: method.toUpperCase(), headers, body: body === undefined ? null : JSON.stringify(body) };
    const [response, text] = await this.#patient(this.#address(path, id, scope, query), init, options);
    const said = parsed(text);
    if (said === undefined) throw this.#stranger(response);
    return said as Answer<Op>;
  }

  /** Send lines and read the server-sent events that answer them: their kinds and data. Stop reading at the last one. */
  async *events(path: PathsWith<"post">, scope: Scope, lines: string, options: CallOptions): Events {
    const headers = { ...this.#headers, "content-type": "application/x-ndjson" };
    const [address, init] = [this.#address(path, undefined, scope), { method: "POST", headers, body: lines }];
    const [response] = await this.#patient(address, init, options, true);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      await response.body?.cancel();
      throw this.#stranger(response);
    }
    let kind = "";
    try {
      for await (const line of linesOf(response)) {
        if (line.startsWith("event: ")) kind = line.slice(7);
        else if (line.startsWith("data: ")) yield { kind, data: JSON.parse(line.slice(6)) as unknown };
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw failed(BROKEN, error);
    }
    throw failed(BROKEN);
  }

  #address(path: string, id: string | undefined, scope: object, query: object = {}): string {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries({ id, ...scope, ...query })) // an address would hold U+FFFD instead
      if (![value].flat().join(" ").isWellFormed()) throw invalid(name, "holds half a character", "leave it out");
    for (const [name, value] of Object.entries({ ...scope, ...query })) {
      for (const one of Array.isArray(value) ? value : [value]) if (one != null) params.append(name, String(one));
      if (name in query && Array.isArray(value) && !value.length) params.append(name, ""); // matches nothing
    }
    if (path.includes("{id}") && (typeof id !== "string" || id === "." || id === ".."))
      throw invalid("id", `'${id}' cannot be part of an address`, "use another one");
    const place = id === undefined ? path : path.replace("{id}", encodeURIComponent(id) || "%20");
    return `${this.url}${place}${params.size ? `?${params}` : ""}`;
  }

  /** Send, and send again when the connection broke or the service says when to; a long answer is left to be read. */
  async #patient(
    address: string,
    init: RequestInit,
    { signal, timeoutMs = this.#timeoutMs }: CallOptions,
    long = false,
  ): Promise<[Response, string]> {
    const late = new AbortController(); // no `AbortSignal.timeout`, which would end a long answer, too
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, MOST_TIMEOUT_MS));
    const end = performance.now() + timeoutMs;
    const ends = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
    try {
      for (let left = TRIES - 1; ; left--) {
        try {
          const [response, text] = await this.#reached(ends, async () => {
            // a redirect that is followed may turn a POST into a GET
            const response = await this.#fetch(address, { ...init, redirect: "manual", signal: ends });
            return [response, long && response.ok ? "" : await response.text()];
          });
          if (response.ok) return [response, text];
          const place = response.headers.get("location")?.split("?")[0] ?? "another address";
          if (response.status < 400) // 0: a browser hides where it leads
            throw refused(response.status || 302, text, `${this.url} leads to ${place} (give the client that address)`);
          const wait = response.headers.get("retry-after") ?? ([429, 503].includes(response.status) ? "1" : "");
          const seconds = /^\d+$/.test(wait) ? Number(wait) : 1; // it may be a date
          const ms = Math.min(seconds * 1000, MOST_WAIT_MS);
          if (!wait || !left || performance.now() + ms >= end) throw refused(response.status, text);
          await pause(ms, ends);
        } catch (error) {
          if (signal?.aborted) throw signal.reason;
          if (late.signal.aborted) throw failed(`${this.url} gave no answer within ${timeoutMs} ms`, error);
          if (!left || !(error instanceof WellwornError) || error.status) throw error;
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #stranger({ status }: Response): WellwornError {
    return refused(status, "", `${this.url} is no wellworn service (check the address)`);
  }

  async #reached<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const { message, cause } = error as Error;
      const reason = cause instanceof Error && cause.message ? cause.message : message;
      throw failed(`${this.url} cannot be reached: ${reason} (start it with \`wellworn serve\`)`, error);
    }
  }
}

/** The error of a value that is refused before it is sent. */
export function invalid(field: string, problem: string, remedy: string, title = "InvalidInput"): WellwornError {
  const detail = `${field}: ${problem} (${remedy})`;
  return new WellwornError({ type: `urn:wellworn:${title}`, title, status: 422, detail, field, remedy });
}

/** The error of a service that did not answer. */
function failed(detail: string, cause?: unknown): WellwornError {
  return new WellwornError({ type: "urn:wellworn:ServiceFailed", title: "ServiceFailed", status: 0, detail }, { cause });
}

function refused(status: number, text: string, detail = `the service answered with status ${status}`): WellwornError {
  const plain = { type: "about:blank", title: "ServiceFailed", detail };
  return new WellwornError({ ...plain, ...parsed(text), status });
}

/** The document; undefined when it is none, because another server answered. */
function parsed(text: string): object | undefined {
  try {
    const said: unknown = JSON.parse(text);
    return typeof said === "object" ? (said ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal.reason as Error));
    const timer = setTimeout(() => (signal.removeEventListener("abort", stop), resolve()), ms);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
