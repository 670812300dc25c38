// The shapes of the server's JSON. Times are milliseconds since the epoch.

/** A watermark: a time, null when there is none yet, "end" after the final one. */
export type Watermark = number | null | "end";

// Flink's monitoring REST, as far as the pages use it.

export type JobState = string;

export interface JobOverview {
  jid: string;
  name: string;
  state: JobState;
  "start-time": number;
  "end-time": number;
  duration: number;
  tasks?: Record<string, number>;
}

export interface JobsOverview {
  jobs: JobOverview[];
}

export interface FlinkConfig {
  "flink-version"?: string;
  features?: Record<string, boolean>;
}

export interface ExceptionEntry {
  exceptionName: string;
  stacktrace: string;
  timestamp: number;
  taskName?: string | null;
  endpoint?: string | null;
  failureLabels?: Record<string, string>;
  concurrentExceptions?: ExceptionEntry[];
}

export interface Exceptions {
  exceptionHistory?: { entries: ExceptionEntry[]; truncated: boolean };
}

/** A setting of a job or its server, under Flink's name. */
export interface Setting {
  key: string;
  value: string;
}

/** A statistic of Flink's; "NaN" when nothing was measured. */
export type Stat = Record<"min" | "max" | "avg" | "p50" | "p90" | "p95" | "p99" | "p999", number | "NaN">;

export interface Checkpoint {
  id: number;
  status: string;
  is_savepoint: boolean;
  trigger_timestamp: number;
  latest_ack_timestamp: number;
  state_size: number;
  checkpointed_size?: number;
  end_to_end_duration: number;
  processed_data?: number;
  persisted_data?: number;
  num_subtasks: number;
  num_acknowledged_subtasks: number;
  checkpoint_type?: string;
  external_path?: string;
  discarded?: boolean;
  failure_timestamp?: number;
  failure_message?: string;
}

export interface Checkpoints {
  counts: Record<"restored" | "total" | "in_progress" | "completed" | "failed", number>;
  summary?: Partial<Record<"checkpointed_size" | "state_size" | "end_to_end_duration", Stat>>;
  latest: {
    completed: Checkpoint | null;
    savepoint: Checkpoint | null;
    failed: Checkpoint | null;
    restored: { id: number; restore_timestamp: number; is_savepoint: boolean; external_path?: string } | null;
  };
  history: Checkpoint[];
}

export interface CheckpointsConfig {
  mode: string;
  interval: number;
  timeout: number;
  min_pause: number;
  max_concurrent: number;
  externalization?: { enabled: boolean; delete_on_cancellation: boolean };
  state_backend?: string;
  checkpoint_storage?: string;
  unaligned_checkpoints?: boolean;
  tolerable_failed_checkpoints?: number;
}

// lowwater's own.

export type VertexKind = "source" | "sink" | "window" | "process" | "other";

export interface Subtask {
  subtask: number;
  status: string;
  inputWatermark: Watermark;
  outputWatermark: Watermark;
  idle: boolean;
  busy: number;
  softBackPressured: number;
  hardBackPressured: number;
  idleTime: number;
  recordsIn: number;
  recordsOut: number;
  recordsInPerSecond: number;
  recordsOutPerSecond: number;
  lateDropped: number;
  state: KeyedState | null;
}

/** State with a memory budget. Entries are cells of functions, and runs of windows. */
export interface KeyedState {
  budgetBytes: number;
  memoryBytes: number;
  diskBytes: number;
  spilledEntries: number;
  spillReadsPerSecond: number;
  spillWritesPerSecond: number;
}

export interface Vertex {
  id: string;
  name: string;
  parallelism: number;
  kind: VertexKind;
  operators: { name: string; uid: string; kind: string }[];
  inputs: { id: string; shipStrategy: string; input: number }[];
  lowWatermark: Watermark;
  watermarkLagMs: number | null;
  busy: number;
  backPressured: number;
  idle: number;
  recordsInPerSecond: number;
  recordsOutPerSecond: number;
  lateDropped: number;
  /** The sum of the subtasks', null without a budget. */
  state: KeyedState | null;
  subtasks: Subtask[];
}

export interface Holder {
  watermark: Watermark;
  /** Since when the split or subtask has had that watermark. */
  sinceMs: number | null;
  text: string;
  /** From the source to the operator that waits. */
  path: { vertex: string; subtask: number; operator: string }[];
  split: { vertex: string; subtask: number; id: string; topic: string; partition: number } | null;
}

export interface Graph {
  jid: string;
  name: string;
  state: JobState;
  now: number;
  startTime: number;
  /** How often the job has been started again after a failure. */
  restarts: number;
  parallelism: number;
  vertices: Vertex[];
  holder: Holder | null;
}

export type SplitState = "active" | "idle" | "paused" | "finished";

export interface Split {
  vertex: string;
  source: string;
  subtask: number;
  id: string;
  topic: string;
  partition: number;
  state: SplitState;
  idleBy: string;
  /** Since when it has been in its state. */
  sinceMs: number | null;
  offset: number | null;
  endOffset: number | null;
  lag: number | null;
  watermark: Watermark;
  /** Since when it has had that watermark, as far as the history goes; null also if that is newer than the last second. */
  watermarkSinceMs: number | null;
  lastEventTime: number | null;
  lastRecordAt: number | null;
  records: number;
  futureRecords: number;
}

export interface Splits {
  now: number;
  splits: Split[];
}

export interface HistorySeries {
  kind: "subtask" | "split";
  vertex: string;
  subtask: number;
  split?: string;
  name: string;
  points: [wallMs: number, watermark: Watermark][];
}

export interface History {
  intervalMs: number;
  now: number;
  series: HistorySeries[];
}

export interface Late {
  late: number;
  dropped: number;
  byReason: { operator: string; reason: string; count: number }[];
  bySplit: { operator: string; source: string; split: string; count: number }[];
  samples: {
    operator: string;
    subtask: number;
    timestamp: number;
    watermark: Watermark;
    behindMs: number;
    key: string;
    source: string;
    split: string;
    offset: number;
  }[];
}

export type Severity = string;

export interface PlanWarning {
  code: string;
  severity: Severity;
  operator: string;
  where: string;
  message: string;
  /** Alternatives, best first. */
  fixes: string[];
}

export interface Plan {
  warnings: PlanWarning[];
}

export interface Finding {
  code: string;
  severity: Severity;
  /** Not sure: unless says what else it could be. */
  likely: boolean;
  answer: string;
  why?: string[];
  /** Integers. A name that ends in _ms is a length of time in milliseconds; event_time and watermarks are times. */
  numbers?: Record<string, number>;
  ruled_out?: { code: string; because: string }[];
  unless?: { code: string; needs: string }[];
  fixes?: { code: string; do: string; go?: string; java?: string; sql?: string; costs: string }[];
}

/** A diagnosis; the first finding is the answer. */
export interface Why {
  at_ms: number;
  cause: string;
  /** That of the first finding; "none" if nothing is wrong. */
  severity: Severity;
  findings: Finding[];
  could_not_see?: string[];
}
