// When to ask again: the server's ticks, or a timer where they do not come through.

import { useEffect, useState } from "preact/hooks";
import { ApiError, getJSON, request } from "./client";
import { Loader } from "./loader";

export type Connection = "connecting" | "events" | "polling";

const pollMillis = 1000;
const reconnectMillis = 10_000;
/** A stream is dead that has been silent for longer: a server says at least every 15 s that it is there. */
const silentMillis = 40_000;

/**
 * Live calls its listeners about once a second while the page is visible. It reads the
 * server's events with fetch, because an EventSource cannot send a bearer token.
 */
class Live {
  connection: Connection = "connecting";
  private listeners = new Set<() => void>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private stream: AbortController | undefined;

  constructor() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.disconnect() : this.refresh()));
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    if (this.listeners.size === 1) {
      void this.connect();
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) {
        this.disconnect();
      }
    };
  }

  /** refresh asks everyone to load now, and connects anew; for after a token was entered. */
  refresh(): void {
    this.tick();
    this.disconnect();
    if (this.listeners.size > 0) {
      void this.connect();
    }
  }

  private tick(): void {
    if (!document.hidden) {
      for (const listener of [...this.listeners]) {
        listener();
      }
    }
  }

  private disconnect(): void {
    this.stream?.abort();
    this.stream = undefined;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private async connect(): Promise<void> {
    const stream = new AbortController();
    this.stream = stream;
    // A connection may die without a word; then polling goes on for it.
    const silence = new AbortController();
    let alarm = setTimeout(() => silence.abort(), silentMillis);
    const heard = (): void => {
      clearTimeout(alarm);
      alarm = setTimeout(() => silence.abort(), silentMillis);
    };
    try {
      const signal = AbortSignal.any([stream.signal, silence.signal]);
      const response = await request("/lowwater/events", { signal, headers: { Accept: "text/event-stream" } });
      if (!response.body || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        throw new Error("no event stream");
      }
      this.connection = "events";
      clearInterval(this.timer);
      this.timer = undefined;
      await this.read(response.body, heard);
    } catch {
      // Polling below is the answer to every failure; requests report their own errors.
    }
    clearTimeout(alarm);
    if (stream.signal.aborted) {
      return;
    }
    this.connection = "polling";
    this.timer ??= setInterval(() => this.tick(), pollMillis);
    setTimeout(() => {
      if (this.stream === stream) {
        void this.connect();
      }
    }, reconnectMillis);
  }

  private async read(body: ReadableStream<Uint8Array>, heard: () => void): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let pending = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      heard();
      pending += value.replaceAll("\r\n", "\n");
      const events = pending.split("\n\n");
      pending = events.pop()!;
      // Several events in one read are one reason to load. Comments keep the connection alive.
      if (events.some((event) => event.split("\n").some((line) => line.startsWith("data")))) {
        this.tick();
      }
    }
  }
}

export const live = new Live();

export interface Resource<T> {
  data: T | undefined;
  error: Error | undefined;
  /** When data was loaded, by this machine's clock. */
  loadedAt: number;
}

/** Called with the error of every request; the app shows the token form on a 401. */
export const failures = new Set<(error: ApiError) => void>();

/**
 * useResource keeps the JSON at path up to date: it loads it at once, and again on every
 * n-th tick. When a reload fails the data stays, error says why, and it is tried again.
 */
export function useResource<T>(path: string | null, everyTicks = 1): Resource<T> {
  const [resource, setResource] = useState<Resource<T> & { path: string | null }>({ path, data: undefined, error: undefined, loadedAt: 0 });
  useEffect(() => {
    if (path === null) {
      return;
    }
    const loader = new Loader<T>({
      get: (signal) => getJSON<T>(path, signal),
      everyTicks,
      loaded: (data) => setResource({ path, data, error: undefined, loadedAt: Date.now() }),
      failed: (error) => {
        if (error instanceof ApiError) {
          failures.forEach((report) => report(error));
        }
        setResource((old) => ({
          path,
          data: old.path === path ? old.data : undefined,
          error: error instanceof Error ? error : new Error(String(error)),
          loadedAt: old.path === path ? old.loadedAt : 0,
        }));
      },
      hidden: () => document.hidden,
    });
    const unsubscribe = live.subscribe(() => loader.tick());
    return () => {
      loader.stop();
      unsubscribe();
    };
  }, [path, everyTicks]);
  // The first render after a change of path must not show the old path's data.
  return resource.path === path ? resource : { data: undefined, error: undefined, loadedAt: 0 };
}
