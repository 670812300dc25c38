// Why nothing comes out, and what to do about it.

import { useState } from "preact/hooks";
import { useResource } from "../api/live";
import type { Finding, PlanWarning, Why } from "../api/types";
import { numberText } from "../model/format";
import { healthy } from "../model/path";
import { Empty, Facts, Loaded, Panel, Pill } from "../ui/parts";
import type { JobView } from "./job";

export function WhyPage(view: JobView) {
  const why = useResource<Why>(`/lowwater/jobs/${view.jid}/why`, 2);
  return (
    <>
      <Loaded of={why} absent={"This server does not diagnose jobs. The line above says which watermark is the smallest."}>
        {(data) => (
          <>
            {view.path?.stuck && healthy(data) && (
              <p class="panel ahead-of">
                The diagnosis compares with a minute ago, so it takes until then to tell this pause from a stall. What the line above says is true now.
              </p>
            )}
            {data.findings.length === 0 && <Empty>The server has found nothing yet.</Empty>}
            {data.findings.map((f, i) => (
              <FindingPanel key={`${f.code}/${i}`} finding={f} now={data.at_ms} />
            ))}
            {data.could_not_see && data.could_not_see.length > 0 && (
              <Panel title="What could not be seen">
                <ul class="plain">
                  {data.could_not_see.map((b) => (
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

type Fix = NonNullable<Finding["fixes"]>[number];

function severityTone(severity: string): string {
  return { stall: "held", slow: "held", warning: "held", loss: "bad", "wrong-result": "bad", error: "bad" }[severity] ?? "calm";
}

function FindingPanel(props: { finding: Finding; now: number }) {
  const { finding } = props;
  const { why = [], numbers = {}, fixes = [], ruled_out: ruledOut = [], unless = [] } = finding;
  return (
    <Panel
      title={finding.answer}
      class={`finding ${severityTone(finding.severity)}`}
      aside={
        finding.code !== "none" && (
          <>
            {finding.severity !== "none" && <Pill tone={severityTone(finding.severity)}>{finding.severity}</Pill>} <code>{finding.code}</code>
            {finding.likely && <span class="faint"> likely</span>}
          </>
        )
      }
    >
      {why.map((sentence) => (
        <p key={sentence} class="because">
          {sentence}
        </p>
      ))}
      {Object.keys(numbers).length > 0 && <Facts facts={Object.entries(numbers).map(([name, value]) => numberText(name, value, props.now))} />}
      {fixes.length > 0 && (
        <>
          <h3>What helps</h3>
          {fixes.map((fix, i) => (
            <FixView key={`${fix.code}/${i}`} fix={fix} />
          ))}
        </>
      )}
      <Causes title="It could also be" causes={unless.map((u) => [u.code, u.needs])} />
      <Causes title="Ruled out" causes={ruledOut.map((r) => [r.code, r.because])} />
    </Panel>
  );
}

function Causes(props: { title: string; causes: [code: string, text: string][] }) {
  if (props.causes.length === 0) {
    return null;
  }
  return (
    <details>
      <summary>
        {props.title} ({props.causes.length})
      </summary>
      <ul class="plain">
        {props.causes.map(([code, text]) => (
          <li key={code}>
            <strong>{code.replaceAll("-", " ")}</strong>: {text}
          </li>
        ))}
      </ul>
    </details>
  );
}

function FixView(props: { fix: Fix }) {
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
      <p class="fix-do">{fix.do}</p>
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
      {fix.costs && (
        <p>
          <strong>The price:</strong> {fix.costs}
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
            <Pill tone={severityTone(w.severity)}>{w.severity || "warning"}</Pill> <strong>{w.code}</strong> {w.operator}: {w.message}{" "}
            {w.where && <code>{w.where}</code>}
            {w.fixes.length > 0 && (
              <ul>
                {w.fixes.map((fix, j) => (
                  <li key={j}>{fix}</li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
