// Numbers and times as text. Pure, so that it is tested without a browser.

import type { Watermark } from "../api/types";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const pad = (n: number, width = 2): string => String(n).padStart(width, "0");

/** duration is a length of time in at most two units: "340 ms", "7 min 12 s", "3 d 4 h". */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) {
    return "–";
  }
  if (ms < 0) {
    return `−${duration(-ms)}`;
  }
  if (ms < second) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 10 * second) {
    return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  }
  if (ms < minute) {
    return `${Math.floor(ms / second)} s`;
  }
  const two = (big: number, bigName: string, small: number, smallName: string): string => {
    const rest = Math.floor((ms % big) / small);
    return `${Math.floor(ms / big)} ${bigName}${rest > 0 ? ` ${rest} ${smallName}` : ""}`;
  };
  if (ms < hour) {
    return two(minute, "min", second, "s");
  }
  if (ms < day) {
    return two(hour, "h", minute, "min");
  }
  if (ms < 365 * day) {
    return two(day, "d", hour, "h");
  }
  return two(365 * day, "y", day, "d");
}

/** roughly is duration in one unit, for text that must not flicker: "7 min". */
export function roughly(ms: number): string {
  for (const [size, name] of [
    [365 * day, "y"],
    [day, "d"],
    [hour, "h"],
    [minute, "min"],
  ] as const) {
    if (ms >= size) {
      return `${Math.floor(ms / size)} ${name}`;
    }
  }
  return ms >= second ? `${Math.floor(ms / second)} s` : "less than 1 s";
}

/** ago says how far a time is from now, also for times in the future. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  if (Math.abs(ms) < second) {
    return "now";
  }
  return ms > 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

/** clock is a local time, with its date unless that is today's. */
export function clock(at: number, now: number, millis = false): string {
  const t = new Date(at);
  if (Number.isNaN(t.getTime())) {
    return "–";
  }
  const time = `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}${millis ? `.${pad(t.getMilliseconds(), 3)}` : ""}`;
  const today = new Date(now);
  const sameDay = t.getFullYear() === today.getFullYear() && t.getMonth() === today.getMonth() && t.getDate() === today.getDate();
  return sameDay ? time : `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${time}`;
}

/** iso is a time for machines and tooltips; the watermark may be beyond what Date holds. */
export function iso(at: number): string {
  const t = new Date(at);
  return Number.isNaN(t.getTime()) ? String(at) : t.toISOString();
}

/** watermarkText is a watermark without its distance from now. */
export function watermarkText(w: Watermark | undefined, now: number): string {
  if (w === null || w === undefined) {
    return "none yet";
  }
  return w === "end" ? "end of input" : clock(w, now, true);
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** count is a whole number with thin spaces between the thousands. */
export function count(n: number | null | undefined): string {
  return n === null || n === undefined || n < 0 ? "–" : grouped.format(n).replaceAll(",", "\u202f");
}

/** rate is a number per second with three significant digits. */
export function rate(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond <= 0) {
    return "0";
  }
  if (perSecond < 10) {
    return perSecond.toFixed(perSecond < 1 ? 2 : 1);
  }
  if (perSecond < 10_000) {
    return count(Math.round(perSecond));
  }
  const [scaled, unit] = perSecond < 1e6 ? [perSecond / 1e3, "k"] : [perSecond / 1e6, "M"];
  return `${scaled.toFixed(scaled < 100 ? 1 : 0)} ${unit}`;
}

/** brief is a whole number where there is little room: "9 999", "12.3 k". */
export function brief(n: number): string {
  return n < 10_000 ? count(n) : rate(n);
}

/** bytes is a size in binary units. */
export function bytes(n: number | "NaN" | null | undefined): string {
  if (typeof n !== "number" || n < 0) {
    return "–";
  }
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/** bytesOf is a size of another one, with one unit if they have the same: "7.9 of 8.0 MiB". */
export function bytesOf(n: number, whole: number): string {
  const [part, unit] = bytes(n).split(" ");
  const all = bytes(whole);
  return all.endsWith(` ${unit}`) ? `${part} of ${all}` : `${part} ${unit} of ${all}`;
}

/** share is ms per second as a percentage, from 0 to 100. */
export function share(msPerSecond: number): number {
  return Math.round(Math.min(Math.max(msPerSecond, 0), 1000) / 10);
}

/** Numbers of a diagnosis that are times are event times and watermarks; of those with a unit some count from the start of the job. */
const isTime = /^event_time$|(^|_)watermark$/;
const sinceStart = new Set(["since_ms", "arrived_at_ms"]);

/** numberText is a number of a diagnosis: its name for people, and its value with a unit. The name tells which. */
export function numberText(name: string, value: number, now: number): [name: string, value: string] {
  const [, stem, unit] = /^(.*?)(_ms_per_s|_ms)?$/.exec(name)!;
  const label = stem!.replaceAll("_", " ");
  if (isTime.test(name)) {
    return [label, timeText(value, now)];
  }
  if (unit === "_ms_per_s") {
    return [label, `${duration(value)} each second`];
  }
  if (unit === "_ms") {
    return [label, sinceStart.has(name) ? `${duration(value)} after the start` : duration(value)];
  }
  return [label, value < 0 ? String(value) : count(value)];
}

/** timeText is a time as the server's integers have it: the least is none, the largest the end of input. */
function timeText(at: number, now: number): string {
  if (Math.abs(at) >= 2 ** 63) {
    return at < 0 ? "none" : "end of input";
  }
  return Number.isNaN(new Date(at).getTime()) ? String(at) : clock(at, now, true);
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
