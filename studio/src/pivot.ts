// The live table: Perspective stores, filters and groups the rows in WebAssembly. Loaded on demand.

import perspective, { type Table, type View } from "@perspective-dev/client";
import CLIENT from "@perspective-dev/client/dist/wasm/perspective-js.wasm?url";
import ENGINE from "@perspective-dev/server/dist/wasm/perspective-server.wasm?url";
import type { Cell, Table as Shown } from "./server";

const KEPT = 50_000; // rows; the oldest are dropped
const SHOWN = 100; // rows on the page

perspective.init_client(fetch(CLIENT));
perspective.init_server(fetch(ENGINE));

export type Way = { group: string; across: string; column: string; operator: string; value: string };

export class Pivot {
  private view: View | undefined;
  private grouped = false;
  private last: Promise<unknown> = Promise.resolve(); // the end of the queue of calls

  private constructor(
    private table: Table,
    readonly columns: string[],
  ) {}

  // Makes a table with the columns and rows of an Arrow stream.
  static async of(rows: ArrayBuffer): Promise<Pivot> {
    const engine = await perspective.worker();
    const table = await engine.table(rows, { limit: KEPT });
    return new Pivot(table, await table.columns());
  }

  // Runs calls one after the other, because a deleted view must not be read.
  private turn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.last.then(work);
    this.last = mine.catch(() => undefined);
    return mine;
  }

  // Takes rows; resolves when they are in the view, so that the next call does not wait for them.
  add = (rows: ArrayBuffer) => this.turn(() => this.table.update(rows).then(() => this.view!.num_rows()));

  // The rows to show.
  shown = () => this.turn(() => this.read());

  // The rows to show, arranged in this way from now on.
  show = (way: Way) => this.turn(() => this.arrange(way).then(() => this.read()));

  private async arrange({ group, across, column, operator, value }: Way): Promise<void> {
    const typed = value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
    const view = await this.table.view({
      group_by: group ? [group] : [],
      split_by: across ? [across] : [],
      filter: column && value !== "" ? [[column, operator, typed]] : [],
    });
    this.grouped = group !== "";
    const left = this.view;
    this.view = view;
    void this.turn(async () => left?.delete()); // after the new one is read
  }

  // Reads the newest rows, or the first groups with their sums and counts.
  private async read(): Promise<Shown & { of: number }> {
    const view = this.view!;
    const of = await view.num_rows();
    const start_row = this.grouped ? 0 : Math.max(0, of - SHOWN);
    const found = (await view.to_columns({ start_row, end_row: start_row + SHOWN })) as Record<string, Cell[]>;
    const { __ROW_PATH__: paths, ...columns } = found as Record<string, any>;
    const names = Object.keys(columns);
    const length = Math.min(SHOWN, of - start_row);
    const rows: Cell[][] = Array.from({ length }, (_, i) => names.map((name) => columns[name][i] ?? null));
    if (!paths) return { columns: names, rows: rows.reverse(), of };
    return { columns: ["group", ...names], rows: rows.map((row, i) => [paths[i].length ? (paths[i][0] ?? "NULL") : "all", ...row]), of: of - 1 };
  }

  close = () =>
    this.turn(async () => {
      await this.view?.delete();
      await this.table.delete();
    });
}
