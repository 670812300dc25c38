// What the job was started with.

import type { ComponentChildren } from "preact";
import { useResource } from "../api/live";
import type { JobConfig } from "../api/types";
import { Empty, Loaded, Panel, Table } from "../ui/parts";
import type { JobView } from "./job";

export function ConfigurationPage(view: JobView) {
  const config = useResource<JobConfig>(`/jobs/${view.jid}/config`, Infinity);
  return (
    <>
      <Panel title="Configuration">
        <Loaded of={config} absent="The server does not offer the configuration.">
          {(data) => {
            const { "user-config": user = {}, ...execution } = data["execution-config"] ?? {};
            const rows: [string, ComponentChildren][] = [
              ...Object.entries(execution).map(([key, value]): [string, ComponentChildren] => [key, shown(value)]),
              ...Object.entries(user),
            ];
            return rows.length === 0 ? (
              <Empty>No configuration.</Empty>
            ) : (
              <Table
                class="snug"
                caption="Configuration of the job"
                rows={rows}
                rowKey={([key]) => key}
                columns={[
                  { head: "Setting", cell: ([key]) => key },
                  { head: "Value", cell: ([, value]) => <code>{value}</code> },
                ]}
              />
            );
          }}
        </Loaded>
      </Panel>
      <Panel title="Operators">
        <Table
          caption="Operators of the job"
          rows={view.graph.vertices.flatMap((v) => v.operators.map((o) => ({ v, o })))}
          rowKey={({ v, o }) => `${v.id}/${o.name}/${o.uid}`}
          columns={[
            { head: "Operator", cell: ({ o }) => o.name },
            { head: "Kind", cell: ({ o }) => o.kind },
            { head: "UID", cell: ({ o }) => (o.uid ? <code>{o.uid}</code> : <span class="faint">none</span>) },
            { head: "Parallelism", number: true, cell: ({ v }) => v.parallelism },
            { head: "Vertex", cell: ({ v }) => v.name },
          ]}
        />
      </Panel>
    </>
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
