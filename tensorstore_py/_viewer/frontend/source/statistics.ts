// How the values that are seen are distributed: from the tiles that are there, and of these a sample.
import type { Tile } from "./api";

const SAMPLE = 120_000;
export const BINS = 96;

export interface Statistics {
  /** How many values there are, and of how many of them this is told. */
  values: number;
  looked: number;
  low: number;
  high: number;
  /** Below and above which half a per cent lies. */
  least: number;
  most: number;
  mean: number;
  nan: number;
  infinite: number;
  counts: number[];
  /** Whether pixels stand for more elements than they show. */
  sampled: boolean;
}

export function statisticsOf(tiles: Tile[], strided: boolean): Statistics | null {
  const values = tiles.reduce((sum, tile) => sum + tile.values.length, 0);
  if (!values) return null;
  const step = Math.max(1, Math.ceil(values / SAMPLE));
  const sample = new Float64Array(Math.ceil(values / step) + tiles.length);
  let count = 0;
  let nan = 0;
  let infinite = 0;
  let looked = 0;
  for (const tile of tiles) {
    for (let at = 0; at < tile.values.length; at += step) {
      const value = tile.values[at]!;
      looked++;
      if (Number.isFinite(value)) sample[count++] = value;
      else if (Number.isNaN(value)) nan++;
      else infinite++;
    }
  }
  const sorted = sample.subarray(0, count).sort();
  const bounds = (name: "low" | "high"): number[] =>
    tiles.map((tile) => tile[name]).filter((each): each is number => each !== null);
  const low = Math.min(...bounds("low"));
  const high = Math.max(...bounds("high"));
  const at = (part: number): number => sorted[Math.min(count - 1, Math.floor(part * count))] ?? NaN;
  const counts = new Array<number>(BINS).fill(0);
  let sum = 0;
  for (const value of sorted) {
    sum += value;
    const bin = high > low ? Math.floor(((value - low) / (high - low)) * BINS) : 0;
    counts[Math.min(BINS - 1, Math.max(0, bin))]!++;
  }
  return {
    values, looked, low, high, least: at(0.005), most: at(0.995), mean: count ? sum / count : NaN,
    nan, infinite, counts, sampled: strided || tiles.some((tile) => tile.sampled),
  };
}
