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
}

const COLOURS = ['#1a7f64', '#b3541e', '#3d5a98', '#8a94a0', '#7a3e8e'];
const WIDTH = 640;
const HEIGHT = 320;
const FRAME = { left: 70, right: 20, top: 40, bottom: 70 };

/** Lines over a common axis, each in its colour with its name below. */
export function lines({ title, x, y }: Axes, all: readonly Series[]): string {
  const points = all.flatMap((series) => series.points);
  const [low, high] = [Math.min(...points.map(([at]) => at)), Math.max(...points.map(([at]) => at))];
  const most = ceiling(Math.max(...points.map(([, value]) => value)));
  const across = (at: number) => FRAME.left + ((at - low) / (high - low || 1)) * (WIDTH - FRAME.left - FRAME.right);
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
  const ticks = Array.from({ length: 7 }, (_, index) => low + (index * (high - low)) / 6).map(
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
