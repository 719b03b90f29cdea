// What the server is asked, and what it answers. Paths are relative: the token is in the page's own.

export interface Axis {
  label: string;
  size: number;
  origin: number;
  step: number;
  unit: string;
}

export interface Level {
  name: string;
  shape: number[];
  factors: number[];
  chunks: [size: number, origin: number][];
  shards: [size: number, origin: number][];
  origin: number[];
}

/** How elements become numbers; `wire` is empty if they do not. */
export interface Form {
  name: string;
  wire: string;
  parts: string[];
  is_time: boolean;
}

interface Told {
  path: string;
  facts: [name: string, value: string][];
  attributes: unknown;
}

export interface ArrayNode extends Told {
  kind: "array" | "image";
  tile: number;
  axes: Axis[];
  dtype: unknown;
  levels: Level[];
  form: Form;
  fields: Form[];
  display: { rows: number | null; columns: number | null; colour: number | null };
}

export interface GroupNode extends Told {
  kind: "group" | "directory";
}

export type Node = ArrayNode | GroupNode;

export interface Member {
  name: string;
  kind: "array" | "group" | "directory" | "unreadable";
  summary: string;
}

export type Values =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

export interface Tile {
  shape: number[];
  type: string;
  level: number;
  sampled: boolean;
  low: number | null;
  high: number | null;
  values: Values;
  /** The values that `values` has rounded. */
  exact: BigInt64Array | BigUint64Array | null;
}

export interface ChunkMap {
  cells: [row: number, column: number, size: number][];
  extent: [number, number];
  total: number;
  keys: number;
  complete: boolean;
}

/** What the server, or the way to it, says is wrong. */
export class Problem extends Error {
  /** Whether there is no server any more. */
  readonly gone: boolean;

  constructor(text: string, gone = false) {
    super(text);
    this.gone = gone;
  }
}

export type Query = Record<string, string | number | readonly number[] | null>;

async function asked(name: string, query: Query, signal?: AbortSignal): Promise<Response> {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== "") parameters.set(key, String(value));
  }
  let answer: Response;
  try {
    answer = await fetch(`api/${name}?${parameters}`, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem("The viewer does not answer: it was closed. Start it again.", true);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let problem = `${answer.status} ${answer.statusText}`;
  try {
    const said: unknown = JSON.parse(text);
    if (said && typeof said === "object" && "error" in said) problem = String(said.error);
  } catch {
    // it is no JSON: the status has to do
  }
  throw new Problem(problem);
}

async function json<T>(name: string, query: Query, signal?: AbortSignal): Promise<T> {
  return (await (await asked(name, query, signal)).json()) as T;
}

export const fetchNode = (path: string): Promise<Node> => json("node", { path });

export const fetchMembers = (path: string): Promise<{ members: Member[]; complete: boolean }> =>
  json("members", { path });

export const fetchCells = async (query: Query, signal?: AbortSignal): Promise<string[][]> =>
  (await json<{ cells: string[][] }>("cells", query, signal)).cells;

export const fetchChunks = (query: Query, signal?: AbortSignal): Promise<ChunkMap> =>
  json("chunks", query, signal);

export async function fetchTile(query: Query, signal: AbortSignal): Promise<Tile> {
  const answer = await asked("tile", query, signal);
  return decoded(await answer.arrayBuffer());
}

function decoded(buffer: ArrayBuffer): Tile {
  const size = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, size));
  const header = JSON.parse(text) as Omit<Tile, "values" | "exact">;
  const at = 4 + size;
  if (header.type === "i8" || header.type === "u8") {
    const exact = header.type === "i8" ? new BigInt64Array(buffer, at) : new BigUint64Array(buffer, at);
    return { ...header, exact, values: Float64Array.from(exact as BigInt64Array, Number) };
  }
  return { ...header, exact: null, values: valuesOf(header.type, buffer, at) };
}

function valuesOf(type: string, buffer: ArrayBuffer, at: number): Values {
  switch (type) {
    case "u1": return new Uint8Array(buffer, at);
    case "i1": return new Int8Array(buffer, at);
    case "u2": return new Uint16Array(buffer, at);
    case "i2": return new Int16Array(buffer, at);
    case "u4": return new Uint32Array(buffer, at);
    case "i4": return new Int32Array(buffer, at);
    case "f4": return new Float32Array(buffer, at);
    case "f8": return new Float64Array(buffer, at);
    default: throw new Problem(`the page knows no elements of type ${type}`);
  }
}
