// The job at a glance: the graph, the chosen vertex, the chart, the splits.

import { GraphView } from "../ui/graph";
import { Panel } from "../ui/parts";
import { over } from "../model/path";
import { SplitTable } from "../ui/splittable";
import { StateTable } from "../ui/statetable";
import { SubtaskTable } from "../ui/subtasktable";
import { WatermarkPanel } from "../ui/watermarkpanel";
import { jobHref } from "../router";
import type { JobView } from "./job";

/** More splits than these are left to their own page. */
const maxSplits = 12;

export function OverviewPage(view: JobView) {
  const { graph, splits, path, jid } = view;
  const chosen = graph.vertices.find((v) => v.id === view.vertex);
  return (
    <>
      <GraphView view={view} />
      {chosen && (
        <Panel title={`Subtasks of ${chosen.name}`} aside={<a href={jobHref(jid)}>Close</a>}>
          <SubtaskTable graph={graph} vertex={chosen} path={path} splits={splits.splits} />
          <StateTable vertex={chosen} />
        </Panel>
      )}
      <WatermarkPanel view={view} height={240} />
      {splits.splits.length > 0 && (
        <Panel title="Splits" aside={splits.splits.length > maxSplits && <a href={jobHref(jid, "splits")}>All {splits.splits.length}</a>}>
          <SplitTable splits={splits} path={path} ended={over(graph.state)} most={maxSplits} />
        </Panel>
      )}
    </>
  );
}
