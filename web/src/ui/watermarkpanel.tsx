// Watermarks over the last hour, with a legend that isolates a line.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useResource } from "../api/live";
import type { History } from "../api/types";
import { clock, duration, roughly } from "../model/format";
import { drawable, flatMillis, historyMillis, merge, newest, seriesKey } from "../model/history";
import { over, type HeldPath } from "../model/path";
import type { JobView } from "../pages/job";
import { Chart, type Line, type Note } from "./chart";
import { Empty, Panel } from "./parts";

type Shown = "all" | "split" | "subtask";

/** More lines than these are not drawn together. */
const maxLines = 24;

export function WatermarkPanel(props: { view: JobView; height: number }) {
  const { view } = props;
  const { history, error } = useHistory(view);
  const [chosen, setShown] = useState<Shown>();
  const [pressed, setPressed] = useState<string | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const { path } = view;
  // Where there are splits they tell the story, unless a subtask without one holds; subtasks repeat it.
  const subtaskHolds = path !== null && path.split === null;
  const shown = chosen ?? (!subtaskHolds && history?.series.some((s) => s.kind === "split") ? "split" : subtaskHolds ? "subtask" : "all");
  const lines = useMemo(() => linesOf(path, history, shown), [history, shown, path?.split, path?.stuck]);
  const drawn = useMemo(() => lines.slice(0, maxLines), [lines]);
  // A line that has gone, or is not among those shown, cannot be alone.
  const isolated = drawn.some((line) => line.key === pressed) ? pressed : null;
  const kinds: [Shown, string][] = [
    ["split", "Splits"],
    ["subtask", "Subtasks"],
    ["all", "All"],
  ];
  const now = history?.now ?? view.graph.now;
  const ended = over(view.graph.state);
  return (
    <Panel
      title="Watermarks against the wall clock"
      aside={
        <div class="segments" role="group" aria-label="Lines shown">
          {kinds.map(([value, label]) => (
            <button key={value} type="button" aria-pressed={shown === value} onClick={() => setShown(value)}>
              {label}
            </button>
          ))}
        </div>
      }
    >
      {error && (
        <p class="stale" role="status">
          The server does not say how watermarks went on ({error.message}). It is asked again.
        </p>
      )}
      {drawn.length === 0 ? (
        (history || !error) && <Empty>{history ? "No watermark in the last hour." : "Loading…"}</Empty>
      ) : (
        <>
          <Chart lines={drawn} isolated={isolated} now={now} height={props.height} onCursor={setCursor} label={summary(drawn, now, ended)} note={ended ? null : noteOf(drawn[0]!, now)} />
          <ul class="lines" aria-label="Lines; press one to see it alone">
            {drawn.map((line) => (
              <li key={line.key}>
                <button
                  type="button"
                  class={line.held ? "held" : undefined}
                  aria-pressed={isolated === line.key}
                  onClick={() => setPressed(isolated === line.key ? null : line.key)}
                >
                  <span class={`swatch ${line.color}`} aria-hidden="true" />
                  {line.name} <LineValue line={line} cursor={cursor} now={now} ended={ended} />
                </button>
              </li>
            ))}
            <li class="key">
              <span class="swatch clock" aria-hidden="true" /> wall clock
            </li>
          </ul>
          {lines.length > drawn.length && (
            <p class="faint">
              {drawn.length} of {lines.length} lines, those furthest behind.
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

function LineValue(props: { line: Line; cursor: number | null; now: number; ended: boolean }) {
  const { points } = props.line;
  if (props.cursor !== null) {
    const at = points.findLast(([wall]) => wall <= props.cursor!)?.[1] ?? null;
    return <span class="faint">{at === "end" ? "end" : at === null ? "–" : clock(at, props.now)}</span>;
  }
  const last = points.at(-1)![1];
  if (typeof last !== "number") {
    return <span class="faint">{last ?? "none yet"}</span>;
  }
  if (props.ended) {
    return <span class="faint">{clock(last, props.now)}</span>;
  }
  const flat = flatMillis(points, props.now);
  return <span class="faint">{flat > 0 ? `flat for ${roughly(flat)}` : `${duration(props.now - last)} behind`}</span>;
}

/** noteOf is what the chart writes at the line that holds, once it is flat. */
function noteOf(line: Line, now: number): Note | null {
  const millis = line.held ? flatMillis(line.points, now) : 0;
  if (millis === 0) {
    return null;
  }
  const flat = `flat for ${roughly(millis)}`;
  return { texts: [`${line.name} · ${flat}`, flat], since: now - millis };
}

/** linesOf returns what to draw: the held line first, and those furthest behind if there are too many. */
function linesOf(path: HeldPath | null, history: History | undefined, shown: Shown): Line[] {
  const lines = (history?.series ?? [])
    .filter((s) => shown === "all" || s.kind === shown)
    .map((s, i): Line => {
      const isSplit = s.kind === "split" && `${s.vertex}/${s.split ?? ""}` === path?.split;
      const onPath = s.kind === "subtask" && path?.subtasks.get(s.vertex) === s.subtask;
      const held = isSplit || (onPath && !path?.split);
      // A line keeps its colour whichever of them holds.
      const color = held ? (path?.stuck ? "line-held" : "line-water") : `line-${i % 6}`;
      return { key: seriesKey(s), name: s.name, points: s.points, held, dashed: s.kind === "subtask", color };
    });
  const crowded = lines.length > maxLines;
  return lines.sort((a, b) => Number(b.held) - Number(a.held) || (crowded ? last(a) - last(b) : 0));
}

const last = (line: Line): number => drawable(line.points.at(-1)?.[1] ?? null) ?? -Infinity;

/** summary is the chart in words. */
function summary(lines: Line[], now: number, ended: boolean): string {
  const parts = lines.map((line) => {
    const value = line.points.at(-1)![1];
    if (typeof value !== "number") {
      return `${line.name}: ${value ?? "none yet"}`;
    }
    if (ended) {
      return `${line.name}: ${clock(value, now)} at the end`;
    }
    const flat = flatMillis(line.points, now);
    return `${line.name}: ${duration(now - value)} behind${flat > 0 ? `, flat for ${roughly(flat)}` : ""}`;
  });
  return `Watermarks over the last hour. ${parts.join("; ")}.`;
}

/** So many series are loaded for the whole hour; of more, less of it. */
const wholeHourSeries = 100;

/** useHistory loads the past once and then what is new. */
function useHistory(view: JobView): { history: History | undefined; error: Error | undefined } {
  const known = useRef<History | undefined>(undefined);
  const [since, setSince] = useState(() => {
    const series = view.splits.splits.length + view.graph.vertices.reduce((sum, v) => sum + v.parallelism, 0);
    return view.graph.now - historyMillis * Math.min(1, wholeHourSeries / series);
  });
  const news = useResource<History>(`/lowwater/jobs/${view.jid}/history?since=${Math.floor(since)}`, Infinity);
  const [, setMerged] = useState(0);
  useEffect(() => {
    if (!news.data) {
      return;
    }
    known.current = merge(known.current, news.data);
    setMerged((n) => n + 1);
    const next = newest(known.current);
    const timer = setTimeout(() => setSince(Math.max(next, since + 1)), Math.max(news.data.intervalMs, 1000));
    return () => clearTimeout(timer);
  }, [news.data]);
  return { history: known.current, error: news.error };
}
