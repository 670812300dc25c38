import type { ComponentChildren } from "preact";
import type { Subtask, Vertex } from "../api/types";
import { bytes, bytesOf, count, plural, rate } from "../model/format";
import { Table } from "./parts";

/** StateTable shows how the state of a vertex fits its memory budget; there is none without one. */
export function StateTable(props: { vertex: Vertex }) {
  const { vertex } = props;
  if (!vertex.state) {
    return null;
  }
  const none = <span class="faint">none</span>;
  return (
    <>
      <h3>State</h3>
      <p class="because">{stateText(vertex)}</p>
      <Table
        class="snug"
        caption={`State of ${vertex.name}`}
        rows={vertex.subtasks}
        rowKey={(s) => s.subtask}
        columns={[
          { head: "Subtask", cell: (s) => <strong>{s.subtask}</strong> },
          { head: "In memory", title: "of the subtask's part of the budget; about, as sizes are estimates", number: true, cell: ({ state }: Subtask) => (state ? bytesOf(state.memoryBytes, state.budgetBytes) : none) },
          {
            head: "Entries on disk",
            title: "cells of functions, each what one state holds for one key, or runs of windows",
            number: true,
            cell: ({ state }: Subtask) => (state && state.spilledEntries > 0 ? count(state.spilledEntries) : none),
          },
          { head: "Files", title: "what the files on disk take", number: true, cell: ({ state }: Subtask) => (state && state.diskBytes > 0 ? bytes(state.diskBytes) : none) },
          { head: "Reads/s", title: "entries looked for on disk", number: true, cell: ({ state }: Subtask) => rate(state?.spillReadsPerSecond ?? 0) },
          { head: "Writes/s", title: "entries written to disk", number: true, cell: ({ state }: Subtask) => rate(state?.spillWritesPerSecond ?? 0) },
        ]}
      />
    </>
  );
}

/** stateText says what there is on disk, what that costs, and what helps. */
function stateText(vertex: Vertex): ComponentChildren {
  const state = vertex.state!;
  const budget = `${bytes(state.budgetBytes)}${vertex.parallelism > 1 ? ` in ${vertex.parallelism} subtasks` : ""}`;
  if (state.spilledEntries === 0) {
    return `All of it is in memory. Its budget is ${budget}; what is more goes to disk.`;
  }
  return (
    <>
      It is larger than its memory budget, {budget}: {plural(state.spilledEntries, "entry is", "entries are")} on disk, which is slower. If that is too slow, raise <code>WithStateMemory</code> or the
      parallelism.
    </>
  );
}
