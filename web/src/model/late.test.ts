import { expect, test } from "vitest";
import type { Late } from "../api/types";
import { latestFirst } from "./late";

test("samples of several subtasks are in one order, the latest first", () => {
  const sample = (subtask: number, watermark: number, offset: number) => ({ subtask, watermark, offset }) as Late["samples"][number];
  const bySubtask = [sample(0, 100, 1), sample(0, 300, 5), sample(1, 200, 3), sample(1, 200, 4)];
  expect(latestFirst(bySubtask).map((s) => s.offset)).toEqual([5, 4, 3, 1]);
});
