// Where elements are on the screen: arithmetic between offsets, tiles and pixels.
import type { ArrayNode, Level, Query } from "./api";
import { type Wanted } from "./tiles";
import { hasPhysical, type View } from "./state";

/** Elements of less than this many device pixels are drawn from a coarser grid. */
const MOST_SCALE = 256;

export class Frame {
  readonly size: [rows: number, columns: number];
  /** CSS pixels an element has, downwards and to the right. */
  readonly scale: [number, number];
  readonly centre: [number, number];
  readonly steps: [number, number];
  readonly level: number;
  readonly slice: string;
  private readonly origin: [number, number];

  constructor(
    readonly node: ArrayNode,
    readonly view: View,
    readonly width: number,
    readonly height: number,
    readonly ratio: number,
  ) {
    const [rows, columns] = drawn(node, view);
    this.size = [rows, columns];
    const stretch = stretchOf(node, view, width, height);
    const fit = Math.min(width / Math.max(1, columns), height / Math.max(1, rows * stretch));
    const most = Math.max(MOST_SCALE, fit);
    const scale = Math.min(most, Math.max(view.scale ?? fit, Math.min(1, fit / 8)));
    this.scale = [scale * stretch, scale];
    this.centre = view.centre && view.scale !== null ? view.centre : [rows / 2, columns / 2];
    this.origin = [
      Math.round((height / 2 - this.centre[0] * this.scale[0]) * ratio),
      Math.round((width / 2 - this.centre[1] * this.scale[1]) * ratio),
    ];
    this.steps = [stepOf(this.scale[0] * ratio, rows), stepOf(this.scale[1] * ratio, columns)];
    this.level = levelOf(node, view, this.steps);
    const at = node.axes.map((_, dim) => (dim === view.rows || dim === view.columns || dim === view.colour ? "" : view.at[dim]));
    this.slice = [node.path, view.rows, view.columns, view.colour, at, view.field, view.part].join("|");
  }

  /** The device pixel, with a fraction, where an offset along a dimension (0: rows) begins. */
  pixel(axis: 0 | 1, offset: number): number {
    return this.origin[axis] + offset * this.scale[axis] * this.ratio;
  }

  /** The offset under a point in CSS pixels. */
  offset(axis: 0 | 1, point: number): number {
    return (point * this.ratio - this.origin[axis]) / (this.scale[axis] * this.ratio);
  }

  /** The elements that are seen: the first, and the one after the last. */
  seen(axis: 0 | 1): [number, number] {
    const extent = axis === 0 ? this.height : this.width;
    const low = Math.max(0, Math.floor(this.offset(axis, 0)));
    const high = Math.min(this.size[axis], Math.ceil(this.offset(axis, extent)));
    return [Math.min(low, high), high];
  }

  /** The tiles that are seen, those nearest to the middle first. */
  tiles(): Wanted[] {
    const found: { wanted: Wanted; far: number }[] = [];
    const spans = this.steps.map((step) => step * this.node.tile) as [number, number];
    const [top, bottom] = this.seen(0);
    const [left, right] = this.seen(1);
    for (let row = Math.floor(top / spans[0]); row * spans[0] < bottom; row++) {
      for (let column = Math.floor(left / spans[1]); column * spans[1] < right; column++) {
        const far = Math.hypot(
          ((row + 0.5) * spans[0] - this.centre[0]) * this.scale[0],
          ((column + 0.5) * spans[1] - this.centre[1]) * this.scale[1],
        );
        found.push({ wanted: this.tile(row, column), far });
      }
    }
    return found.sort((one, other) => one.far - other.far).map((each) => each.wanted);
  }

  tile(row: number, column: number): Wanted {
    const { view } = this;
    return {
      slice: this.slice,
      steps: this.steps,
      tile: [row, column],
      query: { ...this.query(), steps: this.steps, tile: [row, column], colour: view.colour, field: view.field, part: view.part },
    };
  }

  /** The part of a request that says which slice it is of. */
  query(): Query {
    const { node, view } = this;
    return { path: node.path, rows: view.rows, columns: view.columns, at: view.at };
  }

  /** Chunks, or shards, along a dimension: their extent in elements, and where one begins. */
  chunks(axis: 0 | 1, shards: boolean): [extent: number, start: number] {
    const dim = axis === 0 ? this.view.rows : this.view.columns;
    const level = this.node.levels[this.level];
    if (dim === null || !level) return [0, 0];
    const [size, origin] = (shards ? level.shards : level.chunks)[dim] ?? [0, 0];
    const factor = level.factors[dim] ?? 1;
    return [size * factor, (origin - (level.origin[dim] ?? 0)) * factor];
  }
}

export function drawn(node: ArrayNode, view: View): [rows: number, columns: number] {
  const size = (dim: number | null): number => (dim === null ? 1 : (node.axes[dim]?.size ?? 1));
  return [size(view.rows), size(view.columns)];
}

/** How much higher than wide an element is. */
function stretchOf(node: ArrayNode, view: View, width: number, height: number): number {
  const [rows, columns] = drawn(node, view);
  if (view.aspect === "fill") return height / Math.max(1, rows) / (width / Math.max(1, columns));
  if (view.aspect === "physical" && hasPhysical(node, view.rows, view.columns)) {
    return node.axes[view.rows!]!.step / node.axes[view.columns!]!.step;
  }
  return 1;
}

function stepOf(scale: number, size: number): number {
  const power = Math.max(0, Math.round(-Math.log2(scale)));
  return 2 ** Math.min(power, Math.max(0, Math.ceil(Math.log2(Math.max(1, size)))), 48);
}

/** The level that the server takes for steps: the smallest that has an element for each. */
function levelOf(node: ArrayNode, view: View, steps: [number, number]): number {
  const fits = (level: Level): boolean =>
    (view.rows === null || (level.factors[view.rows] ?? 1) <= steps[0] * 1.001) &&
    (view.columns === null || (level.factors[view.columns] ?? 1) <= steps[1] * 1.001);
  for (let number = node.levels.length - 1; number > 0; number--) if (fits(node.levels[number]!)) return number;
  return 0;
}
