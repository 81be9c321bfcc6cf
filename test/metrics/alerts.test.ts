import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HUB_FIELDS } from '../../src/core/administration.ts';
import { APPLIANCE_FIELDS } from '../../src/core/appliances/appliance-status.ts';
import { CONNECTION_FIELDS } from '../../src/core/connections/connection-status.ts';
import { FAMILIES, fieldFamilies, type MetricFamily } from '../../src/metrics/metric-families.ts';
import { root } from '../project/checkout.ts';
import { scrapeHub } from './scraped-hub.ts';

const RULES = join(root, 'docs/alerts.yml');
const PAGE = join(root, 'docs/metrics.md');
const TABLE = /^\| metric \|.*?\n(?!\|)/ms;

const documented: readonly MetricFamily[] = [
  ...Object.values(FAMILIES),
  ...fieldFamilies(HUB_FIELDS).map(([, family]) => family),
  ...fieldFamilies(CONNECTION_FIELDS, 'connection').map(([, family]) => family),
  ...fieldFamilies(APPLIANCE_FIELDS, 'appliance').map(([, family]) => family),
];

it('docs/metrics.md lists every metric with its help text (./scripts/test --update metrics/alerts writes it)', async () => {
  const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  const rows = [
    ['metric', 'type', 'labels', 'what'],
    ['---', '---', '---', '---'],
    ...documented.map(({ name, type, labelNames, help }) => [quoted([name]), type, quoted(labelNames), help]),
  ];
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toMatch(TABLE);
  const table = rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
  await expect(page.replace(TABLE, () => table)).toMatchFileSnapshot(PAGE);
});

it('a hub exposes the metrics of docs/metrics.md with their labels, and the alert rules name no others', async () => {
  const { families } = await scrapeHub();
  expect(documented.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(
    [...families].map(([name, { type }]) => `${name} ${type}`).sort(),
  );
  for (const { name, labelNames } of documented) {
    const exposed = families.get(name)?.labels ?? new Set();
    // A metric without series at this hub has no labels to compare.
    if (exposed.size > 0) expect([...exposed].sort(), name).toEqual([...labelNames].sort());
  }
  const named = readFileSync(RULES, 'utf8').match(/\blatchkey_\w+/g) ?? [];
  for (const name of named) expect([...families.keys()]).toContain(name);
});
