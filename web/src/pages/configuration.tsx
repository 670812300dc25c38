// What the job was started with.

import { useResource } from "../api/live";
import type { Setting } from "../api/types";
import { Loaded, Panel, Table } from "../ui/parts";
import type { JobView } from "./job";

export function ConfigurationPage(view: JobView) {
  const config = useResource<Setting[]>(`/jobs/${view.jid}/jobmanager/config`, Infinity);
  return (
    <>
      <Panel title="Configuration">
        <Loaded of={config} absent="The server does not offer the configuration.">
          {(data) => (
            <Table
              class="snug"
              caption="Configuration of the job"
              empty="No configuration."
              rows={data}
              rowKey={({ key }) => key}
              columns={[
                { head: "Setting", cell: ({ key }) => key },
                { head: "Value", cell: ({ value }) => <code>{value}</code> },
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Operators">
        <Table
          caption="Operators of the job"
          rows={view.graph.vertices.flatMap((v) => v.operators.map((o, place) => ({ v, o, place })))}
          rowKey={({ v, place }) => `${v.id}/${place}`}
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
