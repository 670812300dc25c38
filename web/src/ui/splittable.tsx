import type { Split, Splits } from "../api/types";
import { clock, count, duration, iso } from "../model/format";
import { compareWatermarks, restored, silent, splitKey, type HeldPath } from "../model/path";
import { Mark, Pill, SplitName, Table, When } from "./parts";

const tones: Record<Split["state"], string> = { active: "ok", idle: "calm", paused: "held", finished: "calm" };

/** More rows than these are sorted by watermark; fewer keep their places, so that the eye finds them. */
const fewRows = 12;

const none = (s: Split): string => (restored(s) ? "none since the restart" : "none yet");

/** SplitTable lists splits, one that holds the others up first; ended is for a job of which nothing runs. */
export function SplitTable(props: { splits: Splits; path: HeldPath | null; ended: boolean; most?: number }) {
  const { now } = props.splits;
  const holds = (s: Split): boolean => splitKey(s) === props.path?.split;
  const stuck = (s: Split): boolean => holds(s) && props.path!.stuck;
  const many = props.splits.splits.length > fewRows;
  const all = props.splits.splits;
  const sources = new Set(all.map((s) => s.vertex)).size;
  const rows = all
    .toSorted((a, b) => Number(stuck(b)) - Number(stuck(a)) || Number(a.state === "finished") - Number(b.state === "finished") || (many ? compareWatermarks(a.watermark, b.watermark) : 0))
    .slice(0, props.most);
  return (
    <Table
      caption="Splits"
      empty="No splits."
      rows={rows}
      rowKey={splitKey}
      rowClass={(s) => (holds(s) ? (props.path?.stuck ? "holds stuck" : "holds") : undefined)}
      columns={[
        {
          head: "Split",
          cell: (s) => (
            <>
              <SplitName split={s} />
              {holds(s) && <Pill tone={props.path?.stuck ? "held" : "water"}>holds the minimum</Pill>}
            </>
          ),
        },
        {
          head: "State",
          cell: (s) => props.ended && s.state !== "finished" ? <Pill tone="calm">not read</Pill> : (
            <>
              <Pill tone={tones[s.state]}>{s.state}</Pill>
              {s.state === "idle" && s.idleBy && <span class="faint"> by {s.idleBy}</span>}
              {stuck(s) && silent(s, now) ? (
                <span class="held-text"> but silent</span>
              ) : (
                s.sinceMs && <span class="faint"> for {duration(Math.max(now - s.sinceMs, 0))}</span>
              )}
            </>
          ),
        },
        { head: "Watermark", cell: (s) => <Mark value={s.watermark} now={now} /> },
        { head: "Last record", cell: (s) => <When at={s.lastRecordAt} now={now} none={none(s)} /> },
        { head: "Last event time", cell: (s) => (s.lastEventTime === null ? <span class="faint">{none(s)}</span> : <time dateTime={iso(s.lastEventTime)}>{clock(s.lastEventTime, now, true)}</time>) },
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
        { head: "Records", title: "since the job was last started", number: true, cell: (s) => count(s.records) },
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
