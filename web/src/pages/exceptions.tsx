// What failed, the latest first.

import { useResource } from "../api/live";
import type { ExceptionEntry, Exceptions } from "../api/types";
import { Empty, Loaded, Panel, When } from "../ui/parts";
import type { JobView } from "./job";

export function ExceptionsPage(view: JobView) {
  const exceptions = useResource<Exceptions>(`/jobs/${view.jid}/exceptions?maxExceptions=50`, 3);
  return (
    <Panel title="Exceptions">
      <Loaded of={exceptions} absent="The server does not offer exceptions.">
        {(data) => {
          const entries = data.exceptionHistory?.entries ?? [];
          return entries.length === 0 ? (
            <Empty>Nothing has failed.</Empty>
          ) : (
            <>
              <ol class="exceptions">
                {entries.map((e, i) => (
                  <Exception key={`${e.timestamp}/${i}`} entry={e} now={view.graph.now} open={i === 0} />
                ))}
              </ol>
              {data.exceptionHistory?.truncated && <p class="faint">Older ones are not kept.</p>}
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Exception(props: { entry: ExceptionEntry; now: number; open: boolean }) {
  const { entry } = props;
  const first = entry.stacktrace.split("\n")[0] || entry.exceptionName;
  const concurrent = entry.concurrentExceptions ?? [];
  const more = entry.stacktrace !== first || concurrent.length > 0;
  return (
    <li>
      <p class="bad-text">
        <strong>{first}</strong>
      </p>
      <p class="faint">
        <When at={entry.timestamp} now={props.now} />
        {entry.taskName && <> · {entry.taskName}</>}
        {entry.endpoint && <> · {entry.endpoint}</>}
      </p>
      {more && (
        <details open={props.open}>
          <summary>Details</summary>
          <pre tabIndex={0}>{entry.stacktrace}</pre>
          {concurrent.map((c, i) => (
            <pre key={i} tabIndex={0}>
              {c.taskName ? `${c.taskName}: ` : ""}
              {c.stacktrace}
            </pre>
          ))}
        </details>
      )}
    </li>
  );
}
