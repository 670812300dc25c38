// A headless Chromium, and what the tests look for on a page.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import axe from "axe-core";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

export async function launch() {
  assert.ok(existsSync(executablePath), `no Chromium at ${executablePath}: install it (apt-get install chromium), or set CHROMIUM`);
  return chromium.launch({
    executablePath,
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

export const desktop = { width: 1360, height: 900 };
export const phone = { width: 375, height: 740 };

/**
 * open opens a page of the UI in a context of its own. At the end of the test it fails if the page
 * wrote an error to the console, threw one, or asked another server for something.
 */
export async function open(t, browser, url, { viewport = desktop, colorScheme = "light", mayFail = [] } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const errors = [];
  const { origin } = new URL(url);
  page.on("console", (message) => {
    const at = message.location().url ?? "";
    if (message.type() === "error" && !mayFail.some((part) => at.includes(part))) {
      errors.push(`${message.text()} (${at})`);
    }
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) {
      errors.push(`asked ${request.url()}`);
    }
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(errors, []);
  });
  await page.goto(url);
  return page;
}

/** noOverflow: the page itself does not scroll sideways; tables and the graph do in boxes of their own. */
export async function noOverflow(page) {
  const [scrolled, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(scrolled <= seen, `the page is ${scrolled} wide in a window of ${seen}`);
}

/** accessible: axe finds nothing against WCAG 2.2 A and AA and its best practices. */
export async function accessible(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`);
  });
  assert.deepEqual(found, [], page.url());
}

/** eventually waits until holds does; what a canvas shows follows the page by a frame or two. */
export async function eventually(holds, what) {
  const until = Date.now() + 5000;
  while (!(await holds())) {
    assert.ok(Date.now() < until, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** pixels counts the pixels of the first canvas that are about of a colour. */
export async function pixels(page, [red, green, blue]) {
  return page.evaluate(
    ([r, g, b]) => {
      const canvas = document.querySelector(".chart canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) {
        n += data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 24 ? 1 : 0;
      }
      return n;
    },
    [red, green, blue],
  );
}
