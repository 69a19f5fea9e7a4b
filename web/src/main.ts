// The report page: one column of sections, each with its figures in words or a table beside any chart.
import "./style.css";

import { curveChart, keepFitting, stepChart } from "./charts";
import { asTable, el, section, table } from "./dom";
import { bytes, count, duration, signal } from "./format";
import { embedded, type Finding, type Report } from "./report";

function header(report: Report): HTMLElement {
  const { run, metrics } = report;
  const fact = (title: string, one: { value: number | null; why?: string }, say: (value: number) => string) => [
    el("div", {}, el("dt", {}, title), el("dd", one.value === null ? { class: "missing" } : {}, signal(one, say))),
  ];
  const well = report.outcome.kind === "finished" || report.outcome.kind === "running";
  document.title = `${run.run_id} · Stoker`;
  return el(
    "header",
    {},
    el("div", { class: "brand" }, "Stoker report"),
    el("h1", {}, run.run_id),
    el("code", { class: "command" }, (run.command ?? []).join(" ")),
    el("p", { class: well ? "outcome" : "outcome bad" }, `The run ${report.outcome.says}.`),
    el(
      "dl",
      { class: "facts" },
      ...fact("step", metrics.loop_step_ms, (ms) => duration(ms / 1e3)),
      ...fact("samples a second", metrics.samples_per_second, (rate) => count(rate)),
      ...fact("steps", { value: metrics.steps }, (n) => `${count(n)} in ${metrics.epochs.length} epochs`),
      ...fact("to the first batch", metrics.seconds_from_start["first_batch"] ?? { value: null }, duration),
      ...fact("memory at most", metrics.memory_peak_bytes, bytes),
      ...fact("recorder overhead", report.overhead, (share) => `${(100 * share).toFixed(2)} %${report.overhead.estimate ? " (estimate)" : ""}`),
    ),
    run.exception &&
      el("details", {}, el("summary", {}, `${run.exception.type}: ${run.exception.message}`), el("pre", {}, run.exception.traceback)),
  );
}

function copyButton(text: string): HTMLElement {
  const button = el("button", { type: "button", "aria-label": "Copy the line" }, "Copy");
  button.addEventListener("click", () => {
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1600);
    };
    // A page opened from a file has no clipboard in some browsers: then the line is selected instead.
    navigator.clipboard?.writeText(text).then(done, () => select(button));
  });
  return button;
}

function select(button: HTMLElement): void {
  const line = button.parentElement?.querySelector("pre");
  if (line) getSelection()?.selectAllChildren(line);
}

function gain(finding: Finding, stepMs: number | null | undefined): HTMLElement {
  const { value, low, high, why } = finding.gain_points;
  if (value === null) return el("div", { class: "gain" }, el("span", { class: "soft" }, "Gain not predicted"), el("div", {}, why ?? ""));
  const after = stepMs && finding.gain_of === "step time" ? stepMs * (1 - value / 100) : null;
  return el(
    "div",
    { class: "gain" },
    el("span", { class: "soft" }, "Predicted gain"),
    el("strong", {}, `${value.toFixed(0)} %`),
    el("div", {}, `of ${finding.gain_of}, between ${(low ?? 0).toFixed(0)} and ${(high ?? 0).toFixed(0)}`),
    after !== null && el("div", {}, `a step of ${duration((stepMs ?? 0) / 1e3)} becomes ${duration(after / 1e3)}`),
  );
}

function fixLine(finding: Finding): HTMLElement | false {
  if (!finding.fix_line) return false;
  return el("div", { class: "fix" }, el("pre", { tabindex: "0" }, el("code", {}, finding.fix_line)), copyButton(finding.fix_line));
}

function verdict(report: Report): HTMLElement {
  const findings = report.verdict.findings ?? [];
  const first = findings[0];
  if (!first) return section("verdict", "Verdict", el("p", {}, "No verdict was reached."));
  const others = findings.slice(1).map((one) =>
    el(
      "details",
      {},
      el("summary", {}, `Also ${one.cause}: ${one.says}`),
      el("ul", { class: "evidence" }, ...one.evidence.map((line) => el("li", {}, line))),
      el("p", {}, `${one.fix}.`),
      fixLine(one),
      el("p", {}, one.gain_points.value === null ? "" : `Predicted gain: ${one.gain_points.value.toFixed(0)} % of ${one.gain_of}.`),
    ),
  );
  return section(
    "verdict",
    `Verdict: ${first.cause.replaceAll("-", " ")}`,
    el(
      "div",
      { class: "split" },
      el(
        "div",
        {},
        el("p", { class: "says" }, `${first.says}.`),
        el("ul", { class: "evidence" }, ...first.evidence.map((line) => el("li", {}, line))),
        el("p", { class: "soft" }, `Confidence: ${first.confidence}.`),
      ),
      gain(first, report.verdict.step_ms),
    ),
    el("h3", {}, "The fix"),
    el("p", {}, `${first.fix}.`),
    fixLine(first),
    ...others,
  );
}

function comparison(report: Report): HTMLElement | false {
  const c = report.comparison;
  if (!c) return false;
  const points = (value: number | null | undefined) => (value === null || value === undefined ? "none" : `${value.toFixed(0)} %`);
  return section(
    "comparison",
    "Did the fix keep its promise?",
    table("Before and after", ["", "before", "after"], [
      ["run", c.before.run_id, c.after.run_id],
      ["step", duration(c.before.step_ms / 1e3), duration(c.after.step_ms / 1e3)],
    ]),
    el("p", {}, `Measured gain ${points(c.measured_gain_points)} of the step time, predicted ${points(c.predicted.points)}` +
        (c.miss_points === null ? "." : `; the miss is ${c.miss_points.toFixed(0)} points.`)),
  );
}

function phases(report: Report): HTMLElement {
  const shown = report.metrics.phases.filter((one) => one.percent > 0);
  if (shown.length === 0) return section("phases", "Where the time went", el("p", {}, "Nothing trained."));
  const swatch = (name: string) => el("span", { class: "swatch", style: `background: var(--${name})` });
  return section(
    "phases",
    `Where ${duration(report.metrics.training_seconds)} of training went`,
    el(
      "div",
      { class: "bar", "aria-hidden": "true" },
      ...shown.map((one) =>
        el(
          "span",
          { style: `flex: ${one.percent} 1 0; background: var(--${one.name})`, title: `${one.title} ${one.percent} %` },
          one.percent >= 7 ? `${one.percent.toFixed(0)} %` : "",
        ),
      ),
    ),
    table("Phase shares", ["phase", "share", "time"], [
      ...shown.map((one) => [label(swatch(one.name), one.title), `${one.percent.toFixed(1)} %`, duration(one.seconds)]),
      ["together", `${shown.reduce((sum, one) => sum + one.percent, 0).toFixed(1)} %`, duration(report.metrics.training_seconds)],
    ]),
  );
}

function label(swatch: HTMLElement, text: string): HTMLElement {
  return el("span", {}, swatch, text);
}

function timeline(report: Report): HTMLElement {
  const { metrics, timeline: line } = report;
  if (line.end_s.length === 0) return section("timeline", "Steps", el("p", {}, "No optimizer step was seen."));
  const titles = metrics.phases.map((one) => [one.name, one.title] as [string, string]);
  const group = line.steps_per_point > 1 ? ` Each point is the mean of ${line.steps_per_point} steps.` : "";
  return section(
    "timeline",
    "Steps over time",
    el("p", { class: "soft" }, `Each bar is a step, by phase. Zoom by dragging, or with + and −, arrows and 0 when the chart has the focus.${group}`),
    stepChart(line, titles, report),
    asTable("Epochs as a table", ["epoch", "time", "steps", "first batch", "wait", "evaluation", "checkpoint"],
      metrics.epochs.slice(0, 200).map((one, i) => [
        String(i + 1),
        duration(one.seconds),
        count(one.steps),
        duration(one.first_batch_ms / 1e3),
        duration(one.phase_seconds["wait"] ?? 0),
        duration(one.phase_seconds["evaluation"] ?? 0),
        duration(one.phase_seconds["checkpoint"] ?? 0),
      ])),
  );
}

function waits(report: Report): HTMLElement {
  const { data_wait_ms: wait, first_batch_ms: first } = report.metrics;
  const { edges_ms: edges, counts } = report.waits;
  if (wait.count === 0) return section("waits", "Waiting for data", el("p", {}, "No wait for a batch was recorded."));
  const most = Math.max(...counts);
  const from = Math.max(0, counts.findIndex((n) => n > 0));
  const bars = counts.slice(from);
  const range = (i: number) => `${duration((edges[i] ?? 0) / 1e3)} to ${duration((edges[i + 1] ?? 0) / 1e3)}`;
  const ms = (value: number | undefined) => duration((value ?? 0) / 1e3);
  return section(
    "waits",
    "Waiting for data",
    el("p", { class: "soft" }, `${count(wait.count)} waits within epochs, by length; the first batch of an epoch takes ${ms(first.p50)}.`),
    el(
      "div",
      { class: "hist", role: "img", "aria-label": "Histogram of waits" },
      ...bars.map((n, i) => el("span", { style: `height: ${n === 0 ? 0 : Math.max(2, (100 * n) / most)}%`, title: `${range(from + i)}: ${n}` })),
    ),
    el("div", { class: "hist-axis" }, el("span", {}, ms(edges[from])), el("span", {}, ms(edges[edges.length - 1]))),
    table("Percentiles of the wait", ["", "p50", "p90", "p95", "p99", "most"], [
      ["wait", ms(wait.p50), ms(wait.p90), ms(wait.p95), ms(wait.p99), ms(wait.max)],
    ]),
    asTable("Histogram as a table", ["length", "waits"], bars.map((n, i) => [range(from + i), count(n)])),
  );
}

function machine(report: Report): HTMLElement {
  const { cpu_cores: cpu, memory_peak_bytes: peak, memory_limit_bytes: limit } = report.metrics;
  const cores = (value: number) => value.toFixed(2);
  const unit = cpu.limit.value === null ? "" : ` of ${Math.round(cpu.limit.value * 100) / 100}`;
  return section(
    "machine",
    "CPU and memory",
    el("h3", {}, `Cores in use${unit}`),
    curveChart("Cores in use over time", [
      ["cpu.trainee", "training process", "--forward"],
      ["cpu.workers", "its workers", "--wait"],
      ["cpu.limit", "limit", "--soft", [6, 4]],
    ], report) ?? el("p", {}, signal(cpu.trainee, cores)),
    el("h3", {}, "Memory"),
    curveChart("Memory over time", [
      ["memory.used", "in use", "--evaluation"],
      ["memory.trainee", "training process", "--forward"],
      ["memory.workers", "its workers", "--wait"],
      ["memory.limit", "limit", "--soft", [6, 4]],
    ], report) ?? el("p", {}, signal(peak, bytes)),
    table("CPU and memory while training", ["figure", "value"], [
      ["training process, cores", signal(cpu.trainee, cores)],
      ["its workers, cores", signal(cpu.workers, cores)],
      ["limit, cores", signal(cpu.limit, (value) => String(value))],
      ["memory at most", signal(peak, bytes)],
      ["memory limit", signal(limit, bytes)],
    ]),
  );
}

function signals(report: Report): HTMLElement {
  const list = table("Signals", ["signal", "state"], report.signals.map((one) => [
    one.name,
    one.available ? el("span", { class: "tick" }, "recorded") : `unavailable: ${one.why ?? ""}`,
  ]));
  list.classList.add("words");
  return section("signals", "What was recorded, and what was not", list);
}

function footer(report: Report): HTMLElement {
  const { run } = report;
  const python = run.python?.version ? `Python ${run.python.version}` : "";
  const torch = run.python?.torch_version ? `torch ${run.python.torch_version}` : "";
  const parts = [`Stoker ${report.stoker_version}`, python, torch, run.machine?.cpu_model ?? "", run.started_utc ?? ""];
  return el("footer", {}, parts.filter((part) => part !== "").join(" · "));
}

function show(page: HTMLElement): void {
  const report = embedded();
  if (!report) {
    page.append(el("header", {}, el("h1", {}, "Stoker report"), el("p", {}, "This page holds no report yet.")));
    return;
  }
  const parts = [header, verdict, comparison, phases, timeline, waits, machine, signals, footer];
  for (const part of parts) {
    const made = part(report);
    if (made) page.append(made);
  }
  keepFitting();
}

show(document.getElementById("page") as HTMLElement);
