import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../project/checkout.ts';
import { scrapeHub } from './scraped-hub.ts';

const RULES = join(root, 'docs/alerts.yml');

it('the alert rules and docs/metrics.md name only metrics of a hub, and the document lists all of them', async () => {
  const { families } = await scrapeHub();
  const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');
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
