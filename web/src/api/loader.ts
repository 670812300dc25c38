// When to ask again for what a page shows. It touches no page, so that it is tested without a browser.

import { ApiError } from "./client";

const firstRetryMillis = 1000;
const lastRetryMillis = 10_000;
/** After so long it asks again for what a server did not offer. */
const absentMillis = 30_000;

/** missing says that the server does not offer a resource, rather than failing at it. */
export function missing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 501);
}

/** retryMillis is how long to wait after so many failures in a row, the last of them error. */
export function retryMillis(failures: number, error: unknown): number {
  return missing(error) ? absentMillis : Math.min(firstRetryMillis * 2 ** (failures - 1), lastRetryMillis);
}

export interface Loading<T> {
  get: (signal: AbortSignal) => Promise<T>;
  /** After a success it loads again at every n-th tick; Infinity is never. */
  everyTicks: number;
  loaded: (data: T) => void;
  failed: (error: unknown) => void;
  /** While nobody sees the page nothing is asked for; the first tick after that makes up for it. */
  hidden: () => boolean;
}

/**
 * Loader loads a resource at once, and again as ticks pass. After a failure it goes by the
 * clock instead, whatever everyTicks is: what is loaded once must come after all, too.
 */
export class Loader<T> {
  private readonly abort = new AbortController();
  private busy = false;
  private ticks = 0;
  private failures = 0;
  private retryAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly of: Loading<T>) {
    void this.load();
  }

  tick(): void {
    this.ticks++;
    if (this.failures > 0 ? Date.now() >= this.retryAt : this.ticks >= this.of.everyTicks) {
      void this.load();
    }
  }

  /** stop ends it: neither loaded nor failed is called any more. */
  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private async load(): Promise<void> {
    if (this.busy || this.abort.signal.aborted) {
      return; // A slow server gets one request at a time.
    }
    this.busy = true;
    this.ticks = 0;
    clearTimeout(this.timer);
    try {
      const data = await this.of.get(this.abort.signal);
      if (!this.abort.signal.aborted) {
        this.failures = 0;
        this.of.loaded(data);
      }
    } catch (error) {
      if (!this.abort.signal.aborted) {
        this.later(retryMillis(++this.failures, error));
        this.of.failed(error);
      }
    } finally {
      this.busy = false;
    }
  }

  private later(millis: number): void {
    this.retryAt = Date.now() + millis;
    this.timer = setTimeout(() => {
      if (!this.of.hidden()) {
        void this.load();
      }
    }, millis);
  }
}
