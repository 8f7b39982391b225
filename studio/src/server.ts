// The requests to the server, and the types of its answers.

export type Problem = {
  kind: string;
  message: string;
  hint: string | null;
  start: number;
  end: number;
  line: number;
  column: number;
};
export type Part = { id: string; label: string; spans: [number, number][] };
export type Compiled = {
  problems: Problem[];
  queries?: string[];
  streams?: Record<string, [string, string][]>;
  areas?: string[];
  facts?: any;
  texts?: Record<string, string>;
  pictures?: Record<string, string>;
  parts?: Part[];
  links?: [string, string][];
};
export type Cell = string | number | boolean | null;
export type Table = { columns: string[]; rows: Cell[][] };
export type Event = [number, number, number, number, number, number]; // tag, area, address, probe, place and number of the stored tuple
export type Step = {
  stream: number;
  ts: number;
  sequence: number;
  admitted: boolean;
  executed: [number, number, number, number][];
  moments: Event[][];
  cycle_of: number[]; // for each moment
  probes: { tag: number; area: number; parts: number[]; pairs: [number, number][] }[]; // stored tuple, factor bits
  joins: [number, number, number, number[]][]; // tag, area, tag of the joined tuple, its parts
  results: [number, number[]][];
  left: [number, number][];
  stored: number[];
  counted: Record<string, number>;
  cycles: number | null;
  clock: number | null;
  units: Record<string, [number, number, number]>; // cycles busy, starved, blocked
};
export type Story = {
  backend: string;
  queries: string[];
  slots: { name: string; stream: string }[];
  program: string[][];
  tags: number[][];
  factors: number[][]; // for each area, the factor of each register
  rows: Record<string, Table>;
  left_out: Record<string, Table>;
  steps: Step[];
  results: Record<string, Table>;
  failed: Record<string, string>;
  counters: Record<string, number>;
  lanes: number;
  waves: Signal[];
};
export type Signal = { name: string; width: number; changes: [number, string][] };
export type Match = { at: number; groups: { element: string; events: [string, number][] }[] };
export type Watched = {
  query: string;
  queries: string[];
  engine: string;
  places: { name: string; from: string[] }[];
  left_out: Record<string, Table>;
  steps: { title: string; lines: string[]; kept: Record<string, [string, string][]> }[];
  matches: Match[];
};
export type Interval = [number, number | null, ...Cell[]]; // from, to (null if endless), values
export type Flowed = {
  query: string;
  queries: string[];
  nodes: { title: string; does: string[] }[];
  edges: { from: number; to: number; place: number; carries: string[] }[]; // to -1: the results
  steps: { at: number | null; title: string; edges: Interval[][]; more: number[] }[];
  left_out: Record<string, Table>;
  refused: number;
};
export type Crossing = {
  sites: string[];
  messages: { from: number; to: number; kind: string; rows: number; entries: number; cost: number }[];
  results: number;
  shipped: number;
  left_out: Record<string, Table>;
};
export type Identity = { board: string; config: string; version: string; current: boolean; clock: number };
export type Boards = {
  boards: {
    name: string;
    title: string;
    part: string;
    cells: number;
    ram: number;
    clock: number;
    baud: number;
    programs: string;
  }[];
  bitstreams: {
    board: string;
    config: { name: string };
    current: boolean;
    clock: { wanted: number; reached: number; met: boolean };
    used: Record<string, { used: number; of: number }>;
    path: { where: string }[];
    floorplan: string;
  }[];
  ports: { port: string; said: string }[];
};
export type Start = {
  version: string;
  backends: string[];
  configurations: string[];
  words: { keywords: string[]; functions: string[] };
  gallery: { name: string; said: string; text: string }[];
  named: { name: string; text: string }[];
  bridge: string | null;
};

export class Refused extends Error {
  constructor(
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

const fragment = new URLSearchParams(location.hash.slice(1));
const token = fragment.get("token") ?? "";
export const shared = fragment.get("share");

async function asked(what: string, about: object, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`ask/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-studio-token": token },
      body: JSON.stringify(about),
      signal,
    });
  } catch {
    throw new Refused("the studio's server does not answer", "start it again: seustream studio");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ error: `status ${answer.status}`, hint: null }));
  throw new Refused(said.error, said.hint);
}

export async function ask<T>(what: string, about: object = {}, signal?: AbortSignal): Promise<T> {
  return (await asked(what, about, signal)).json();
}

// Some results as an Arrow stream, and the offset of the next result.
export type Slice = { rows: ArrayBuffer; end: number };

// Reads results of a query at the bridge from an offset of a run on, in slices. Without this run, or behind a gap,
// they are the newest.
export async function rowsOf(query: string, run: number, from: number): Promise<{ run: number; end: number; slices: Slice[] }> {
  const answer = await asked("rows", { query, run, from });
  const said = (name: string) => JSON.parse(answer.headers.get(name) ?? "null");
  const ends: [number, number][] = said("x-slices"); // for each slice, its end in rows and in bytes
  const bytes = await answer.arrayBuffer();
  const slices = ends.map(([end, stop], i) => ({ end, rows: bytes.slice(i > 0 ? ends[i - 1][1] : 0, stop) }));
  return { run: said("x-run"), end: said("x-end"), slices };
}
