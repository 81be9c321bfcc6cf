/** A line of a plot. */
export interface Series {
  readonly name: string;
  /** In the order of x. */
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** What a plot says beside its lines. */
export interface Axes {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  /** Decades on the axis instead of steps. */
  readonly logarithmic?: boolean;
}

const COLOURS = ['#1a7f64', '#b3541e', '#3d5a98', '#8a94a0', '#7a3e8e'];
const WIDTH = 640;
const HEIGHT = 320;
const FRAME = { left: 70, right: 20, top: 40, bottom: 70 };

/** Bars beside each other, the first one in the project's colour: short names, their values behind them. */
export function bars(title: string, values: readonly (readonly [name: string, value: number])[]): string {
  const most = Math.max(...values.map(([, value]) => value));
  const drawn = values.map(([name, value], index) => {
    const y = 40 + 34 * index;
    const width = Math.max(1, (380 * value) / most).toFixed(1);
    return `  <text x="150" y="${y + 16}" text-anchor="end">${escaped(name)}</text>
  <rect x="160" y="${y}" width="${width}" height="22" fill="${index === 0 ? COLOURS[0] : COLOURS[3]}"/>
  <text x="${168 + Number(width)}" y="${y + 16}">${told(value)}</text>`;
  });
  return svg(50 + 34 * values.length, title, drawn);
}

/** Lines over a common axis, each in its colour with its name below. */
export function lines({ title, x, y, logarithmic = false }: Axes, all: readonly Series[]): string {
  const points = all.flatMap((series) => series.points);
  const place = (value: number) => (logarithmic ? Math.log10(value) : value);
  const [low, high] = [Math.min(...points.map(([at]) => place(at))), Math.max(...points.map(([at]) => place(at)))];
  const most = ceiling(Math.max(...points.map(([, value]) => value)));
  const across = (at: number) =>
    FRAME.left + ((place(at) - low) / (high - low || 1)) * (WIDTH - FRAME.left - FRAME.right);
  const up = (value: number) => HEIGHT - FRAME.bottom - (value / most) * (HEIGHT - FRAME.top - FRAME.bottom);
  const drawn = all.map(({ points: own }, index) => {
    const path = own.map(([at, value]) => `${across(at).toFixed(1)},${up(value).toFixed(1)}`).join(' ');
    return `  <polyline points="${path}" fill="none" stroke="${COLOURS[index % COLOURS.length]}" stroke-width="2"/>`;
  });
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = up(share * most);
    return `  <line x1="${FRAME.left}" x2="${WIDTH - FRAME.right}" y1="${at}" y2="${at}" stroke="#ddd"/>
  <text x="${FRAME.left - 8}" y="${at + 4}" text-anchor="end" font-size="12">${told(share * most)}</text>`;
  });
  const ticks = ticksOf(
    points.map(([at]) => at),
    logarithmic,
  ).map(
    (at) =>
      `  <text x="${across(at).toFixed(1)}" y="${HEIGHT - FRAME.bottom + 18}" text-anchor="middle" font-size="12">${told(at)}</text>`,
  );
  const names = all.map(({ name }, index) => {
    const left = FRAME.left + (index * (WIDTH - FRAME.left - FRAME.right)) / all.length;
    return `  <rect x="${left}" y="${HEIGHT - 24}" width="12" height="12" fill="${COLOURS[index % COLOURS.length]}"/>
  <text x="${left + 18}" y="${HEIGHT - 13}" font-size="12">${escaped(name)}</text>`;
  });
  const labels = `  <text x="${(WIDTH + FRAME.left - FRAME.right) / 2}" y="${HEIGHT - 34}" text-anchor="middle" font-size="12">${escaped(x)}</text>
  <text transform="translate(16 ${(HEIGHT - FRAME.bottom + FRAME.top) / 2}) rotate(-90)" text-anchor="middle" font-size="12">${escaped(y)}</text>`;
  return svg(HEIGHT, title, [...marks, ...ticks, labels, ...drawn, ...names]);
}

function ticksOf(values: readonly number[], logarithmic: boolean): number[] {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  if (logarithmic && distinct.length <= 8) return distinct;
  const [first = 0, last = 0] = [distinct.at(0), distinct.at(-1)];
  return Array.from({ length: 7 }, (_, index) => first + (index * (last - first)) / 6);
}

/** The next round number: 1, 2, 2.5 or 5 times a power of ten. */
function ceiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10);
}

function told(value: number): string {
  if (value === 0) return '0';
  const text = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
  return Number(text).toLocaleString('en');
}

function svg(height: number, title: string, drawn: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="14">
  <rect width="${WIDTH}" height="${height}" fill="#fff"/>
  <text x="20" y="24" font-weight="bold">${escaped(title)}</text>
${drawn.join('\n')}
</svg>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
