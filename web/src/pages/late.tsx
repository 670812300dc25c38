// Records that came too late: why, from where, and what they were.

import { useResource } from "../api/live";
import type { Late } from "../api/types";
import { clock, count, duration, iso, plural, watermarkText } from "../model/format";
import { latestFirst } from "../model/late";
import { Empty, Facts, Loaded, Panel, Table } from "../ui/parts";
import type { JobView } from "./job";

/** The server's reasons for people; operators may have others of their own. */
const reasons: Record<string, string> = {
  late: "late, dropped",
  "late output": "late, sent to the late output",
};

export function LatePage(view: JobView) {
  const late = useResource<Late>(`/lowwater/jobs/${view.jid}/late`, 2);
  const { now } = view.graph;
  return (
    <Loaded of={late} absent="The server does not offer late records.">
      {(data) =>
        data.late === 0 && data.dropped === 0 && data.samples.length === 0 && data.byReason.length === 0 ? (
          <Panel title="Late records">
            <Empty>No record has come too late.</Empty>
          </Panel>
        ) : (
          <>
            <Panel title="Late records">
              <Facts
                facts={[
                  ["Late", count(data.late)],
                  ["Dropped", <span class={data.dropped > 0 ? "held-text" : ""}>{count(data.dropped)}</span>],
                ]}
              />
              <p class="note">
                A record is late when its window has already closed. It is dropped unless the job has allowed lateness for it, or sends it to a side
                output.
              </p>
            </Panel>
            <div class="columns">
              <Panel title="By reason">
                <Table
                  caption="Records not passed on, by operator and reason"
                  empty="No reasons counted."
                  rows={data.byReason.toSorted((a, b) => b.count - a.count)}
                  rowKey={(r) => `${r.operator}/${r.reason}`}
                  columns={[
                    { head: "Reason", cell: (r) => reasons[r.reason] ?? r.reason },
                    { head: "Operator", cell: (r) => r.operator },
                    { head: "Records", number: true, cell: (r) => count(r.count) },
                  ]}
                />
              </Panel>
              <Panel title="By split">
                <Table
                  caption="Late records by the split they were read from"
                  empty="The splits are not known."
                  rows={data.bySplit.toSorted((a, b) => b.count - a.count)}
                  rowKey={(r) => `${r.operator}/${r.source}/${r.split}`}
                  columns={[
                    { head: "Split", cell: (r) => <strong>{r.split || "unknown"}</strong> },
                    { head: "Source", cell: (r) => r.source },
                    { head: "Operator", cell: (r) => r.operator },
                    { head: "Records", number: true, cell: (r) => count(r.count) },
                  ]}
                />
              </Panel>
            </div>
            <Panel title="Samples" aside={<span class="faint">the latest {plural(data.samples.length, "record")}</span>}>
              <Table
                caption="Samples of late records, the latest first"
                empty="No samples."
                rows={latestFirst(data.samples).map((sample, i) => ({ sample, i }))}
                rowKey={({ i }) => i}
                columns={[
                  { head: "Event time", cell: ({ sample }) => <time dateTime={iso(sample.timestamp)}>{clock(sample.timestamp, now, true)}</time> },
                  { head: "Watermark then", cell: ({ sample }) => watermarkText(sample.watermark, now) },
                  { head: "Behind", number: true, cell: ({ sample }) => <span class="held-text">{duration(sample.behindMs)}</span> },
                  { head: "Key", cell: ({ sample }) => <code>{sample.key}</code> },
                  { head: "Split", cell: ({ sample }) => sample.split },
                  { head: "Offset", number: true, cell: ({ sample }) => count(sample.offset) },
                  {
                    head: "Operator",
                    cell: ({ sample }) => (
                      <>
                        {sample.operator} <span class="faint">subtask {sample.subtask}</span>
                      </>
                    ),
                  },
                ]}
              />
            </Panel>
          </>
        )
      }
    </Loaded>
  );
}
