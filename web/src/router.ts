// Routes live in the hash, so that any server can serve the page.

import { useEffect, useState } from "preact/hooks";

export const tabs = ["overview", "watermarks", "splits", "late", "checkpoints", "exceptions", "configuration", "why"] as const;
export type Tab = (typeof tabs)[number];

export type Route =
  | { page: "jobs" }
  | { page: "job"; jid: string; tab: Tab; vertex: string | null }
  | { page: "unknown" };

/** parse reads a hash such as "#/jobs/ab12/late" or "#/jobs/ab12/vertices/cd34". */
export function parse(hash: string): Route {
  const parts = hash.replace(/^#?\/?/, "").split("/").filter(Boolean).map(decode);
  if (parts.length === 0 || (parts.length === 1 && parts[0] === "jobs")) {
    return { page: "jobs" };
  }
  const [jobs, jid, tab, vertex] = parts;
  if (jobs !== "jobs" || !jid || parts.length > 4) {
    return { page: "unknown" };
  }
  if (tab === "vertices" && vertex) {
    return { page: "job", jid, tab: "overview", vertex };
  }
  if (tab === undefined) {
    return { page: "job", jid, tab: "overview", vertex: null };
  }
  const known = tabs.find((t) => t === tab);
  return known && parts.length === 3 ? { page: "job", jid, tab: known, vertex: null } : { page: "unknown" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function jobHref(jid: string, tab: Tab = "overview"): string {
  return `#/jobs/${encodeURIComponent(jid)}${tab === "overview" ? "" : `/${tab}`}`;
}

export function vertexHref(jid: string, vertex: string): string {
  return `#/jobs/${encodeURIComponent(jid)}/vertices/${encodeURIComponent(vertex)}`;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    changed(); // effects run after the first paint, and it may have changed before
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}
