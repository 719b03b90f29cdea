// The picture and what is done to it with a pointer: dragging, wheel, two fingers, looking at values.
import type { RefObject } from "preact";
import { useEffect, useImperativeHandle, useRef, useState } from "preact/hooks";
import { type ArrayNode, fetchCells } from "./api";
import { Frame } from "./frame";
import { type Hover, Picture, shortUnit, type Told } from "./picture";
import { type Change, nameOf, type View } from "./state";

export interface StageHandle {
  pan(right: number, down: number): boolean;
  zoom(by: number): boolean;
  zoomTo(scale: number): boolean;
  autoContrast(): void;
  retry(): void;
}

interface Properties {
  node: ArrayNode;
  view: View;
  change: Change;
  told: (told: Told) => void;
  handle: RefObject<StageHandle | null>;
}

export function Stage({ node, view, change, told, handle }: Properties) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const picture = useRef<Picture | null>(null);
  const [hover, setHover] = useState<Hover | null>(null);
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const latest = useRef(view);
  latest.current = view;
  const point = useRef<{ x: number; y: number } | null>(null);

  useEffect(() => {
    const made = new Picture(canvas.current!, overlay.current!, (each) => {
      told(each);
      look();
    });
    picture.current = made;
    const observer = new ResizeObserver(() => made.draw());
    observer.observe(area.current!);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => made.draw();
    scheme.addEventListener("change", redraw);
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      observer.disconnect();
      themed.disconnect();
      scheme.removeEventListener("change", redraw);
      made.close();
    };
  }, []);
  useEffect(() => picture.current?.show(node, view), [node, view]);
  useEffect(() => look(), [view.at.join(), view.rows, view.columns]);

  /** Say what is under the pointer. */
  const look = (): void => {
    const found = point.current && picture.current?.hover(point.current.x, point.current.y);
    setHover((old) => (JSON.stringify(old) === JSON.stringify(found) ? old : (found ?? null)));
  };

  const move = (scale: number, x: number, y: number, toX: number, toY: number): boolean => {
    // Several events may come between two pictures: each counts from the one before.
    const [width, height] = [canvas.current?.clientWidth ?? 0, canvas.current?.clientHeight ?? 0];
    if (!width || !height) return false;
    const frame = new Frame(node, latest.current, width, height, window.devicePixelRatio || 1);
    // What is under (x, y) will be under (toX, toY).
    const [row, column] = [frame.offset(0, y), frame.offset(1, x)];
    const next = Math.min(256, Math.max(1e-9, frame.scale[1] * scale));
    const stretch = frame.scale[0] / frame.scale[1];
    const keep = (at: number, size: number): number => Math.min(size, Math.max(0, at));
    const part = {
      scale: next,
      centre: [
        keep(row + (frame.height / 2 - toY) / (next * stretch), frame.size[0]),
        keep(column + (frame.width / 2 - toX) / next, frame.size[1]),
      ] as [number, number],
    };
    latest.current = { ...latest.current, ...part };
    change(part);
    return true;
  };
  const middle = (): [number, number] => {
    const frame = picture.current?.current;
    return [(frame?.width ?? 0) / 2, (frame?.height ?? 0) / 2];
  };
  useImperativeHandle(handle, () => ({
    pan: (right, down) => {
      const [x, y] = middle();
      return move(1, x, y, x - (right * x) / 4, y - (down * y) / 4);
    },
    zoom: (by) => move(by, ...middle(), ...middle()),
    zoomTo: (scale) => move((scale / (window.devicePixelRatio || 1)) / (picture.current?.current?.scale[1] ?? 1), ...middle(), ...middle()),
    autoContrast: () => picture.current?.autoContrast(),
    retry: () => picture.current?.retry(),
  }), [view]);

  const local = (event: PointerEvent | WheelEvent | MouseEvent): { x: number; y: number } => {
    const box = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { x, y } = local(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey) move(1, x, y, x - (event.deltaX || event.deltaY) * lines, y);
    else move(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) / 300), x, y, x, y);
  };
  const wheeled = useRef(wheel);
  wheeled.current = wheel;
  useEffect(() => {
    // Preact listens passively, and the page is not to scroll.
    const listen = (event: WheelEvent): void => wheeled.current(event);
    const element = area.current!;
    element.addEventListener("wheel", listen, { passive: false });
    return () => element.removeEventListener("wheel", listen);
  }, []);

  const moved = (event: PointerEvent): void => {
    const now = local(event);
    const before = pointers.current.get(event.pointerId);
    if (before) {
      const others = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const other = others[0];
      if (other) {
        const far = (one: { x: number; y: number }): number => Math.max(8, Math.hypot(one.x - other.x, one.y - other.y));
        move(far(now) / far(before), (before.x + other.x) / 2, (before.y + other.y) / 2, (now.x + other.x) / 2, (now.y + other.y) / 2);
      } else move(1, before.x, before.y, now.x, now.y);
      pointers.current.set(event.pointerId, now);
    }
    point.current = now;
    look();
  };
  const ended = (event: PointerEvent): void => void pointers.current.delete(event.pointerId);

  return (
    <div class="stage">
      <div class="area" ref={area} tabIndex={0} role="application" aria-label={`Picture of ${node.path || "the array"}; keys are told by the question mark`}
        onPointerDown={(event) => {
          if (event.button) return;
          area.current?.setPointerCapture(event.pointerId);
          pointers.current.set(event.pointerId, local(event));
        }}
        onPointerMove={moved} onPointerUp={ended} onPointerCancel={ended}
        onPointerLeave={() => { point.current = null; setHover(null); }}
        onDblClick={(event) => { const { x, y } = local(event); move(2, x, y, x, y); }}>
        <canvas class="picture" ref={canvas} />
        <canvas class="overlay" ref={overlay} aria-hidden="true" />
        <div class="zoom">
          <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => handle.current?.zoom(1.5)}>+</button>
          <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => handle.current?.zoom(1 / 1.5)}>−</button>
          <button type="button" aria-label="Show all" title="Show all (0)" onClick={() => change({ centre: null, scale: null })}>⤢</button>
        </div>
      </div>
      <Reading node={node} view={view} hover={hover} />
    </div>
  );
}

/** What is under the pointer, in a line below the picture. */
function Reading({ node, view, hover }: { node: ArrayNode; view: View; hover: Hover | null }) {
  const [fetched, setFetched] = useState<{ key: string; text: string } | null>(null);
  const at = hover ? hover.at : view.at;
  const key = `${node.path}|${at}|${view.field}`;
  useEffect(() => {
    if (!hover || hover.exact) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      fetchCells({ path: node.path, rows: view.rows, columns: view.columns, at, counts: [1, 1], field: view.field }, controller.signal)
        .then((cells) => setFetched({ key, text: cells[0]?.[0] ?? "" }), () => undefined);
    }, 120);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, hover?.exact]);
  const exact = hover && (hover.exact ? hover.text : fetched?.key === key && view.colour === null ? fetched.text : null);
  return (
    <div class="reading" aria-live="off">
      {hover ? node.axes.map((axis, dim) => dim === view.colour ? null : (
        <span class="place" key={dim}>
          <span class="faint">{nameOf(node, dim)}</span> {(axis.origin + (at[dim] ?? 0)).toLocaleString("en")}
          {axis.unit && <span class="faint"> ({+((axis.origin + (at[dim] ?? 0)) * axis.step).toPrecision(7)} {shortUnit(axis.unit)})</span>}
        </span>
      )) : <span class="faint">Point at the picture to read values; ? shows the keys</span>}
      <span class="room" />
      {hover && <output class="value">{exact ?? (hover.text === null ? "…" : `≈ ${hover.text}`)}</output>}
    </div>
  );
}
