// Small parts that several pages use.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import type { Split, Watermark } from "../api/types";
import type { Resource } from "../api/live";
import { missing } from "../api/loader";
import { splitNameParts } from "../model/path";
import { ago, clock, duration, iso, share, watermarkText } from "../model/format";

export function Panel(props: { title: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  const id = useId();
  return (
    <section class={`panel ${props.class ?? ""}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        {props.aside && <div class="panel-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** When is a moment: local time, and how long ago. */
export function When(props: { at: number | null | undefined; now: number; none?: string }) {
  const { at, now } = props;
  if (at === null || at === undefined || at <= 0) {
    return <span class="faint">{props.none ?? "–"}</span>;
  }
  return (
    <time class="when" dateTime={iso(at)} title={iso(at)}>
      {clock(at, now)} <span class="faint">{ago(at, now)}</span>
    </time>
  );
}

/** Mark is a watermark: its time, and how far it is behind the wall clock. */
export function Mark(props: { value: Watermark; now: number }) {
  const { value, now } = props;
  if (typeof value !== "number") {
    return <span class="faint">{watermarkText(value, now)}</span>;
  }
  return (
    <time class="when" dateTime={iso(value)} title={iso(value)}>
      {clock(value, now, true)} <span class="faint">{lagText(now - value)}</span>
    </time>
  );
}

export function lagText(lag: number): string {
  return lag < -1000 ? `${duration(-lag)} ahead` : `${duration(Math.max(lag, 0))} behind`;
}

/** SplitName is a split's name; where there is no room the topic is cut or broken, not the partition. */
export function SplitName(props: { split: Pick<Split, "id" | "topic" | "partition"> }) {
  const [topic, partition] = splitNameParts(props.split);
  return (
    <strong class="split-name" title={props.split.id}>
      <span>{topic}</span>
      <span class="whole">{partition}</span>
    </strong>
  );
}

export function Pill(props: { tone: string; children: ComponentChildren; title?: string }) {
  return (
    <span class={`pill ${props.tone}`} title={props.title}>
      {props.children}
    </span>
  );
}

const stateTones: Record<string, string> = {
  RUNNING: "ok",
  FINISHED: "calm",
  CANCELED: "calm",
  CANCELLING: "held",
  FAILING: "bad",
  FAILED: "bad",
  RESTARTING: "held",
};

export function StatePill(props: { state: string }) {
  return <Pill tone={stateTones[props.state] ?? "calm"}>{props.state.toLowerCase()}</Pill>;
}

/** TimeBar shows where a subtask's time goes. */
export function TimeBar(props: { busy: number; backPressured: number; idle: number }) {
  const [busy, blocked] = [share(props.busy), share(props.backPressured)];
  return (
    <span class="timebar" role="img" aria-label={`busy ${busy} %, back-pressured ${blocked} %`} title={`busy ${busy} % · back-pressured ${blocked} % · idle ${share(props.idle)} %`}>
      <span class="busy" style={{ width: `${busy}%` }} />
      <span class="blocked" style={{ width: `${Math.min(blocked, 100 - busy)}%` }} />
    </span>
  );
}

export interface Column<Row> {
  head: string;
  /** Longer words for the head. */
  title?: string;
  number?: boolean;
  cell: (row: Row) => ComponentChildren;
}

/** Table is a table that scrolls in its own box; its first column heads the rows. */
export function Table<Row>(props: {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string | number;
  rowClass?: (row: Row) => string | undefined;
  empty?: string;
  class?: string;
}) {
  if (props.rows.length === 0) {
    return <Empty>{props.empty ?? "Nothing here."}</Empty>;
  }
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={props.caption}>
      <table class={props.class}>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((c) => (
              <th key={c.head} scope="col" class={c.number ? "number" : undefined} title={c.title}>
                {c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.rowKey(row)} class={props.rowClass?.(row)}>
              {props.columns.map((c, i) =>
                i === 0 ? (
                  <th key={c.head} scope="row">
                    {c.cell(row)}
                  </th>
                ) : (
                  <td key={c.head} class={c.number ? "number" : undefined}>
                    {c.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

export function Facts(props: { facts: [name: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * Loaded shows a resource when it is there: a word while it loads, absent when the
 * server does not offer it, the server's own words when it fails.
 */
export function Loaded<T>(props: { of: Resource<T>; absent: ComponentChildren; children: (data: T) => JSX.Element }) {
  const { data, error } = props.of;
  if (data !== undefined) {
    return props.children(data);
  }
  if (!error) {
    return <Empty>Loading…</Empty>;
  }
  return missing(error) ? <Empty>{props.absent}</Empty> : <p class="empty bad-text">{error.message}</p>;
}
