// uPlot in a component: lines of watermarks, and the diagonal on which event time
// would be the wall clock.

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { HistorySeries } from "../api/types";
import { clock } from "../model/format";
import { align, drawable } from "../model/history";
import { colorOf, useThemeVersion } from "../theme";

/** What the chart writes at the flat part of the line that holds. */
export interface Note {
  /** The texts to choose from, the longest first. */
  texts: string[];
  since: number;
}

export interface Line {
  key: string;
  name: string;
  points: HistorySeries["points"];
  /** Whether this line holds the minimum. */
  held: boolean;
  dashed: boolean;
  /** The name of its colour in the style sheet. */
  color: string;
}

export function Chart(props: {
  lines: Line[];
  isolated: string | null;
  now: number;
  height: number;
  label: string;
  note: Note | null;
  onCursor: (wall: number | null) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = useThemeVersion();
  const onCursor = useRef(props.onCursor);
  onCursor.current = props.onCursor;
  const note = useRef(props.note);
  note.current = props.note;
  // The plot is made anew when its lines or colours change, not for new points.
  const kind = JSON.stringify([theme, props.height, props.isolated, props.lines.map((l) => [l.key, l.color])]);
  const data = useMemo(() => dataOf(props.lines, props.now), [props.lines, props.now]);
  useEffect(() => {
    const element = box.current!;
    const u = new uPlot(options(element, props.lines, props.isolated, props.height, (wall) => onCursor.current(wall), note), data, element);
    plot.current = u;
    const observer = new ResizeObserver(() => u.setSize({ width: element.clientWidth, height: props.height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [kind]);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div class="chart" ref={box} role="img" aria-label={props.label} style={{ height: `${props.height}px` }} />;
}

/** dataOf puts the diagonal first, so that the lines are drawn over it, the held ones last. It stays away where event time is far from the clock. */
function dataOf(lines: Line[], now: number): uPlot.AlignedData {
  const [walls, ...columns] = align(lines.map((l) => ({ kind: "split", vertex: "", subtask: 0, name: l.name, points: l.points })));
  const values = columns.flat().filter((v): v is number => typeof v === "number");
  const span = Math.max(now - (walls[0] ?? now), 60_000);
  const near = values.some((v) => Math.abs(now - v) < 3 * span);
  return [walls, walls.map((wall) => (near ? wall : null)), ...columns.reverse()];
}

function options(element: HTMLElement, lines: Line[], isolated: string | null, height: number, onCursor: (wall: number | null) => void, note: { readonly current: Note | null }): uPlot.Options {
  const color = (name: string): string => colorOf(name, element);
  const grid = { stroke: color("grid"), width: 1 };
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: color("muted"), grid, ticks: { ...grid, size: 4 }, font };
  const times = (_: uPlot, splits: number[]): string[] => {
    const seconds = splits.length > 1 && splits[1]! - splits[0]! < 60_000;
    return splits.map((at) => (seconds ? clock(at, at) : clock(at, at).slice(0, 5)));
  };
  const fine = { incrs: timeSteps };
  const held = lines[0]?.held ? lines[0] : undefined;
  const stuck = held?.color === "line-held";
  return {
    width: element.clientWidth,
    height,
    ms: 1,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { show: false }, y: false },
    scales: { x: { time: true }, y: { range: (_, min, max) => padded(min, max) } },
    axes: [
      { ...axis, ...fine, values: times, space: 70, size: 28 },
      { ...axis, ...fine, values: times, size: 62, space: 34 },
    ],
    series: [
      {},
      { label: "wall clock", stroke: color("faint"), width: 1, dash: [2, 4], points: { show: false } },
      ...lines.toReversed().map((line): uPlot.Series => {
        const alone = isolated === null || isolated === line.key;
        return {
          label: line.name,
          stroke: color(line.color),
          width: line.held ? 3 : 1.5,
          alpha: alone ? 1 : 0.12,
          ...(line.dashed ? { dash: [5, 3] } : {}),
          points: { show: false },
        };
      }),
    ],
    // How far the line that holds is behind the clock, as an area.
    bands: stuck && isolated === null ? [{ series: [1, lines.length + 1], fill: color("held-area") }] : [],
    hooks: {
      draw: [(u) => note.current && held && drawNote(u, note.current, held, color(stuck ? "held" : "water"))],
      setCursor: [
        (u) => {
          const { left } = u.cursor;
          onCursor(left === undefined || left < 0 ? null : u.posToVal(left, "x"));
        },
      ],
    },
  };
}

/** drawNote writes below the middle of the flat part of the line that holds. */
function drawNote(u: uPlot, note: Note, held: Line, color: string): void {
  const value = drawable(held.points.at(-1)![1]);
  if (value === null) {
    return;
  }
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${12 * scale}px ${getComputedStyle(u.root).fontFamily}`;
  ctx.fillStyle = color;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  const from = u.valToPos(Math.max(note.since, u.scales["x"]!.min ?? 0), "x", true);
  const to = bbox.left + bbox.width;
  // Where none fits, the legend has to do.
  const text = note.texts.find((t) => ctx.measureText(t).width < to - from);
  if (text) {
    ctx.fillText(text, (from + to) / 2, u.valToPos(value, "y", true) + 7 * scale);
  }
  ctx.restore();
}

/** Steps of the axes that people count time in, in ms. */
const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800, 2592000, 31536000].map((s) => s * 1000);

/** padded leaves some air above and below, also where all values are one. */
function padded(min: number, max: number): [number, number] {
  const air = Math.max((max - min) * 0.08, 500);
  return [min - air, max + air];
}
