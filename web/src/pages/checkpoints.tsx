// Checkpoints, in Flink's shapes.

import { useResource } from "../api/live";
import { missing } from "../api/loader";
import type { Checkpoint, Checkpoints, CheckpointsConfig, Stat } from "../api/types";
import { bytes, count, duration } from "../model/format";
import { Empty, Facts, Loaded, Panel, Pill, Table, When } from "../ui/parts";
import type { JobView } from "./job";

const tones: Record<string, string> = { COMPLETED: "ok", FAILED: "bad", IN_PROGRESS: "water" };

export function CheckpointsPage(view: JobView) {
  const config = useResource<CheckpointsConfig>(`/jobs/${view.jid}/checkpoints/config`, 30);
  const checkpoints = useResource<Checkpoints>(`/jobs/${view.jid}/checkpoints`, 2);
  const { now } = view.graph;
  if (missing(config.error) || (!config.data && missing(checkpoints.error))) {
    return (
      <Panel title="Checkpoints">
        <Empty>Checkpointing is off for this job. After a restart it begins at its sources' start offsets, with empty state.</Empty>
      </Panel>
    );
  }
  return (
    <Loaded of={checkpoints} absent="The server has no checkpoints of this job.">
      {(data) => (
        <>
          <Panel title="Checkpoints">
            <Facts
              facts={[
                ["Completed", count(data.counts.completed)],
                ["In progress", count(data.counts.in_progress)],
                ["Failed", <span class={data.counts.failed > 0 ? "bad-text" : ""}>{count(data.counts.failed)}</span>],
                ["Restored", count(data.counts.restored)],
                ["Latest completed", data.latest.completed ? <When at={data.latest.completed.latest_ack_timestamp} now={now} /> : "none yet"],
                ["Restored from", data.latest.restored ? <>no. {data.latest.restored.id}, <When at={data.latest.restored.restore_timestamp} now={now} /></> : "–"],
              ]}
            />
          </Panel>
          <Panel title="History">
            <History rows={data.history} now={now} />
          </Panel>
          {data.summary && (
            <Panel title="Summary">
              <Summary summary={data.summary} />
            </Panel>
          )}
          {config.data && <Config config={config.data} />}
        </>
      )}
    </Loaded>
  );
}

function History(props: { rows: Checkpoint[]; now: number }) {
  const { now } = props;
  return (
    <Table
      caption="Checkpoints, the latest first"
      empty="No checkpoint yet."
      rows={props.rows}
      rowKey={(c) => c.id}
      columns={[
        { head: "No.", cell: (c) => c.id },
        {
          head: "Status",
          cell: (c) => (
            <>
              <Pill tone={tones[c.status] ?? "calm"}>{c.status.toLowerCase().replace("_", " ")}</Pill>
              {c.failure_message && <span class="bad-text"> {c.failure_message}</span>}
            </>
          ),
        },
        { head: "Type", cell: (c) => (c.checkpoint_type ?? (c.is_savepoint ? "SAVEPOINT" : "CHECKPOINT")).toLowerCase().replace("_", " ") },
        { head: "Triggered", cell: (c) => <When at={c.trigger_timestamp} now={now} /> },
        { head: "Duration", number: true, cell: (c) => duration(c.end_to_end_duration) },
        { head: "State", number: true, cell: (c) => bytes(c.state_size) },
        { head: "Written", number: true, title: "what this checkpoint added", cell: (c) => bytes(c.checkpointed_size) },
        { head: "Subtasks", number: true, cell: (c) => `${c.num_acknowledged_subtasks}/${c.num_subtasks}` },
        { head: "Path", cell: (c) => (c.external_path ? <code>{c.external_path}</code> : "") },
      ]}
    />
  );
}

function Summary(props: { summary: NonNullable<Checkpoints["summary"]> }) {
  const rows: [name: string, stat: Stat | undefined, show: (n: number) => string][] = [
    ["Duration", props.summary.end_to_end_duration, duration],
    ["State", props.summary.state_size, bytes],
    ["Written", props.summary.checkpointed_size, bytes],
  ];
  const heads = ["min", "avg", "p50", "p95", "p99", "max"] as const;
  return (
    <Table
      caption="Completed checkpoints in numbers"
      rows={rows.filter(([, stat]) => stat)}
      rowKey={([name]) => name}
      columns={[
        { head: "Of", cell: ([name]) => name },
        ...heads.map((head) => ({
          head,
          number: true,
          cell: ([, stat, show]: (typeof rows)[number]) => {
            const value = stat![head];
            return typeof value === "number" ? show(value) : "–";
          },
        })),
      ]}
    />
  );
}

function Config(props: { config: CheckpointsConfig }) {
  const { config } = props;
  return (
    <Panel title="Settings">
      <Facts
        facts={[
          ["Mode", config.mode.replaceAll("_", " ")],
          ["Interval", duration(config.interval)],
          ["Timeout", duration(config.timeout)],
          ["Pause between", duration(config.min_pause)],
          ["At once", config.max_concurrent],
          ["Unaligned", config.unaligned_checkpoints ? "yes" : "no"],
          ["State", config.state_backend ?? "–"],
          ["Storage", config.checkpoint_storage ?? "–"],
          ["Tolerated failures", config.tolerable_failed_checkpoints ?? "–"],
          ["Kept after cancelling", config.externalization?.enabled ? (config.externalization.delete_on_cancellation ? "no" : "yes") : "no"],
        ]}
      />
    </Panel>
  );
}
