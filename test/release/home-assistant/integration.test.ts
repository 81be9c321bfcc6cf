import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { scaleDeadline } from '../../support/deadlines.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { buildAppRepository } from '../package/home-assistant-app.ts';
import { homeAssistantSkipReason, PROGRAM } from './home-assistant.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

/** The long form takes two and a half hours. */
const AMOUNTS = IS_LONG_FORM ? { refreshes: 200, restarts: 10, away: 3600 } : { refreshes: 2, restarts: 1, away: 30 };

const WITHIN = scaleDeadline((600 + AMOUNTS.refreshes * 60 + AMOUNTS.restarts * 120 + AMOUNTS.away) * 1000);
vi.setConfig({ testTimeout: WITHIN });

skipIfUnavailable(async () => {
  const noLan = await lanSkipReason(['/usr/sbin/debootstrap', '/usr/bin/unshare']);
  return noLan ?? homeAssistantSkipReason();
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
    hass: [PROGRAM],
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
