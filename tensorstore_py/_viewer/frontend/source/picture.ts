// The picture: tiles on one canvas; the grid, the map of chunks, rulers and values on another above.
import { fetchChunks, Problem, type ArrayNode, type ChunkMap, type Tile } from "./api";
import { type Paint, painted, tableOf } from "./colours";
import { Frame } from "./frame";
import { keyOf, type Kept, Tiles, type Wanted } from "./tiles";
import { statisticsOf, type Statistics } from "./statistics";
import { nameOf, type View } from "./state";
import { sizeText, tickStep, numberText } from "./words";

export interface Hover {
  /** Offsets along all dimensions. */
  at: number[];
  /** The value; null: not there yet. */
  text: string | null;
  /** Whether it is that of these offsets, and not of some nearby. */
  exact: boolean;
}

export interface Told {
  /** What was drawn. */
  view: View;
  busy: boolean;
  statistics: Statistics | null;
  paint: Paint;
  problems: { where: string; text: string; gone: boolean }[];
  level: number;
  steps: [number, number];
  sampled: boolean;
  scale: number;
  chunks: ChunkMap | null;
  chunksProblem: string;
  grid: "chunks" | "shards" | "too small" | "none";
  cancelled: number;
}

const VALUE_PIXELS = 46;

export class Picture {
  readonly tiles: Tiles;
  private readonly canvas: HTMLCanvasElement;
  private readonly overlay: HTMLCanvasElement;
  private readonly tell: (told: Told) => void;
  private node: ArrayNode | null = null;
  private view: View | null = null;
  private frame: Frame | null = null;
  private asked = 0;
  private auto: { key: string; low: number; high: number; settled: boolean } | null = null;
  private lastSlice = "";
  private map: { key: string; found: ChunkMap | null; problem: string } | null = null;
  private mapping: AbortController | null = null;
  private lastTold: { text: string; view: View | null } = { text: "", view: null };
  margin = { left: 54, top: 24 };

  constructor(canvas: HTMLCanvasElement, overlay: HTMLCanvasElement, tell: (told: Told) => void) {
    this.canvas = canvas;
    this.overlay = overlay;
    this.tell = tell;
    this.tiles = new Tiles(() => this.draw());
  }

  show(node: ArrayNode, view: View): void {
    if (node !== this.node) {
      this.tiles.clear();
      this.auto = null;
      this.map = null;
    }
    this.node = node;
    this.view = view;
    this.draw();
  }

  /** Let go of everything. */
  close(): void {
    this.node = null;
    this.mapping?.abort();
    this.tiles.clear();
    cancelAnimationFrame(this.asked);
  }

  retry(): void {
    this.tiles.retry();
    this.map = null;
    this.draw();
  }

  /** Choose contrast anew from what is seen. */
  autoContrast(): void {
    this.auto = null;
    this.draw();
  }

  draw(): void {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.drawNow();
    });
  }

  get current(): Frame | null {
    return this.frame;
  }

  private drawNow(): void {
    const { node, view, canvas } = this;
    if (!node || !view) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    for (const each of [canvas, this.overlay]) {
      const [wide, high] = [Math.round(each.clientWidth * ratio), Math.round(each.clientHeight * ratio)];
      if (each.width !== wide) each.width = wide;
      if (each.height !== high) each.height = high;
    }
    const frame = (this.frame = new Frame(node, view, width, height, ratio));
    const wanted = frame.tiles();
    this.tiles.want(wanted);
    const here = wanted.map((each) => this.tiles.get(each)).filter((each): each is Kept => !!each);
    const tiles = here.map((each) => each.tile).filter((each): each is Tile => !!each);
    const busy = here.length < wanted.length;
    const statistics = statisticsOf(tiles, frame.steps.some((step) => step > 1));
    const paint = this.paint(frame, statistics, busy);
    const context = canvas.getContext("2d", { willReadFrequently: false })!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (view.rows === null) this.drawLine(context, frame, here, paint);
    else this.drawTiles(context, frame, here, paint, busy);
    if (!busy) this.lastSlice = frame.slice;
    this.askForMap(frame);
    this.drawOverlay(frame, here, paint);
    this.report(frame, here, statistics, paint, busy);
  }

  private paint(frame: Frame, statistics: Statistics | null, busy: boolean): Paint {
    const { view } = frame;
    const base = { map: view.map, inverted: view.inverted };
    if (view.low !== null && view.high !== null) return { ...base, low: view.low, high: view.high };
    const key = [frame.node.path, view.field, view.part, view.colour].join("|");
    const kind = wireOf(frame.node, view);
    if (this.auto?.key !== key || !this.auto.settled) {
      let [low, high] = [statistics?.least ?? 0, statistics?.most ?? 1];
      if (!(high > low) || view.rows === null) [low, high] = [statistics?.low ?? 0, statistics?.high ?? 1];
      if (view.colour !== null && kind === "u1") [low, high] = [0, 255];
      if (frame.node.dtype === "bool") [low, high] = [0, 1];
      if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
      this.auto = { key, low, high, settled: !busy && !!statistics };
    }
    return { ...base, low: this.auto.low, high: this.auto.high };
  }

  private drawTiles(context: CanvasRenderingContext2D, frame: Frame, here: Kept[], paint: Paint, busy: boolean): void {
    context.imageSmoothingEnabled = false;
    const edge = (axis: 0 | 1, offset: number): number => Math.round(frame.pixel(axis, offset));
    context.save();
    context.beginPath();
    context.rect(edge(1, 0), edge(0, 0), edge(1, frame.size[1]) - edge(1, 0), edge(0, frame.size[0]) - edge(0, 0));
    context.clip();
    context.fillStyle = style("--empty");
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    if (busy) {
      // What is known already: tiles of other steps, or of the slice before.
      const known = [...this.tiles.all()].filter(
        (each) => each.tile && (each.wanted.slice === frame.slice || each.wanted.slice === this.lastSlice));
      const order = (each: Kept): number =>
        (each.wanted.slice === frame.slice ? 0 : 1e6) + Math.abs(Math.log2((each.wanted.steps[0] + 0.5) / frame.steps[0])) +
        (each.wanted.steps[0] > frame.steps[0] ? 0 : 100);
      known.sort((one, other) => order(other) - order(one));
      for (const each of known) this.drawTile(context, frame, each, paint);
    }
    for (const each of here) {
      if (each.problem) this.drawProblem(context, frame, each.wanted, each.problem);
      else this.drawTile(context, frame, each, paint);
    }
    context.restore();
  }

  private drawTile(context: CanvasRenderingContext2D, frame: Frame, kept: Kept, paint: Paint): void {
    const { tile, wanted } = kept;
    if (!tile) return;
    const box = [0, 1].map((axis) => extentOf(frame, wanted, tile, axis as 0 | 1)) as [[number, number], [number, number]];
    const [top, bottom] = box[0].map((each) => Math.round(frame.pixel(0, each))) as [number, number];
    const [left, right] = box[1].map((each) => Math.round(frame.pixel(1, each))) as [number, number];
    if (right <= 0 || bottom <= 0 || left >= context.canvas.width || top >= context.canvas.height) return;
    const key = `${paint.map}|${paint.inverted}|${paint.low}|${paint.high}`;
    if (!kept.picture || kept.painted !== key) {
      const image = painted(tile, paint);
      kept.picture ??= Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
      kept.picture.getContext("2d")!.putImageData(image, 0, 0);
      kept.painted = key;
    }
    context.drawImage(kept.picture, left, top, Math.max(1, right - left), Math.max(1, bottom - top));
  }

  private drawProblem(context: CanvasRenderingContext2D, frame: Frame, wanted: Wanted, problem: Problem): void {
    const span = (axis: 0 | 1): [number, number] => {
      const extent = wanted.steps[axis] * frame.node.tile;
      const low = frame.pixel(axis, wanted.tile[axis] * extent);
      const high = frame.pixel(axis, Math.min(frame.size[axis], (wanted.tile[axis] + 1) * extent));
      const limit = axis === 0 ? context.canvas.height : context.canvas.width;
      return [Math.max(0, low), Math.min(limit, high)];
    };
    const [top, bottom] = span(0);
    const [left, right] = span(1);
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    context.fillStyle = style("--problem-back");
    context.fillRect(left, top, right - left, bottom - top);
    context.strokeStyle = style("--problem");
    context.lineWidth = 2 * frame.ratio;
    context.strokeRect(left + 1, top + 1, right - left - 2, bottom - top - 2);
    context.fillStyle = style("--problem");
    const size = 12 * frame.ratio;
    context.font = `${size}px ${style("--sans")}`;
    context.textBaseline = "top";
    let y = top + size;
    for (const line of wrapped(context, problem.message, right - left - 2 * size)) {
      context.fillText(line, left + size, y);
      y += size * 1.4;
      if (y > bottom - size) break;
    }
    context.restore();
  }

  /** One dimension: a line over its elements. */
  private drawLine(context: CanvasRenderingContext2D, frame: Frame, here: Kept[], paint: Paint): void {
    const height = context.canvas.height;
    const pad = 12 * frame.ratio;
    const spread = paint.high - paint.low || 1;
    const y = (value: number): number => height - pad - ((value - paint.low) / spread) * (height - 2 * pad);
    context.lineWidth = 1.5 * frame.ratio;
    context.lineJoin = "round";
    context.strokeStyle = style("--accent");
    context.fillStyle = style("--accent");
    const dots = frame.scale[1] >= 8;
    const sorted = [...here].sort((one, other) => one.wanted.tile[1] - other.wanted.tile[1]);
    context.beginPath();
    let drawing = false;
    for (const { wanted, tile } of sorted) {
      if (!tile) {
        drawing = false;
        continue;
      }
      const [low, high] = extentOf(frame, wanted, tile, 1);
      const count = tile.values.length;
      for (let at = 0; at < count; at++) {
        const value = tile.values[at]!;
        if (!Number.isFinite(value)) {
          drawing = false;
          continue;
        }
        const x = frame.pixel(1, low + ((at + 0.5) * (high - low)) / count);
        if (drawing) context.lineTo(x, y(value));
        else context.moveTo(x, y(value));
        drawing = true;
        if (dots) {
          context.moveTo(x + 2.5 * frame.ratio, y(value));
          context.arc(x, y(value), 2.5 * frame.ratio, 0, 7);
          context.moveTo(x, y(value));
        }
      }
    }
    context.stroke();
    for (const each of sorted) if (each.problem) this.drawProblem(context, frame, each.wanted, each.problem);
  }

  // What lies above.

  private drawOverlay(frame: Frame, here: Kept[], paint: Paint): void {
    const context = this.overlay.getContext("2d")!;
    const { ratio } = frame;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.overlay.width, this.overlay.height);
    const [left, top] = [Math.round(this.margin.left * ratio), Math.round(this.margin.top * ratio)];
    context.save();
    context.translate(left, top);
    context.beginPath();
    context.rect(0, 0, frame.width * ratio, frame.height * ratio);
    context.clip();
    if (frame.view.stored) this.drawMap(context, frame);
    if (frame.view.grid) this.drawGrid(context, frame);
    if (frame.view.rows !== null) this.drawValues(context, frame, here, paint);
    this.drawScaleBar(context, frame);
    context.restore();
    this.drawRuler(context, frame, 1, left, top);
    if (frame.view.rows !== null) this.drawRuler(context, frame, 0, left, top);
    else this.drawHeights(context, frame, paint, left, top);
  }

  private gridKind(frame: Frame): Told["grid"] {
    const wide = (shards: boolean): number =>
      Math.min(...([0, 1] as const).map((axis) => {
        const extent = frame.chunks(axis, shards)[0] * frame.scale[axis];
        return extent || Infinity;
      }));
    if (!Number.isFinite(wide(false))) return "none";
    if (wide(false) >= 4) return "chunks";
    return wide(true) >= 4 ? "shards" : "too small";
  }

  private drawGrid(context: CanvasRenderingContext2D, frame: Frame): void {
    const kind = this.gridKind(frame);
    if (kind === "too small" || kind === "none") return;
    const lines = (shards: boolean, width: number, colour: string): void => {
      context.lineWidth = width * frame.ratio;
      context.strokeStyle = colour;
      context.beginPath();
      for (const axis of [0, 1] as const) {
        const [extent, start] = frame.chunks(axis, shards);
        if (!extent) continue;
        const [low, high] = frame.seen(axis);
        const [from, to] = frame.seen((1 - axis) as 0 | 1);
        const other = (1 - axis) as 0 | 1;
        const ends = [Math.round(frame.pixel(other, from)), Math.round(frame.pixel(other, to))] as const;
        for (let at = start + Math.ceil((low - start) / extent) * extent; at <= high; at += extent) {
          const place = Math.round(frame.pixel(axis, at)) + 0.5;
          if (axis === 0) {
            context.moveTo(ends[0], place);
            context.lineTo(ends[1], place);
          } else {
            context.moveTo(place, ends[0]);
            context.lineTo(place, ends[1]);
          }
        }
      }
      context.stroke();
    };
    const sharded = frame.chunks(0, true)[0] !== frame.chunks(0, false)[0] || frame.chunks(1, true)[0] !== frame.chunks(1, false)[0];
    if (kind === "chunks") {
      lines(false, 2.5, "rgb(0 0 0 / 35%)");
      lines(false, 1, "rgb(255 255 255 / 80%)");
    }
    if (sharded) {
      lines(true, 4, "rgb(0 0 0 / 45%)");
      lines(true, 2, "#ffd166");
    }
  }

  private askForMap(frame: Frame): void {
    if (!frame.view.stored) {
      this.mapping?.abort();
      this.map = null;
      return;
    }
    const key = `${frame.slice}|${frame.level}`;
    if (this.map?.key === key) return;
    this.mapping?.abort();
    const controller = (this.mapping = new AbortController());
    this.map = { key, found: null, problem: "" };
    void fetchChunks({ ...frame.query(), level: frame.level }, controller.signal).then(
      (found) => this.mapped(controller, { key, found, problem: "" }),
      (error: unknown) => {
        if (!controller.signal.aborted) this.mapped(controller, { key, found: null, problem: String(error instanceof Error ? error.message : error) });
      },
    );
  }

  private mapped(controller: AbortController, map: { key: string; found: ChunkMap | null; problem: string }): void {
    if (this.mapping !== controller) return;
    this.map = map;
    this.draw();
  }

  private drawMap(context: CanvasRenderingContext2D, frame: Frame): void {
    const found = this.map?.found;
    if (!found) return;
    const edge = (axis: 0 | 1, offset: number): number => Math.round(frame.pixel(axis, Math.max(0, Math.min(frame.size[axis], offset))));
    const [top, left] = [edge(0, 0), edge(1, 0)];
    const [bottom, right] = [edge(0, frame.size[0]), edge(1, frame.size[1])];
    context.fillStyle = hatch(context, frame.ratio);
    context.fillRect(left, top, right - left, bottom - top);
    const sizes = found.cells.map((cell) => cell[2]).filter((size) => size >= 0);
    const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
    const table = tableOf("viridis", false);
    const gap = Math.min(...([0, 1] as const).map((axis) => found.extent[axis] * frame.scale[axis])) > 6 ? frame.ratio : 0;
    for (const [row, column, size] of found.cells) {
      const [y, x] = [edge(0, row), edge(1, column)];
      const [y1, x1] = [edge(0, row + found.extent[0]), edge(1, column + found.extent[1])];
      if (y1 <= 0 || x1 <= 0 || y >= context.canvas.height || x >= context.canvas.width) continue;
      context.clearRect(x, y, x1 - x, y1 - y);
      const colour = table[size < 0 || high <= low ? 128 : Math.round(((size - low) / (high - low)) * 255)]!;
      context.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255} / 62%)`;
      context.fillRect(x, y, Math.max(1, x1 - x - gap), Math.max(1, y1 - y - gap));
      if (x1 - x > 58 * frame.ratio && y1 - y > 20 * frame.ratio && size >= 0) {
        context.font = `600 ${11 * frame.ratio}px ${style("--sans")}`;
        context.textAlign = "center";
        context.textBaseline = "middle";
        outlined(context, sizeText(size), (x + x1) / 2, (y + y1) / 2, frame.ratio);
      }
    }
  }

  private drawValues(context: CanvasRenderingContext2D, frame: Frame, here: Kept[], paint: Paint): void {
    if (Math.min(...frame.scale) < VALUE_PIXELS || frame.view.stored || paint.map === "") return;
    const [top, bottom] = frame.seen(0);
    const [left, right] = frame.seen(1);
    context.font = `${11 * frame.ratio}px ${style("--mono")}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const room = (frame.scale[1] - 6) * frame.ratio;
    const kept = new Map(here.map((each) => [keyOf(each.wanted), each]));
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        const text = this.valueAt(frame, row, column, kept)?.text;
        if (text === undefined || text === null) continue;
        const lines = text.split(" ");
        const height = 13 * frame.ratio;
        const y = frame.pixel(0, row + 0.5) - ((lines.length - 1) * height) / 2;
        lines.forEach((line, at) => {
          if (context.measureText(line).width <= room) outlined(context, line, frame.pixel(1, column + 0.5), y + at * height, frame.ratio);
        });
      }
    }
  }

  private valueAt(frame: Frame, row: number, column: number, kept?: Map<string, Kept>): { text: string; exact: boolean } | null {
    const spans = frame.steps.map((step) => step * frame.node.tile) as [number, number];
    const wanted = frame.tile(Math.floor(row / spans[0]), Math.floor(column / spans[1]));
    const tile = (kept ? kept.get(keyOf(wanted)) : this.tiles.get(wanted))?.tile;
    if (!tile) return null;
    const [height = 1, width = 1, channels = 0] = tile.shape;
    const place = [row, column].map((offset, axis) => {
      const [low, high] = extentOf(frame, wanted, tile, axis as 0 | 1);
      const count = axis === 0 ? height : width;
      return Math.min(count - 1, Math.max(0, Math.floor(((offset + 0.5 - low) / (high - low)) * count)));
    }) as [number, number];
    const at = place[0] * width + place[1];
    const one = (index: number): string =>
      tile.exact ? String(tile.exact[index]) : numberText(tile.values[index]!, tile.type);
    const text = channels
      ? Array.from({ length: channels }, (_, channel) => one(at * channels + channel)).join(" ")
      : frame.node.dtype === "bool" ? (tile.values[at] ? "true" : "false") : one(at);
    const exact = frame.steps[0] === 1 && frame.steps[1] === 1 && tile.level === 0 && !tile.sampled;
    return { text, exact };
  }

  /** What is under a point of the picture, in CSS pixels; null: nothing. */
  hover(x: number, y: number): Hover | null {
    const { frame } = this;
    if (!frame) return null;
    const column = Math.floor(frame.offset(1, x));
    const row = frame.view.rows === null ? 0 : Math.floor(frame.offset(0, y));
    if (row < 0 || column < 0 || row >= frame.size[0] || column >= frame.size[1]) return null;
    const at = [...frame.view.at];
    if (frame.view.rows !== null) at[frame.view.rows] = row;
    if (frame.view.columns !== null) at[frame.view.columns] = column;
    const found = this.valueAt(frame, row, column);
    const form = frame.node.fields.find((field) => field.name === frame.view.field) ?? frame.node.form;
    const exact = !!found?.exact && !form.is_time && !form.parts.length;
    return { at, text: form.is_time && !exact ? null : (found?.text ?? null), exact };
  }

  private drawScaleBar(context: CanvasRenderingContext2D, frame: Frame): void {
    const axis = frame.view.columns === null ? null : frame.node.axes[frame.view.columns];
    if (!axis?.unit || frame.width < 240 || frame.view.rows === null) return;
    const perPixel = axis.step / frame.scale[1];
    const length = tickStep(perPixel * 90);
    const wide = (length / perPixel) * frame.ratio;
    const { ratio } = frame;
    const [x, y] = [frame.width * ratio - wide - 16 * ratio, frame.height * ratio - 18 * ratio];
    context.fillStyle = "rgb(0 0 0 / 72%)";
    context.beginPath();
    context.roundRect(x - 8 * ratio, y - 20 * ratio, wide + 16 * ratio, 32 * ratio, 5 * ratio);
    context.fill();
    context.fillStyle = "#fff";
    context.fillRect(x, y, wide, 3 * ratio);
    context.font = `${12 * ratio}px ${style("--sans")}`;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.fillText(`${+length.toPrecision(6)} ${shortUnit(axis.unit)}`, x + wide / 2, y - 6 * ratio);
  }

  private drawRuler(context: CanvasRenderingContext2D, frame: Frame, axis: 0 | 1, left: number, top: number): void {
    const { ratio } = frame;
    const dim = axis === 0 ? frame.view.rows : frame.view.columns;
    const about = dim === null ? undefined : frame.node.axes[dim];
    if (!about || dim === null) return;
    const [low, high] = frame.seen(axis);
    // Ticks are at round numbers of units where there are some, else of elements.
    const unit = about.unit ? about.step : 1;
    const least = tickStep((68 / frame.scale[axis]) * unit);
    const step = about.unit ? least : Math.max(1, least);
    context.save();
    context.fillStyle = style("--faint");
    context.strokeStyle = style("--line");
    context.lineWidth = ratio;
    context.font = `${11 * ratio}px ${style("--sans")}`;
    const name = nameOf(frame.node, dim) + (about.unit ? ` (${shortUnit(about.unit)})` : "");
    // A wide element is marked in its middle, which is where its position is.
    const shift = frame.scale[axis] >= 12 ? 0.5 : 0;
    const last = (about.origin + high) * unit;
    for (let number = Math.ceil(((about.origin + low) * unit) / step); number * step < last; number++) {
      const at = number * step;
      const place = Math.round(frame.pixel(axis, at / unit - about.origin + shift));
      const text = about.unit ? String(+at.toPrecision(7)) : at.toLocaleString("en");
      if (axis === 1) {
        const room = (frame.width - 8) * ratio - context.measureText(name).width;
        context.fillRect(left + place, top - 5 * ratio, ratio, 5 * ratio);
        context.textAlign = "center";
        context.textBaseline = "alphabetic";
        const half = context.measureText(text).width / 2;
        if (place + half < room - 6 * ratio && place - half > -30 * ratio) context.fillText(text, left + place, top - 8 * ratio);
      } else if (place > 2 * ratio) {
        context.fillRect(left - 5 * ratio, top + place, 5 * ratio, ratio);
        context.save();
        context.translate(left - 8 * ratio, top + place);
        context.textAlign = "right";
        context.textBaseline = "middle";
        context.fillText(text, 0, 0, left - 10 * ratio);
        context.restore();
      }
    }
    context.fillStyle = style("--text");
    context.font = `600 ${11 * ratio}px ${style("--sans")}`;
    if (axis === 1) {
      context.textAlign = "right";
      context.fillText(name, left + frame.width * ratio - 4 * ratio, top - 8 * ratio);
    } else {
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.fillText(name, 6 * ratio, top - 8 * ratio, left - 8 * ratio);
    }
    context.restore();
  }

  /** The ruler of values beside a line. */
  private drawHeights(context: CanvasRenderingContext2D, frame: Frame, paint: Paint, left: number, top: number): void {
    const { ratio } = frame;
    const pad = 12;
    const spread = paint.high - paint.low || 1;
    const step = tickStep((spread / Math.max(1, frame.height - 2 * pad)) * 44);
    context.save();
    context.fillStyle = style("--faint");
    context.font = `${11 * ratio}px ${style("--sans")}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let number = Math.ceil(paint.low / step); number * step <= paint.high; number++) {
      const value = number * step;
      const place = top + (frame.height - pad - ((value - paint.low) / spread) * (frame.height - 2 * pad)) * ratio;
      context.fillRect(left - 5 * ratio, place, 5 * ratio, ratio);
      context.fillText(String(+value.toPrecision(6)), left - 8 * ratio, place, left - 10 * ratio);
    }
    context.restore();
  }

  private report(frame: Frame, here: Kept[], statistics: Statistics | null, paint: Paint, busy: boolean): void {
    const told: Told = {
      view: frame.view,
      busy: busy || (frame.view.stored && !this.map?.found && !this.map?.problem),
      statistics, paint,
      problems: here.flatMap((each) =>
        each.problem ? [{ where: whereOf(frame, each.wanted), text: each.problem.message, gone: each.problem.gone }] : []),
      level: here.find((each) => each.tile)?.tile?.level ?? frame.level,
      steps: frame.steps,
      sampled: here.some((each) => each.tile?.sampled),
      scale: frame.scale[1],
      chunks: this.map?.found ?? null,
      chunksProblem: this.map?.problem ?? "",
      grid: this.gridKind(frame),
      cancelled: this.tiles.cancelled,
    };
    const text = JSON.stringify([told, this.map?.key]);
    if (text === this.lastTold.text && told.view === this.lastTold.view) return;
    this.lastTold = { text, view: told.view };
    this.tell(told);
  }
}

/** Between which offsets the pixels of a tile lie along a dimension. */
function extentOf(frame: Frame, wanted: Wanted, tile: Tile, axis: 0 | 1): [number, number] {
  const step = wanted.steps[axis];
  const low = wanted.tile[axis] * step * frame.node.tile;
  const count = tile.shape[axis] ?? 1;
  const whole = Math.min(frame.node.tile, Math.ceil((frame.size[axis] - low) / step));
  if (count === whole) return [low, low + count * step];
  return [low, Math.min(frame.size[axis], low + step * frame.node.tile)];
}

function whereOf(frame: Frame, wanted: Wanted): string {
  const { node, view } = frame;
  const words = ([0, 1] as const).flatMap((axis) => {
    const dim = axis === 0 ? view.rows : view.columns;
    if (dim === null) return [];
    const extent = wanted.steps[axis] * node.tile;
    const origin = node.axes[dim]?.origin ?? 0;
    const low = wanted.tile[axis] * extent;
    return [`${nameOf(node, dim)} ${origin + low}–${origin + Math.min(frame.size[axis], low + extent) - 1}`];
  });
  return words.join(", ");
}

export function wireOf(node: ArrayNode, view: View): string {
  return (node.fields.find((field) => field.name === view.field) ?? node.form).wire;
}

export function shortUnit(unit: string): string {
  const short: Record<string, string> = {
    angstrom: "Å", picometer: "pm", nanometer: "nm", micrometer: "µm", millimeter: "mm", centimeter: "cm",
    meter: "m", kilometer: "km", nanosecond: "ns", microsecond: "µs", millisecond: "ms", second: "s",
    minute: "min", hour: "h", day: "d", um: "µm",
  };
  return short[unit] ?? unit;
}

function outlined(context: CanvasRenderingContext2D, text: string, x: number, y: number, ratio: number): void {
  context.lineWidth = 3 * ratio;
  context.lineJoin = "round";
  context.strokeStyle = "rgb(0 0 0 / 70%)";
  context.strokeText(text, x, y);
  context.fillStyle = "#fff";
  context.fillText(text, x, y);
}

function wrapped(context: CanvasRenderingContext2D, text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<=[\s/|,])/)) {
    if (line && context.measureText(line + word).width > width) {
      lines.push(line);
      line = word.trimStart();
    } else line += word;
  }
  return [...lines, line];
}

function hatch(context: CanvasRenderingContext2D, ratio: number): CanvasPattern | string {
  const size = Math.round(8 * ratio);
  const made = Object.assign(document.createElement("canvas"), { width: size, height: size });
  const inner = made.getContext("2d")!;
  inner.fillStyle = style("--missing");
  inner.fillRect(0, 0, size, size);
  inner.strokeStyle = style("--missing-line");
  inner.lineWidth = ratio;
  inner.beginPath();
  for (const shift of [-size, 0, size]) {
    inner.moveTo(shift, size);
    inner.lineTo(shift + size, 0);
  }
  inner.stroke();
  return context.createPattern(made, "repeat") ?? style("--missing");
}

/** A colour or font of the style sheet. */
function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
