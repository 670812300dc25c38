// Watermarks over time: what the chart draws. Pure.

import type { History, HistorySeries, Watermark } from "../api/types";

export const historyMillis = 3_600_000;

/** Beyond this a watermark is not a time but the end of input. */
const maxDateMillis = 8.64e15;

export const seriesKey = (s: HistorySeries): string => `${s.kind}/${s.vertex}/${s.subtask}/${s.split ?? ""}`;

/** merge adds newer points to what is known and forgets what is older than an hour. */
export function merge(known: History | undefined, news: History): History {
  const series = new Map<string, HistorySeries>();
  for (const s of known?.series ?? []) {
    series.set(seriesKey(s), s);
  }
  for (const s of news.series) {
    const old = series.get(seriesKey(s));
    const last = old?.points.at(-1)?.[0] ?? -Infinity;
    series.set(seriesKey(s), { ...s, points: old ? [...old.points, ...s.points.filter(([wall]) => wall > last)] : s.points });
  }
  const oldest = news.now - historyMillis;
  for (const [key, s] of series) {
    const points = s.points[0] && s.points[0][0] < oldest ? s.points.filter(([wall]) => wall >= oldest) : s.points;
    if (points.length === 0) {
      series.delete(key);
    } else {
      series.set(key, { ...s, points });
    }
  }
  return { intervalMs: news.intervalMs, now: news.now, series: [...series.values()] };
}

/** newest is the wall time of the latest point, to ask for what came after. */
export function newest(history: History | undefined): number {
  return Math.max(0, ...(history?.series ?? []).map((s) => s.points.at(-1)?.[0] ?? 0));
}

/** drawable is a watermark as the chart takes it. */
export function drawable(w: Watermark): number | null {
  return typeof w === "number" && Math.abs(w) < maxDateMillis ? w : null;
}

/** align brings series onto one time axis: the first array is the times. */
export function align(series: HistorySeries[]): [number[], ...(number | null | undefined)[][]] {
  const walls = [...new Set(series.flatMap((s) => s.points.map(([wall]) => wall)))].sort((a, b) => a - b);
  const at = new Map(walls.map((wall, i) => [wall, i]));
  const columns = series.map((s) => {
    // undefined is "not sampled then" and is bridged; null is "no watermark" and is a gap.
    const column = new Array<number | null | undefined>(walls.length).fill(undefined);
    for (const [wall, w] of s.points) {
      column[at.get(wall)!] = drawable(w);
    }
    return column;
  });
  return [walls, ...columns];
}

/** A watermark that has stood for less is not called flat. */
const leastFlatMillis = 5000;

/** flatMillis is for how long a series has been flat, 0 if it is not. */
export function flatMillis(points: HistorySeries["points"], now: number): number {
  const flat = now - (flatSince(points) ?? now);
  return flat >= leastFlatMillis ? flat : 0;
}

/** flatSince returns since when a series has had its last watermark, or null if it has none. */
export function flatSince(points: HistorySeries["points"]): number | null {
  const last = points.at(-1);
  if (!last || last[1] === null) {
    return null;
  }
  let since = last[0];
  for (let i = points.length - 1; i >= 0 && points[i]![1] === last[1]; i--) {
    since = points[i]![0];
  }
  return since;
}
