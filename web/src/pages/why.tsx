// Why nothing comes out, and what to do about it.

import { useState } from "preact/hooks";
import { useResource } from "../api/live";
import type { Finding, PlanWarning, Why } from "../api/types";
import { Empty, Loaded, Panel, Pill } from "../ui/parts";
import type { JobView } from "./job";

export function WhyPage(view: JobView) {
  const why = useResource<Why>(`/lowwater/jobs/${view.jid}/why`, 2);
  return (
    <>
      <Loaded of={why} absent={"This server does not diagnose jobs. The line above says which watermark is the smallest."}>
        {(data) => (
          <>
            {data.findings.length === 0 ? (
              <Panel title="Diagnosis">
                <Empty>{data.text || "Nothing is wrong with the job's progress."}</Empty>
              </Panel>
            ) : (
              data.findings.map((f, i) => <FindingPanel key={`${f.code}/${i}`} finding={f} />)
            )}
            {data.blind.length > 0 && (
              <Panel title="What could not be seen">
                <ul class="plain">
                  {data.blind.map((b) => (
                    <li key={b}>{b}</li>
                  ))}
                </ul>
              </Panel>
            )}
          </>
        )}
      </Loaded>
      {view.warnings.length > 0 && <Warnings warnings={view.warnings} />}
    </>
  );
}

function severityTone(severity: string): string {
  return { stall: "held", slow: "held", warning: "held", loss: "bad", "wrong-result": "bad", error: "bad" }[severity] ?? "calm";
}

function FindingPanel(props: { finding: Finding }) {
  const { finding } = props;
  return (
    <Panel
      title={finding.answer}
      class={`finding ${severityTone(finding.severity)}`}
      aside={
        <>
          <Pill tone={severityTone(finding.severity)}>{finding.severity}</Pill> <code>{finding.code}</code>
        </>
      }
    >
      {finding.numbers.length > 0 && (
        <dl class="facts">
          {finding.numbers.map((n) => (
            <div key={n.name}>
              <dt>{n.name}</dt>
              <dd>
                {n.value} {n.unit}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {finding.fixes.length > 0 && (
        <>
          <h3>What helps</h3>
          {finding.fixes.map((fix, i) => (
            <FixView key={`${fix.code}/${i}`} fix={fix} />
          ))}
        </>
      )}
      {finding.ruledOut.length > 0 && (
        <details>
          <summary>Ruled out</summary>
          <ul class="plain">
            {finding.ruledOut.map((r) => (
              <li key={r}>{r}</li>
            ))}
          </ul>
        </details>
      )}
    </Panel>
  );
}

function FixView(props: { fix: Finding["fixes"][number] }) {
  const { fix } = props;
  const languages = (
    [
      ["Go", fix.go],
      ["Java", fix.java],
      ["SQL", fix.sql],
    ] as const
  ).filter(([, code]) => code);
  const [chosen, setChosen] = useState(0);
  const [copied, setCopied] = useState(false);
  const code = languages[Math.min(chosen, languages.length - 1)]?.[1];
  return (
    <div class="fix">
      <p class="fix-do">{fix.do || fix.code.replaceAll("-", " ")}</p>
      {languages.length > 1 && (
        <div class="segments" role="group" aria-label="Language">
          {languages.map(([name], i) => (
            <button key={name} type="button" aria-pressed={i === chosen} onClick={() => setChosen(i)}>
              {name}
            </button>
          ))}
        </div>
      )}
      {code && (
        <div class="code">
          <pre tabIndex={0}>{code}</pre>
          <button
            type="button"
            onClick={() => {
              void navigator.clipboard?.writeText(code).then(() => {
                setCopied(true);
                setTimeout(() => setCopied(false), 2000);
              });
            }}
          >
            {copied ? "Copied" : "Copy"}
          </button>
        </div>
      )}
      {fix.tradeoff && (
        <p>
          <strong>The price:</strong> {fix.tradeoff}
        </p>
      )}
    </div>
  );
}

function Warnings(props: { warnings: PlanWarning[] }) {
  return (
    <Panel title="Warnings of the plan">
      <ul class="plain">
        {props.warnings.map((w, i) => (
          <li key={`${w.code}/${i}`}>
            <Pill tone={severityTone(w.severity)}>{w.severity || "warning"}</Pill> {w.where && <strong>{w.where}: </strong>}
            {w.text} <code>{w.code}</code>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
