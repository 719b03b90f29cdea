// Tiles: fetched when they are seen, nearest to the middle first, and no longer wanted when they are
// not; kept up to a number of bytes.
import { fetchTile, Problem, type Query, type Tile } from "./api";

export interface Wanted {
  /** What is the same for all tiles of a slice at some steps. */
  slice: string;
  steps: [number, number];
  tile: [number, number];
  query: Query;
}

export interface Kept {
  wanted: Wanted;
  tile: Tile | null;
  problem: Problem | null;
  /** What it was painted with, and the picture. */
  painted: string;
  picture: HTMLCanvasElement | null;
}

const AT_ONCE = 6;
const KEPT_BYTES = 192 * 2 ** 20;

export const keyOf = (wanted: Wanted): string => `${wanted.slice}|${wanted.steps}|${wanted.tile}`;

export class Tiles {
  private readonly kept = new Map<string, Kept>();
  private readonly running = new Map<string, AbortController>();
  private queue: Wanted[] = [];
  private bytes = 0;
  private readonly changed: () => void;
  /** How many requests were given up. */
  cancelled = 0;

  constructor(changed: () => void) {
    this.changed = changed;
  }

  get busy(): boolean {
    return this.running.size > 0 || this.queue.length > 0;
  }

  get problems(): Kept[] {
    return [...this.kept.values()].filter((each) => each.problem);
  }

  /** What is there of a tile; it counts as used. */
  get(wanted: Wanted): Kept | undefined {
    const key = keyOf(wanted);
    const found = this.kept.get(key);
    if (found) {
      this.kept.delete(key);
      this.kept.set(key, found);
    }
    return found;
  }

  all(): Iterable<Kept> {
    return this.kept.values();
  }

  /** Fetch these, in this order, and no others. */
  want(wanted: Wanted[]): void {
    const keys = new Set(wanted.map(keyOf));
    for (const [key, controller] of this.running) {
      if (keys.has(key)) continue;
      this.cancelled++;
      this.running.delete(key);
      controller.abort();
    }
    this.queue = wanted.filter((each) => !this.kept.has(keyOf(each)) && !this.running.has(keyOf(each)));
    this.pump();
  }

  /** Forget what failed, so that it is asked for again. */
  retry(): void {
    for (const [key, each] of this.kept) {
      if (!each.problem) continue;
      this.kept.delete(key);
      this.bytes -= sizeOf(each);
    }
  }

  clear(): void {
    this.want([]);
    this.kept.clear();
    this.bytes = 0;
  }

  private pump(): void {
    while (this.running.size < AT_ONCE) {
      const next = this.queue.shift();
      if (!next) return;
      void this.fetch(next);
    }
  }

  private async fetch(wanted: Wanted): Promise<void> {
    const key = keyOf(wanted);
    const controller = new AbortController();
    this.running.set(key, controller);
    let tile: Tile | null = null;
    let problem: Problem | null = null;
    try {
      tile = await fetchTile(wanted.query, controller.signal);
    } catch (error) {
      problem = error instanceof Problem ? error : new Problem(String(error));
    }
    if (this.running.get(key) !== controller) return; // given up
    this.running.delete(key);
    this.keep(key, { wanted, tile, problem, painted: "", picture: null });
    this.pump();
    this.changed();
  }

  private keep(key: string, found: Kept): void {
    this.kept.set(key, found);
    this.bytes += sizeOf(found);
    for (const [old, each] of this.kept) {
      if (this.bytes <= KEPT_BYTES || old === key) break;
      this.kept.delete(old);
      this.bytes -= sizeOf(each);
    }
  }
}

/** Values, and the picture that is painted of them. */
function sizeOf(kept: Kept): number {
  if (!kept.tile) return 1000;
  const { values, exact, shape } = kept.tile;
  return values.byteLength + (exact?.byteLength ?? 0) + 4 * (shape[0] ?? 1) * (shape[1] ?? 1);
}
