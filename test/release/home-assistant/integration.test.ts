import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { root } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { buildAppRepository } from '../package/home-assistant-app.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const run = promisify(execFile);
const INSTALL = join(root, 'scripts/test-home-assistant');
/** The long form takes two and a half hours. */
const AMOUNTS = IS_LONG_FORM ? { refreshes: 200, restarts: 10, away: 3600 } : { refreshes: 2, restarts: 1, away: 30 };

const WITHIN = scaleDeadline((600 + AMOUNTS.refreshes * 60 + AMOUNTS.restarts * 120 + AMOUNTS.away) * 1000);
vi.setConfig({ testTimeout: WITHIN });

skipIfUnavailable(async () => {
  const noLan = await lanSkipReason(['/usr/sbin/debootstrap', '/usr/bin/unshare']);
  if (noLan !== null) return noLan;
  return run(INSTALL, [], { timeout: scaleDeadline(600_000) }).then(
    () => null,
    (error: { readonly stderr?: string }) => error.stderr?.trim().split('\n').at(-1) ?? String(error),
  );
});

it('a real Home Assistant finds the hub, is approved, and its integrations get tokens through restarts, a rotation of the CA, an outage and a restored backup', async () => {
  using folder = stateFolder();
  await using lan = await createLan(['house']);
  const repository = await buildAppRepository(
    folder.path,
    '--version',
    '1.2.3',
    '--image',
    'registry.example/a/latchkey',
  );
  const config = join(folder.path, 'config');
  mkdirSync(config);
  const options: ScenarioOptions = {
    hass: [INSTALL],
    integration: join(repository, 'custom_components/latchkey'),
    config,
    ...AMOUNTS,
  };
  const scenario = lan.hosts.house.spawn(
    process.execPath,
    [join(import.meta.dirname, 'scenario.ts'), JSON.stringify(options)],
    { env: process.env },
  );
  expect(await scenario.end(WITHIN), scenario.output).toBe(0);
  const result = await scenario.line((line) =>
    line.startsWith('{') ? (JSON.parse(line) as ScenarioResult) : undefined,
  );
  expect(result.refreshes).toBeGreaterThanOrEqual(options.refreshes);
  expect(result.logins).toBe(0);
  const own = result.lines.filter((line) => line.includes('[custom_components.latchkey]'));
  expect(own).not.toEqual([]);
  expect(own.filter((line) => !/Test hub .*: the hub at https:\S+ does not respond \(.*\)$/.test(line))).toEqual([]);
});
