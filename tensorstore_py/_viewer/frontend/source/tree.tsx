// What is below what was asked for: levels are asked for when they are opened.
import { useEffect, useState } from "preact/hooks";
import { fetchMembers, type Member, type Node } from "./api";

interface Choosing {
  path: string;
  choose: (path: string) => void;
}

const SIGNS: Record<Member["kind"], string> = { array: "▦", group: "▸", directory: "▸", unreadable: "⚠" };

export function Tree({ root, name, path, choose }: Choosing & { root: Node | null; name: string }) {
  return (
    <nav class="tree" aria-label="Tree">
      <ul role="tree">
        <Branch name={name} at="" kind={root?.kind === "directory" ? "directory" : "group"} summary="" path={path} choose={choose} first />
      </ul>
    </nav>
  );
}

function Branch({ name, at, kind, summary, path, choose, first = false }: Choosing & {
  name: string; at: string; kind: Member["kind"]; summary: string; first?: boolean;
}) {
  const inner = kind === "group" || kind === "directory";
  const leadsThere = path === at || path.startsWith(at ? `${at}/` : "");
  const [open, setOpen] = useState(first || (inner && leadsThere && path !== at));
  const [found, setFound] = useState<{ members: Member[]; complete: boolean } | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (inner && leadsThere && path !== at) setOpen(true);
  }, [path]);
  useEffect(() => {
    if (!open || !inner || found) return;
    fetchMembers(at).then(setFound, (error: Error) => setProblem(error.message));
  }, [open]);
  const chosen = path === at;
  return (
    <li role="treeitem" aria-expanded={inner ? open : undefined} aria-selected={chosen}>
      <div class={`branch ${kind} ${chosen ? "chosen" : ""}`}>
        {inner
          ? <button type="button" class={`opener ${open ? "open" : ""}`} aria-label={`${open ? "Close" : "Open"} ${name}`} onClick={() => setOpen(!open)}>▸</button>
          : <span class="sign" aria-hidden="true">{SIGNS[kind]}</span>}
        <button type="button" class="name" title={summary ? `${name}  ${summary}` : name} onClick={() => { choose(at); if (inner) setOpen(true); }}>
          <span class="own">{name}</span>
          {summary && <span class="faint">{summary}</span>}
        </button>
      </div>
      {inner && open && (
        <ul role="group">
          {problem && <li class="problem">{problem}</li>}
          {found?.members.map((member) => (
            <Branch key={member.name} name={member.name} at={at ? `${at}/${member.name}` : member.name} kind={member.kind}
              summary={member.summary} path={path} choose={choose} />
          ))}
          {found && !found.members.length && <li class="faint none">nothing is in it</li>}
          {found && !found.complete && <li class="faint none">the first {found.members.length} are shown</li>}
        </ul>
      )}
    </li>
  );
}
