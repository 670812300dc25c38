// What the graph shows as nodes and edges, and where elk puts them.

import type { ELK, ElkNode } from "elkjs/lib/elk-api";
import type { Graph, Split } from "../api/types";
import { edgeKey, splitKey, splitName, upstreamFirst, type HeldPath } from "./path";

const vertexSize = { width: 252, height: 118 };
/** So much higher is a vertex whose state has a memory budget. */
const stateHeight = 22;
const splitHeight = 46;
/** Bounds of a split's width; longer names are cut. */
const splitWidth = { RIGHT: [150, 236], DOWN: [132, 200] } as const;

/** So many splits of a source get a node each; of more only the holder does. */
const maxSplits = { RIGHT: 4, DOWN: 1 };

export type Direction = "RIGHT" | "DOWN";

export interface GraphNode {
  id: string;
  width: number;
  height: number;
  content: { kind: "vertex"; vertex: string } | { kind: "split"; split: string } | { kind: "more"; vertex: string; count: number };
}

export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  label: string;
}

export interface Shape {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** shape says which nodes and edges there are; equal shapes have the same layout. */
export function shape(graph: Graph, splits: Split[], path: HeldPath | null, direction: Direction): Shape {
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  // In the order of the data, which is also that of the keyboard's focus.
  for (const v of upstreamFirst(graph.vertices)) {
    const own = splits.filter((s) => s.vertex === v.id);
    const shown = own.length <= maxSplits[direction] ? own : own.filter((s) => splitKey(s) === path?.split);
    for (const s of shown) {
      const id = `split:${splitKey(s)}`;
      nodes.push({ id, width: widthFor(splitName(s), direction), height: splitHeight, content: { kind: "split", split: splitKey(s) } });
      edges.push({ id: edgeKey(id, v.id), from: id, to: v.id, label: "" });
    }
    if (own.length > shown.length) {
      const id = `more:${v.id}`;
      nodes.push({ id, width: splitWidth[direction][0] + 16, height: splitHeight, content: { kind: "more", vertex: v.id, count: own.length - shown.length } });
      edges.push({ id: edgeKey(id, v.id), from: id, to: v.id, label: "" });
    }
    nodes.push({ id: v.id, width: vertexSize.width, height: vertexSize.height + (v.state ? stateHeight : 0), content: { kind: "vertex", vertex: v.id } });
    v.inputs.forEach((input, i) => {
      edges.push({ id: `${edgeKey(input.id, v.id)}#${i}`, from: input.id, to: v.id, label: input.shipStrategy.toLowerCase() });
    });
  }
  return { nodes, edges };
}

function widthFor(name: string, direction: Direction): number {
  const [least, most] = splitWidth[direction];
  return Math.min(Math.max(name.length * 7.4 + 34, least), most);
}

export interface Point {
  x: number;
  y: number;
}

export interface Placed {
  width: number;
  height: number;
  nodes: Map<string, Point>;
  /** The corners of each edge, from its start to its end. */
  edges: Map<string, Point[]>;
}

let engine: Promise<ELK> | undefined;

/** loadElk fetches elk when the first graph is shown; its layout runs in a worker. */
function loadElk(): Promise<ELK> {
  engine ??= Promise.all([import("elkjs/lib/elk-api"), import("elkjs/lib/elk-worker.min.js?url")]).then(
    ([api, worker]) => new api.default({ workerUrl: worker.default }),
  );
  return engine;
}

/** place lays a shape out in layers, in the direction of the data. */
export async function place(s: Shape, direction: Direction): Promise<Placed> {
  const elk = await loadElk();
  const result = await elk.layout({
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": direction,
      "elk.edgeRouting": "ORTHOGONAL",
      "elk.layered.spacing.nodeNodeBetweenLayers": direction === "RIGHT" ? "64" : "36",
      "elk.spacing.nodeNode": "18",
      "elk.layered.spacing.edgeNodeBetweenLayers": "18",
      "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
      "elk.padding": "[top=6,left=6,bottom=6,right=6]",
    },
    children: s.nodes.map(({ id, width, height }) => ({ id, width, height })),
    edges: s.edges.map((e) => ({ id: e.id, sources: [e.from], targets: [e.to] })),
  });
  return placed(result);
}

function placed(root: ElkNode): Placed {
  const result: Placed = { width: root.width ?? 0, height: root.height ?? 0, nodes: new Map(), edges: new Map() };
  for (const n of root.children ?? []) {
    result.nodes.set(n.id, { x: n.x ?? 0, y: n.y ?? 0 });
  }
  for (const e of root.edges ?? []) {
    const section = e.sections?.[0];
    if (section) {
      result.edges.set(e.id, [section.startPoint, ...(section.bendPoints ?? []), section.endPoint]);
    }
  }
  return result;
}

/** outline is an SVG path along points with rounded corners. */
export function outline(points: Point[], radius = 8): string {
  const [first, ...rest] = points;
  if (!first) {
    return "";
  }
  let d = `M${first.x} ${first.y}`;
  let from = first;
  rest.forEach((p, i) => {
    const next = rest[i + 1];
    if (next) {
      const before = toward(p, from, radius);
      const after = toward(p, next, radius);
      d += `L${before.x} ${before.y}Q${p.x} ${p.y} ${after.x} ${after.y}`;
    } else {
      d += `L${p.x} ${p.y}`;
    }
    from = p;
  });
  return d;
}

/** toward is the point at most distance away from p on the way to q, not past the middle. */
function toward(p: Point, q: Point, distance: number): Point {
  const length = Math.hypot(q.x - p.x, q.y - p.y);
  const part = length === 0 ? 0 : Math.min(distance, length / 2) / length;
  return { x: p.x + (q.x - p.x) * part, y: p.y + (q.y - p.y) * part };
}
