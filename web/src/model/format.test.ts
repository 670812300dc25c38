import { describe, expect, test } from "vitest";
import { ago, brief, bytes, bytesOf, clock, count, duration, iso, numberText, plural, rate, roughly, share, watermarkText } from "./format";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [3440, "3.4 s"],
  [9999, "9.9 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [432_000, "7 min 12 s"],
  [3_600_000, "1 h"],
  [7_500_000, "2 h 5 min"],
  [273_600_000, "3 d 4 h"],
  [3 * 365 * 86_400_000, "3 y"],
  [-1500, "−1.5 s"],
  [Number.NaN, "–"],
])("duration(%d) is %s", (ms, want) => expect(duration(ms)).toBe(want));

test.each([
  [200, "less than 1 s"],
  [1999, "1 s"],
  [432_000, "7 min"],
  [7_500_000, "2 h"],
  [90_000_000, "1 d"],
])("roughly(%d) is %s", (ms, want) => expect(roughly(ms)).toBe(want));

test("ago knows the future", () => {
  expect(ago(1000, 1500)).toBe("now");
  expect(ago(1000, 8000)).toBe("7.0 s ago");
  expect(ago(68_000, 8000)).toBe("in 1 min");
});

describe("clock", () => {
  const at = new Date(2026, 0, 2, 3, 4, 5, 6).getTime();
  test("leaves out today's date", () => expect(clock(at, at + 1000, true)).toBe("03:04:05.006"));
  test("has the date of another day", () => expect(clock(at, at + 86_400_000)).toBe("2026-01-02 03:04:05"));
  test("says when it is no date", () => expect(clock(9e18, at)).toBe("–"));
});

test("iso falls back to the number", () => {
  expect(iso(0)).toBe("1970-01-01T00:00:00.000Z");
  expect(iso(9e18)).toBe("9000000000000000000");
});

test("watermarkText names the two that are no times", () => {
  expect(watermarkText(null, 0)).toBe("none yet");
  expect(watermarkText("end", 0)).toBe("end of input");
});

test.each([
  [1234567, "1\u202f234\u202f567"],
  [0, "0"],
  [-1, "–"],
  [null, "–"],
])("count(%s) is %s", (n, want) => expect(count(n)).toBe(want));

test.each([
  [0, "0"],
  [-3, "0"],
  [0.25, "0.25"],
  [5.42, "5.4"],
  [431.7, "432"],
  [12_345, "12.3 k"],
  [4_200_000, "4.2 M"],
])("rate(%d) is %s", (n, want) => expect(rate(n)).toBe(want));

test.each([
  [3, "3"],
  [9999, "9\u202f999"],
  [12_345, "12.3 k"],
])("brief(%d) is %s", (n, want) => expect(brief(n)).toBe(want));

test.each([
  [512, "512 B"],
  [1536, "1.5 KiB"],
  [4_812_331, "4.6 MiB"],
  ["NaN", "–"],
  [null, "–"],
] as const)("bytes(%s) is %s", (n, want) => expect(bytes(n)).toBe(want));

test.each([
  [8_283_750, 8_388_608, "7.9 of 8.0 MiB"],
  [524_288, 8_388_608, "512 KiB of 8.0 MiB"],
  [0, 8_388_608, "0 B of 8.0 MiB"],
])("bytesOf(%d, %d) is %s", (n, whole, want) => expect(bytesOf(n, whole)).toBe(want));

test("share is a percentage within bounds", () => {
  expect([-5, 0, 344, 1000, 4000].map(share)).toEqual([0, 0, 34, 100, 100]);
});

test.each([
  ["gap_ms", 432_000, ["gap", "7 min 12 s"]],
  ["behind_ms", 6 * 365 * 86_400_000, ["behind", "6 y"]],
  ["arrived_at_ms", 432_000, ["arrived at", "7 min 12 s after the start"]],
  ["watermark", new Date(2026, 0, 2, 3, 4, 5).getTime(), ["watermark", "03:04:05.000"]],
  ["input_watermark", new Date(1970, 0, 1, 3, 4, 5).getTime(), ["input watermark", "1970-01-01 03:04:05.000"]],
  ["event_time", 1.7e18, ["event time", "1700000000000000000"]],
  ["output_watermark", -(2 ** 63), ["output watermark", "none"]],
  ["pace_ms_per_s", 295, ["pace", "295 ms each second"]],
  ["open_windows", 1234, ["open windows", "1\u202f234"]],
] as const)("numberText(%s, %d)", (name, value, want) => expect(numberText(name, value, new Date(2026, 0, 2).getTime())).toEqual(want));

test("plural", () => expect([plural(1, "record"), plural(2, "record")]).toEqual(["1 record", "2 records"]));
