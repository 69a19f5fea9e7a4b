// The zoomable charts. Colours are read from the style sheet, so that light and dark follow the system at any time.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { bytes, duration } from "./format";
import type { Curve, Report, Timeline } from "./report";
import { el } from "./dom";

export interface Series {
  label: string;
  colour: string; // a custom property
  values: (number | null)[];
  dash?: number[];
}

const charts: { plot: uPlot; box: HTMLElement; height: number }[] = [];
const cursor = uPlot.sync("time");

function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

function axes(unit: (value: number) => string): uPlot.Axis[] {
  const ink = () => colour("--soft");
  const grid = { stroke: () => colour("--line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  return [
    { stroke: ink, grid, font, ticks: grid, values: (_u, ticks) => ticks.map((t) => (t === 0 ? "0" : shortTime(t))) },
    { stroke: ink, grid, font, ticks: grid, size: 66, values: (_u, ticks) => ticks.map(unit) },
  ];
}

function shortTime(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds * 100) / 100} s`;
  if (seconds < 7200) return `${Math.round(seconds / 6) / 10} min`;
  return `${Math.round(seconds / 360) / 10} h`;
}

/** Shades the epochs' evaluations and draws a line where each epoch begins. */
function epochLines(epochs: Report["epochs"]): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        const shown = epochs.length > 60 ? [] : epochs;
        plot.ctx.save();
        plot.ctx.strokeStyle = colour("--soft");
        plot.ctx.fillStyle = colour("--soft");
        plot.ctx.setLineDash([2, 4]);
        plot.ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        let free = -Infinity;
        for (const one of shown) {
          const x = plot.valToPos(one.begin_s, "x", true);
          if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, plot.bbox.top);
          plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          plot.ctx.stroke();
          const label = `epoch ${one.epoch}`;
          const width = plot.ctx.measureText(label).width;
          if (x < free || x + width > plot.bbox.left + plot.bbox.width) continue;
          plot.ctx.fillText(label, x + 4 * devicePixelRatio, plot.bbox.top + 12 * devicePixelRatio);
          free = x + width + 12 * devicePixelRatio;
        }
        plot.ctx.restore();
      },
    },
  };
}

interface Options {
  title: string;
  times: number[];
  series: Series[];
  unit: (value: number) => string;
  stacked?: boolean;
  height?: number;
  epochs?: Report["epochs"];
  range: [number, number];
}

/** A chart in its figure, with a legend, a line that says what the pointer or the arrow keys are at, and zoom. */
export function chart(options: Options): HTMLElement {
  const height = options.height ?? 220;
  const box = el("div", { class: "chart", role: "img", "aria-label": options.title, tabindex: "0" });
  const says = el("span", { class: "soft", "aria-live": "polite" }, "drag to zoom");
  const reset = el("button", { type: "button", hidden: "" }, "Show all");
  const legend = el(
    "ul",
    { class: "legend" },
    ...options.series.map((one) =>
      el("li", {}, el("span", { class: "swatch", style: `background: var(${one.colour})` }), one.label),
    ),
  );
  const head = el("div", { class: "chart-head" }, el("h3", { class: "hidden" }, options.title), says, reset);
  const figure = el("figure", { style: "margin: 0 0 12px" }, head, box, legend);

  // Stacked: each line is the sum of those up to it, drawn from the top one down, so that every band shows.
  const shown = options.stacked ? stack(options.series) : options.series;
  const reading = (i: number) =>
    options.series
      .map((one) => [one.label, one.values[i]] as const)
      .filter(([, value]) => value !== null && value !== undefined && value !== 0)
      .map(([label, value]) => `${label} ${options.unit(value as number)}`)
      .join(", ");
  const config: uPlot.Options = {
    width: 600,
    height,
    scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.06 : 1] } },
    axes: axes(options.unit),
    cursor: { sync: { key: cursor.key }, drag: { x: true, y: false }, y: false, points: { show: false } },
    series: [
      {},
      ...shown.map((one) => ({
        label: one.label,
        stroke: () => colour(one.colour),
        width: options.stacked ? 0 : 1.8,
        dash: one.dash,
        fill: options.stacked ? () => colour(one.colour) : undefined,
        paths: options.stacked && uPlot.paths.stepped ? uPlot.paths.stepped({ align: -1 }) : undefined,
        points: { show: false },
        spanGaps: true,
      })),
    ],
    legend: { show: false },
    plugins: options.epochs ? [epochLines(options.epochs)] : [],
    hooks: {
      setCursor: [
        (plot) => {
          const i = plot.cursor.idx;
          if (i !== null && i !== undefined) says.textContent = `at ${shortTime(options.times[i] ?? 0)}: ${reading(i)}`;
        },
      ],
      setScale: [
        (plot, key) => {
          if (key !== "x" || plot.scales.x?.min === undefined) return;
          reset.hidden = (plot.scales.x.min ?? 0) <= options.range[0] && (plot.scales.x.max ?? 0) >= options.range[1];
        },
      ],
    },
  };
  config.scales!.x!.range = (_u, min, max) => (min === max ? options.range : [min, max]);
  const data = [options.times, ...shown.map((one) => one.values)] as uPlot.AlignedData;
  const plot = new uPlot(config, data, box);
  const showAll = () => plot.setScale("x", { min: options.range[0], max: options.range[1] });
  showAll();
  reset.addEventListener("click", showAll);
  box.addEventListener("keydown", (event) => onKey(event, plot, options.range, showAll));
  charts.push({ plot, box, height });
  return figure;
}

/** Arrows move, plus and minus zoom, 0 shows all. */
function onKey(event: KeyboardEvent, plot: uPlot, range: [number, number], showAll: () => void): void {
  const min = plot.scales.x?.min ?? range[0];
  const max = plot.scales.x?.max ?? range[1];
  const width = max - min;
  const go = (from: number, to: number) =>
    plot.setScale("x", { min: Math.max(range[0], from), max: Math.min(range[1], to) });
  if (event.key === "+" || event.key === "=") go(min + width / 4, max - width / 4);
  else if (event.key === "-") go(min - width / 2, max + width / 2);
  else if (event.key === "ArrowLeft") go(min - width / 4, Math.max(min - width / 4, range[0]) + width);
  else if (event.key === "ArrowRight") go(Math.min(max + width / 4, range[1]) - width, max + width / 4);
  else if (event.key === "0") showAll();
  else return;
  event.preventDefault();
}

function stack(series: Series[]): Series[] {
  const sums: Series[] = [];
  let below: (number | null)[] = [];
  for (const one of series) {
    below = one.values.map((value, i) => (value ?? 0) + (below[i] ?? 0));
    sums.push({ ...one, values: below });
  }
  return sums.reverse();
}

/** Fits all charts to their boxes, and again whenever these or the colour scheme change. */
export function keepFitting(): void {
  const fit = () => {
    for (const { plot, box, height } of charts) {
      if (box.clientWidth > 0) plot.setSize({ width: box.clientWidth, height });
    }
  };
  new ResizeObserver(fit).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((c) => c.plot.redraw()));
  fit();
}

export function stepChart(timeline: Timeline, titles: [string, string][], report: Report): HTMLElement {
  const series = titles
    .map(([name, title]) => ({ label: title, colour: `--${name}`, values: timeline.phase_ms[name] ?? [] }))
    .filter((one) => one.values.some((ms) => ms > 0))
    .map((one) => ({ ...one, values: [one.values[0] ?? 0, ...one.values] }));
  // A bar reaches back to the point before it; the first one needs a point to reach back to.
  const firstMs = series.reduce((sum, one) => sum + (one.values[0] ?? 0), 0);
  const begin = Math.max(0, (timeline.end_s[0] ?? 0) - (firstMs * timeline.steps_per_point) / 1e3);
  return chart({
    title: "Duration of each step by phase",
    times: [begin, ...timeline.end_s],
    series,
    unit: (ms) => duration(ms / 1e3),
    stacked: true,
    height: 260,
    epochs: report.epochs,
    range: [0, report.run.seconds],
  });
}

/** Several of the recorder's curves in one chart, laid on one time axis. */
export function curveChart(title: string, wanted: [string, string, string, number[]?][], report: Report): HTMLElement | null {
  const found = wanted
    .map(([name, label, property, dash]) => ({ curve: report.curves.find((one) => one.name === name), label, property, dash }))
    .filter((one): one is typeof one & { curve: Curve } => one.curve !== undefined);
  if (found.length === 0) return null;
  const times = [...new Set(found.flatMap((one) => one.curve.time_s))].sort((a, b) => a - b);
  const series = found.map(({ curve, label, property, dash }) => {
    const at = new Map(curve.time_s.map((time, i) => [time, curve.value[i] ?? null]));
    return { label, colour: property, dash, values: times.map((time) => at.get(time) ?? null) };
  });
  const unit = found[0]!.curve.unit === "bytes" ? bytes : (value: number) => String(Math.round(value * 100) / 100);
  return chart({ title, times, series, unit, height: 180, range: [0, report.run.seconds] });
}

