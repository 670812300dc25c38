import type { Late } from "../api/types";
import { compareWatermarks } from "./path";

/**
 * latestFirst puts samples of all subtasks into one order. When they came is not known, but
 * the watermark then is, and it never falls.
 */
export function latestFirst(samples: Late["samples"]): Late["samples"] {
  return samples.toReversed().toSorted((a, b) => compareWatermarks(b.watermark, a.watermark));
}
