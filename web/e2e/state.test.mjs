// State with a memory budget, on made-up jobs.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startMock, stuckJob } from "../mock/mock.mjs";
import { accessible, launch, noOverflow, open, phone } from "./browser.mjs";

describe("state with a memory budget", () => {
  const mib = 2 ** 20;
  const state = (more) => ({ budgetBytes: 8 * mib, memoryBytes: 3 * mib, diskBytes: 0, spilledEntries: 0, spillReadsPerSecond: 0, spillWritesPerSecond: 0, ...more });
  const spilled = state({ memoryBytes: 7.9 * mib, diskBytes: 1.2 * 1024 * mib, spilledEntries: 1_234_567, spillReadsPerSecond: 3120, spillWritesPerSecond: 2950 });
  const windows = '[data-vertex="window.Tumbling(1m) Aggregate"]';
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser.close());

  /** openWindows opens the window's subtasks in a job whose windows have that state. */
  async function openWindows(t, states, options) {
    const mock = await startMock(0, { state: states, late: 1_234_567 });
    const page = await open(t, browser, `${mock.url}/#/jobs/${stuckJob}`, options);
    t.after(mock.close);
    await page.locator(windows).click();
    await page.getByRole("heading", { name: "Subtasks of window.Tumbling(1m) Aggregate" }).waitFor();
    return page;
  }

  test("a card says that its state is on disk, and the subtasks say how much", async (t) => {
    const page = await openWindows(t, [state(), spilled]);
    assert.match(await page.locator(windows).innerText(), /spills to disk\s+1\.2 GiB/);
    assert.equal(await page.locator(".card-state").count(), 1, "cards of vertices without a budget");
    const rows = await page.getByRole("group", { name: "State of window.Tumbling(1m) Aggregate" }).locator("tbody tr").allInnerTexts();
    assert.match(rows[0], /^0\s+3\.0 of 8\.0 MiB\s+none\s+none\s+0\s+0$/);
    assert.match(rows[1], /^1\s+7\.9 of 8\.0 MiB\s+1\u202f234\u202f567\s+1\.2 GiB\s+3\u202f120\s+2\u202f950$/);
    await page.getByText("It is larger than its memory budget, 16.0 MiB in 2 subtasks").waitFor();
  });

  test("within the budget there is no alarm", async (t) => {
    const page = await openWindows(t, [state(), state()]);
    assert.match(await page.locator(windows).innerText(), /state in memory\s+6\.0 of 16\.0 MiB/);
    assert.equal(await page.getByText("spills to disk").count(), 0);
    await page.getByText("All of it is in memory").waitFor();
  });

  test("without a budget nothing is said of state", async (t) => {
    const page = await openWindows(t, undefined);
    assert.equal(await page.locator(".card-state").count(), 0);
    assert.equal(await page.getByRole("heading", { name: "State", exact: true }).count(), 0);
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`on a phone, and for axe, ${colorScheme}`, async (t) => {
      const page = await openWindows(t, [spilled, spilled], { viewport: phone, colorScheme });
      await noOverflow(page);
      await accessible(page);
      const inside = await page.locator(windows).evaluate((card) => {
        const lines = [...card.querySelectorAll(".card-state, .card-foot")];
        return lines.every((line) => line.scrollWidth <= line.clientWidth) && card.scrollWidth <= card.clientWidth && card.scrollHeight <= card.clientHeight;
      });
      assert.ok(inside, "the card holds its text");
    });
  }
});
