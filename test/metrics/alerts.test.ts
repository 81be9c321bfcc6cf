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

it('docs/metrics.md lists every metric with its help text (otherwise run this test with -u)', async () => {
  const families: MetricFamily[] = [
    ...Object.values(FAMILIES),
    ...fieldFamilies(HUB_FIELDS).map(([, family]) => family),
    ...fieldFamilies(CONNECTION_FIELDS, 'connection').map(([, family]) => family),
    ...fieldFamilies(APPLIANCE_FIELDS, 'appliance').map(([, family]) => family),
  ];
  const quoted = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  const rows = [
    ['metric', 'type', 'labels', 'what'],
    ['---', '---', '---', '---'],
    ...families.map(({ name, type, labelNames, help }) => [quoted([name]), type, quoted(labelNames), help]),
  ];
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toMatch(TABLE);
  const table = rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
  await expect(page.replace(TABLE, () => table)).toMatchFileSnapshot(PAGE);
});

it('the alert rules and docs/metrics.md name only metrics of a hub, and the document lists all of them', async () => {
  const { families } = await scrapeHub();
  const page = readFileSync(PAGE, 'utf8');
  const rows = [...page.matchAll(/^\| `(latchkey_\w+|process_\w+)` \| (\w+) \| (.*?) \|/gm)].map(
    ([, name = '', type, labels = '']) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }),
  );
  expect(rows.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(
    [...families].map(([name, { type }]) => `${name} ${type}`).sort(),
  );
  for (const { name, labels } of rows) {
    const exposed = families.get(name)?.labels ?? new Set();
    // A metric without series at this hub has no labels to compare.
    if (exposed.size > 0) expect([...exposed].sort(), name).toEqual(labels.sort());
  }
  const named = readFileSync(RULES, 'utf8').match(/\blatchkey_\w+/g) ?? [];
  for (const name of named) expect([...families.keys()]).toContain(name);
});
