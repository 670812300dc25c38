// The list of jobs, each with what holds its watermark.

import { useResource } from "../api/live";
import type { Graph, JobOverview, JobsOverview, Splits, Why } from "../api/types";
import { clock, duration } from "../model/format";
import { answer, finalState } from "../model/path";
import { jobHref } from "../router";
import { Loaded, StatePill } from "../ui/parts";

export function JobsPage() {
  const jobs = useResource<JobsOverview>("/jobs/overview");
  return (
    <>
      <h1>Jobs</h1>
      <Loaded of={jobs} absent="The server has no list of jobs.">
        {(data) =>
          data.jobs.length === 0 ? (
            <p class="empty">No job has been started here.</p>
          ) : (
            <ul class="jobs">
              {sorted(data.jobs).map((job) => (
                <Job key={job.jid} job={job} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </>
  );
}

/** sorted returns running jobs first, then the latest. */
function sorted(jobs: JobOverview[]): JobOverview[] {
  return jobs.toSorted((a, b) => Number(finalState(a.state)) - Number(finalState(b.state)) || b["start-time"] - a["start-time"]);
}

function Job(props: { job: JobOverview }) {
  const { job } = props;
  const over = finalState(job.state);
  const graph = useResource<Graph>(over ? null : `/lowwater/jobs/${job.jid}/graph`, 2);
  const why = useResource<Why>(over ? null : `/lowwater/jobs/${job.jid}/why`, 5);
  const splits = useResource<Splits>(over ? null : `/lowwater/jobs/${job.jid}/splits`, 5);
  const said = graph.data && answer(graph.data, why.data, splits.data?.splits ?? []);
  const now = graph.data?.now ?? Date.now();
  return (
    <li class={`job ${said?.tone ?? (job.state === "FAILED" ? "failed" : "ended")}`}>
      <div class="job-head">
        <a href={jobHref(job.jid)}>{job.name}</a>
        <StatePill state={job.state} />
        <span class="faint">{over ? "ran for" : "for"} {duration(job.duration)}</span>
      </div>
      {said && <p class="job-answer">{said.text}</p>}
      <p class="faint job-more">
        started {clock(job["start-time"], now)}
        {over && job["end-time"] > 0 && <> · ended {clock(job["end-time"], now)}</>}
        {job.tasks?.["total"] !== undefined && <> · {job.tasks["total"]} subtasks</>} · <code>{job.jid}</code>
      </p>
    </li>
  );
}
