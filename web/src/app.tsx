// The frame around all pages: the bar on top, the form for a token, the route.

import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "./api/client";
import { failures, live } from "./api/live";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { useRoute } from "./router";
import { useTheme, type Theme } from "./theme";
import { Empty } from "./ui/parts";

export function App() {
  const route = useRoute();
  const [refused, setRefused] = useState(false);
  // Counts tokens entered: a new one mounts the page anew, and so asks again.
  const [entered, setEntered] = useState(0);
  useEffect(() => {
    const report = (error: { status: number }): void => {
      if (error.status === 401) {
        setRefused(true);
      }
    };
    failures.add(report);
    return () => void failures.delete(report);
  }, []);
  const enter = (value: string): void => {
    token.set(value);
    setRefused(false);
    setEntered(entered + 1);
    live.refresh();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href="#/">
          <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
            <path d="M2 8c3.3-3.3 6.7 3.3 10 0s6.7 3.3 10 0" />
            <path class="line" d="M2 17h20" />
          </svg>
          lowwater
        </a>
        <nav aria-label="Main">
          <a href="#/" aria-current={route.page === "jobs" ? "page" : undefined}>
            Jobs
          </a>
        </nav>
        <ThemeSwitch />
      </header>
      <main id="main" tabIndex={-1}>
        {refused ? (
          <TokenForm enter={enter} again={token.get() !== null} />
        ) : route.page === "jobs" ? (
          <JobsPage key={entered} />
        ) : route.page === "job" ? (
          <JobPage key={`${entered}/${route.jid}`} jid={route.jid} tab={route.tab} vertex={route.vertex} />
        ) : (
          <Empty>
            There is no such page. <a href="#/">All jobs</a>
          </Empty>
        )}
      </main>
      <footer class="foot">
        Times are local, {Intl.DateTimeFormat().resolvedOptions().timeZone}; those in the sentences of a diagnosis are UTC. “Behind” is behind the server’s wall clock.
      </footer>
    </>
  );
}

/** The link would otherwise change the route, which lives in the hash too. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const themes: [Theme, string][] = [
  ["auto", "Auto"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function ThemeSwitch() {
  const [theme, setTheme] = useTheme();
  return (
    <div class="segments theme" role="group" aria-label="Colours">
      {themes.map(([value, label]) => (
        <button key={value} type="button" aria-pressed={theme === value} onClick={() => setTheme(value)}>
          {label}
        </button>
      ))}
    </div>
  );
}

function TokenForm(props: { enter: (value: string) => void; again: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <form
      class="panel token"
      onSubmit={(event) => {
        event.preventDefault();
        const value = input.current?.value.trim();
        if (value) {
          props.enter(value);
        }
      }}
    >
      <h1>This server asks for a token</h1>
      {props.again && (
        <p class="bad-text" role="alert">
          The server did not accept the token.
        </p>
      )}
      <label for="token">Bearer token</label>
      <input id="token" ref={input} type="password" autocomplete="off" required />
      <p class="faint">It is kept in this browser tab until the tab is closed.</p>
      <button type="submit" class="primary">
        Continue
      </button>
    </form>
  );
}
