// The keys.
import { useEffect, useRef } from "preact/hooks";

const KEYS: [keys: string, what: string][] = [
  ["← ↑ ↓ →", "move the picture"],
  ["+ −", "zoom; so do the wheel and two fingers"],
  ["0", "show all"],
  ["1", "a pixel of the screen for each element"],
  ["[ ]", "back and on along the slider that is marked; { } ten at once"],
  ["d", "mark the next slider"],
  ["x", "swap rows and columns"],
  ["c", "next colour map"],
  ["i", "invert colours"],
  ["a", "contrast from what is seen"],
  ["g", "the grid of chunks and shards"],
  ["m", "which chunks are stored, and how large"],
  ["t", "values as a table"],
  ["r", "try again what could not be read"],
  ["b", "show or hide the tree"],
  ["p", "show or hide the settings"],
  ["?", "this"],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const closer = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    closer.current?.focus();
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <h2>Keys</h2>
      <dl>{KEYS.map(([keys, what]) => <><dt>{keys.split(" ").map((key) => <kbd>{key}</kbd>)}</dt><dd>{what}</dd></>)}</dl>
      <p class="small faint">
        Drag to move, Shift and the wheel to move sideways, double click to zoom in. The address of this page holds what is seen: keep it, or open it
        in another tab. What is no number is pink, infinities are orange and blue.
      </p>
      <p class="small faint"><a href="LICENSES.txt" target="_blank" rel="noopener">Licences of what this page is built of</a></p>
      <button type="button" ref={closer} onClick={close}>Close</button>
    </dialog>
  );
}
