import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { runLatchkey } from './command.ts';
import type { CliResult } from './running-command.ts';

let emulator: Emulator;
let hub: HubProcess;
let config: string;

/** Files in the hub's directory that the failing commands read. */
const files = {
  'weak.passphrase': 'short',
  'good.passphrase': 'correct horse battery staple',
  'no.copy': 'this is no copy',
};

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  config = join(hub.directory, 'latchkey.toml');
  await hub.addAppliance('wallbox');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(hub.directory, name), text, { mode: 0o600 });
  rememberSecrets([files['good.passphrase']]);
});

/** Expects one line that says what happened, where, and what to do. */
function expectOneLine({ stdout, stderr }: CliResult, says: RegExp): void {
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^latchkey: [^\n]{20,}\n$/);
  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/\bat (?:\w+ )?\(?(?:file:|node:|\/\S+:\d)|\bundefined\b|\[object/);
  // The advice follows a punctuation mark and begins with something that a person can do.
  const DO =
    'use|name|choose|give|run|pair|remove|try|add|see|correct|write|start|put|make|take|type|set|allowed|check|replace|say|"latchkey|"sudo';
  expect(stderr).toMatch(
    new RegExp(`[.:;,(] (?:or |so |then |it again |the configuration has )?(?:${DO}|home|nothing)`, 'i'),
  );
}

describe('failing commands', () => {
  test.each<[string, RegExp]>([
    ['pair nobody', /no appliance or connection nobody.*"latchkey status"/],
    ['token wallbox', /wallbox is not paired.*"latchkey pair wallbox"/],
    ['appliance remove nobody --yes', /no appliance nobody.*"latchkey appliance list"/],
    ['appliance approve wallbox', /is not waiting for approval/],
    ['appliance add wallbox', /an appliance wallbox already: choose another name, or remove/],
    [`appliance add ${'x'.repeat(65)}`, /is not a valid appliance name: use 1 to 64 letters/],
    ['appliance add car --portal elsewhere', /no portal elsewhere; configured portals: home/],
    ['invite --scope "A', /scope .* has a character that is not allowed/],
    [
      'restore FOLDER/no.copy --yes --passphrase-file FOLDER/good.passphrase',
      /not a backup made by "latchkey backup".*: name another file/,
    ],
    ['backup FOLDER/there.not --passphrase-file FOLDER/weak.passphrase', /passphrase is too weak: use at least/],
    ['notify --test', /no hook is configured: set command or webhook under \[notify\]/],
  ])('latchkey %s fails with one line that says what is wrong and what to do', async (args, says) => {
    const failed = await runLatchkey([...args.replaceAll('FOLDER', hub.directory).split(' '), '--config', config]);
    expect(failed.status).toBe(1);
    expectOneLine(failed, says);
  });
});
