// All splits of all sources.

import { useState } from "preact/hooks";
import { over, splitName } from "../model/path";
import { Panel } from "../ui/parts";
import { SplitTable } from "../ui/splittable";
import type { JobView } from "./job";

/** More rows than these are no help to anyone, and slow every second. */
const maxRows = 200;

export function SplitsPage(view: JobView) {
  const [filter, setFilter] = useState("");
  const all = view.splits.splits;
  const wanted = filter.trim().toLowerCase();
  const shown = all.filter((s) => `${splitName(s)} ${s.state} ${s.source}`.toLowerCase().includes(wanted));
  return (
    <Panel
      title="Splits"
      aside={
        all.length > 10 && (
          <input type="search" aria-label="Filter splits" placeholder="name or state" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        )
      }
    >
      <SplitTable splits={{ ...view.splits, splits: shown }} path={view.path} ended={over(view.graph.state)} most={maxRows} />
      {shown.length > maxRows && (
        <p class="note">
          {maxRows} of {shown.length} splits, those furthest behind. The filter finds the others.
        </p>
      )}
    </Panel>
  );
}
