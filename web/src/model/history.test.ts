import { describe, expect, test } from "vitest";
import type { History, HistorySeries } from "../api/types";
import { align, drawable, flatMillis, flatSince, historyMillis, merge, newest } from "./history";

const series = (name: string, points: HistorySeries["points"]): HistorySeries => ({ kind: "split", vertex: "v", subtask: 0, split: name, name, points });
const history = (now: number, ...s: HistorySeries[]): History => ({ intervalMs: 5000, now, series: s });

describe("merge", () => {
  test("adds only what is newer", () => {
    const merged = merge(history(10, series("a", [[5, 1], [10, 2]])), history(15, series("a", [[10, 2], [15, 3]])));
    expect(merged.series[0]!.points).toEqual([[5, 1], [10, 2], [15, 3]]);
    expect(newest(merged)).toBe(15);
  });
  test("takes in new series and keeps those without news", () => {
    const merged = merge(history(10, series("a", [[10, 1]])), history(15, series("b", [[15, 1]])));
    expect(merged.series.map((s) => s.name)).toEqual(["a", "b"]);
  });
  test("forgets what is older than an hour, and series that have nothing else", () => {
    const merged = merge(history(0, series("a", [[0, 1], [9, 2]]), series("b", [[0, 1]])), history(historyMillis + 5, series("a", [])));
    expect(merged.series.map((s) => [s.name, s.points])).toEqual([["a", [[9, 2]]]]);
  });
});

test("newest of nothing is 0", () => expect([newest(undefined), newest(history(1))]).toEqual([0, 0]));

test("align brings series on one axis: null is a gap, undefined is not", () => {
  expect(align([series("a", [[1, 10], [3, null]]), series("b", [[2, 20], [3, "end"]])])).toEqual([[1, 2, 3], [10, undefined, null], [undefined, 20, null]]);
});

test("drawable leaves out what is no time", () => {
  expect([drawable(5), drawable(null), drawable("end"), drawable(9.2e18)]).toEqual([5, null, null, null]);
});

test("flatMillis is for how long a line has been flat", () => {
  const points: HistorySeries["points"] = [[1000, 4], [2000, 5], [9000, 5]];
  expect([flatMillis(points, 9000), flatMillis(points, 6000), flatMillis([], 9000)]).toEqual([7000, 0, 0]);
});

test.each([
  [[[1, 5], [2, 7], [3, 7], [4, 7]], 2],
  [[[1, 5]], 1],
  [[[1, null], [2, null]], null],
  [[], null],
] as [HistorySeries["points"], number | null][])("flatSince(%j) is %s", (points, want) => expect(flatSince(points)).toBe(want));
