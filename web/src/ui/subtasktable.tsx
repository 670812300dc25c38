import type { Graph, Split, Subtask, Vertex } from "../api/types";
import { count, rate, share } from "../model/format";
import { splitName, type HeldPath } from "../model/path";
import { Mark, Pill, Table, TimeBar } from "./parts";

/** subtaskState is how a subtask takes part in event time. */
function subtaskState(s: Subtask, splits: Split[]): { text: string; tone: string } {
  if (s.status && s.status !== "RUNNING") {
    return { text: s.status.toLowerCase(), tone: s.status === "FAILED" ? "bad" : "calm" };
  }
  if (s.idle) {
    return { text: "idle", tone: "calm" };
  }
  if (splits.length > 0 && splits.every((split) => split.state === "paused")) {
    return { text: "paused", tone: "held" };
  }
  return { text: "active", tone: "ok" };
}

export function SubtaskTable(props: { graph: Graph; vertex: Vertex; path: HeldPath | null; splits: Split[] }) {
  const { graph, vertex, path } = props;
  const now = graph.now;
  const holder = path?.subtasks.get(vertex.id);
  const splitsOf = (n: number): Split[] => props.splits.filter((s) => s.vertex === vertex.id && s.subtask === n);
  return (
    <Table
      caption={`Subtasks of ${vertex.name}`}
      rows={vertex.subtasks}
      rowKey={(s) => s.subtask}
      rowClass={(s) => (s.subtask === holder ? (path?.stuck ? "holds stuck" : "holds") : undefined)}
      columns={[
        {
          head: "Subtask",
          cell: (s) => (
            <>
              <strong>{s.subtask}</strong>
              {s.subtask === holder && <Pill tone={path?.stuck ? "held" : "water"}>on the path</Pill>}
            </>
          ),
        },
        {
          head: "State",
          cell: (s) => {
            const { text, tone } = subtaskState(s, splitsOf(s.subtask));
            return <Pill tone={tone}>{text}</Pill>;
          },
        },
        ...(vertex.kind === "source"
          ? [{ head: "Splits", cell: (s: Subtask) => splitsOf(s.subtask).map(splitName).join(", ") || <span class="faint">none</span> }]
          : [{ head: "Input watermark", cell: (s: Subtask) => <Mark value={s.inputWatermark} now={now} /> }]),
        ...(vertex.kind === "sink" ? [] : [{ head: "Output watermark", cell: (s: Subtask) => <Mark value={s.outputWatermark} now={now} /> }]),
        {
          head: "Time",
          cell: (s) => (
            <span class="timecell">
              <TimeBar busy={s.busy} backPressured={s.softBackPressured + s.hardBackPressured} idle={s.idleTime} />
              <span class="faint">
                {share(s.busy)} % busy, {share(s.softBackPressured + s.hardBackPressured)} % back-pressured
              </span>
            </span>
          ),
        },
        { head: "In", number: true, cell: (s) => count(s.recordsIn) },
        { head: "In/s", number: true, cell: (s) => rate(s.recordsInPerSecond) },
        { head: "Out", number: true, cell: (s) => count(s.recordsOut) },
        { head: "Out/s", number: true, cell: (s) => rate(s.recordsOutPerSecond) },
        { head: "Late, dropped", number: true, cell: (s) => count(s.lateDropped) },
      ]}
    />
  );
}
