// Figures as people read them; the same words and digits as the terminal report.

function threeDigits(value: number): string {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

export function duration(seconds: number): string {
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 999.5e-6) return `${threeDigits(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${threeDigits(seconds * 1e3)} ms`;
  if (seconds < 99.95) return `${threeDigits(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  return unit === 0 ? `${value} B` : `${threeDigits(value)} ${units[unit]}`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** The value in words, or why there is none. */
export function signal(one: { value: number | null; why?: string }, say: (value: number) => string): string {
  return one.value === null ? `unavailable: ${one.why ?? "not read"}` : say(one.value);
}
