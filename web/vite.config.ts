/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// The build is committed, so it must depend on nothing but the sources and
// package-lock.json: no dates, no absolute paths, names by content.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    sourcemap: false,
    modulePreload: { polyfill: false },
    // elk's worker is a megabyte and a half; it loads after the first page is there.
    chunkSizeWarningLimit: 2000,
  },
  server: {
    proxy: Object.fromEntries(
      ["/jobs", "/lowwater", "/config", "/overview"].map((path) => [path, process.env.LOWWATER_URL ?? "http://127.0.0.1:8081"]),
    ),
  },
  test: { include: ["src/**/*.test.ts"] },
});
