// The page: what was asked for on the left, the picture, and how it is drawn on the right.
import { render } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ArrayNode, fetchNode, type Node, Problem } from "./api";
import { MAP_NAMES } from "./colours";
import { Help } from "./help";
import { Panel } from "./panel";
import { Stage, type StageHandle } from "./stage";
import type { Told } from "./picture";
import { type Change, fromLink, pathOf, toLink, type View } from "./state";
import { Table } from "./table";
import { Tree } from "./tree";

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const linkNow = (): string => location.hash.replace(/^#/, "");
export const isArray = (node: Node | null): node is ArrayNode => node?.kind === "array" || node?.kind === "image";

function storedTheme(): Theme {
  try {
    const found = localStorage.getItem("tspy-theme") as Theme | null;
    return found && THEMES.includes(found) ? found : "auto";
  } catch {
    return "auto"; // storage is closed to frames
  }
}

function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem("tspy-theme", theme);
    } catch {
      // it is of this page then
    }
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!)];
}

function App() {
  const [root, setRoot] = useState<Node | null>(null);
  const [node, setNode] = useState<Node | null>(null);
  const [view, setView] = useState<View | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [loading, setLoading] = useState(true);
  const [told, setTold] = useState<Told | null>(null);
  const [help, setHelp] = useState(false);
  const [tree, setTree] = useState(() => window.innerWidth > 900 || !pathOf(linkNow()));
  const [panel, setPanel] = useState(() => window.innerWidth > 700);
  const [active, setActive] = useState(0);
  const [theme, nextTheme] = useTheme();
  const stage = useRef<StageHandle>(null);
  const shown = useRef<string | null>(null);

  const open = useCallback(async (path: string, link: string): Promise<void> => {
    shown.current = path;
    setLoading(true);
    setProblem(null);
    try {
      const found = await fetchNode(path);
      if (shown.current !== path) return;
      setNode(found);
      setView(isArray(found) ? fromLink(link, found) : null);
    } catch (error) {
      if (shown.current !== path) return;
      setNode(null);
      setView(null);
      setProblem(error instanceof Problem ? error : new Problem(String(error)));
    }
    setLoading(false);
  }, []);

  useEffect(() => {
    void fetchNode("").then(setRoot, () => undefined);
    void open(pathOf(linkNow()), linkNow());
  }, [open]);

  // The link follows what is seen, and what is seen follows the link.
  const written = useRef(linkNow());
  useEffect(() => {
    const followed = (): void => {
      const link = linkNow();
      if (link === written.current) return;
      written.current = link;
      const path = pathOf(link);
      if (path === shown.current && isArray(node)) setView(fromLink(link, node));
      else void open(path, link);
    };
    window.addEventListener("hashchange", followed);
    return () => window.removeEventListener("hashchange", followed);
  }, [node, open]);
  useEffect(() => {
    if (!node || (isArray(node) && !view)) return;
    const link = toLink(node.path, view);
    if (link === written.current) return;
    written.current = link;
    history.replaceState(null, "", `#${link}`);
  }, [node, view]);
  useEffect(() => {
    document.title = node ? `${node.path || rootName(root ?? node)} – tspy view` : "tspy view";
  }, [node, root]);

  const choose = (path: string): void => {
    if (path === shown.current && !problem) return;
    history.pushState(null, "", `#${toLink(path, null)}`);
    written.current = linkNow();
    void open(path, "");
    if (window.innerWidth <= 900) setTree(false);
  };
  const change = useCallback<Change>((part) =>
    setView((old) => old && { ...old, ...(typeof part === "function" ? part(old) : part) }), []);

  const sliders = useMemo(() => {
    if (!isArray(node) || !view) return [];
    return node.axes.map((_, dim) => dim).filter((dim) => ![view.rows, view.columns, view.table ? null : view.colour].includes(dim));
  }, [node, view?.rows, view?.columns, view?.colour, view?.table]);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (event.key === "Escape") setHelp(false);
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && !/^[?]$/.test(event.key)) return;
      if (event.key === "?") setHelp((old) => !old);
      else if (event.key === "b") setTree((old) => !old);
      else if (event.key === "p") setPanel((old) => !old);
      else if (isArray(node) && view && acted(event.key, node, view)) event.preventDefault();
    };
    const acted = (key: string, array: ArrayNode, old: View): boolean => {
      const dim = sliders[Math.min(active, sliders.length - 1)];
      const step = (by: number): boolean => {
        if (dim === undefined) return false;
        const size = array.axes[dim]?.size ?? 1;
        change(({ at }) => ({
          at: at.map((each, other) => (other === dim ? Math.min(size - 1, Math.max(0, each + by)) : each)),
        }));
        return true;
      };
      const map = MAP_NAMES.indexOf(old.map);
      switch (key) {
        case "ArrowLeft": return !!stage.current?.pan(-1, 0);
        case "ArrowRight": return !!stage.current?.pan(1, 0);
        case "ArrowUp": return !!stage.current?.pan(0, -1);
        case "ArrowDown": return !!stage.current?.pan(0, 1);
        case "+": case "=": return !!stage.current?.zoom(1.5);
        case "-": return !!stage.current?.zoom(1 / 1.5);
        case "0": change({ centre: null, scale: null }); return true;
        case "1": return !!stage.current?.zoomTo(1);
        case "[": case ",": return step(-1);
        case "]": case ".": return step(1);
        case "{": return step(-10);
        case "}": return step(10);
        case "d": setActive((number) => (sliders.length ? (number + 1) % sliders.length : 0)); return true;
        case "x": if (old.rows === null) return false; change({ rows: old.columns, columns: old.rows, centre: null, scale: null }); return true;
        case "c": change({ map: MAP_NAMES[(map + 1) % MAP_NAMES.length]! }); return true;
        case "i": change({ inverted: !old.inverted }); return true;
        case "a": change({ low: null, high: null }); stage.current?.autoContrast(); return true;
        case "g": change({ grid: !old.grid }); return true;
        case "m": change({ stored: !old.stored }); return true;
        case "t": change({ table: !old.table }); return true;
        case "r": stage.current?.retry(); return true;
        default: return false;
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [node, view, sliders, active, change]);

  const isEmpty = isArray(node) && node.axes.some((axis) => axis.size === 0);
  const isStage = isArray(node) && !!view && !isEmpty && !view.table && !isText(node, view) && node.axes.length > 0;
  const busy = loading || (isStage && (!told || told.view !== view || told.busy));
  const hasTree = root !== null && !isArray(root);
  const hasMembers = hasTree || root?.kind === "image";
  return (
    <div class="page">
      <header>
        {hasMembers && <Toggle on={tree} label="Tree" sign="☰" flip={() => setTree(!tree)} keys="b" />}
        <Crumbs root={root} path={node?.path ?? shown.current ?? ""} choose={choose} />
        <span class="summary">{isArray(node) && <>{node.axes.map((axis) => axis.size.toLocaleString("en")).join(" × ") || "a single value"} <b>{typeText(node.dtype)}</b></>}</span>
        <span class="room" />
        <span class={`busy ${busy ? "on" : ""}`} role="status" aria-label={busy ? "loading" : "all is loaded"} />
        <button type="button" class="plain" title={`Colours of the page: ${theme}`} aria-label={`Colours of the page: ${theme}`} onClick={nextTheme}>
          {theme === "auto" ? "◐" : theme === "light" ? "☀" : "☾"}
        </button>
        <button type="button" class="plain" title="Help (?)" aria-label="Help" onClick={() => setHelp(true)}>?</button>
        {isArray(node) && <Toggle on={panel} label="Settings" sign="⚙" flip={() => setPanel(!panel)} keys="p" />}
      </header>
      <div class="columns">
        {hasMembers && tree && <Tree root={root} name={rootName(root)} path={node?.path ?? shown.current ?? ""} choose={choose} />}
        <main aria-busy={busy}>
          {problem && (
            <div class="message" role="alert">
              <h2>{problem.gone ? "No answer" : "This cannot be opened"}</h2>
              <p>{problem.message}</p>
              <button type="button" onClick={() => void open(shown.current ?? "", linkNow())}>Try again</button>
            </div>
          )}
          {node && !isArray(node) && <GroupFacts node={node} />}
          {isArray(node) && isEmpty && <div class="message"><h2>Nothing to draw</h2><p>This array has no elements.</p></div>}
          {isArray(node) && view && !isEmpty && (isStage
            ? <Stage node={node} view={view} change={change} told={setTold} handle={stage} key={node.path} />
            : <Table node={node} view={view} change={change} />)}
        </main>
        {isArray(node) && view && panel && (
          <Panel node={node} view={view} change={change} told={told} sliders={sliders} active={active} setActive={setActive}
            auto={() => { change({ low: null, high: null }); stage.current?.autoContrast(); }} retry={() => stage.current?.retry()} />
        )}
      </div>
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

/** Whether elements have no numbers. */
export function isText(node: ArrayNode, view: View): boolean {
  return !(node.fields.find((field) => field.name === view.field) ?? node.form).wire;
}

export function typeText(dtype: unknown): string {
  if (!Array.isArray(dtype)) return String(dtype);
  return `{${dtype.map((field: unknown) => (Array.isArray(field) ? `${String(field[0])}: ${typeText(field[1])}` : String(field))).join(", ")}}`;
}

function rootName(root: Node | null): string {
  const place = root?.facts.find(([name]) => name === "Place")?.[1] ?? "";
  // A URL such as "file:///runs/a.zip|zip:b/": the last part that is more than a scheme.
  const parts = place.split(/[/|]/).filter((part) => part && !/^\w+:$/.test(part));
  return parts.pop()?.replace(/^\w+:/, "") ?? (root && isArray(root) ? "array" : place);
}

function Toggle({ on, label, sign, flip, keys }: { on: boolean; label: string; sign: string; flip: () => void; keys: string }) {
  return (
    <button type="button" class="plain" aria-pressed={on} aria-label={label} title={`${label} (${keys})`} onClick={flip}>
      {sign}
    </button>
  );
}

function Crumbs({ root, path, choose }: { root: Node | null; path: string; choose: (path: string) => void }) {
  const parts = path ? path.split("/") : [];
  return (
    <nav class="crumbs" aria-label="Path">
      <button type="button" class="link" onClick={() => choose("")} aria-current={parts.length ? undefined : "page"}>{rootName(root) || "…"}</button>
      {parts.map((part, at) => (
        <>
          <span class="slash" aria-hidden="true">/</span>
          <button type="button" class="link" aria-current={at === parts.length - 1 ? "page" : undefined} onClick={() => choose(parts.slice(0, at + 1).join("/"))}>{part}</button>
        </>
      ))}
    </nav>
  );
}

function GroupFacts({ node }: { node: Node }) {
  const empty = !Object.keys((node.attributes ?? {}) as object).length;
  return (
    <div class="message">
      <h2>{node.kind === "group" ? "A group" : "A directory"}</h2>
      <p>Choose an array in the tree.</p>
      <dl class="facts">{node.facts.map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {!empty && <><h3>Attributes</h3><pre class="json">{JSON.stringify(node.attributes, null, 2)}</pre></>}
    </div>
  );
}

render(<App />, document.getElementById("app")!);
