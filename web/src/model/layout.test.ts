import { expect, test } from "vitest";
import type { Graph, Split } from "../api/types";
import { outline, shape } from "./layout";
import { heldPath } from "./path";

const graph = {
  now: 1000,
  state: "RUNNING",
  vertices: [
    { id: "src", inputs: [], kind: "source", subtasks: [] },
    { id: "win", inputs: [{ id: "src", shipStrategy: "HASH", input: 0 }], kind: "window" },
  ],
  holder: { watermark: null, sinceMs: 1, text: "", path: [{ vertex: "src", subtask: 0, operator: "" }], split: { vertex: "src", subtask: 0, id: "s1", topic: "t", partition: 1 } },
} as unknown as Graph;
const splits = (n: number): Split[] => Array.from({ length: n }, (_, i) => ({ vertex: "src", id: `s${i}`, topic: "t", partition: i, watermark: i }) as Split);
const path = heldPath(graph, undefined, splits(3));
const ids = (n: number, direction: "RIGHT" | "DOWN"): string[] => shape(graph, splits(n), path, direction).nodes.map((node) => node.id);

test("a few splits have a node each", () => expect(ids(3, "RIGHT")).toEqual(["split:src/s0", "split:src/s1", "split:src/s2", "src", "win"]));

test("of many only the one that holds", () => {
  expect(ids(100, "RIGHT")).toEqual(["split:src/s1", "more:src", "src", "win"]);
  expect(ids(3, "DOWN")).toEqual(["split:src/s1", "more:src", "src", "win"]);
});

test("a vertex with a budget for its state has room for it", () => {
  const limited = { ...graph, vertices: graph.vertices.map((v) => (v.id === "win" ? { ...v, state: {} } : v)) } as Graph;
  const heights = (g: Graph): number[] => shape(g, [], null, "RIGHT").nodes.map((node) => node.height);
  expect(heights(limited)).toEqual([heights(graph)[0], heights(graph)[1]! + 22]);
});

test("edges are named by their ends and input", () => {
  expect(shape(graph, splits(1), path, "RIGHT").edges.map((e) => [e.id, e.label])).toEqual([
    ["split:src/s0>src", ""],
    ["src>win#0", "hash"],
  ]);
});

test("outline rounds corners, and not more than there is room for", () => {
  expect(outline([{ x: 0, y: 0 }, { x: 20, y: 0 }, { x: 20, y: 30 }], 8)).toBe("M0 0L12 0Q20 0 20 8L20 30");
  expect(outline([{ x: 0, y: 0 }, { x: 4, y: 0 }, { x: 4, y: 30 }], 8)).toBe("M0 0L2 0Q4 0 4 8L4 30");
  expect(outline([])).toBe("");
});
