// Elements as text, in rows and columns: for what has no colours, and for who wants the numbers.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ArrayNode, fetchCells, Problem } from "./api";
import { drawn } from "./frame";
import { type Change, nameOf, type View } from "./state";

const ROWS = 40;
const COLUMNS = 16;

export function Table({ node, view, change }: { node: ArrayNode; view: View; change: Change }) {
  const [cells, setCells] = useState<string[][] | null>(null);
  const [problem, setProblem] = useState("");
  const [size, setSize] = useState<[number, number]>(() => drawn(node, view));
  const scroller = useRef<HTMLDivElement>(null);
  const centre = view.centre ?? [0, 0];
  const isSlim = view.rows === null;
  // One dimension goes downwards.
  const counts: [number, number] = isSlim ? [1, ROWS] : [ROWS, COLUMNS];
  const corner = ([0, 1] as const).map((axis) =>
    Math.max(0, Math.min(size[axis] - counts[axis], Math.floor(centre[axis])))) as [number, number];
  const at = node.axes.map((_, dim) => (dim === view.rows ? corner[0] : dim === view.columns ? corner[1] : (view.at[dim] ?? 0)));
  useEffect(() => setSize(drawn(node, view)), [node, view.rows, view.columns]);
  useEffect(() => {
    const controller = new AbortController();
    fetchCells({ path: node.path, rows: view.rows, columns: view.columns, at, counts, field: view.field }, controller.signal).then(
      (found) => {
        setCells(found);
        setProblem("");
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setProblem(error instanceof Problem ? error.message : String(error));
      },
    );
    return () => controller.abort();
  }, [node, at.join(), view.rows, view.columns, view.field]);

  const step = (rows: number, columns: number): void => change({
    centre: [
      Math.max(0, Math.min(size[0] - 1, corner[0] + rows)),
      Math.max(0, Math.min(size[1] - 1, corner[1] + columns)),
    ],
    scale: view.scale ?? 1,
  });
  const origin = (dim: number | null): number => (dim === null ? 0 : (node.axes[dim]?.origin ?? 0));
  const shown = cells && (isSlim ? (cells[0] ?? []).map((cell) => [cell]) : cells);
  const down = isSlim ? view.columns : view.rows;
  const first = isSlim ? corner[1] : corner[0];
  const more = (axis: 0 | 1): boolean => size[axis] > counts[axis];
  return (
    <div class="table" ref={scroller}>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {shown && node.axes.length === 0 && <output class="single">{shown[0]?.[0]}</output>}
      {shown && node.axes.length > 0 && (
        <>
          <div class="pager">
            {(isSlim ? more(1) : more(0)) && <Pager label={nameOf(node, down ?? 0)} back={() => isSlim ? step(0, -ROWS) : step(-ROWS, 0)} on={() => isSlim ? step(0, ROWS) : step(ROWS, 0)}
              at={first + origin(down)} last={Math.min(first + ROWS, isSlim ? size[1] : size[0]) - 1 + origin(down)} />}
            {!isSlim && more(1) && <Pager label={nameOf(node, view.columns ?? 0)} back={() => step(0, -COLUMNS)} on={() => step(0, COLUMNS)}
              at={corner[1] + origin(view.columns)} last={Math.min(corner[1] + COLUMNS, size[1]) - 1 + origin(view.columns)} />}
          </div>
          <table>
            {!isSlim && (
              <thead>
                <tr>
                  <th />
                  {(shown[0] ?? []).map((_, column) => <th scope="col" key={column}>{corner[1] + column + origin(view.columns)}</th>)}
                </tr>
              </thead>
            )}
            <tbody>
              {shown.map((row, number) => (
                <tr key={number}>
                  <th scope="row">{first + number + origin(down)}</th>
                  {row.map((cell, column) => <td key={column}>{cell}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </div>
  );
}

function Pager({ label, back, on, at, last }: { label: string; back: () => void; on: () => void; at: number; last: number }) {
  return (
    <span class="group">
      <button type="button" aria-label={`${label}: back`} onClick={back}>‹</button>
      <span>{label} {at.toLocaleString("en")}–{last.toLocaleString("en")}</span>
      <button type="button" aria-label={`${label}: on`} onClick={on}>›</button>
    </span>
  );
}
