// docs/alerts.yml and the metrics of a real hub, checked by Prometheus' own tool.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { root } from '../project/checkout.ts';
import { HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { type ScrapedMetrics, scrapeMetrics } from './scrape.ts';

const PROMTOOL = '/usr/bin/promtool';
const RULES = join(root, 'docs/alerts.yml');
const CASES = join(import.meta.dirname, 'alerts.test.yml');

/** Runs promtool. @returns its output; it throws if promtool fails */
async function promtool(args: readonly string[], input = ''): Promise<string> {
  const running = promisify(execFile)(PROMTOOL, args);
  running.child.stdin?.end(input);
  const { stdout, stderr } = await running;
  return stdout + stderr;
}

/** A hub with one appliance of each kind that has its own series. */
async function scrapeHub(): Promise<ScrapedMetrics> {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, metrics: '127.0.0.1:0' });
  for (const name of ['wallbox', 'pump']) {
    const appliance = await hub.addAppliance(name);
    await hub.pair(name, emulator);
    await hub.requestToken(appliance);
  }
  emulator.revoke(emulator.grants().at(-1)?.id ?? '');
  await hub.ask((control) => control.refresh('pump'));
  return await scrapeMetrics((await hub.status()).hub.metrics_port);
}

describe.skipIf(!existsSync(PROMTOOL))('promtool and the alert rules', () => {
  it('promtool accepts the alert rules', async () => {
    expect(await promtool(['check', 'rules', RULES])).toContain('SUCCESS: 9 rules found');
  });

  it('promtool confirms that each alert fires when it should, and not otherwise', async () => {
    expect(await promtool(['test', 'rules', CASES])).toContain('SUCCESS');
    const alerts = [...readFileSync(RULES, 'utf8').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    const cases = readFileSync(CASES, 'utf8').split(/(?=alertname: )/);
    for (const alert of alerts) {
      const alertCases = cases.filter((text) => text.startsWith(`alertname: ${alert}\n`));
      expect(
        alertCases.some((text) => text.includes('exp_alerts')),
        alert,
      ).toBe(true);
      expect(
        alertCases.some((text) => !text.includes('exp_alerts')),
        alert,
      ).toBe(true);
    }
  });

  it('promtool accepts the metrics of a hub', async () => {
    const { text } = await scrapeHub();
    expect(text).toContain('latchkey_connection_state{connection="pump",state="needs_pairing"} 1');
    expect(await promtool(['check', 'metrics'], text)).toBe('');
  });
});

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
