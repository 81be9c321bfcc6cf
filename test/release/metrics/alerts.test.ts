// docs/alerts.yml and the metrics of a real hub, checked by Prometheus' own tool.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { scrapeHub } from '../../metrics/scraped-hub.ts';
import { root } from '../../project/checkout.ts';

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

describe.skipIf(!existsSync(PROMTOOL))('promtool and the alert rules', () => {
  it('promtool accepts the alert rules', async () => {
    expect(await promtool(['check', 'rules', RULES])).toContain('SUCCESS: 9 rules found');
  });

  it('promtool confirms that each alert fires when it should, and not otherwise', async () => {
    expect(await promtool(['test', 'rules', CASES])).toContain('SUCCESS');
    const cases = readFileSync(CASES, 'utf8').split(/(?=alertname: )/);
    for (const [, alert] of readFileSync(RULES, 'utf8').matchAll(/alert: (\w+)/g)) {
      const ofAlert = cases.filter((text) => text.startsWith(`alertname: ${alert}\n`));
      expect(new Set(ofAlert.map((text) => text.includes('exp_alerts'))), alert).toEqual(new Set([true, false]));
    }
  });

  it('promtool accepts the metrics of a hub', async () => {
    const { text } = await scrapeHub();
    expect(text).toContain('latchkey_connection_state{connection="pump",state="needs_pairing"} 1');
    expect(await promtool(['check', 'metrics'], text)).toBe('');
  });
});
