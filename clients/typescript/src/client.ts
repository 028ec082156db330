/**
 * The verbs of a memory behind `wellworn serve`.
 *
 *     const ada = new Client("http://localhost:8765", { key: "ww_…" }).forUser("ada");
 *     await ada.remember("Ada prefers tokio over async-std.", { kind: "preference" });
 *
 * The fields of what goes in and comes out have the names that the service gives them.
 */
import type { components } from "./schema.js";
import { invalid, Wire, WellwornError, type CallOptions, type ClientOptions, type Problem, type Scope } from "./wire.js";

type Schemas = components["schemas"];

export type Entry = Schemas["Entry"];
export type Hit = Schemas["Hit"];
export type Job = Schemas["Job"];
export type LearningStatus = Schemas["LearningStatus"];
export type Link = Schemas["Link"];
export type PromptContext = Schemas["PromptContext"];
export type ReadAnswer = Schemas["ReadAnswer"];
export type Reasoning = Schemas["Reasoning"];
export type Recall = Schemas["Recall"];
export type Receipt = Schemas["Receipt"];
export type Reflection = Schemas["Reflection"];
export type Report = Schemas["Report"];
export type Stats = Schemas["Stats"];
export type Task = Schemas["Task"];
export type TaskStart = Schemas["TaskStart"];
export type TaskEnd = Schemas["TaskEnd"];
export type Turn = Schemas["Turn"];
export type Version = Schemas["Version"];
/** Who did what to which entry. */
export type AuditEvent = Schemas["Event"];
export type Kind = NonNullable<Schemas["NewEntryBody"]["kind"]>;
export type Layer = NonNullable<Schemas["NewEntryBody"]["layer"]>;
export type LinkType = Schemas["LinkBody"]["type"];
export type NewEntry = Schemas["NewEntryBody"];
export type NewTurn = Schemas["TurnBody"];
export type Details = Omit<NewEntry, "text">;
export type RecallOptions = Omit<Schemas["RecallBody"], "query">;
export type ContextOptions = Omit<Schemas["ContextBody"], "message">;
export type Outcome = Schemas["OutcomeBody"];
export type Changes = Schemas["ChangeBody"];
export type ItemKind = "strategy" | "guardrail";

/** Which entries to list. */
export interface Listing {
  kind?: Kind | Kind[];
  tags?: string | string[];
  layer?: Layer | Layer[];
  session_id?: string;
  state?: Entry["state"] | Entry["state"][];
  /** At most this many. Default: 100. */
  limit?: number;
}

const PAGE = 1000;

/** A memory behind `wellworn serve`. Safe to share. */
export class Client {
  /** The scope that is filled in; empty: what the key is bound to. */
  readonly scope: Scope;
  readonly #wire: Wire;
  readonly #options: ClientOptions;

  constructor(url: string, options: ClientOptions = {}) {
    this.#wire = new Wire(url, options);
    this.#options = options;
    this.scope = options.scope ?? {};
    const { tenant: _, ...layers } = this.scope;
    const ids = Object.values(layers);
    const empty = ids.some((id) => Array.isArray(id) && !id.some((one) => one != null));
    if (empty || (ids.length && ids.every((id) => id == null)))
      throw invalid("scope", "names a layer without an id", "leave the layer out or give an id", "ScopeError");
  }

  /** The memory of one person. */
  forUser(user: string, layers: Omit<Scope, "user"> = {}): Client {
    if (typeof user !== "string" || !user.trim()) 
      throw invalid("user", `'${user}' names nobody`, "as in forUser('ada')", "ScopeError");
    return this.forScope({ ...layers, user });
  }

  /** The same verbs with any scope filled in. */
  forScope(scope: Scope): Client {
    return new Client(this.#wire.url, { ...this.#options, scope });
  }

  // -- remember --------------------------------------------------------------------------------------------------

  /** Store a text and return the ids of its entries: one, or one per chunk of a long text. */
  async remember(text: string, details: Details = {}, options?: CallOptions): Promise<string[]> {
    return (await this.#wire.call("post", "/v1/entries", this.scope, { body: { text, ...details }, options })).ids;
  }

  /** Store many texts at once and return the ids of all their entries, in order. The import goes on when the connection
   * breaks; sent again, nothing is stored twice. `timeoutMs` is for the time until it has begun. */
  async rememberMany(
    items: Iterable<string | NewEntry>,
    common: Details = {},
    options: Omit<CallOptions, "idempotencyKey"> & { onProgress?: (done: number, total: number) => void } = {},
  ): Promise<string[]> {
    const lines = Array.from(items, (one) => ({ ...common, ...(typeof one === "string" ? { text: one } : one) }));
    const body = lines.map((line) => JSON.stringify(line)).join("\n");
    for await (const { kind, data } of this.#wire.events("/v1/import", this.scope, body, options)) {
      const said = data as { done: number; total: number } & { ids: string[] } & Problem;
      if (kind === "progress") options.onProgress?.(said.done, said.total);
      if (kind === "done") return said.ids;
      if (kind === "error") throw new WellwornError(said);
    }
    throw new Error("unreachable");
  }

  /** A dialogue to add turns to; a known id continues that dialogue. */
  session(id: string): ClientSession {
    return new ClientSession(this.#wire, this.scope, id);
  }

  /** Ids of the sessions of the scope's home layer, oldest first. */
  async sessions({ layer }: { layer?: Layer } = {}, options?: CallOptions): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor: string | null = null; ; ) {
      const query = { layer, limit: PAGE, cursor };
      const page: Schemas["SessionPage"] = await this.#wire.call("get", "/v1/sessions", this.scope, { query, options });
      ids.push(...page.sessions);
      if (page.next === null) return ids;
      cursor = page.next;
    }
  }

  /** Turn what was said into memories now: one session, or all that were not read yet. */
  async reflect(body: Schemas["ReflectBody"] = {}, options?: CallOptions): Promise<Reflection[]> {
    return (await this.#wire.call("post", "/v1/reflect", this.scope, { body, options })).reflections;
  }

  // -- recall ----------------------------------------------------------------------------------------------------

  /** The `k` entries that answer the query best, each with the reasons for its place. */
  recall(query: string, filters: RecallOptions = {}, options?: CallOptions): Promise<Recall> {
    return this.#wire.call("post", "/v1/recall", this.scope, { body: { query, ...filters }, once: false, options });
  }

  /** What is remembered that bears on a message, as text to put before it in a prompt. */
  context(message: string, settings: ContextOptions = {}, options?: CallOptions): Promise<PromptContext> {
    return this.#wire.call("post", "/v1/context", this.scope, { body: { message, ...settings }, once: false, options });
  }

  /** Take the citations out of what a model answered after a `context`, and learn from them. */
  answer(context: PromptContext, answer: string, options?: CallOptions): Promise<ReadAnswer> {
    const [id, body] = [context.recall_id, { answer, shown: context.shown }];
    return this.#wire.call("post", "/v1/recalls/{id}/answer", this.scope, { id, body, options });
  }

  /** Report how a recall turned out (choose one field); false when this was reported before. */
  async outcome(recallId: string, body: Outcome, options?: CallOptions): Promise<boolean> {
    const request = { id: recallId, body, options };
    return (await this.#wire.call("post", "/v1/recalls/{id}/outcome", this.scope, request)).done;
  }

  /** The chain of entries that bears on a question, and what follows from them. */
  reason(query: string, more: Omit<Schemas["ReasonBody"], "query"> = {}, options?: CallOptions): Promise<Reasoning> {
    return this.#wire.call("post", "/v1/reason", this.scope, { body: { query, ...more }, once: false, options });
  }

  // -- tasks -----------------------------------------------------------------------------------------------------

  /** Begin a task and get what worked or failed in similar ones. */
  beginTask(body: Schemas["TaskBody"], options?: CallOptions): Promise<TaskStart> {
    return this.#wire.call("post", "/v1/tasks", this.scope, { body, options });
  }

  /** Finish a task: the work is judged, and what it teaches is kept for the next one. */
  finishTask(taskId: string, body: Schemas["FinishBody"], options?: CallOptions): Promise<TaskEnd> {
    return this.#wire.call("post", "/v1/tasks/{id}/finish", this.scope, { id: taskId, body, options });
  }

  /** Attempts at tasks, newest first. */
  async tasks(query: { state?: Task["state"]; limit?: number } = {}, options?: CallOptions): Promise<Task[]> {
    return (await this.#wire.call("get", "/v1/tasks", this.scope, { query, options })).tasks;
  }

  /** Strategies and guardrails that tasks taught, the surest first. */
  async items(
    query: { domain?: string; kind?: ItemKind | ItemKind[]; limit?: number } = {},
    options?: CallOptions,
  ): Promise<Entry[]> {
    return (await this.#wire.call("get", "/v1/items", this.scope, { query, options })).items;
  }

  /** The strategies and guardrails that help most with a task. */
  searchItems(query: string, more: Omit<Schemas["ItemsBody"], "query"> = {}, options?: CallOptions): Promise<Recall> {
    return this.#wire.call("post", "/v1/items/search", this.scope, { body: { query, ...more }, once: false, options });
  }

  // -- look ------------------------------------------------------------------------------------------------------

  /** One entry, whatever its state. */
  get(id: string, options?: CallOptions): Promise<Entry> {
    return this.#wire.call("get", "/v1/entries/{id}", this.scope, { id, options });
  }

  /** Entries that the scope sees, oldest first. */
  async entries({ tags, limit = 100, ...listing }: Listing = {}, options?: CallOptions): Promise<Entry[]> {
    if (!(limit >= 1)) throw invalid("limit", `${limit} is not a whole number from 1`, "leave it out for 100");
    const found: Entry[] = [];
    for (let cursor: string | null = null; found.length < limit; ) {
      const query = { ...listing, tag: tags, limit: Math.min(PAGE, limit - found.length), cursor };
      const page: Schemas["EntryPage"] = await this.#wire.call("get", "/v1/entries", this.scope, { query, options });
      found.push(...page.entries);
      if (page.next === null) break;
      cursor = page.next;
    }
    return found;
  }

  /** Every state the entry has had, oldest first; the last is the present one. */
  async history(id: string, options?: CallOptions): Promise<Version[]> {
    return (await this.#wire.call("get", "/v1/entries/{id}/history", this.scope, { id, options })).versions;
  }

  /** Every link that starts or ends at an entry, as far as the scope sees the other end. */
  async links(id: string, options?: CallOptions): Promise<Link[]> {
    return (await this.#wire.call("get", "/v1/entries/{id}/links", this.scope, { id, options })).links;
  }

  // -- change ----------------------------------------------------------------------------------------------------

  /** Change fields of an entry; the former state stays in its history. */
  edit(id: string, changes: Changes, options?: CallOptions): Promise<Entry> {
    return this.#wire.call("patch", "/v1/entries/{id}", this.scope, { id, body: changes, options });
  }

  /** Record that one entry replaced another; returns the old one as it is now. */
  supersede(id: string, body: Schemas["SupersedeBody"], options?: CallOptions): Promise<Entry> {
    return this.#wire.call("post", "/v1/entries/{id}/supersede", this.scope, { id, body, options });
  }

  /** Record that one entry stands in this relation to another; linking twice changes nothing. */
  link(body: Schemas["LinkBody"], options?: CallOptions): Promise<Link> {
    return this.#wire.call("post", "/v1/links", this.scope, { body, options });
  }

  /** Remove a link; false when there was none. */
  async unlink(query: { source: string; target: string; type: LinkType }, options?: CallOptions): Promise<boolean> {
    return (await this.#wire.call("delete", "/v1/links", this.scope, { query, options })).done;
  }

  /** Remove for good, and report what was removed: ids of entries, or `{ session_id }`, or `{ everything: true }`. */
  forget(what: string[] | Schemas["ForgetBody"], options?: CallOptions): Promise<Receipt> {
    const body = Array.isArray(what) ? { ids: what } : what;
    return this.#wire.call("post", "/v1/forget", this.scope, { body, options });
  }

  // -- care ------------------------------------------------------------------------------------------------------

  /** How much the scope sees. */
  stats(options?: CallOptions): Promise<Stats> {
    return this.#wire.call("get", "/v1/stats", this.scope, { options });
  }

  /** What serves the scope's home layer now, and on which evidence. */
  learning(options?: CallOptions): Promise<LearningStatus> {
    return this.#wire.call("get", "/v1/learning", this.scope, { options });
  }

  /** Background work of the scope, newest first. */
  async jobs(query: { state?: Job["state"]; limit?: number } = {}, options?: CallOptions): Promise<Job[]> {
    return (await this.#wire.call("get", "/v1/jobs", this.scope, { query, options })).jobs;
  }

  /** The tenant's audit log, newest first. Needs an admin's key. */
  async events(query: { limit?: number } = {}, options?: CallOptions): Promise<AuditEvent[]> {
    return (await this.#wire.call("get", "/v1/events", this.scope, { query, options })).events;
  }

  /** Check the whole store, if it holds nobody else's memory. */
  verify(options?: CallOptions): Promise<Report> {
    return this.#wire.call("post", "/v1/verify", this.scope, { once: false, options });
  }
}

/** One dialogue of a scope. */
export class ClientSession {
  readonly id: string;
  readonly #wire: Wire;
  readonly #scope: Scope;

  constructor(wire: Wire, scope: Scope, id: string) {
    this.id = id;
    this.#wire = wire;
    this.#scope = scope;
  }

  /** Add a turn and return its episode entry. */
  async add(role: string, text: string, more: Omit<NewTurn, "role" | "text"> = {}, options?: CallOptions): Promise<Entry> {
    return (await this.addTurns([{ role, text, ...more }], options))[0]!;
  }

  /** Add several turns in one durable write. */
  async addTurns(turns: NewTurn[], options?: CallOptions): Promise<Entry[]> {
    const request = { id: this.id, body: { turns }, options };
    return (await this.#wire.call("post", "/v1/sessions/{id}/turns", this.#scope, request)).entries;
  }

  /** Every turn so far, verbatim, in order. */
  async turns(options?: CallOptions): Promise<Turn[]> {
    return (await this.#wire.call("get", "/v1/sessions/{id}/turns", this.#scope, { id: this.id, options })).turns;
  }

  /** End the session: what was said becomes memories, in the background; `wait` seconds for it. */
  async end(body: Schemas["EndBody"] = {}, options?: CallOptions): Promise<Job | null> {
    return (await this.#wire.call("post", "/v1/sessions/{id}/end", this.#scope, { id: this.id, body, options })).job;
  }
}
