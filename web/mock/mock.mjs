// A server with made-up jobs, for the states of the pages that a demo job cannot be in,
// and for work on the pages without a job: node mock/mock.mjs 8081, then npm run dev.
//
// The first job tells of a quiet partition: topic orders has three, the last has been
// silent for seven minutes, and the window per minute waits for it. The second has failed.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const minute = 60_000;
const dist = fileURLToPath(new URL("../dist/", import.meta.url));

export const stuckJob = "5f1d0a7e9c3b4e2d8a6f7b1c0d9e8f7a";
export const failedJob = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
const source = "11111111111111111111111111111111";
const window_ = "22222222222222222222222222222222";
const sink = "33333333333333333333333333333333";
const returns = "44444444444444444444444444444444";

/** sumState is the state of a vertex with a memory budget, null without one. */
function sumState(subtasks) {
  const states = subtasks.map((s) => s.state).filter((s) => s);
  return states.length === 0 ? null : Object.fromEntries(Object.keys(states[0]).map((key) => [key, states.reduce((total, s) => total + s[key], 0)]));
}

/** story computes everything from the time since the mock was started. */
function story(born, options) {
  const now = Date.now();
  const started = born - 25 * minute;
  const quietSince = born - 7 * minute - 12_000;
  const bound = 5000;
  const mark = (p, at) => Math.floor((p === 2 ? Math.min(at, quietSince) : at - p * 400) / 100) * 100 - bound;
  const offsets = [0, 1, 2].map((p) => Math.floor((Math.min(now, p === 2 ? quietSince : now) - started) / 50));
  const held = mark(2, now);
  const subtask = (n, more) => ({
    subtask: n, status: "RUNNING", inputWatermark: null, outputWatermark: null, idle: false, busy: 34, softBackPressured: 0, hardBackPressured: 0,
    idleTime: 966, recordsIn: 0, recordsOut: 0, recordsInPerSecond: 0, recordsOutPerSecond: 0, lateDropped: 0, state: null, ...more,
  });
  const orders = [0, 1, 2].map((p) =>
    subtask(p, {
      outputWatermark: mark(p, now), recordsIn: offsets[p], recordsOut: offsets[p],
      recordsInPerSecond: p === 2 ? 0 : 20, recordsOutPerSecond: p === 2 ? 0 : 20, busy: p === 2 ? 1 : 31,
    }));
  const windows = [0, 1].map((n) =>
    subtask(n, { inputWatermark: held, outputWatermark: held, recordsIn: offsets[0] + n * 311, recordsInPerSecond: 20, busy: 120, lateDropped: n * (options.late ?? 3), state: options.state ? options.state[n] : null }));
  const sinks = [0, 1].map((n) => subtask(n, { inputWatermark: held, busy: 4 }));
  const back = [subtask(0, { outputWatermark: now - 2100, recordsIn: 8123, recordsOut: 8123, recordsOutPerSecond: 5.4, softBackPressured: 180, busy: 420 })];
  const vertex = (id, name, kind, subtasks, inputs, operators) => {
    const marks = subtasks.map((s) => (kind === "source" ? s.outputWatermark : s.inputWatermark));
    const low = Math.min(...marks);
    const most = (f) => Math.max(...subtasks.map(f));
    const sum = (key) => subtasks.reduce((total, s) => total + s[key], 0);
    return {
      id, name, kind, parallelism: subtasks.length, operators, inputs, lowWatermark: low, watermarkLagMs: now - low,
      busy: most((s) => s.busy), backPressured: most((s) => s.softBackPressured + s.hardBackPressured), idle: most((s) => s.idleTime),
      recordsInPerSecond: sum("recordsInPerSecond"), recordsOutPerSecond: sum("recordsOutPerSecond"), lateDropped: sum("lateDropped"), state: sumState(subtasks), subtasks,
    };
  };
  const graph = {
    jid: stuckJob, name: "orders per minute", state: "RUNNING", now, startTime: started, restarts: options.restarts ?? 2, parallelism: 2,
    vertices: [
      vertex(source, "Source: orders -> Filter", "source", orders, [], [{ name: "Source: orders", uid: "orders", kind: "source" }, { name: "Filter", uid: "", kind: "other" }]),
      vertex(returns, "Source: returns", "source", back, [], [{ name: "Source: returns", uid: "returns", kind: "source" }]),
      vertex(window_, "window.Tumbling(1m) Aggregate", "window", windows,
        [{ id: source, shipStrategy: "HASH", input: 0 }, { id: returns, shipStrategy: "HASH", input: 0 }], [{ name: "window.Tumbling(1m) Aggregate", uid: "per-minute", kind: "window" }]),
      vertex(sink, "Sink: print", "sink", sinks, [{ id: window_, shipStrategy: "FORWARD", input: 0 }], [{ name: "Sink: print", uid: "", kind: "sink" }]),
    ],
    holder: {
      watermark: held, sinceMs: quietSince,
      text: "The windows wait for orders-2: it has had no record for 7 min, and its watermark is the smallest.",
      path: [
        { vertex: source, subtask: 2, operator: "Source: orders" },
        { vertex: window_, subtask: 0, operator: "window.Tumbling(1m) Aggregate" },
        { vertex: sink, subtask: 0, operator: "Sink: print" },
      ],
      split: { vertex: source, subtask: 2, id: "orders-2", topic: "orders", partition: 2 },
    },
  };
  const splits = {
    now,
    splits: [0, 1, 2].map((p) => ({
      vertex: source, source: "orders", subtask: p, id: `orders-${p}`, topic: "orders", partition: p, state: "active", idleBy: "",
      sinceMs: p === 2 ? quietSince : now - 80, offset: offsets[p], endOffset: offsets[p] + (p === 1 ? 2 : 0), lag: p === 1 ? 2 : 0, watermark: mark(p, now), watermarkSinceMs: p === 2 ? quietSince : null,
      lastEventTime: mark(p, now) + bound, lastRecordAt: p === 2 ? quietSince : now - 40, records: offsets[p], futureRecords: 0,
    })).concat([{
      vertex: returns, source: "returns", subtask: 0, id: "returns-0", topic: "returns", partition: 0, state: "active", idleBy: "", sinceMs: now - 300,
      offset: 8123, endOffset: 8123, lag: 0, watermark: now - 2100, watermarkSinceMs: null, lastEventTime: now - 100, lastRecordAt: now - 150, records: 8123, futureRecords: 0,
    }]),
  };
  const history = (since) => {
    const series = [];
    const add = (kind, vertex, n, name, split, at) => {
      const points = [];
      const first = Math.max(since, started) - (Math.max(since, started) % 5000) + 5000;
      for (let wall = first; wall <= now; wall += 5000) {
        points.push([wall, wall < started + 4000 ? null : at(wall)]);
      }
      series.push({ kind, vertex, subtask: n, ...(split ? { split } : {}), name, points });
    };
    [0, 1, 2].forEach((p) => add("split", source, p, `orders-${p}`, `orders-${p}`, (wall) => mark(p, wall)));
    add("split", returns, 0, "returns-0", "returns-0", (wall) => wall - 2100 - 60_000 * Math.abs(Math.sin(wall / 400_000)));
    [0, 1].forEach((n) => add("subtask", window_, n, `window.Tumbling(1m) Aggregate (${n})`, "", (wall) => Math.min(mark(2, wall), mark(0, wall))));
    return { intervalMs: 5000, now, series };
  };
  return { now, started, quietSince, held, graph, splits, history };
}

const strategyGo = `eventtime.ForBoundedOutOfOrderness[Order](5*time.Second).
	WithTimestampAssigner(placedAt).
	WithIdleness(time.Minute)`;
const strategyJava = `WatermarkStrategy.<Order>forBoundedOutOfOrderness(Duration.ofSeconds(5))
    .withTimestampAssigner(placedAt)
    .withIdleness(Duration.ofMinutes(1));`;

const checkpoint = (id, now, more) => ({
  className: "completed", id, status: "COMPLETED", is_savepoint: false, trigger_timestamp: now - (9 - id) * 60_000, latest_ack_timestamp: now - (9 - id) * 60_000 + 420,
  state_size: 4_812_331 + id * 40_000, checkpointed_size: 310_220, end_to_end_duration: 420, processed_data: 0, persisted_data: 0, num_subtasks: 8,
  num_acknowledged_subtasks: 8, checkpoint_type: "CHECKPOINT", external_path: `/var/lib/lowwater/checkpoints/chk-${id}`, ...more,
});

const stat = (n) => ({ min: n * 0.8, max: n * 1.6, avg: n, p50: n, p90: n * 1.2, p95: n * 1.3, p99: n * 1.5, p999: n * 1.6 });

function api(path, query, s, options) {
  const job = { jid: stuckJob, name: "orders per minute", state: "RUNNING", "start-time": s.started, "end-time": -1, duration: s.now - s.started, tasks: { total: 8, running: 8 } };
  const failed = { jid: failedJob, name: "sessions", state: "FAILED", "start-time": s.started - 90 * minute, "end-time": s.started, duration: 90 * minute, tasks: { total: 4, failed: 4 } };
  const own = `/lowwater/jobs/${stuckJob}`;
  const checkpoints = options.checkpoints !== false;
  const answers = {
    "/config": { "refresh-interval": 3000, "flink-version": "2.3.0", features: { "web-cancel": true } },
    "/jobs/overview": { jobs: [job, failed] },
    [`${own}/graph`]: s.graph,
    [`/lowwater/jobs/${failedJob}/graph`]: { ...s.graph, jid: failedJob, name: "sessions", state: "FAILED", holder: null },
    [`/lowwater/jobs/${failedJob}/splits`]: s.splits,
    [`/lowwater/jobs/${failedJob}/history`]: s.history(Number(query.get("since") ?? 0)),
    [`/jobs/${failedJob}/exceptions`]: {
      exceptionHistory: {
        truncated: false,
        entries: [{ exceptionName: "panic", stacktrace: 'operator "enrich": panic: runtime error: index out of range [3] with length 3\ngoroutine 41 [running]:\nmain.enrich(...)\n\t/app/main.go:87', timestamp: s.started, taskName: "Source: clicks -> enrich (2/4)", endpoint: "localhost:0", failureLabels: {} }],
      },
    },
    [`${own}/splits`]: s.splits,
    [`${own}/history`]: s.history(Number(query.get("since") ?? 0)),
    [`${own}/late`]: {
      late: 41, dropped: 3,
      byReason: [{ operator: "window.Tumbling(1m) Aggregate", reason: "late", count: 3 }, { operator: "window.Tumbling(1m) Aggregate", reason: "late output", count: 38 }],
      bySplit: [{ operator: "window.Tumbling(1m) Aggregate", source: "orders", split: "orders-2", count: 41 }],
      samples: [0, 1, 2].map((i) => ({ operator: "window.Tumbling(1m) Aggregate", subtask: 1, timestamp: s.held - 95_000 - i * 700, watermark: s.held - 4000, behindMs: 91_000 + i * 700, key: ["coffee", "tea", "cake"][i], source: "orders", split: "orders-2", offset: 18_011 + i })),
    },
    [`${own}/plan`]: { warnings: [{ code: "over-parallel-source", severity: "warning", operator: "Source: orders", where: "app/main.go:83", message: "parallelism 4 but only 3 splits: one subtask will never have a watermark.", fixes: ["set its parallelism to 3", "add WithIdleness to its strategy"] }] },
    [`${own}/why`]: {
      job: "orders per minute", at_ms: s.now, cause: "quiet-partition", severity: "stall",
      could_not_see: ["The producers of topic orders: whether one is down cannot be seen from here."],
      findings: [{
        code: "quiet-partition", severity: "stall", likely: true,
        answer: `Window "per-minute" is silent because partition 2 of topic orders has sent nothing for ${Math.floor((s.now - s.quietSince) / minute)} min and holds the watermark.`,
        culprit: { source: "orders", topic: "orders", partitions: [2], subtasks: [2], operator: "per-minute" },
        why: ["The other partitions go on: their watermarks are 7 min ahead.", "There is no idle timeout, so a silent partition counts for ever."],
        numbers: { silent_ms: s.now - s.quietSince, watermark: s.held, waiting_records: 14203 },
        ruled_out: [{ code: "backpressure", because: "no subtask is back-pressured more than 18 %" }, { code: "alignment-blocked", because: "no split is paused" }],
        unless: [{ code: "stalled-reader", needs: "the end offsets of the partition" }],
        fixes: [
          { code: "set-idleness", do: "Leave a partition out that has been silent for a minute.", go: strategyGo, java: strategyJava, sql: "SET 'table.exec.source.idle-timeout' = '1 min';", costs: "Records of the partition that come after the windows have fired are late." },
          { code: "heartbeat-records", do: "Let each producer send a record now and then.", costs: "The producer must know that it has nothing to say." },
        ],
      }],
    },
    [`/jobs/${stuckJob}/jobmanager/config`]: [
      { key: "parallelism.default", value: "2" },
      { key: "pipeline.auto-watermark-interval", value: "200 ms" },
      { key: "restart-strategy.type", value: "exponential-delay" },
    ],
    [`/jobs/${stuckJob}/exceptions`]: { exceptionHistory: { entries: [], truncated: false } },
    [`/jobs/${stuckJob}/checkpoints`]: checkpoints && {
      counts: { restored: 1, total: 9, in_progress: 1, completed: 7, failed: 1 },
      summary: { checkpointed_size: stat(310_220), state_size: stat(4_812_331), end_to_end_duration: stat(420) },
      latest: { completed: checkpoint(8, s.now), savepoint: null, failed: null, restored: { id: 1, restore_timestamp: s.started, is_savepoint: false, external_path: "" } },
      history: [checkpoint(9, s.now, { className: "in_progress", status: "IN_PROGRESS", num_acknowledged_subtasks: 5 }), checkpoint(8, s.now), checkpoint(7, s.now, { className: "failed", status: "FAILED", failure_message: "timed out after 10 min" }), checkpoint(6, s.now)],
    },
    [`/jobs/${stuckJob}/checkpoints/config`]: checkpoints && {
      mode: "exactly_once", interval: minute, timeout: 10 * minute, min_pause: 0, max_concurrent: 1, externalization: { enabled: true, delete_on_cancellation: false },
      state_backend: "HashMapStateBackend", checkpoint_storage: "file:///var/lib/lowwater/checkpoints", unaligned_checkpoints: false, tolerable_failed_checkpoints: 0,
    },
  };
  const empty = options.empty && {
    [`${own}/graph`]: { ...s.graph, vertices: [], holder: null },
    [`${own}/splits`]: { now: s.now, splits: [] },
    [`${own}/history`]: { intervalMs: 5000, now: s.now, series: [] },
    [`${own}/late`]: { late: 0, dropped: 0, byReason: [], bySplit: [], samples: [] },
    [`${own}/plan`]: { warnings: [] },
    [`${own}/why`]: { job: "orders per minute", at_ms: s.now, cause: "none", severity: "none", findings: [] },
    [`/jobs/${stuckJob}/jobmanager/config`]: [],
  };
  return { ...answers, ...empty }[path] || undefined;
}

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/**
 * startMock serves dist and the stories on a port of 127.0.0.1, 0 for any.
 * options: token, which requests must have; checkpoints, false for a job without; restarts,
 * how many the job had; state, that of the window's two subtasks, which has a memory budget then;
 * late, how many records the window has dropped; fails, told a path and how often it was asked for
 * before, says whether the answer is a 503; empty, true for a job of which nothing is known yet.
 */
export async function startMock(port = 0, options = {}) {
  const born = Date.now();
  const requests = [];
  const asked = {};
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://mock");
    requests.push(`${request.method} ${url.pathname}`);
    const json = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const page = url.pathname === "/" ? "index.html" : url.pathname.startsWith("/assets/") ? url.pathname : "";
    if (page) {
      const body = await readFile(join(dist, normalize(page))).catch(() => null);
      return body ? response.writeHead(200, { "content-type": types[extname(page)] ?? "application/octet-stream" }).end(body) : json(404, { errors: ["not found"] });
    }
    if (options.token && request.headers.authorization !== `Bearer ${options.token}`) {
      return json(401, { errors: ["a bearer token is required"] });
    }
    asked[url.pathname] = (asked[url.pathname] ?? -1) + 1;
    if (options.fails?.(url.pathname, asked[url.pathname])) {
      return json(503, { errors: ["Too many requests at the same time."] });
    }
    if (url.pathname === "/lowwater/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => response.write("event: tick\ndata: {}\n\n"), 1000);
      return response.on("close", () => clearInterval(timer));
    }
    if (request.method !== "GET") {
      return json(202, { "request-id": "1" });
    }
    const body = api(url.pathname, url.searchParams, story(born, options), options);
    return body ? json(200, body) : json(404, { errors: [`Unable to load requested file ${url.pathname}.`] });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    close: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log((await startMock(Number(process.argv[2] ?? 8081))).url);
}
