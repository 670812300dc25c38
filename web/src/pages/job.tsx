// One job: its head, the answer line, and the tabs.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { cancelJob, stopJob } from "../api/client";
import { useResource } from "../api/live";
import { missing } from "../api/loader";
import type { FlinkConfig, Graph, Plan, Splits, Why } from "../api/types";
import { clock, count, duration, plural } from "../model/format";
import { answer, finalState, healthy, heldPath, inOrder, type HeldPath } from "../model/path";
import { jobHref, tabs, type Tab } from "../router";
import { Empty, StatePill } from "../ui/parts";
import { CheckpointsPage } from "./checkpoints";
import { ConfigurationPage } from "./configuration";
import { ExceptionsPage } from "./exceptions";
import { LatePage } from "./late";
import { OverviewPage } from "./overview";
import { SplitsPage } from "./splits";
import { WatermarksPage } from "./watermarks";
import { WhyPage } from "./why";

/** What all tabs of a job are given. */
export interface JobView {
  jid: string;
  graph: Graph;
  splits: Splits;
  path: HeldPath | null;
  why: Why | undefined;
  warnings: Plan["warnings"];
  vertex: string | null;
}

const pages: Record<Tab, [title: string, page: (view: JobView) => JSX.Element]> = {
  overview: ["Overview", OverviewPage],
  watermarks: ["Watermarks", WatermarksPage],
  splits: ["Splits", SplitsPage],
  late: ["Late records", LatePage],
  checkpoints: ["Checkpoints", CheckpointsPage],
  exceptions: ["Exceptions", ExceptionsPage],
  configuration: ["Configuration", ConfigurationPage],
  why: ["Why", WhyPage],
};

export function JobPage(props: { jid: string; tab: Tab; vertex: string | null }) {
  const base = `/lowwater/jobs/${props.jid}`;
  const graph = useResource<Graph>(`${base}/graph`);
  const splits = useResource<Splits>(`${base}/splits`);
  const why = useResource<Why>(`${base}/why`, 3);
  const plan = useResource<Plan>(`${base}/plan`, Infinity);
  useEffect(() => {
    document.title = graph.data ? `${graph.data.name} · lowwater` : "lowwater";
    return () => {
      document.title = "lowwater";
    };
  }, [graph.data?.name]);

  if (!graph.data || (!splits.data && !splits.error)) {
    return (
      <Empty>
        {!graph.error ? (
          "Loading…"
        ) : missing(graph.error) ? (
          <>
            There is no job {props.jid}. <a href="#/">All jobs</a>
          </>
        ) : (
          graph.error.message
        )}
      </Empty>
    );
  }
  const ordered = { now: splits.data?.now ?? graph.data.now, splits: inOrder(splits.data?.splits ?? []) };
  const view: JobView = {
    jid: props.jid,
    graph: graph.data,
    splits: ordered,
    path: heldPath(graph.data, why.data, ordered.splits),
    why: why.data,
    warnings: plan.data?.warnings ?? [],
    vertex: props.vertex,
  };
  const [, Page] = pages[props.tab];
  return <Frame view={view} tab={props.tab} error={graph.error} Page={Page} />;
}

function Frame(props: { view: JobView; tab: Tab; error: Error | undefined; Page: (view: JobView) => JSX.Element }) {
  const { view, tab: current, Page } = props;
  const { graph } = view;
  const bar = useRef<HTMLElement>(null);
  // On a narrow screen the bar of tabs scrolls; the current one must be in sight.
  useEffect(() => {
    const link = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (bar.current && link) {
      bar.current.scrollLeft = link.offsetLeft - (bar.current.clientWidth - link.offsetWidth) / 2;
    }
  }, [current]);
  return (
    <>
      <Head graph={graph} />
      {props.error && (
        <p class="stale" role="status">
          The server does not answer ({props.error.message}). This is how the job was at {clock(graph.now, Date.now())}.
        </p>
      )}
      <AnswerLine view={view} />
      <nav class="tabs" aria-label="Job" ref={bar}>
        {tabs.map((tab) => (
          <a key={tab} href={jobHref(view.jid, tab)} aria-current={tab === current ? "page" : undefined}>
            {pages[tab][0]}
            <Badge tab={tab} view={view} />
          </a>
        ))}
      </nav>
      <Page {...view} />
    </>
  );
}

function Badge(props: { tab: Tab; view: JobView }) {
  const { view } = props;
  const late = view.graph.vertices.reduce((sum, v) => sum + v.lateDropped, 0);
  const findings = view.why?.findings.filter((f) => f.severity !== "none").length ?? 0;
  const n = props.tab === "late" ? late : props.tab === "why" ? findings + view.warnings.length : 0;
  return n > 0 ? <span class="badge">{count(n)}</span> : null;
}

/** AnswerLine says in one sentence what holds the watermark; screen readers hear it when it changes. */
function AnswerLine(props: { view: JobView }) {
  const { graph, why, jid, splits } = props.view;
  const said = answer(graph, why, splits.splits);
  return (
    <div class={`answer ${said.tone}`}>
      <p aria-live="polite" aria-atomic="true">
        {said.text}
      </p>
      {said.tone === "held" && why && !healthy(why) && <a href={jobHref(jid, "why")}>Why, and what to do</a>}
      {said.tone === "failed" && <a href={jobHref(jid, "exceptions")}>Exceptions</a>}
    </div>
  );
}

function Head(props: { graph: Graph }) {
  const { graph } = props;
  return (
    <div class="head">
      <div>
        <h1>
          {graph.name} <StatePill state={graph.state} />
        </h1>
        <p class="faint">
          {graph.startTime > 0 && (
            <>
              started {clock(graph.startTime, graph.now)}
              {!finalState(graph.state) && <>, {duration(graph.now - graph.startTime)} ago</>} ·{" "}
            </>
          )}
          {graph.restarts > 0 && (
            <>
              <a href={jobHref(graph.jid, "exceptions")}>
                {plural(graph.restarts, "restart")}
              </a>{" "}
              ·{" "}
            </>
          )}
          parallelism {graph.parallelism} · <code>{graph.jid}</code>
        </p>
      </div>
      {!finalState(graph.state) && <Actions graph={graph} />}
    </div>
  );
}

type Action = "stop" | "cancel";

const actions: Record<Action, { label: string; explain: string; run: (jid: string) => Promise<unknown> }> = {
  stop: {
    label: "Stop",
    explain: "Sources stop reading; what is under way is processed and written. Open windows do not fire.",
    run: stopJob,
  },
  cancel: {
    label: "Cancel",
    explain: "The job ends at once. What is under way and not yet written is lost.",
    run: cancelJob,
  },
};

function Actions(props: { graph: Graph }) {
  const { graph } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [action, setAction] = useState<Action>("stop");
  const [failed, setFailed] = useState<string>();
  const config = useResource<FlinkConfig>("/config", Infinity);
  if (config.data?.features?.["web-cancel"] === false) {
    return null;
  }
  const ask = (next: Action): void => {
    setAction(next);
    setFailed(undefined);
    dialog.current?.showModal();
  };
  const run = (): void => {
    actions[action].run(graph.jid).then(
      () => dialog.current?.close(),
      (error: unknown) => setFailed(error instanceof Error ? error.message : String(error)),
    );
  };
  const { label, explain } = actions[action];
  return (
    <div class="actions">
      <button type="button" onClick={() => ask("stop")}>
        Stop…
      </button>
      <button type="button" class="danger" onClick={() => ask("cancel")}>
        Cancel…
      </button>
      <dialog ref={dialog} aria-labelledby="confirm-title">
        <h2 id="confirm-title">
          {label} {graph.name}?
        </h2>
        <p>{explain}</p>
        {failed && (
          <p class="bad-text" role="alert">
            {failed}
          </p>
        )}
        <div class="actions">
          <button type="button" autofocus onClick={() => dialog.current?.close()}>
            Keep it running
          </button>
          <button type="button" class={action === "cancel" ? "danger" : "primary"} onClick={run}>
            {label} the job
          </button>
        </div>
      </dialog>
    </div>
  );
}
