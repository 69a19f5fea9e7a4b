// The report document that the page shows: schema stoker.report.v1, docs/formats/report.md.

export interface Signal {
  value: number | null;
  why?: string;
}

export interface Distribution {
  count: number;
  mean?: number;
  min?: number;
  p50?: number;
  p90?: number;
  p95?: number;
  p99?: number;
  max?: number;
}

export interface PhaseShare {
  name: string;
  title: string;
  seconds: number;
  percent: number;
}

export interface Finding {
  cause: string;
  says: string;
  evidence: string[];
  confidence: string;
  fix: string;
  fix_line: string;
  gain_points: Signal & { low?: number; high?: number };
  gain_of: string;
}

export interface Verdict {
  binds?: string;
  step_ms?: number | null;
  written_utc?: string;
  findings?: Finding[];
}

export interface Curve {
  name: string;
  unit: string;
  time_s: number[];
  value: number[];
}

export interface Epoch {
  seconds: number;
  steps: number;
  first_batch_ms: number;
  phase_seconds: Record<string, number>;
}

export interface Metrics {
  training_seconds: number;
  phases: PhaseShare[];
  steps: number;
  steady_steps: number;
  step_ms: Distribution;
  loop_step_ms: Signal;
  samples_per_second: Signal;
  data_wait_ms: Distribution;
  first_batch_ms: Distribution;
  epochs: Epoch[];
  checkpoints: { count: number; seconds: number; mb_per_second: Signal };
  cpu_cores: { trainee: Signal; workers: Signal; limit: Signal };
  memory_peak_bytes: Signal;
  memory_limit_bytes: Signal;
  seconds_from_start: Record<string, Signal>;
  lost_events: number;
}

export interface Timeline {
  steps_per_point: number;
  end_s: number[];
  phase_ms: Record<string, number[]>;
  slowest_ms: number[];
  steady: boolean[];
}

export interface Comparison {
  before: { run_id: string; step_ms: number };
  after: { run_id: string; step_ms: number };
  measured_gain_points: number;
  predicted: { points: number | null; low?: number; high?: number; why?: string; written_utc?: string };
  miss_points: number | null;
}

export interface Report {
  stoker_version: string;
  run: {
    run_id: string;
    name?: string;
    command?: string[];
    cwd?: string;
    started_utc?: string;
    seconds: number;
    python?: { version?: string; torch_version?: string };
    machine?: { cpus?: number; cpu_model?: string };
    exception?: { type: string; message: string; traceback: string };
  };
  outcome: { kind: string; says: string };
  verdict: Verdict;
  metrics: Metrics;
  timeline: Timeline;
  epochs: { epoch: number; begin_s: number; end_s: number }[];
  waits: { edges_ms: number[]; counts: number[] };
  curves: Curve[];
  signals: { name: string; available: boolean; why: string | null }[];
  overhead: Signal & { estimate?: boolean; how?: string };
  comparison?: Comparison;
}

/** The document embedded in the page, or nothing when the page is a bare template. */
export function embedded(): Report | null {
  const parsed: unknown = JSON.parse(document.getElementById("report")?.textContent ?? "null");
  return typeof parsed === "object" ? (parsed as Report | null) : null;
}
