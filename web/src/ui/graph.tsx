// The job's graph, with the path that holds the minimum.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { KeyedState, Split, Vertex } from "../api/types";
import { brief, bytes, bytesOf, clock, count, duration, rate, share } from "../model/format";
import { outline, place, shape, type Direction, type GraphNode, type Placed, type Point } from "../model/layout";
import { compareWatermarks, finalState, over, pathText, splitKey, splitName, splitStatus, type HeldPath } from "../model/path";
import type { JobView } from "../pages/job";
import { jobHref, vertexHref } from "../router";
import { lagText, Panel, SplitName, TimeBar } from "./parts";

/** Below this width the graph runs from top to bottom. */
const narrow = 720;
/** Smaller than this the cards cannot be read; the graph scrolls instead. */
const smallestScale = 0.62;

export function GraphView(props: { view: JobView }) {
  const { graph, splits, path } = props.view;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const direction: Direction = width > 0 && width < narrow ? "DOWN" : "RIGHT";
  const wanted = shape(graph, splits.splits, path, direction);
  const placed = useLayout(wanted, direction, width > 0);
  const scale = placed && width > 0 ? Math.max(Math.min(1, width / placed.width), smallestScale) : 1;
  const steps = path && pathText(graph, path, splits.splits);
  // Where the graph is wider than its box, the split that holds must be in sight.
  useEffect(() => {
    const holder = box.current?.querySelector<HTMLElement>("[data-holds]")?.parentElement;
    if (box.current && holder) {
      box.current.scrollLeft = (holder.offsetLeft + holder.offsetWidth / 2) * scale - box.current.clientWidth / 2;
    }
  }, [placed]);
  return (
    <Panel title="Graph" class="graph-panel" aside={<Legend path={path} />}>
      <div class="graph" ref={box} role="group" aria-label="Graph of the job" aria-describedby={steps ? "graph-path" : undefined}>
        {placed && (
          <div class="graph-room" style={{ width: `${placed.width * scale}px`, height: `${placed.height * scale}px` }}>
            <div class="graph-plane" style={{ width: `${placed.width}px`, height: `${placed.height}px`, transform: `scale(${scale})` }}>
              <Edges wanted={wanted} placed={placed} path={path} />
              {wanted.nodes.map((node) => {
                const at = placed.nodes.get(node.id);
                return (
                  at && (
                    <div key={node.id} class="node" style={{ left: `${at.x}px`, top: `${at.y}px`, width: `${node.width}px`, height: `${node.height}px` }}>
                      <Node node={node} view={props.view} />
                    </div>
                  )
                );
              })}
            </div>
          </div>
        )}
      </div>
      {steps && steps.length > 0 && (
        <div id="graph-path" class={`path-line ${path?.stuck ? "held" : ""}`}>
          <span>{path?.stuck ? "Held by" : "The minimum comes from"}</span>
          <ol>
            {steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
        </div>
      )}
    </Panel>
  );
}

function Legend(props: { path: HeldPath | null }) {
  return (
    <ul class="legend-inline">
      {props.path && <li class={props.path.stuck ? "key-held" : "key-water"}>path of the minimum</li>}
      <li class="key-busy">busy</li>
      <li class="key-blocked">back-pressured</li>
    </ul>
  );
}

function Edges(props: { wanted: ReturnType<typeof shape>; placed: Placed; path: HeldPath | null }) {
  const { placed, path } = props;
  const lit = (from: string, to: string): boolean => !!path && (path.edges.has(`${from}>${to}`) || from === `split:${path.split}`);
  // Lit edges are drawn last, over the others.
  const edges = props.wanted.edges.toSorted((a, b) => Number(lit(a.from, a.to)) - Number(lit(b.from, b.to)));
  return (
    <svg class="edges" width={placed.width} height={placed.height} aria-hidden="true">
      <defs>
        {["plain", "lit", "stuck"].map((kind) => (
          <marker key={kind} id={`arrow-${kind}`} class={`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
            <path d="M0 0L8 4L0 8z" />
          </marker>
        ))}
      </defs>
      {edges.map((e) => {
        const points = placed.edges.get(e.id);
        if (!points) {
          return null;
        }
        const kind = !lit(e.from, e.to) ? "plain" : path?.stuck ? "stuck" : "lit";
        const label = labelAt(points);
        return (
          <g key={e.id} class={`edge ${kind}`} data-from={e.from} data-to={e.to}>
            <path d={outline(points)} marker-end={`url(#arrow-${kind})`} />
            {e.label && (
              <text x={label.x} y={label.y} text-anchor={label.anchor}>
                {e.label}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** labelAt puts a label beside the middle of an edge's last piece, close to its target. */
function labelAt(points: Point[]): Point & { anchor: "middle" | "start" } {
  const [a, b] = [points.at(-2)!, points.at(-1)!];
  const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
  return a.x === b.x ? { x: x + 8, y: y + 2, anchor: "start" } : { x, y: y - 6, anchor: "middle" };
}

function Node(props: { node: GraphNode; view: JobView }) {
  const { view } = props;
  const { content } = props.node;
  switch (content.kind) {
    case "vertex": {
      const vertex = view.graph.vertices.find((v) => v.id === content.vertex);
      return vertex ? <VertexCard vertex={vertex} view={view} /> : null;
    }
    case "split": {
      const split = view.splits.splits.find((s) => splitKey(s) === content.split);
      return split ? <SplitNode split={split} view={view} /> : null;
    }
    case "more":
      return (
        <a class="splitnode" href={jobHref(view.jid, "splits")}>
          <strong>
            {count(content.count)} {splitsOf(view, content.vertex).length === content.count ? "splits" : "more"}
          </strong>
          <span>{moreStatus(view, content.vertex)}</span>
        </a>
      );
  }
}

function splitsOf(view: JobView, vertex: string): Split[] {
  return view.splits.splits.filter((s) => s.vertex === vertex);
}

/** moreStatus says how the splits without a node of their own are. */
function moreStatus(view: JobView, vertex: string): string {
  if (over(view.graph.state)) {
    return "not read";
  }
  const others = splitsOf(view, vertex).filter((s) => splitKey(s) !== view.path?.split);
  const states = Object.groupBy(others, (s) => s.state);
  return Object.entries(states)
    .map(([state, splits]) => (splits.length === others.length ? state : `${count(splits.length)} ${state}`))
    .join(", ");
}

function SplitNode(props: { split: Split; view: JobView }) {
  const { split, view } = props;
  const holds = splitKey(split) === view.path?.split;
  const said = splitStatus(split, view.splits.now, over(view.graph.state));
  return (
    <a
      class={`splitnode ${split.state} ${holds ? (view.path?.stuck ? "stuck" : "lit") : ""}`}
      href={jobHref(view.jid, "splits")}
      data-split={splitName(split)}
      data-holds={holds || undefined}
    >
      <SplitName split={split} />
      <span>
        {said}
        {holds && <span class="hidden">, holds the minimum</span>}
      </span>
    </a>
  );
}

function VertexCard(props: { vertex: Vertex; view: JobView }) {
  const { vertex, view } = props;
  const { now } = view.graph;
  const { path } = view;
  const subtask = path?.subtasks.get(vertex.id);
  const kind = subtask === undefined ? "" : path?.stuck ? "stuck" : "lit";
  const w = vertex.lowWatermark;
  const perSecond = vertex.kind === "source" ? vertex.recordsOutPerSecond : vertex.recordsInPerSecond;
  return (
    <a
      class={`card ${kind} ${load(vertex)}`}
      href={view.vertex === vertex.id ? jobHref(view.jid) : vertexHref(view.jid, vertex.id)}
      aria-current={view.vertex === vertex.id ? "true" : undefined}
      data-vertex={vertex.name}
      data-held={subtask !== undefined || undefined}
    >
      <span class="card-name" title={vertex.name}>
        {vertex.name}
      </span>
      <span class="card-mark">
        {typeof w === "number" ? (
          <>
            <b>{clock(w, now, true)}</b> {!finalState(view.graph.state) && <span>{lagText(now - w)}</span>}
          </>
        ) : (
          <b class="faint">{w === "end" ? "end of input" : "no watermark yet"}</b>
        )}
      </span>
      <Subtasks vertex={vertex} held={subtask} stuck={path?.stuck ?? false} />
      {vertex.state && <StateLine state={vertex.state} />}
      <span class="card-foot">
        <TimeBar busy={vertex.busy} backPressured={vertex.backPressured} idle={vertex.idle} />
        <span>{share(vertex.busy)} % busy</span>
        <span class="card-rate">{rate(perSecond)}/s</span>
        {vertex.lateDropped > 0 && <span class="card-late">{brief(vertex.lateDropped)} late</span>}
      </span>
    </a>
  );
}

/** StateLine says whether state fits its memory budget. */
function StateLine(props: { state: KeyedState }) {
  const { state } = props;
  return state.spilledEntries > 0 ? (
    <span class="card-state">
      <b class="card-spills">spills to disk</b> <span>{bytes(state.diskBytes)}</span>
    </span>
  ) : (
    <span class="card-state">
      state in memory <span>{bytesOf(state.memoryBytes, state.budgetBytes)}</span>
    </span>
  );
}

function load(v: Vertex): string {
  return share(v.backPressured) > 10 ? "is-blocked" : share(v.busy) > 80 ? "is-busy" : "";
}

/** So many marks fit on a card. */
const maxMarks = 13;

/** Subtasks is a mark for each subtask: how far its watermark is from the latest one of the vertex. */
function Subtasks(props: { vertex: Vertex; held: number | undefined; stuck: boolean }) {
  const { vertex } = props;
  const of = (s: Vertex["subtasks"][number]) => (vertex.kind === "source" ? s.outputWatermark : s.inputWatermark);
  const first = vertex.subtasks.map(of).reduce((a, b) => (compareWatermarks(a, b) >= 0 ? a : b), null);
  // Of more subtasks the first ones are shown, and the one on the path.
  const shown = vertex.subtasks.filter((s, i) => i < maxMarks || s.subtask === props.held);
  return (
    <span class="marks">
      <span class="faint">×{vertex.parallelism}</span>
      {shown.map((s) => {
        const w = of(s);
        const behind = typeof w === "number" && typeof first === "number" ? first - w : 0;
        const state = s.subtask === props.held ? (props.stuck ? "stuck" : "lit") : s.idle ? "idle" : w === null ? "none" : "";
        const title = `subtask ${s.subtask}${s.idle ? ", idle" : ""}${behind > 0 ? `, ${duration(behind)} behind the first` : ""}`;
        return <span key={s.subtask} class={`mark ${state}`} title={title} />;
      })}
    </span>
  );
}

/** useWidth is the width of an element, as it changes. */
export function useWidth(ref: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) {
      return;
    }
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** useLayout places a shape when it changes, and keeps the old places until then. */
function useLayout(wanted: ReturnType<typeof shape>, direction: Direction, ready: boolean): Placed | undefined {
  const [layout, setLayout] = useState<Placed>();
  // The shape comes anew with every answer of the server, mostly equal to the last.
  const key = useMemo(() => JSON.stringify([direction, wanted.nodes.map((n) => [n.id, n.height]), wanted.edges.map((e) => e.id)]), [direction, wanted]);
  useEffect(() => {
    if (!ready) {
      return;
    }
    let current = true;
    place(wanted, direction).then(
      (next) => current && setLayout(next),
      (error: unknown) => console.error("laying out the graph:", error),
    );
    return () => {
      current = false;
    };
  }, [key, ready]);
  return layout;
}
