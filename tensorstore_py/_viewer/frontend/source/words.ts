// Numbers as people read them.

export function sizeText(bytes: number): string {
  if (bytes < 0) return "?";
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(6, Math.floor(Math.log2(bytes) / 10));
  const scaled = bytes / 1024 ** power;
  return `${scaled < 10 ? scaled.toFixed(1) : scaled.toFixed(0)} ${"KMGTPE"[power - 1]}iB`;
}

export const countText = (count: number): string => count.toLocaleString("en");

/** A value of a tile: 32-bit floats without the digits that they do not have. */
export function numberText(value: number, type: string): string {
  if (type !== "f4" || !Number.isFinite(value)) return String(value);
  for (let digits = 6; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** A number for a label, of few characters. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(2);
  return String(+value.toPrecision(5));
}

/** The least of 1, 2, 5, 10, 20, ... that is not less. */
export function tickStep(least: number): number {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const found = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999999) ?? 10 * power;
  return found;
}
