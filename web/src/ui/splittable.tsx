import type { Split, Splits } from "../api/types";
import { clock, count, duration, iso } from "../model/format";
import { compareWatermarks, splitKey, splitName, type HeldPath } from "../model/path";
import { Mark, Pill, Table, When } from "./parts";

const tones: Record<Split["state"], string> = { active: "ok", idle: "calm", paused: "held", finished: "calm" };

/** SplitTable lists splits, the one that holds first, then by watermark. */
export function SplitTable(props: { splits: Splits; path: HeldPath | null; most?: number }) {
  const { now } = props.splits;
  const holds = (s: Split): boolean => splitKey(s) === props.path?.split;
  const all = props.splits.splits;
  const sources = new Set(all.map((s) => s.vertex)).size;
  const rows = all
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
              {s.state === "active" && holds(s) && props.path?.stuck && <span class="held-text"> but silent</span>}
            </>
          ),
        },
        { head: "Watermark", cell: (s) => <Mark value={s.watermark} now={now} /> },
        {
          head: "Unchanged for",
          cell: (s) => (s.sinceMs ? <time dateTime={iso(s.sinceMs)} title={`since ${clock(s.sinceMs, now, true)}`}>{duration(Math.max(now - s.sinceMs, 0))}</time> : "–"),
        },
        { head: "Last record", cell: (s) => <When at={s.lastRecordAt} now={now} none="none yet" /> },
        { head: "Last event time", cell: (s) => (s.lastEventTime === null ? <span class="faint">none yet</span> : <time dateTime={iso(s.lastEventTime)}>{clock(s.lastEventTime, now, true)}</time>) },
        {
          head: "Offset / end",
          number: true,
          cell: (s) => (
            <>
              {count(s.offset)} <span class="faint">/ {count(s.endOffset)}</span>
            </>
          ),
        },
        { head: "Lag", title: "records between the offset and the end", number: true, cell: (s) => count(s.lag) },
        { head: "Records", number: true, cell: (s) => count(s.records) },
        ...(all.some((s) => s.futureRecords > 0)
          ? [{ head: "Future", title: "records too far ahead of the wall clock to move the watermark", number: true, cell: (s: Split) => count(s.futureRecords) }]
          : []),
        {
          head: sources > 1 ? "Source" : "Subtask",
          cell: (s) => (sources > 1 ? `${s.source} ${s.subtask}` : s.subtask),
        },
      ]}
    />
  );
}
