// The path that holds the minimum: from the split that stands still to the operators
// that wait for it. Pure.

import type { Graph, Holder, Split, Vertex, Watermark, Why } from "../api/types";
import { plural, roughly } from "./format";

/**
 * A minimum that has stood for so long, with others so far ahead of it, is called stuck.
 * Where there is a diagnosis it has the time that it takes to tell a pause from a stall.
 */
export const stuckMillis = 10_000;
const stuckDiagnosedMillis = 30_000;
/** Inputs that are no further apart than this are level: which of them is the smallest changes all the time. */
const levelMillis = 1000;

export interface HeldPath {
  /** The vertices from the one with the split on, by id. */
  vertices: string[];
  /** Edges between them as "from>to". */
  edges: Set<string>;
  /** The subtask of each vertex that has the smallest watermark. */
  subtasks: Map<string, number>;
  /** The splitKey of the split that holds, or null. */
  split: string | null;
  stuck: boolean;
  /** For how long the minimum has stood, in ms. */
  stoodMillis: number | null;
}

export const edgeKey = (from: string, to: string): string => `${from}>${to}`;

/** splitKey identifies a split in a job: ids are unique within a source only. */
export const splitKey = (s: { vertex: string; id: string }): string => `${s.vertex}/${s.id}`;

/** splitName is how people call a split. */
export function splitName(s: { id: string; topic: string; partition: number }): string {
  return splitNameParts(s).join("");
}

/** splitNameParts is a split's name in two: what may be cut where there is no room, and what may not. */
export function splitNameParts(s: { id: string; topic: string; partition: number }): [string, string] {
  return s.topic && s.partition >= 0 ? [s.topic, `-${s.partition}`] : [s.id, ""];
}

/** compareWatermarks orders none before all times and the end after them. */
export function compareWatermarks(a: Watermark, b: Watermark): number {
  const order = (w: Watermark): number => (w === null ? -Infinity : w === "end" ? Infinity : w);
  const [x, y] = [order(a), order(b)];
  return x === y ? 0 : x < y ? -1 : 1;
}

/** healthy reports whether a diagnosis found nothing wrong. */
export function healthy(why: Why): boolean {
  return why.severity === "none";
}

export function finalState(state: string): boolean {
  return ["FINISHED", "CANCELED", "FAILED"].includes(state);
}

/** over reports whether what is known of splits and watermarks is of an attempt that has ended: nothing is read, and times do not run on. */
export function over(state: string): boolean {
  return finalState(state) || state === "RESTARTING";
}

/** heldPath returns what the graph highlights, or null if no input is behind the others. */
export function heldPath(graph: Graph, why: Why | undefined, splits: Split[]): HeldPath | null {
  const holder = graph.holder;
  if (!holder || finalState(graph.state)) {
    return null;
  }
  const subtasks = new Map<string, number>();
  for (const hop of holder.path) {
    subtasks.set(hop.vertex, hop.subtask);
  }
  if (holder.split) {
    subtasks.set(holder.split.vertex, holder.split.subtask);
  }
  const edges = new Set<string>();
  for (const v of graph.vertices) {
    for (const input of v.inputs) {
      if (subtasks.has(v.id) && subtasks.has(input.id)) {
        edges.add(edgeKey(input.id, v.id));
      }
    }
  }
  const stoodMillis = stood(holder, graph.now);
  const aheadMillis = ahead(graph, splits);
  const stuck = (why && !healthy(why)) || Math.min(stoodMillis ?? 0, aheadMillis) >= (why ? stuckDiagnosedMillis : stuckMillis);
  if (!stuck && aheadMillis < levelMillis) {
    return null;
  }
  return {
    vertices: upstreamFirst(graph.vertices)
      .map((v) => v.id)
      .filter((id) => subtasks.has(id)),
    edges,
    subtasks,
    split: holder.split && splitKey(holder.split),
    stuck,
    stoodMillis,
  };
}

/** ahead is how far the furthest source is ahead of the minimum, in event time. */
function ahead(graph: Graph, splits: Split[]): number {
  const sources = graph.vertices.filter((v) => v.inputs.length === 0).flatMap((v) => v.subtasks.map((s) => s.outputWatermark));
  const times = [...sources, ...splits.map((s) => s.watermark)].filter((w) => typeof w === "number");
  const held = graph.holder?.watermark;
  return typeof held === "number" ? Math.max(0, ...times) - held : times.length > 0 ? Infinity : 0;
}

function stood(holder: Holder, now: number): number | null {
  return holder.sinceMs === null || holder.sinceMs <= 0 ? null : Math.max(now - holder.sinceMs, 0);
}

/** upstreamFirst orders vertices so that inputs come before those they feed. */
export function upstreamFirst(vertices: Vertex[]): Vertex[] {
  const byId = new Map(vertices.map((v) => [v.id, v]));
  const done = new Set<string>();
  const order: Vertex[] = [];
  const visit = (v: Vertex): void => {
    if (done.has(v.id)) {
      return;
    }
    done.add(v.id);
    for (const input of v.inputs) {
      const from = byId.get(input.id);
      if (from) {
        visit(from);
      }
    }
    order.push(v);
  };
  vertices.forEach(visit);
  return order;
}

/** splitStatus is what a split's node says under its name; ended is for a job of which nothing runs. */
export function splitStatus(s: Split, now: number, ended = false): string {
  if (ended && s.state !== "finished") {
    return "not read";
  }
  switch (s.state) {
    case "finished":
      return "finished";
    case "paused":
      return "paused by alignment";
    case "idle":
      return s.sinceMs ? `idle ${roughly(now - s.sinceMs)}` : "idle";
    case "active": {
      if (s.lastRecordAt === null || s.lastRecordAt <= 0) {
        return restored(s) ? "no record since the restart" : "no record yet";
      }
      return silent(s, now) ? `silent ${roughly(now - s.lastRecordAt)}` : "active";
    }
  }
}

/** restored reports whether a split without records has a watermark all the same: it had records before the job was started again. Counters are of this attempt. */
export function restored(s: Split): boolean {
  return s.records === 0 && typeof s.watermark === "number";
}

/** silent reports whether an active split has had no record for some seconds. */
export function silent(s: Split, now: number): boolean {
  return s.state === "active" && s.lastRecordAt !== null && s.lastRecordAt > 0 && now - s.lastRecordAt >= 3000;
}

/** inOrder sorts splits by source, topic and partition, so that they keep their places. */
export function inOrder(splits: Split[]): Split[] {
  return splits.toSorted(
    (a, b) => a.source.localeCompare(b.source) || a.topic.localeCompare(b.topic) || a.partition - b.partition || a.id.localeCompare(b.id),
  );
}

export interface Answer {
  tone: "held" | "calm" | "ended" | "failed";
  text: string;
}

/** answer is the sentence on top of a job: that it fails, else what holds its watermark, or that nothing does. */
export function answer(graph: Graph, why: Why | undefined, splits: Split[]): Answer {
  switch (graph.state) {
    case "FINISHED":
    case "CANCELED":
      return { tone: "ended", text: graph.state === "FINISHED" ? "The job has finished." : "The job was cancelled." };
    case "FAILED":
      return { tone: "failed", text: "The job has failed. The exception says why." };
  }
  const found = why?.findings[0];
  if (["RESTARTING", "FAILING", "CANCELLING"].includes(graph.state) !== (found?.code === "job-not-running")) {
    // The diagnosis is asked for less often than the state, so they may be of different moments.
    const again = graph.restarts > 0 ? `, after ${plural(graph.restarts, "restart")}` : "";
    if (graph.state !== "RUNNING") {
      return { tone: graph.state === "CANCELLING" ? "calm" : "failed", text: `The job is ${graph.state}${again}.` };
    }
    return { tone: "failed", text: `The job runs again${again}.` };
  }
  if (found && ["job-not-running", "job-restarts"].includes(found.code)) {
    return { tone: healthy(why!) ? "calm" : "failed", text: found.answer };
  }
  if (found && !healthy(why!)) {
    return { tone: "held", text: found.answer };
  }
  const path = heldPath(graph, why, splits);
  if (found && !path?.stuck && !["none", "not-enough-evidence"].includes(found.code)) {
    return { tone: "calm", text: found.answer }; // such as that no window is due yet
  }
  if (path) {
    return { tone: path.stuck ? "held" : "calm", text: holderText(graph, path, splits) };
  }
  const { holder } = graph;
  if (holder?.watermark === null) {
    return { tone: "calm", text: "No input has a watermark yet." };
  }
  const idle = splits.filter((s) => s.state === "idle").length;
  const excused = idle === 0 ? "" : ` ${plural(idle, "split is", "splits are")} idle and not waited for.`;
  if (!holder) {
    return { tone: "calm", text: `${found?.answer ?? "Nothing is known to wait for event time."}${excused}` };
  }
  const still = stood(holder, graph.now);
  const moves = still === null ? "" : still < stuckMillis ? "Watermarks move. " : `Event time has stood still for ${steady(still)}. `;
  return { tone: "calm", text: `${moves}No input is behind the others.${excused}` };
}

/** holderText says who waits for whom. It changes seldom, because it is read aloud when it does. */
function holderText(graph: Graph, path: HeldPath, splits: Split[]): string {
  const holder = graph.holder!;
  const waits = holder.path.at(-1);
  const first = graph.vertices.find((v) => v.id === path.vertices[0]);
  if (!waits || !first) {
    return holder.text;
  }
  const split = splits.find((s) => splitKey(s) === path.split);
  const name = holder.split ? splitName(holder.split) : `subtask ${path.subtasks.get(first.id)} of ${first.name}`;
  if (holder.watermark === null) {
    return `“${waits.operator}” waits for ${name}, which has no watermark yet.`;
  }
  if (!path.stuck && path.stoodMillis === null) {
    return `The smallest watermark is that of ${name}.`;
  }
  if (!path.stuck && path.stoodMillis! < stuckMillis) {
    return `Watermarks move. The smallest is that of ${name}.`;
  }
  const silence = split?.state === "active" && split.lastRecordAt ? graph.now - split.lastRecordAt : 0;
  if (silence >= stuckMillis) {
    return `“${waits.operator}” waits for ${name}: no record has come from it for ${steady(silence)}, so its watermark stands still.`;
  }
  return `“${waits.operator}” waits for ${name}: its watermark has stood still${path.stoodMillis === null ? "" : ` for ${steady(path.stoodMillis)}`}.`;
}

/** steady is a length of time in steps that are not announced every second. */
function steady(ms: number): string {
  return ms < 60_000 ? `over ${Math.max(Math.floor(ms / 10_000), 1) * 10} s` : roughly(ms);
}

/** pathText is the path in words, for those who do not see the graph. */
export function pathText(graph: Graph, path: HeldPath, splits: Split[]): string[] {
  const steps: string[] = [];
  const split = splits.find((s) => splitKey(s) === path.split);
  if (split) {
    steps.push(`${splitName(split)}, ${splitStatus(split, graph.now)}`);
  } else if (graph.holder?.split) {
    steps.push(splitName(graph.holder.split));
  }
  for (const id of path.vertices) {
    const vertex = graph.vertices.find((v) => v.id === id)!;
    const n = path.subtasks.get(id)!;
    steps.push(vertex.parallelism > 1 ? `${vertex.name}, subtask ${n}` : vertex.name);
  }
  return steps;
}
