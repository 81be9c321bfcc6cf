import { request } from 'undici';

/** The metrics of a hub. */
export interface ScrapedMetrics {
  readonly text: string;
  /** The value of the only series with these labels; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** The metrics that were exposed, with their types and, if they have series, their labels. */
  readonly families: ReadonlyMap<string, { readonly type: string; readonly labels: ReadonlySet<string> }>;
}

/** Reads the metrics at this port of 127.0.0.1. */
export async function scrapeMetrics(port: number | undefined): Promise<ScrapedMetrics> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/metrics`);
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`HTTP ${statusCode}: ${text}`);
  return parse(text);
}

function parse(text: string): ScrapedMetrics {
  const values = new Map<string, number>();
  const families = new Map<string, { type: string; labels: Set<string> }>();
  for (const line of text.split('\n')) {
    const [, family, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (family !== undefined) families.set(family, { type: type ?? '', labels: new Set() });
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const pairs = [...labels.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, key = '', of = '']) => [key, of] as const);
    values.set(series(name, Object.fromEntries(pairs)), Number(value));
    const known = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
    if (known === undefined) throw new Error(`a series of no family: ${line}`);
    for (const [key] of pairs) if (key !== 'le') known.labels.add(key);
  }
  return { text, families, value: (name, labels = {}) => values.get(series(name, labels)) };
}

function series(name: string, labels: Readonly<Record<string, string>>): string {
  return `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
}
