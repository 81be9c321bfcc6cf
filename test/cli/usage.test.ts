import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../project/checkout.ts';
import { logFolder } from '../support/logs.ts';
import { stateFolder } from '../support/state-folder.ts';
import { runLatchkey, runShell, serveFakeAdministration } from './command.ts';
import { allHelpTexts } from './manual/help-texts.ts';

test('latchkey --version needs no configuration', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const env = { LATCHKEY_CONFIG: '/nowhere.toml' };
  expect(await runLatchkey(['--version'], env)).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
});

test.each(allHelpTexts().map(({ path }) => ['latchkey', ...path].join(' ')))(
  '%s --help shows its usage without a configuration',
  async (command) => {
    const args = [...command.split(' ').slice(1), '--help'];
    const helped = await runLatchkey(args, { LATCHKEY_CONFIG: '/nowhere.toml' });
    expect(helped).toMatchObject({ status: 0, stderr: '' });
    expect(helped.stdout).toMatch(/^Usage: latchkey /);
    expect(helped.stdout).toContain('--config <file>');
  },
);

test.each([['help', '']])('latchkey %s shows the help of that command', async (args, command) => {
  const helped = await runLatchkey(args.split(' '));
  expect(helped).toMatchObject({ status: 0, stderr: '' });
  expect(helped.stdout).toMatch(new RegExp(`^Usage: latchkey ${command} ?\\[options\\]`));
});

test.each([
  [[], /Usage: latchkey/],
  [['frobnicate', '--help'], /unknown command 'frobnicate'\n\(see "latchkey --help"\)/],
  [['invite', 'wallbox'], /too many arguments/],
  [['invite', '--ttl', '31d'], /--ttl.*'31d' is invalid. Must be 1s to 30d\./],
  [['registration', 'open', '--for', '25h'], /--for.*'25h' is invalid. Must be 1s to 24h\./],
  [['portals', 'home'], /unknown command 'home'\n\(There are: list, check\)\n/],
  [['stats'], /unknown command 'stats'.*\n.*status/],
  [['appliance', 'add'], /missing required argument 'name'.*\n.*latchkey appliance add --help/],
  [['pair'], /give the name of an appliance, or --all.*\n\(see "latchkey pair --help"\)/],
  [['pair', 'a', '--timeout', 'soon'], /--timeout.*'soon'.*45s or 10m/],
  [['pair', 'wallbox', '--all'], /not both/],
  [['pair', '--all', '--print'], /--print is for one appliance/],
  [['pair', 'wallbox', '--output', 'x.png'], /--output can only be used with --print/],
  [['setup-code', '--output', 'x.svg'], /--output can only be used with --print/],
  [['pair', '--all', '--paste', 'https://app.example/'], /--paste/],
  [['appliance', 'move', 'wallbox'], /--connection <name>/],
  [['ca', '--from', 'https://192.0.2.1', '--fingerprint'], /--from and --pin can only be used with --install/],
  [['ca', '--install', '--rotate'], /'--install' cannot be used with option '--rotate'/],
  [['store-key'], /required option '--rotate' not specified/],
  [['--frobnicate'], /unknown option '--frobnicate'/],
])('latchkey %j is wrong usage', async (args, problem) => {
  const wrong = await runLatchkey(args);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(problem);
});

test.each(['status --json', 'pair a', 'appliance list'])(
  '%s fails without a hub, with one line that says what to do',
  async (args) => {
    const failed = await runLatchkey(args.split(' '), { LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere/control.sock' });
    expect(failed).toMatchObject({ status: 1, stdout: '' });
    expect(failed.stderr).toMatch(
      /^latchkey: no hub is running here \(\/nowhere\/control\.sock does not exist.*"sudo systemctl start latchkey".*"latchkey serve".*--config\n$/,
    );
  },
);

test.each([
  [
    'failed',
    'exit-code',
    78,
    /^latchkey: no hub is running here \(the service latchkey: failed, exit status 78\): .*doctor/,
  ],
  ['activating', 'success', 0, /\(the service latchkey: activating\): .*doctor/],
  ['inactive', 'success', 0, /"sudo systemctl start latchkey"/],
])('without a hub, a command says that its service is %s', async (active, result, exit, said) => {
  using folder = stateFolder();
  const unit = `LoadState=loaded ActiveState=${active} Result=${result} ExecMainStatus=${exit}`;
  writeFileSync(join(folder.path, 'systemctl'), `#!/bin/sh\nprintf '%s\\n' ${unit}\n`, { mode: 0o755 });
  const failed = await runLatchkey(['status'], {
    LATCHKEY_HUB_CONTROL_SOCKET: '/run/latchkey/control.sock',
    PATH: `${folder.path}:${process.env['PATH']}`,
  });
  expect(failed).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(said) });
});

test('--config is accepted before and after the name of a command, and overrides LATCHKEY_CONFIG', async () => {
  await using hub = await serveFakeAdministration();
  hub.administration.set({ name: 'wallbox' });
  const file = join(logFolder(), `config-${process.pid}.toml`);
  writeFileSync(file, `[hub]\ncontrol_socket = "${hub.env.LATCHKEY_HUB_CONTROL_SOCKET}"\n`);
  const elsewhere = { LATCHKEY_CONFIG: '/nowhere.toml' };
  for (const args of [
    ['--config', file, 'appliance', 'list', '--json'],
    ['appliance', '--config', file, 'list', '--json'],
    ['appliance', 'list', '--json', '--config', file],
    ['appliance', 'list', `--config=${file}`, '--json'],
  ]) {
    const listed = await runLatchkey(args, elsewhere);
    expect(listed.stderr).toBe('');
    expect(JSON.parse(listed.stdout)).toMatchObject([{ name: 'wallbox' }]);
  }
  expect(await runLatchkey(['status'], { LATCHKEY_CONFIG: file })).toMatchObject({ status: 0 });
  const missing = await runLatchkey(['status'], elsewhere);
  expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining('/nowhere.toml') });
});

test('a user without access to the control socket learns which group to join', async () => {
  await using hub = await serveFakeAdministration();
  chmodSync(hub.env.LATCHKEY_HUB_CONTROL_SOCKET, 0);
  // Without capabilities, root is refused too.
  const unprivileged = process.getuid?.() === 0 ? '/usr/bin/setpriv --inh-caps=-all --bounding-set=-all' : '';
  const refused = await runShell(`${unprivileged} $LATCHKEY status`, hub.env);
  expect(refused).toMatchObject({ status: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^latchkey: this user has no access to the hub at .*latchkey-admin.*\n$/);
});
