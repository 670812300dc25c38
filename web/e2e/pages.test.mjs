// All pages on made-up jobs.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { failedJob, startMock, stuckJob } from "../mock/mock.mjs";
import { accessible, eventually, launch, noOverflow, open, phone, pixels } from "./browser.mjs";

const tabs = ["", "/watermarks", "/splits", "/late", "/checkpoints", "/exceptions", "/configuration", "/why"];
const heldLine = [224, 106, 0];

describe("pages", () => {
  let browser, mock, job;
  before(async () => {
    browser = await launch();
    mock = await startMock();
    job = `${mock.url}/#/jobs/${stuckJob}`;
  });
  after(async () => {
    await browser.close();
    await mock.close();
  });

  test("the list names what holds each job", async (t) => {
    const page = await open(t, browser, mock.url);
    await page.getByText("because partition 2 of topic orders has sent nothing").waitFor();
    assert.equal(await page.locator(".job").count(), 2);
    await page.getByRole("link", { name: "orders per minute" }).click();
    await page.getByRole("heading", { name: /orders per minute/ }).waitFor();
  });

  test("the head tells of restarts, and leads to what failed", async (t) => {
    const page = await open(t, browser, job);
    await page.getByRole("link", { name: "2 restarts" }).click();
    await page.waitForURL(/\/exceptions$/);
    const calm = await startMock(0, { restarts: 0 });
    const other = await open(t, browser, `${calm.url}/#/jobs/${stuckJob}`);
    t.after(calm.close);
    await other.locator(".head").getByText("parallelism 2").waitFor();
    assert.equal(await other.getByText(/restart/).count(), 0);
  });

  test("the graph shows the path from the silent split", async (t) => {
    const page = await open(t, browser, job);
    const held = page.locator("[data-holds]");
    await held.waitFor();
    assert.equal(await held.getAttribute("data-split"), "orders-2");
    assert.match(await held.innerText(), /silent 7 min/);
    assert.equal(await page.locator(".edge.stuck").count(), 3, "edges on the path");
    assert.deepEqual(await page.locator(".card.stuck").evaluateAll((cards) => cards.map((c) => c.dataset.vertex)), [
      "Source: orders -> Filter", "window.Tumbling(1m) Aggregate", "Sink: print",
    ]);
    assert.equal(await page.locator('[data-vertex="Source: returns"].stuck').count(), 0);
    assert.match(await page.locator("#graph-path").innerText(), /orders-2, silent 7 min[^]*subtask 2[^]*Tumbling[^]*print/);
  });

  test("no card or split covers another", async (t) => {
    for (const viewport of [{ width: 1360, height: 900 }, phone]) {
      const page = await open(t, browser, job, { viewport });
      await page.locator("[data-holds]").waitFor();
      const boxes = await page.locator(".node").evaluateAll((nodes) => nodes.map((n) => n.getBoundingClientRect().toJSON()));
      for (const [i, a] of boxes.entries()) {
        for (const b of boxes.slice(i + 1)) {
          const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
          assert.ok(apart, `${JSON.stringify(a)} covers ${JSON.stringify(b)}`);
        }
      }
    }
  });

  test("the chart has a flat line, alone when its legend is pressed", async (t) => {
    const page = await open(t, browser, job);
    const legend = page.locator(".lines button", { hasText: "orders-2" });
    await legend.waitFor();
    assert.match(await legend.innerText(), /flat for 7 min/);
    assert.match(await page.getByRole("img", { name: /Watermarks over the last hour/ }).getAttribute("aria-label"), /orders-2: 7 min .* behind, flat for 7 min/);
    await eventually(async () => (await pixels(page, heldLine)) > 1000, "the line that holds is drawn");
    const other = page.locator(".lines button", { hasText: "returns-0" });
    await other.click();
    assert.equal(await other.getAttribute("aria-pressed"), "true");
    await eventually(async () => (await pixels(page, heldLine)) < 100, "the line that holds is dimmed");
    await other.click();
    assert.equal(await other.getAttribute("aria-pressed"), "false");
  });

  test("numbers move without a reload", async (t) => {
    const page = await open(t, browser, job);
    const lag = page.locator('[data-vertex="Sink: print"] .card-mark');
    await lag.waitFor();
    const first = await lag.innerText();
    await page.waitForFunction((was) => document.querySelector('[data-vertex="Sink: print"] .card-mark')?.innerText !== was, first, { timeout: 5000 });
  });

  test("a card opens its subtasks, and the split table marks the holder", async (t) => {
    const page = await open(t, browser, job);
    await page.locator('[data-vertex="Source: orders -> Filter"]').click();
    const row = page.getByRole("group", { name: "Subtasks of Source: orders -> Filter" }).locator("tr.stuck");
    await row.waitFor();
    assert.match(await row.innerText(), /^2\s*on the path/);
    assert.match(await page.getByRole("group", { name: "Splits" }).locator("tr.stuck").innerText(), /orders-2\s*holds the minimum/);
  });

  test("why has findings, fixes in three languages, and their price", async (t) => {
    const page = await open(t, browser, `${job}/why`);
    await page.getByRole("heading", { name: /because partition 2 of topic orders/ }).waitFor();
    assert.match(await page.locator(".fix pre").first().innerText(), /WithIdleness/);
    await page.getByRole("button", { name: "SQL" }).click();
    assert.match(await page.locator(".fix pre").first().innerText(), /idle-timeout/);
    await page.getByText("over-parallel-source").waitFor();
  });

  test("the configuration has Flink's names", async (t) => {
    const page = await open(t, browser, `${job}/configuration`);
    const settings = page.getByRole("group", { name: "Configuration of the job" });
    await settings.getByRole("row", { name: "pipeline.auto-watermark-interval 200 ms" }).waitFor();
  });

  test("a failed job leads to its exception", async (t) => {
    const page = await open(t, browser, `${mock.url}/#/jobs/${failedJob}`, { mayFail: [failedJob] });
    await page.locator(".answer").getByRole("link", { name: "Exceptions" }).click();
    await page.getByText("index out of range [3] with length 3").first().waitFor();
  });

  test("of a failed job nothing is active, and no time runs on", async (t) => {
    const page = await open(t, browser, `${mock.url}/#/jobs/${failedJob}`, { mayFail: [failedJob] });
    await page.locator(".lines button").first().waitFor();
    assert.deepEqual(new Set(await page.locator("td .pill").allInnerTexts()), new Set(["not read"]));
    assert.match(await page.locator(".splitnode").first().innerText(), /not read/);
    assert.doesNotMatch(await page.locator("main").innerText(), /flat for|active|silent/);
  });

  test("cancel asks first", async (t) => {
    const page = await open(t, browser, job);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Keep it running" }).click();
    assert.ok(!mock.requests.some((r) => r.startsWith("PATCH")));
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    assert.ok(mock.requests.includes(`PATCH /jobs/${stuckJob}`));
  });

  test("light, dark, and remembered", async (t) => {
    const page = await open(t, browser, job, { colorScheme: "dark" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await background(), "rgb(14, 20, 26)");
    await page.getByRole("button", { name: "Light" }).click();
    assert.equal(await background(), "rgb(244, 246, 248)");
    await page.reload();
    await page.locator("[data-holds]").waitFor();
    assert.equal(await background(), "rgb(244, 246, 248)");
  });

  test("the keyboard reaches everything, and one sees where it is", async (t) => {
    const page = await open(t, browser, job);
    await page.locator("[data-holds]").waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Skip to the content");
    const reached = new Set();
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      const [name, outline] = await page.evaluate(() => {
        const e = document.activeElement;
        return [e.dataset.vertex ?? e.dataset.split ?? e.textContent.trim(), getComputedStyle(e).outlineStyle];
      });
      assert.equal(outline, "solid", `focus is not to be seen on ${name}`);
      reached.add(name.split(/ (?=flat|\d)/)[0]);
      if (name === "All") {
        break;
      }
    }
    for (const name of ["Dark", "Cancel…", "Why, and what to do", "Checkpoints", "orders-2", "Source: orders -> Filter", "Sink: print", "All"]) {
      assert.ok(reached.has(name), `${name} was not reached; reached: ${[...reached].join(" | ")}`);
    }
    await page.locator('[data-vertex="Source: orders -> Filter"]').focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Subtasks of Source: orders -> Filter" }).waitFor();
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`axe has nothing to say, ${colorScheme}`, async (t) => {
      const page = await open(t, browser, mock.url, { colorScheme });
      await page.locator(".job-answer").waitFor();
      await accessible(page);
      for (const tab of tabs) {
        await page.goto(`${job}${tab}`);
        await page.locator(".panel").first().waitFor();
          await accessible(page);
      }
    });
  }

  test("a phone shows every page without scrolling sideways", async (t) => {
    const page = await open(t, browser, mock.url, { viewport: phone, mayFail: [failedJob] });
    await page.locator(".job-answer").waitFor();
    await noOverflow(page);
    for (const tab of tabs) {
      await page.goto(`${job}${tab}`);
      await page.locator(tab === "" ? "[data-holds]" : ".panel").first().waitFor();
      await noOverflow(page);
    }
    await page.goto(`${mock.url}/#/jobs/${failedJob}/exceptions`);
    await page.locator(".exceptions").waitFor();
    await noOverflow(page);
  });
});

describe("servers that lack something", () => {
  let browser;
  before(async () => (browser = await launch()));
  after(() => browser.close());

  test("checkpointing is off", async (t) => {
    const mock = await startMock(0, { checkpoints: false });
    const page = await open(t, browser, `${mock.url}/#/jobs/${stuckJob}/checkpoints`, { mayFail: ["/checkpoints"] });
    t.after(mock.close);
    await page.getByText("Checkpointing is off for this job").waitFor();
  });

  test("a token is asked for, kept in the tab, and sent", async (t) => {
    const mock = await startMock(0, { token: "s3cret" });
    const page = await open(t, browser, mock.url, { mayFail: ["/jobs", "/lowwater"] });
    t.after(mock.close);
    await page.getByLabel("Bearer token").fill("wrong");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("did not accept").waitFor();
    await accessible(page);
    await page.getByLabel("Bearer token").fill("s3cret");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".job-answer").waitFor();
    await page.reload();
    await page.locator(".job-answer").waitFor();
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length]), [0, 1]);
  });

  test("the last state stays when the server is gone", async (t) => {
    const mock = await startMock();
    const page = await open(t, browser, `${mock.url}/#/jobs/${stuckJob}`, { mayFail: ["/jobs", "/lowwater"] });
    await page.locator("[data-holds]").waitFor();
    await mock.close();
    await page.getByText("The server does not answer").waitFor();
    assert.equal(await page.locator("[data-holds]").count(), 1);
  });

  test("every page comes though the first answer to each of its requests is a failure", async (t) => {
    const mock = await startMock(0, { fails: (_, before) => before === 0 });
    t.after(mock.close);
    // What each page shows only with an answer to the requests of its own.
    const shown = {
      "": ".chart canvas", "/watermarks": ".chart canvas", "/splits": "tr.stuck", "/late": "text=tea", "/checkpoints": "text=chk-8",
      "/exceptions": ".panel", "/configuration": "text=exponential-delay", "/why": "text=over-parallel-source",
    };
    const page = await open(t, browser, mock.url, { mayFail: ["/jobs", "/lowwater", "/config"] });
    await page.getByText("because partition 2 of topic orders").waitFor();
    for (const [tab, what] of Object.entries(shown)) {
      await page.goto(`${mock.url}/#/jobs/${stuckJob}${tab}`);
      await page.locator(what).first().waitFor({ timeout: 10_000 });
    }
  });

  test("the chart goes on after failures between its requests", async (t) => {
    const mock = await startMock(0, { fails: (path, before) => path.endsWith("/history") && (before === 1 || before === 2) });
    const page = await open(t, browser, `${mock.url}/#/jobs/${stuckJob}`, { mayFail: ["/history"] });
    t.after(mock.close);
    await page.locator(".chart canvas").waitFor();
    await page.getByText("The server does not say how watermarks went on").waitFor({ timeout: 15_000 });
    assert.equal(await page.locator(".chart canvas").count(), 1, "what is known stays");
    await page.getByText("The server does not say how watermarks went on").waitFor({ state: "detached", timeout: 15_000 });
    const asked = () => mock.requests.filter((r) => r.endsWith("/history")).length;
    await page.waitForTimeout(6000);
    assert.ok(asked() >= 5, `asked ${asked()} times`);
  });

  test("a job of which nothing is known yet has pages all the same", async (t) => {
    const mock = await startMock(0, { empty: true });
    const page = await open(t, browser, mock.url);
    t.after(mock.close);
    for (const tab of tabs) {
      await page.goto(`${mock.url}/#/jobs/${stuckJob}${tab}`);
      await page.locator(`[aria-current][href$="${stuckJob}${tab}"]`).waitFor();
      await page.getByText("Loading…").waitFor({ state: "detached" });
      await noOverflow(page);
    }
    await page.getByText("has found nothing yet").waitFor();
  });

  test("there is no such job", async (t) => {
    const mock = await startMock();
    const page = await open(t, browser, `${mock.url}/#/jobs/nosuch`, { mayFail: ["/nosuch"] });
    t.after(mock.close);
    await page.getByText("There is no job nosuch").waitFor();
  });
});
