// The state of the page: the text, how it is compiled and run, and the position in the run.

import { ask, Refused, shared, type Compiled, type Crossing, type Flowed, type Start, type Story, type Watched } from "./server";

export type Trouble = { message: string; hint: string | null };

// The content of a share link.
const KEPT = ["text", "config", "plan", "backend", "beside", "seed", "count", "pattern", "matcher", "network", "step", "stop", "grain", "waves", "page"] as const;
const TAKEN = ["csv", "xsql", "sql", "apas"]; // suffixes of files
const LONGEST = 100_000; // letters of a share link; a command line takes hardly longer words

export const PAGES = ["query", "machine", "patterns", "intervals", "sites", "live", "boards"] as const;
export type Page = (typeof PAGES)[number];

class Studio {
  page = $state<Page>("query");
  text = $state("");
  config = $state("default");
  plan = $state("cost");
  backend = $state("iss");
  beside = $state("");
  pattern = $state(""); // empty: the first of the text
  matcher = $state("auto");
  network = $state(""); // of an APAS query; empty: the first of the text
  seed = $state(1);
  count = $state(120);
  step = $state(0);
  grain = $state("tuple"); // the unit in which the machine is stepped
  stop = $state(-1); // inside a step; -1 is the whole step
  waves = $state(false); // whether the next run of the RTL records its signals
  files = $state<Record<string, string>>({});
  start = $state.raw<Start | null>(null);
  compiled = $state.raw<Compiled | null>(null);
  story = $state.raw<Story | null>(null);
  other = $state.raw<Story | null>(null);
  watched = $state.raw<Watched | null>(null);
  flowed = $state.raw<Flowed | null>(null);
  crossing = $state.raw<Crossing | null>(null);
  running = $state(false);
  trouble = $state.raw<Trouble | null>(null);
  lit = $state<string | null>(null);

  // The parts related to the highlighted one: everything it was made from and everything made from it.
  related = $derived(this.lit === null ? NONE : relatives(this.lit, this.compiled?.links ?? []));

  private asked = 0;
  private computing: AbortController | null = null; // the run under way

  async open(): Promise<void> {
    await this.guarded(async () => {
      this.start = await ask<Start>("start");
      const first = this.start.named[0] ?? this.start.gallery.find((one) => one.name === "eight");
      this.text = first?.text ?? "";
      const missing = shared === null ? null : await this.restore(shared);
      await this.compile();
      const { step, stop } = this;
      if (shared !== null && this.page === "machine") await this.run();
      if (shared !== null && this.page === "patterns") await this.watch();
      if (shared !== null && this.page === "intervals") await this.flow();
      if (shared !== null && this.page === "sites") await this.cross();
      const steps = ((this.story ?? this.watched ?? this.flowed)?.steps ?? this.crossing?.messages)?.length ?? 1;
      this.step = Math.min(step, steps - 1);
      this.stop = stop;
      if (missing) throw missing;
    });
  }

  settings(): object {
    const { text, config, plan, backend, seed, count } = this;
    return { text, config, plan, backend, seed, count, files: $state.snapshot(this.files) };
  }

  // Files that were dropped or chosen: rows of streams, or a text.
  async take(files: Iterable<File>): Promise<void> {
    const [refused, unread]: string[][] = [[], []];
    const every = [...files]; // a list of the browser's may change
    for (const file of every) {
      const [, name, suffix] = /^(.+)\.(\w+)$/.exec(file.name) ?? ["", "", ""];
      const kind = suffix.toLowerCase();
      if (!TAKEN.includes(kind)) {
        refused.push(file.name);
        continue;
      }
      let text: string;
      try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      } catch {
        unread.push(file.name);
        continue;
      }
      if (kind === "csv") this.files[name] = text;
      else this.text = kind === "apas" ? `REGISTER QUERY "${name.replaceAll('"', '""')}" AS APAS $$\n${text.trim()}\n$$;\n` : text;
    }
    if (refused.length + unread.length < every.length) this.changed();
    await this.guarded(async () => {
      await this.compile();
      if (unread.length) throw new Refused(`not UTF-8 text: ${unread.join(", ")}`, "save it as UTF-8");
      if (refused.length) throw new Refused(`not opened: ${refused.join(", ")}`, "rows are .csv files, texts .xsql, .sql or .apas");
    });
  }

  // Removes the rows of a stream.
  remove(name: string): Promise<void> {
    delete this.files[name];
    this.changed();
    return this.compile();
  }

  async compile(): Promise<void> {
    const mine = ++this.asked;
    const overtaken = () => mine !== this.asked; // by a later text
    await this.guarded(async () => {
      const found = await ask<Compiled>("compile", this.settings());
      if (!overtaken()) this.compiled = found;
    }, overtaken);
  }

  run(): Promise<void> {
    return this.computed(async (signal) => {
      const story = await ask<Story>("run", { ...this.settings(), waves: this.waves }, signal);
      const about = { ...this.settings(), backend: this.beside };
      this.other = this.beside ? await ask<Story>("run", about, signal) : null;
      this.story = story;
      this.step = 0;
      this.stop = -1;
    });
  }

  // Go to another page and to the first step: a step of the machine is not a step of a pattern.
  go(page: Page): void {
    if (page !== this.page) this.step = 0;
    this.stop = -1;
    this.page = page;
  }

  watch(): Promise<void> {
    return this.computed(async (signal) => {
      const about = { ...this.settings(), query: this.pattern, engine: this.matcher };
      this.watched = await ask<Watched>("watch", about, signal);
      this.pattern = this.watched.query;
      this.step = 0;
    });
  }

  flow(): Promise<void> {
    return this.computed(async (signal) => {
      this.flowed = await ask<Flowed>("flow", { ...this.settings(), query: this.network }, signal);
      this.network = this.flowed.query;
      this.step = 0;
    });
  }

  cross(): Promise<void> {
    return this.computed(async (signal) => {
      this.crossing = await ask<Crossing>("sites", this.settings(), signal);
      this.step = 0;
    });
  }

  // Computes a run until it comes or is ended.
  private async computed(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.end();
    const mine = (this.computing = new AbortController());
    this.running = true;
    await this.guarded(() => work(mine.signal), () => mine.signal.aborted);
    if (this.computing === mine) this.running = false;
  }

  // Ends the run under way; the server ends its work when the request is gone.
  end(): void {
    this.computing?.abort();
    this.running = false;
  }

  // Drops the run of another text or other rows.
  changed(): void {
    this.end();
    this.story = this.other = this.watched = this.flowed = this.crossing = null;
    this.pattern = this.network = "";
    this.step = 0;
    this.stop = -1;
  }

  // The link has the dropped files, or only their names if they are too long for a link.
  async link(): Promise<string> {
    const kept = Object.fromEntries(KEPT.map((name) => [name, this[name]]));
    const files = $state.snapshot(this.files);
    const whole = await encoded(JSON.stringify({ ...kept, files }));
    const share = whole.length <= LONGEST ? whole : await encoded(JSON.stringify({ ...kept, missing: Object.keys(files) }));
    return `${location.origin}/#share=${share}`;
  }

  private async restore(share: string): Promise<Refused | null> {
    let kept: any;
    try {
      kept = JSON.parse(await decoded(share));
      if (typeof kept?.text !== "string") throw new TypeError("no text");
    } catch {
      return new Refused("the share link is damaged", "copy it again, whole");
    }
    for (const name of KEPT) {
      if (typeof kept[name] === typeof this[name]) (this as any)[name] = kept[name];
    }
    if (!PAGES.includes(this.page)) this.page = "query";
    const files = Object.entries(kept.files ?? {}).filter(([, text]) => typeof text === "string");
    this.files = Object.fromEntries(files) as Record<string, string>;
    if (!kept.missing?.length) return null;
    const names = [...kept.missing].map((name) => `${name}.csv`).join(", ");
    return new Refused(`${names}: too long for a link`, "ask who shared it for the files, and drop them here");
  }

  // Shows the trouble that work has, unless it is over by then; without any, what was shown before it goes.
  async guarded(work: () => Promise<void>, over: () => boolean = () => false): Promise<void> {
    const before = this.trouble;
    try {
      await work();
      if (this.trouble === before) this.trouble = null;
    } catch (error) {
      if (over()) return;
      const hint = error instanceof Refused ? error.hint : null;
      this.trouble = { message: (error as Error).message, hint };
    }
  }
}

const NONE: ReadonlySet<string> = new Set();
const CONDITION = /^(factor|selection):/;
const NARROW = /^(step|subquery):/;

// Follows the links as compiler/explain/provenance.py does.
export function relatives(part: string, links: [string, string][]): ReadonlySet<string> {
  const above = new Map<string, string[]>();
  const below = new Map<string, string[]>();
  for (const [start, end] of links) {
    below.set(start, [...(below.get(start) ?? []), end]);
    above.set(end, [...(above.get(end) ?? []), start]);
  }
  const found = new Set([part]);
  for (const [follow, narrow] of [[above, true], [below, false]] as const) {
    const seen = new Set<string>();
    const waiting = [part];
    for (let here = waiting.pop(); here !== undefined; here = waiting.pop()) {
      for (const next of follow.get(here) ?? []) {
        if (seen.has(next)) continue;
        seen.add(next);
        found.add(next);
        if (!(narrow && NARROW.test(here) && CONDITION.test(next))) waiting.push(next);
      }
    }
  }
  return found;
}

// Compresses a text to letters that a link may contain.
async function encoded(text: string): Promise<string> {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function decoded(share: string): Promise<string> {
  const letters = atob(share.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const read = new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();
  return new Uint8Array(await read);
}

export const studio = new Studio();
