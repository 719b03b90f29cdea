// Colour maps: 256 colours from low to high, as the pixels of a canvas have them.
import {
  interpolateCividis, interpolateInferno, interpolateMagma, interpolatePlasma, interpolatePuOr,
  interpolateRdBu, interpolateTurbo, interpolateViridis,
} from "d3-scale-chromatic";
import type { Tile } from "./api";

type Interpolator = (part: number) => string;

const MAPS: Record<string, Interpolator | null> = {
  gray: null,
  viridis: interpolateViridis,
  magma: interpolateMagma,
  inferno: interpolateInferno,
  plasma: interpolatePlasma,
  cividis: interpolateCividis,
  turbo: interpolateTurbo,
  "blue–red": (part) => interpolateRdBu(1 - part),
  "orange–purple": interpolatePuOr,
};

/** Whole numbers that name things: each has a colour of its own, and 0 has none. */
export const LABELS = "labels";
export const MAP_NAMES: readonly string[] = [...Object.keys(MAPS), LABELS];

/** What is no number has a colour that no map has. */
export const SPECIAL = { nan: "#e6007a", above: "#ff9500", below: "#00a2ff" } as const;

export interface Paint {
  map: string;
  inverted: boolean;
  low: number;
  high: number;
}

const tables = new Map<string, Uint32Array>();

function packed(red: number, green: number, blue: number, alpha = 255): number {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function parsed(colour: string): number {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  if (hex) return packed(parseInt(hex[1]!, 16), parseInt(hex[2]!, 16), parseInt(hex[3]!, 16));
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return packed(Math.round(red), Math.round(green), Math.round(blue));
}

/** The 256 colours of a map. */
export function tableOf(map: string, inverted: boolean): Uint32Array {
  const key = `${map}|${inverted}`;
  let table = tables.get(key);
  if (!table) {
    const made = MAPS[map] ?? null;
    table = Uint32Array.from({ length: 256 }, (_, at) => {
      const place = inverted ? 255 - at : at;
      return made ? parsed(made(place / 255)) : packed(place, place, place);
    });
    tables.set(key, table);
  }
  return table;
}

export function cssOf(map: string, inverted: boolean): string {
  if (map === LABELS) {
    const stops = Array.from({ length: 8 }, (_, at) => {
      const colour = rgb(labelColour(at + 1));
      return `${colour} ${at * 12.5}% ${(at + 1) * 12.5}%`;
    });
    return `linear-gradient(to right, ${stops.join(", ")})`;
  }
  const table = tableOf(map, inverted);
  const stops = Array.from({ length: 17 }, (_, at) => rgb(table[Math.round((at * 255) / 16)]!));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

const rgb = (colour: number): string => `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;

function labelColour(value: number): number {
  if (value === 0) return packed(0, 0, 0);
  // Golden angles: neighbours differ, and each label looks the same in every slice.
  const turn = (Math.abs(value) * 0.618033988749895) % 1;
  const light = [0.58, 0.72, 0.46][Math.abs(Math.floor(value)) % 3]!;
  return hsl(turn, 0.75, light);
}

function hsl(hue: number, saturation: number, light: number): number {
  const spread = saturation * Math.min(light, 1 - light);
  const part = (shift: number): number => {
    const at = (shift + hue * 12) % 12;
    return Math.round(255 * (light - spread * Math.max(-1, Math.min(at - 3, 9 - at, 1))));
  };
  return packed(part(0), part(8), part(4));
}

/** The pixels of a tile. */
export function painted(tile: Tile, paint: Paint): ImageData {
  const [height = 1, width = 1, channels = 0] = tile.shape;
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  if (channels) {
    paintColours(tile, channels, paint, image.data);
  } else if (paint.map === LABELS) {
    for (let at = 0; at < pixels.length; at++) pixels[at] = special(tile.values[at]!) ?? labelColour(tile.values[at]!);
  } else {
    paintMapped(tile, paint, pixels);
  }
  return image;
}

const nan = parsed(SPECIAL.nan);
const above = parsed(SPECIAL.above);
const below = parsed(SPECIAL.below);

function special(value: number): number | null {
  if (Number.isNaN(value)) return nan;
  if (value === Infinity) return above;
  return value === -Infinity ? below : null;
}

function paintMapped(tile: Tile, paint: Paint, pixels: Uint32Array): void {
  const table = tableOf(paint.map, paint.inverted);
  const { low, high } = paint;
  const factor = high > low ? 255 / (high - low) : 0;
  const values = tile.values;
  const floats = tile.type.startsWith("f");
  for (let at = 0; at < pixels.length; at++) {
    const value = values[at]!;
    let place = factor ? (value - low) * factor + 0.5 : value > low ? 255 : 0;
    if (floats && !Number.isFinite(value)) {
      pixels[at] = special(value)!;
      continue;
    }
    place = place < 0 ? 0 : place > 255 ? 255 : place | 0;
    pixels[at] = table[place]!;
  }
}

function paintColours(tile: Tile, channels: number, paint: Paint, data: Uint8ClampedArray): void {
  const { low, high, inverted } = paint;
  const factor = high > low ? 255 / (high - low) : 0;
  const count = data.length / 4;
  for (let at = 0; at < count; at++) {
    for (let channel = 0; channel < 4; channel++) {
      const value = channel < channels ? tile.values[at * channels + channel]! : channel === 3 ? high : low;
      const scaled = Math.floor((value - low) * factor + 0.5);
      data[4 * at + channel] = inverted && channel < 3 ? 255 - scaled : scaled;
    }
  }
}
