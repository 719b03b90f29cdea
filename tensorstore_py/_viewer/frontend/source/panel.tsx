// How the picture is drawn: dimensions, sliders, colours, contrast, what lies above; and what it is of.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ArrayNode } from "./api";
import { cssOf, LABELS, MAP_NAMES, SPECIAL } from "./colours";
import { shortUnit, type Told } from "./picture";
import { type Change, hasPhysical, nameOf, type View } from "./state";
import { BINS, type Statistics } from "./statistics";
import { countText, shortNumber, sizeText } from "./words";

interface Properties {
  node: ArrayNode;
  view: View;
  change: Change;
  told: Told | null;
  sliders: number[];
  active: number;
  setActive: (active: number) => void;
  auto: () => void;
  retry: () => void;
}

export function Panel(properties: Properties) {
  const { node, view, change, told, retry } = properties;
  const form = node.fields.find((field) => field.name === view.field) ?? node.form;
  const isDrawn = !!form.wire && node.axes.length > 0 && node.axes.every((axis) => axis.size > 0) && !view.table;
  return (
    <aside class="panel" aria-label="Settings">
      {!!told?.problems.length && isDrawn && <Problems told={told} retry={retry} />}
      {node.axes.length > 0 && <Dimensions {...properties} />}
      {node.fields.length > 0 && (
        <Row label="Field">
          <select value={view.field} onChange={(event) => change({ field: event.currentTarget.value, low: null, high: null })}>
            <option value="">all, as text</option>
            {node.fields.map((field) => <option value={field.name}>{field.name}</option>)}
          </select>
        </Row>
      )}
      {form.parts.length > 0 && (
        <Row label="Part">
          <select value={view.part} onChange={(event) => change({ part: event.currentTarget.value, low: null, high: null })}>
            {form.parts.map((part) => <option>{part}</option>)}
          </select>
        </Row>
      )}
      {isDrawn && <Colours {...properties} />}
      {isDrawn && view.rows !== null && <Above {...properties} />}
      {!!form.wire && node.axes.length > 0 && (
        <Check label="Values as a table" keys="t" on={view.table} flip={(table) => change({ table })} />
      )}
      <Facts node={node} told={isDrawn ? told : null} />
    </aside>
  );
}

function Row({ label, children }: { label: string; children: ComponentChildren }) {
  return <label class="row"><span>{label}</span>{children}</label>;
}

function Check({ label, keys, on, flip }: { label: string; keys: string; on: boolean; flip: (on: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={on} onChange={(event) => flip(event.currentTarget.checked)} />
      <span>{label}</span><kbd>{keys}</kbd>
    </label>
  );
}

function Problems({ told, retry }: { told: Told; retry: () => void }) {
  return (
    <section class="problems" role="alert">
      <h2>{told.problems.length === 1 ? "A tile cannot be read" : `${told.problems.length} tiles cannot be read`}</h2>
      <ul>{told.problems.slice(0, 20).map((each) => <li><b>{each.where}</b> {each.text}</li>)}</ul>
      <button type="button" onClick={retry}>Try again</button>
    </section>
  );
}

function Dimensions({ node, view, change, sliders, active, setActive }: Properties) {
  const dims = node.axes.map((_, dim) => dim);
  const set = (name: "rows" | "columns" | "colour", dim: number | null): void => {
    const next: Partial<View> = { [name]: dim, centre: null, scale: null, low: null, high: null };
    // Two that want the same dimension change places.
    for (const other of ["rows", "columns", "colour"] as const) {
      if (other !== name && dim !== null && view[other] === dim) next[other] = other === "colour" ? null : view[name];
    }
    if (next.columns === null) next.columns = dims.find((each) => each !== (next.rows ?? view.rows)) ?? null;
    change(next);
  };
  const choice = (name: "rows" | "columns" | "colour", label: string, none: string | null) => (
    <Row label={label}>
      <select value={view[name] === null ? "" : String(view[name])} onChange={(event) => set(name, event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
        {none !== null && <option value="">{none}</option>}
        {dims.filter((dim) => name !== "colour" || (node.axes[dim]?.size ?? 0) <= 4).map((dim) => <option value={dim}>{nameOf(node, dim)}</option>)}
      </select>
    </Row>
  );
  const canColour = dims.length > 2 && dims.some((dim) => (node.axes[dim]?.size ?? 0) <= 4);
  return (
    <section>
      {dims.length > 1 && (
        <>
          <h2>Dimensions</h2>
          {choice("rows", "Down", "none: a line")}
          {choice("columns", "Right", null)}
          {canColour && choice("colour", "RGB", "none")}
          {view.rows !== null && (
            <Row label="Aspect">
              <select value={view.aspect} onChange={(event) => change({ aspect: event.currentTarget.value as View["aspect"], centre: null, scale: null })}>
                <option value="square">square elements</option>
                {hasPhysical(node, view.rows, view.columns) && <option value="physical">as units say</option>}
                <option value="fill">fills the window</option>
              </select>
            </Row>
          )}
        </>
      )}
      {sliders.map((dim, number) => (
        <Slider key={dim} node={node} dim={dim} at={view.at[dim] ?? 0} active={number === active && sliders.length > 1} focus={() => setActive(number)}
          set={(to) => change((old) => ({ at: old.at.map((each, other) => (other === dim ? to : each)) }))} />
      ))}
    </section>
  );
}

function Slider({ node, dim, at, active, focus, set }: {
  node: ArrayNode; dim: number; at: number; active: boolean; focus: () => void; set: (at: number) => void;
}) {
  const axis = node.axes[dim]!;
  const name = nameOf(node, dim);
  const bounded = (value: number): number => Math.max(0, Math.min(axis.size - 1, Math.round(value) || 0));
  return (
    <div class={`slider ${active ? "active" : ""}`}>
      <div class="names">
        <span>{name}</span>
        <input type="number" aria-label={`${name}, position`} min={axis.origin} max={axis.origin + axis.size - 1} value={axis.origin + at}
          onFocus={focus} onChange={(event) => set(bounded(Number(event.currentTarget.value) - axis.origin))} />
        <span class="faint">of {axis.origin ? `${axis.origin}–${axis.origin + axis.size - 1}` : countText(axis.size)}
          {axis.unit && ` · ${+((axis.origin + at) * axis.step).toPrecision(6)} ${shortUnit(axis.unit)}`}</span>
      </div>
      <input type="range" aria-label={name} min={0} max={Math.max(0, axis.size - 1)} step={1} value={at} disabled={axis.size < 2}
        onFocus={focus} onInput={(event) => set(Number(event.currentTarget.value))} />
    </div>
  );
}

function Colours({ node, view, change, told, auto }: Properties) {
  const statistics = told?.statistics ?? null;
  const paint = told?.paint;
  const isLine = view.rows === null;
  const fixed = view.low !== null;
  const whole = typeRange(node, view);
  const set = (low: number, high: number): void => {
    if (Number.isFinite(low) && Number.isFinite(high)) change({ low, high });
  };
  return (
    <section>
      <h2>{isLine ? "Values" : "Colours"}</h2>
      {!isLine && view.colour === null && (
        <>
          <Row label="Map">
            <select value={view.map} onChange={(event) => change({ map: event.currentTarget.value })}>
              {MAP_NAMES.map((name) => <option>{name}</option>)}
            </select>
          </Row>
          <div class="bar" role="img" aria-label={`Colours of ${view.map}`} style={{ backgroundImage: cssOf(view.map, view.inverted) }} />
        </>
      )}
      {!isLine && view.map !== LABELS && <Check label="Inverted" keys="i" on={view.inverted} flip={(inverted) => change({ inverted })} />}
      {paint && view.map !== LABELS && (
        <>
          {statistics && statistics.low < statistics.high && <Histogram statistics={statistics} low={paint.low} high={paint.high} set={set} />}
          <div class="contrast">
            <input type="number" step="any" aria-label="Lowest value" value={+paint.low.toPrecision(7)} onChange={(event) => set(Number(event.currentTarget.value), paint.high)} />
            <span class="faint">to</span>
            <input type="number" step="any" aria-label="Highest value" value={+paint.high.toPrecision(7)} onChange={(event) => set(paint.low, Number(event.currentTarget.value))} />
          </div>
          <div class="buttons">
            <button type="button" aria-pressed={!fixed} title="From what is seen, but for half a per cent on either side (a)" onClick={auto}>Auto</button>
            <button type="button" disabled={!statistics} onClick={() => statistics && set(statistics.low, statistics.high)}>Min–max</button>
            {whole && <button type="button" onClick={() => set(...whole)}>{countText(whole[0])}–{countText(whole[1])}</button>}
          </div>
        </>
      )}
      {statistics && <Summary statistics={statistics} />}
    </section>
  );
}

function Summary({ statistics }: { statistics: Statistics }) {
  const { values, looked, low, high, mean, nan, infinite, sampled } = statistics;
  return (
    <p class="small">
      {Number.isFinite(low) && <>{shortNumber(low)} to {shortNumber(high)}, mean {shortNumber(mean)}. </>}
      <span class="faint">
        Of {looked < values ? `${countText(looked)} of the ` : ""}{countText(values)} values in view{sampled ? ", which are a sample of the elements" : ""}.
      </span>
      {nan > 0 && <span class="swatch"><i style={{ background: SPECIAL.nan }} /> NaN: {shortNumber((100 * nan) / looked)} %</span>}
      {infinite > 0 && <span class="swatch"><i style={{ background: SPECIAL.above }} /><i style={{ background: SPECIAL.below }} /> ±∞: {shortNumber((100 * infinite) / looked)} %</span>}
    </p>
  );
}

/** What an integer type can hold, if it is small. */
function typeRange(node: ArrayNode, view: View): [number, number] | null {
  const wire = (node.fields.find((field) => field.name === view.field) ?? node.form).wire;
  if (node.dtype === "bool") return null;
  if (wire === "u1") return [0, 255];
  return wire === "u2" ? [0, 65535] : null;
}

function Histogram({ statistics, low, high, set }: { statistics: Statistics; low: number; high: number; set: (low: number, high: number) => void }) {
  const [logarithmic, setLogarithmic] = useState(true);
  const element = useRef<SVGSVGElement>(null);
  const dragged = useRef<"low" | "high" | null>(null);
  const scaled = (count: number): number => (logarithmic ? Math.log1p(count) : count);
  const most = Math.max(...statistics.counts.map(scaled), 1e-9);
  const span = statistics.high - statistics.low;
  const place = (value: number): number => Math.max(0, Math.min(1, (value - statistics.low) / span)) * BINS;
  const valueAt = (event: PointerEvent): number => {
    const box = element.current!.getBoundingClientRect();
    const part = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    const value = statistics.low + part * span;
    return span > 40 ? Math.round(value) : +value.toPrecision(6);
  };
  const drag = (event: PointerEvent): void => {
    if (!dragged.current) return;
    const value = valueAt(event);
    if (dragged.current === "low") set(Math.min(value, high), high);
    else set(low, Math.max(value, low));
  };
  const bars = statistics.counts.map((count, at) => {
    const tall = (scaled(count) / most) * 46;
    return count ? `M${at + 0.06} 48v${-Math.max(0.8, tall)}h.88V48z` : "";
  }).join("");
  return (
    <div class="histogram">
      <svg ref={element} viewBox={`0 0 ${BINS} 48`} preserveAspectRatio="none" role="img" aria-label="How values are distributed; drag the ends of the contrast"
        onPointerDown={(event) => {
          const value = valueAt(event);
          dragged.current = Math.abs(value - low) < Math.abs(value - high) ? "low" : "high";
          element.current?.setPointerCapture(event.pointerId);
          drag(event);
        }}
        onPointerMove={drag} onPointerUp={() => { dragged.current = null; }}>
        <rect class="within" x={place(low)} width={Math.max(0, place(high) - place(low))} y="0" height="48" />
        <path class="bars" d={bars} />
        <line class="handle" x1={place(low)} x2={place(low)} y1="0" y2="48" />
        <line class="handle" x1={place(high)} x2={place(high)} y1="0" y2="48" />
      </svg>
      <div class="ends"><span>{shortNumber(statistics.low)}</span>
        <button type="button" class="link" aria-pressed={logarithmic} onClick={() => setLogarithmic(!logarithmic)}>{logarithmic ? "log" : "linear"}</button>
        <span>{shortNumber(statistics.high)}</span></div>
    </div>
  );
}

function Above({ view, change, told }: Properties) {
  const chunks = told?.chunks;
  const sizes = chunks?.cells.map((cell) => cell[2]).filter((size) => size >= 0) ?? [];
  return (
    <section>
      <h2>Chunks</h2>
      <Check label="Grid of chunks and shards" keys="g" on={view.grid} flip={(grid) => change({ grid })} />
      {view.grid && told?.grid === "too small" && <p class="small faint">Chunks are too small to be seen; zoom in.</p>}
      {view.grid && told?.grid === "shards" && <p class="small faint">Shards; zoom in to see their chunks.</p>}
      {view.grid && told?.grid === "none" && <p class="small faint">This array has no chunks.</p>}
      <Check label="Stored chunks, and their sizes" keys="m" on={view.stored} flip={(stored) => change({ stored })} />
      {view.stored && told?.chunksProblem && <p class="small problem">{told.chunksProblem}</p>}
      {view.stored && chunks && (
        <>
          {sizes.length > 0 && (
            <>
              <div class="bar" role="img" aria-label="Colours of sizes" style={{ backgroundImage: cssOf("viridis", false) }} />
              <div class="ends"><span>{sizeText(Math.min(...sizes))}</span><span>{sizeText(Math.max(...sizes))}</span></div>
            </>
          )}
          <p class="small">
            {countText(chunks.cells.length)} of {countText(chunks.total)} are stored in this slice{sizes.length > 0 && `, ${sizeText(sizes.reduce((sum, size) => sum + size, 0))}`}.
            {" "}<span class="swatch"><i class="missing" /> not stored</span>
            {!chunks.complete && <span class="problem"> Only the first {countText(chunks.keys)} keys were looked at.</span>}
          </p>
        </>
      )}
    </section>
  );
}

function Facts({ node, told }: { node: ArrayNode; told: Told | null }) {
  const empty = !Object.keys((node.attributes ?? {}) as object).length;
  const level = told && node.levels[told.level];
  return (
    <section>
      <h2>{node.kind === "image" ? "Image" : "Array"}</h2>
      {told && level && (
        <p class="small">
          {node.levels.length > 1 && <>Level {told.level} of {node.levels.length} (<span class="own">{level.name}</span>), {level.shape.map(countText).join(" × ")}. </>}
          {told.steps.some((step) => step > 1) && told.sampled
            ? "Sampled: chunks are passed over, so that few of them have to be read."
            : stepWords(node, told)}
        </p>
      )}
      <dl class="facts">{node.facts.map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {!empty && (
        <details>
          <summary>Attributes</summary>
          <pre class="json">{JSON.stringify(node.attributes, null, 2)}</pre>
        </details>
      )}
    </section>
  );
}

function stepWords(node: ArrayNode, told: Told): string {
  const factors = node.levels[told.level]?.factors ?? [];
  const most = Math.max(...told.steps) / Math.max(1, ...factors);
  return most > 1.5 ? `One of ${Math.round(most)} elements is drawn along each dimension.` : "";
}
