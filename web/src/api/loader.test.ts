import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./client";
import { Loader, retryMillis } from "./loader";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** start loads from a server whose n-th answer, from 0 on, is an error if fails says so. */
function start(everyTicks: number, fails: (n: number) => Error | null) {
  const seen = { asked: [] as number[], data: [] as number[], errors: [] as unknown[], hidden: false };
  const began = Date.now();
  const loader = new Loader<number>({
    get: async () => {
      const n = seen.asked.push((Date.now() - began) / 1000) - 1;
      const error = fails(n);
      if (error) {
        throw error;
      }
      return n;
    },
    everyTicks,
    loaded: (n) => void seen.data.push(n),
    failed: (error) => void seen.errors.push(error),
    hidden: () => seen.hidden,
  });
  const ticks = async (n: number): Promise<void> => {
    for (let i = 0; i < n; i++) {
      await vi.advanceTimersByTimeAsync(1000);
      loader.tick();
      await vi.advanceTimersByTimeAsync(0);
    }
  };
  return { seen, loader, ticks };
}

const broken = new Error("connection refused");

test("what is loaded once is asked for until it comes, and then no more", async () => {
  const { seen, ticks } = start(Infinity, (n) => (n < 2 ? broken : null));
  await ticks(60);
  expect(seen.asked).toEqual([0, 1, 3]);
  expect(seen.data).toEqual([2]);
  expect(seen.errors).toEqual([broken, broken]);
});

test("it comes also where there are no ticks", async () => {
  const { seen } = start(Infinity, (n) => (n < 1 ? broken : null));
  await vi.advanceTimersByTimeAsync(5000);
  expect(seen.data).toEqual([1]);
});

test("a server that stays away is asked less often, at least every ten seconds", async () => {
  const { seen, ticks } = start(1, () => broken);
  await ticks(50);
  expect(seen.asked).toEqual([0, 1, 3, 7, 15, 25, 35, 45]);
});

test("once it is back all goes on as before", async () => {
  const { seen, ticks } = start(2, (n) => (n === 1 ? broken : null));
  await ticks(7);
  expect(seen.asked).toEqual([0, 2, 3, 4, 6]);
});

test("nothing is asked for while nobody looks, and at once after that", async () => {
  const { seen, ticks } = start(Infinity, (n) => (n === 0 ? broken : null));
  await vi.advanceTimersByTimeAsync(0);
  seen.hidden = true;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(seen.asked).toEqual([0]);
  seen.hidden = false;
  await ticks(1);
  expect(seen.data).toEqual([1]);
});

test("after its end it says nothing more", async () => {
  const { seen, loader, ticks } = start(1, () => broken);
  loader.stop();
  await ticks(20);
  expect(seen.asked).toEqual([0]);
  expect(seen.errors).toEqual([]);
});

test("what a server does not offer is asked for seldom", () => {
  expect(retryMillis(1, new ApiError(404, ""))).toBe(30_000);
  expect(retryMillis(1, new ApiError(503, ""))).toBe(1000);
});
