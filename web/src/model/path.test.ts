import { describe, expect, test } from "vitest";
import type { Finding, Graph, Holder, Split, Vertex, Why } from "../api/types";
import { answer, compareWatermarks, heldPath, inOrder, over, pathText, silent, splitName, splitStatus, upstreamFirst } from "./path";

const now = 1_000_000_000;

function vertex(id: string, inputs: string[], parallelism = 2): Vertex {
  return {
    id,
    name: id.toUpperCase(),
    parallelism,
    kind: inputs.length > 0 ? "window" : "source",
    operators: [],
    inputs: inputs.map((from) => ({ id: from, shipStrategy: "HASH", input: 0 })),
    lowWatermark: now,
    watermarkLagMs: 0,
    busy: 0,
    backPressured: 0,
    idle: 0,
    recordsInPerSecond: 0,
    recordsOutPerSecond: 0,
    lateDropped: 0,
    state: null,
    subtasks: [],
  };
}

/** Two sources into a join, behind it a sink; the sink comes first, as in Flink's plans. */
const holder: Holder = {
  watermark: now - 420_000,
  sinceMs: now - 415_000,
  text: "orders-2 holds.",
  path: [
    { vertex: "sink", subtask: 0, operator: "sink" },
    { vertex: "join", subtask: 1, operator: "join" },
    { vertex: "orders", subtask: 2, operator: "orders" },
  ],
  split: { vertex: "orders", subtask: 2, id: "7", topic: "orders", partition: 2 },
};
const graph = (more: Partial<Graph> = {}): Graph => ({
  jid: "j",
  name: "job",
  state: "RUNNING",
  now,
  startTime: 0,
  restarts: 0,
  parallelism: 2,
  vertices: [vertex("sink", ["join"], 1), vertex("join", ["orders", "returns"]), vertex("orders", []), vertex("returns", [])],
  holder,
  ...more,
});
const split = (more: Partial<Split> = {}): Split => ({
  vertex: "orders",
  source: "orders",
  subtask: 2,
  id: "7",
  topic: "orders",
  partition: 2,
  state: "active",
  idleBy: "",
  sinceMs: now - 415_000,
  offset: 62,
  endOffset: 62,
  lag: 0,
  watermark: now - 420_000,
  watermarkSinceMs: now - 415_000,
  lastEventTime: now - 420_000,
  lastRecordAt: now - 415_000,
  records: 62,
  futureRecords: 0,
  ...more,
});
const finding = (code: string, severity: string, text: string): Finding => ({ code, severity, likely: false, answer: text });
const why = (f: Finding): Why => ({ at_ms: now, cause: f.code, severity: f.severity, findings: [f] });
const well = why(finding("none", "none", "Nothing holds event time back."));
const ill = why(finding("quiet-partition", "stall", "Partition 2 is quiet."));

/** The split that holds, and one that is ahead. */
const others = [split(), split({ id: "5", partition: 1, watermark: now - 1000 })];

describe("heldPath", () => {
  test("runs from the source to the sink and leaves out the other source", () => {
    const path = heldPath(graph(), undefined, others)!;
    expect(path.vertices).toEqual(["orders", "join", "sink"]);
    expect([...path.edges].sort()).toEqual(["join>sink", "orders>join"]);
    expect(path.split).toBe("orders/7");
    expect(path.subtasks.get("join")).toBe(1);
    expect(path.stoodMillis).toBe(415_000);
    expect(path.stuck).toBe(true);
  });
  test("is stuck when the minimum stands and others are ahead, or the diagnosis says so", () => {
    expect(heldPath(graph({ holder: { ...holder, sinceMs: now - 900 } }), undefined, others)!.stuck).toBe(false);
    expect(heldPath(graph({ holder: { ...holder, sinceMs: now - 12_000 } }), undefined, others)!.stuck).toBe(true);
    expect(heldPath(graph({ holder: { ...holder, sinceMs: now - 12_000 } }), well, others)!.stuck).toBe(false);
    const twoAhead = [split(), split({ id: "5", partition: 1, watermark: holder.watermark as number + 2000 })];
    expect(heldPath(graph(), undefined, twoAhead)!.stuck).toBe(false);
    expect(heldPath(graph({ holder: { ...holder, watermark: null } }), undefined, others)!.stuck).toBe(true);
    expect(heldPath(graph({ holder: { ...holder, sinceMs: now - 900 } }), ill, others)!.stuck).toBe(true);
  });
  test("is none while all inputs are level, which of them may be the smallest", () => {
    expect(heldPath(graph(), undefined, [split()])).toBeNull();
  });
  test("is none without a holder, and for a job that has ended", () => {
    expect(heldPath(graph({ holder: null }), undefined, others)).toBeNull();
    expect(heldPath(graph({ state: "FINISHED" }), undefined, others)).toBeNull();
  });
  test("has no split where a whole subtask holds", () => {
    const path = heldPath(graph({ holder: { ...holder, split: null } }), undefined, others)!;
    expect(path.split).toBeNull();
    expect(path.vertices[0]).toBe("orders");
  });
});

test("pathText is the path in words", () => {
  const path = heldPath(graph(), undefined, others)!;
  expect(pathText(graph(), path, [split()])).toEqual(["orders-2, silent 6 min", "ORDERS, subtask 2", "JOIN, subtask 1", "SINK"]);
  expect(pathText(graph(), path, [])[0]).toBe("orders-2");
});

test.each([
  [{}, "silent 6 min"],
  [{ lastRecordAt: now - 500 }, "active"],
  [{ lastRecordAt: null, records: 0, watermark: null }, "no record yet"],
  [{ lastRecordAt: null, records: 0 }, "no record since the restart"],
  [{ state: "idle", sinceMs: now - 61_000 }, "idle 1 min"],
  [{ state: "paused" }, "paused by alignment"],
  [{ state: "finished" }, "finished"],
] as [Partial<Split>, string][])("splitStatus of %j is %s", (more, want) => expect(splitStatus(split(more), now)).toBe(want));

test("of a job of which nothing runs no split is active", () => {
  expect([splitStatus(split(), now, true), splitStatus(split({ state: "idle" }), now, true), splitStatus(split({ state: "finished" }), now, true)]).toEqual(["not read", "not read", "finished"]);
  expect(["RUNNING", "CANCELLING", "RESTARTING", "FAILED", "FINISHED"].map(over)).toEqual([false, false, true, true, true]);
});

test("a split that has records is not silent, though its watermark stands", () => {
  expect([silent(split(), now), silent(split({ lastRecordAt: now - 500 }), now), silent(split({ lastRecordAt: null }), now), silent(split({ state: "idle" }), now)]).toEqual([true, false, false, false]);
});

test("splitName falls back to the id", () => {
  expect(splitName(split())).toBe("orders-2");
  expect(splitName({ id: "shard 4", topic: "", partition: -1 })).toBe("shard 4");
});

describe("answer", () => {
  const waiting = (more: Partial<Holder> = {}): Graph => graph({ holder: { ...holder, path: [holder.path[2]!, holder.path[1]!], ...more } });
  test("is the diagnosis' if it found something", () => {
    expect(answer(graph(), ill, [])).toEqual({ tone: "held", text: "Partition 2 is quiet." });
    expect(answer(graph(), why(finding("window-not-due", "none", "The first window ends at noon.")), [])).toEqual({ tone: "calm", text: "The first window ends at noon." });
  });
  test("is else the holder's", () => {
    const held = { tone: "held", text: "“join” waits for orders-2: no record has come from it for 6 min, so its watermark stands still." };
    expect(answer(waiting(), undefined, others)).toEqual(held);
    expect(answer(waiting(), undefined, [others[1]!])).toEqual({ tone: "held", text: "“join” waits for orders-2: its watermark has stood still for 6 min." });
    expect(answer(waiting({ sinceMs: now - 900 }), undefined, others)).toEqual({ tone: "calm", text: "Watermarks move. The smallest is that of orders-2." });
    expect(answer(waiting({ sinceMs: now - 900 }), undefined, [split()])).toEqual({ tone: "calm", text: "Watermarks move. No input is behind the others." });
    expect(answer(waiting(), well, [split()])).toEqual({ tone: "calm", text: "Event time has stood still for 6 min. No input is behind the others." });
    expect(answer(waiting({ sinceMs: null }), well, [split()]).text).toBe("No input is behind the others.");
    expect(answer(waiting({ sinceMs: null }), well, others).text).toBe("The smallest watermark is that of orders-2.");
    expect(answer(waiting({ sinceMs: now - 12_000 }), well, others)).toEqual({ tone: "calm", text: held.text });
    expect(answer(waiting({ watermark: null }), undefined, []).text).toBe("No input has a watermark yet.");
    expect(answer(waiting({ watermark: null }), undefined, others).text).toBe("“join” waits for orders-2, which has no watermark yet.");
    expect(answer(waiting({ split: null, sinceMs: now - 34_000 }), undefined, others).text).toBe(
      "“join” waits for subtask 2 of ORDERS: its watermark has stood still for over 30 s.",
    );
    expect(answer(waiting({ sinceMs: now - 900 }), undefined, [split({ state: "idle" }), split()]).text).toBe(
      "Watermarks move. No input is behind the others. 1 split is idle and not waited for.",
    );
  });
  test("claims nothing of watermarks where nobody is known to wait for them", () => {
    expect(answer(graph({ holder: null }), undefined, [])).toEqual({ tone: "calm", text: "Nothing is known to wait for event time." });
    expect(answer(graph({ holder: null }), why(finding("none", "none", "No operator of the job waits for event time.")), others).text).toBe("No operator of the job waits for event time.");
  });
  test("is of the failures of a job first, and agrees with its state", () => {
    const halted = why(finding("job-not-running", "stall", "Job “j” is RESTARTING after 3 restarts: boom"));
    const again = why(finding("job-restarts", "stall", "Job “j” fails again and again."));
    expect(answer(graph({ state: "RESTARTING", holder: null, restarts: 3 }), halted, others)).toEqual({ tone: "failed", text: halted.findings[0]!.answer });
    expect(answer(graph({ state: "RUNNING", restarts: 3 }), again, others)).toEqual({ tone: "failed", text: "Job “j” fails again and again." });
    expect(answer(graph({ state: "RESTARTING", restarts: 3 }), well, others)).toEqual({ tone: "failed", text: "The job is RESTARTING, after 3 restarts." });
    expect(answer(graph({ state: "FAILING" }), undefined, others)).toEqual({ tone: "failed", text: "The job is FAILING." });
    expect(answer(graph({ state: "RUNNING", restarts: 1 }), halted, others)).toEqual({ tone: "failed", text: "The job runs again, after 1 restart." });
    const cancelling = why(finding("job-not-running", "none", "It waits for user code."));
    expect(answer(graph({ state: "CANCELLING" }), cancelling, others)).toEqual({ tone: "calm", text: "It waits for user code." });
  });
  test("says how a job ended, whatever held it then", () => {
    expect(answer(graph({ state: "FAILED" }), ill, []).tone).toBe("failed");
    expect(answer(graph({ state: "CANCELED" }), undefined, [])).toEqual({ tone: "ended", text: "The job was cancelled." });
  });
});

test("inOrder sorts partitions as numbers", () => {
  const all = [split({ partition: 10 }), split({ partition: 2 }), split({ source: "a", partition: 7 })];
  expect(inOrder(all).map((s) => s.partition)).toEqual([7, 2, 10]);
});

test("compareWatermarks orders none, times, the end", () => {
  expect([5, "end", null, -3, "end", null].sort(compareWatermarks as (a: unknown, b: unknown) => number)).toEqual([null, null, -3, 5, "end", "end"]);
});

test("upstreamFirst ends, whatever the order", () => {
  expect(upstreamFirst(graph().vertices).map((v) => v.id)).toEqual(["orders", "returns", "join", "sink"]);
});
