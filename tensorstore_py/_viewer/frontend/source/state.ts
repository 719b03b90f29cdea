// What is shown: the state that a link holds, and nothing else that has to be remembered.
import type { ArrayNode } from "./api";
import { MAP_NAMES } from "./colours";

export type Aspect = "square" | "physical" | "fill";

/** What is seen of an array. Offsets count from its first element. */
export interface View {
  rows: number | null;
  columns: number | null;
  colour: number | null;
  at: number[];
  field: string;
  part: string;
  map: string;
  inverted: boolean;
  /** Contrast; null: chosen from what is seen. */
  low: number | null;
  high: number | null;
  /** The middle of the picture, and how many CSS pixels an element has; null: all is seen. */
  centre: [row: number, column: number] | null;
  scale: number | null;
  aspect: Aspect;
  grid: boolean;
  stored: boolean;
  table: boolean;
}

/** A change of what is seen, by what is seen by then. */
export type Change = (part: Partial<View> | ((old: View) => Partial<View>)) => void;

export function firstView(node: ArrayNode): View {
  const { rows, columns, colour } = node.display;
  return {
    rows, columns, colour,
    at: node.axes.map((axis, dim) =>
      dim === rows || dim === columns || dim === colour ? 0 : Math.floor((axis.size - 1) / 2 + 0.5)),
    field: node.fields.find((field) => field.wire)?.name ?? "",
    part: node.form.parts[0] ?? "",
    map: "gray", inverted: false, low: null, high: null, centre: null, scale: null,
    aspect: hasPhysical(node, rows, columns) ? "physical" : "square",
    grid: false, stored: false, table: false,
  };
}

/** Whether elements are known to be of other heights than widths. */
export function hasPhysical(node: ArrayNode, rows: number | null, columns: number | null): boolean {
  if (rows === null || columns === null) return false;
  const [one, other] = [node.axes[rows], node.axes[columns]];
  return !!one && !!other && one.unit === other.unit && one.step !== other.step && one.step > 0 && other.step > 0;
}

export function nameOf(node: ArrayNode, dim: number): string {
  return node.axes[dim]?.label || `dim ${dim}`;
}

/** The text after `#` for what is seen of a node. */
export function toLink(path: string, view: View | null): string {
  const parts: string[] = [];
  const put = (name: string, value: string | number): void => {
    parts.push(`${name}=${encodeURIComponent(String(value)).replace(/%2F/g, "/").replace(/%2C/g, ",")}`);
  };
  if (path) put("path", path);
  if (view) {
    const dims = [view.rows, view.columns, view.colour].map((dim) => (dim === null ? "" : dim)).join(",");
    put("dims", dims);
    if (view.at.length) put("at", view.at.join(","));
    if (view.field) put("field", view.field);
    if (view.part) put("part", view.part);
    put("map", view.map + (view.inverted ? "-inverted" : ""));
    if (view.low !== null && view.high !== null) put("contrast", `${view.low},${view.high}`);
    if (view.centre && view.scale !== null) {
      put("centre", view.centre.map((each) => +each.toFixed(2)).join(","));
      put("scale", +view.scale.toPrecision(6));
    }
    put("aspect", view.aspect);
    const flags = (["grid", "stored", "table"] as const).filter((name) => view[name]);
    if (flags.length) put("show", flags.join(","));
  }
  return parts.join("&");
}

export const pathOf = (link: string): string => new URLSearchParams(link).get("path") ?? "";

/** What a link says is seen of an array; what it says wrongly is as if it were not said. */
export function fromLink(link: string, node: ArrayNode): View {
  const said = new URLSearchParams(link);
  const view = firstView(node);
  const rank = node.axes.length;
  const dims = said.get("dims")?.split(",").map((each) => (each === "" ? null : Number(each)));
  if (dims?.length === 3 && dims.every((dim) => dim === null || (Number.isInteger(dim) && dim >= 0 && dim < rank))) {
    const named = dims.filter((dim) => dim !== null);
    const drawable = dims[1] !== null || rank === 0;
    if (new Set(named).size === named.length && drawable) {
      [view.rows, view.columns, view.colour] = [dims[0] ?? null, dims[1] ?? null, dims[2] ?? null];
    }
  }
  const at = said.get("at")?.split(",").map(Number);
  if (at?.length === rank && at.every((each) => Number.isInteger(each))) {
    view.at = at.map((each, dim) => Math.min(Math.max(0, each), Math.max(0, (node.axes[dim]?.size ?? 1) - 1)));
  }
  const field = said.get("field");
  if (field !== null && node.fields.some((each) => each.name === field)) view.field = field;
  const part = said.get("part");
  if (part && node.form.parts.concat(...node.fields.map((each) => each.parts)).includes(part)) view.part = part;
  const map = said.get("map");
  if (map && MAP_NAMES.includes(map.replace(/-inverted$/, ""))) {
    view.map = map.replace(/-inverted$/, "");
    view.inverted = map.endsWith("-inverted");
  }
  const contrast = numbers(said.get("contrast"), 2);
  if (contrast) [view.low, view.high] = contrast as [number, number];
  const centre = numbers(said.get("centre"), 2);
  const scale = numbers(said.get("scale"), 1)?.[0];
  if (centre && scale !== undefined && scale > 0) {
    view.centre = centre as [number, number];
    view.scale = scale;
  }
  const aspect = said.get("aspect");
  if (aspect === "square" || aspect === "physical" || aspect === "fill") view.aspect = aspect;
  const show = said.get("show")?.split(",") ?? [];
  for (const name of ["grid", "stored", "table"] as const) view[name] = show.includes(name);
  return view;
}

function numbers(text: string | null, count: number): number[] | null {
  const found = text?.split(",").map(Number) ?? [];
  return found.length === count && found.every(Number.isFinite) ? found : null;
}
