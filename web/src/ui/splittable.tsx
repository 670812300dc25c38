import type { Split, Splits } from "../api/types";
import { count } from "../model/format";
import { compareWatermarks, splitKey, splitName, type HeldPath } from "../model/path";
import { Mark, Pill, Table, When } from "./parts";

const tones: Record<Split["state"], string> = { active: "ok", idle: "calm", paused: "held", finished: "calm" };

/** SplitTable lists splits, the one that holds first, then by watermark. */
export function SplitTable(props: { splits: Splits; path: HeldPath | null; most?: number }) {
  const { now } = props.splits;
  const holds = (s: Split): boolean => splitKey(s) === props.path?.split;
  const rows = props.splits.splits
    .toSorted((a, b) => Number(holds(b)) - Number(holds(a)) || Number(a.state === "finished") - Number(b.state === "finished") || compareWatermarks(a.watermark, b.watermark))
    .slice(0, props.most);
  return (
    <Table
      caption="Splits, the one that holds the minimum first"
      empty="No splits."
      rows={rows}
      rowKey={splitKey}
      rowClass={(s) => (holds(s) ? (props.path?.stuck ? "holds stuck" : "holds") : undefined)}
      columns={[
        {
          head: "Split",
          cell: (s) => (
            <>
              <strong title={s.id}>{splitName(s)}</strong>
              {holds(s) && <Pill tone={props.path?.stuck ? "held" : "water"}>holds the minimum</Pill>}
            </>
          ),
        },
        {
          head: "State",
          cell: (s) => (
            <>
              <Pill tone={tones[s.state]}>{s.state}</Pill>
              {s.state === "idle" && s.idleBy && <span class="faint"> by {s.idleBy}</span>}
            </>
          ),
        },
        { head: "Watermark", cell: (s) => <Mark value={s.watermark} now={now} /> },
        { head: "Unchanged since", cell: (s) => <When at={s.sinceMs} now={now} /> },
        { head: "Last record", cell: (s) => <When at={s.lastRecordAt} now={now} none="none yet" /> },
        { head: "Last event time", cell: (s) => <When at={s.lastEventTime} now={now} none="none yet" /> },
        { head: "Offset", number: true, cell: (s) => count(s.offset) },
        { head: "End", number: true, cell: (s) => count(s.endOffset) },
        { head: "Lag", title: "records between the offset and the end", number: true, cell: (s) => count(s.lag) },
        { head: "Records", number: true, cell: (s) => count(s.records) },
        { head: "Future", title: "records too far ahead of the wall clock to move the watermark", number: true, cell: (s) => count(s.futureRecords) },
        {
          head: "Source",
          cell: (s) => (
            <>
              {s.source} <span class="faint">subtask {s.subtask}</span>
            </>
          ),
        },
      ]}
    />
  );
}
