// The demo of the quiet partition as the real binary serves it: LOWWATER says where that
// is, by default bin/lowwater, which make build makes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { accessible, eventually, launch, noOverflow, open, phone, pixels } from "./browser.mjs";

const binary = process.env.LOWWATER ?? fileURLToPath(new URL("../../bin/lowwater", import.meta.url));
/** Results flow for so long: time to see that nothing is held, on a slow machine, too. */
const flowSeconds = 20;
/** How long it may take until the stall is told from a pause, which is after 30 s of silence. */
const stallSeconds = 180;

/** demo plays the demo up to the stall, holds it until the test ends, and returns where its pages are. */
async function demo(t) {
  const child = spawn(binary, ["demo", "quiet-partition", "--rest", "127.0.0.1:0", "--act-time", `${flowSeconds}s`, "--act", "2", "--hold"], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  let said = "";
  return new Promise((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`the demo ended with ${code}:\n${said}`)));
    child.stdout.on("data", (data) => {
      said += data;
      const url = said.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (url) {
        resolve(url[0]);
      }
    });
  });
}

/** shot keeps a picture where SHOTS says, to look at. */
async function shot(page, name) {
  if (process.env.SHOTS) {
    await mkdir(process.env.SHOTS, { recursive: true });
    await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage: true });
  }
}

test("the quiet partition, live", { skip: !existsSync(binary) && !process.env.CI && `no ${binary}` }, async (t) => {
  const url = await demo(t);
  const browser = await launch();
  t.after(() => browser.close());
  // Not every job has checkpoints, and then Flink's path for them is a 404.
  const options = { mayFail: ["/checkpoints", "/why", "/config", "/exceptions"] };
  const page = await open(t, browser, url, options);
  await page.getByRole("link", { name: "quiet-partition" }).first().click();

  // Results flow: no path, no alarm.
  await page.locator('[data-vertex^="Source"]').waitFor();
  assert.equal(await page.locator(".card.stuck, .splitnode.stuck").count(), 0);
  assert.equal(await page.locator(".splitnode").count(), 3);

  // Partition 2 goes quiet.
  await page.locator(".splitnode.stuck").waitFor({ timeout: stallSeconds * 1000 });
  const held = page.locator("[data-holds]");
  assert.match(await held.getAttribute("data-split"), /orders-2$/);
  assert.match(await held.innerText(), /silent \d+ (s|min)/);
  assert.equal(await page.locator(".edge.stuck").count(), 2, "split to source, source to window");
  assert.equal(await page.locator(".card.stuck").count(), 2);
  assert.match(await page.locator(".answer.held").innerText(), /orders-2|artition 2/);
  assert.match(await page.locator("tr.stuck").innerText(), /orders-2\s*holds the minimum/);
  assert.match(await page.locator(".lines button.held").innerText(), /orders-2\s*flat for/);
  await eventually(async () => (await pixels(page, [224, 106, 0])) > 300, "the flat line is drawn");
  await shot(page, "demo-light");
  await accessible(page);

  const job = page.url();
  const dark = await open(t, browser, job, { ...options, colorScheme: "dark" });
  await dark.locator(".splitnode.stuck").waitFor();
  assert.equal(await dark.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(14, 20, 26)");
  await shot(dark, "demo-dark");
  await accessible(dark);

  const narrow = await open(t, browser, job, { ...options, viewport: phone });
  await narrow.locator(".splitnode.stuck").waitFor();
  await noOverflow(narrow);
  await shot(narrow, "demo-phone");
  for (const tab of ["watermarks", "splits", "late", "checkpoints", "exceptions", "configuration", "why"]) {
    await page.goto(`${job}/${tab}`);
    await page.locator(".panel, .empty").first().waitFor();
    await page.getByText("Loading…").waitFor({ state: "detached" });
    await shot(page, `demo-${tab}`);
  }
});
