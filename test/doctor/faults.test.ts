import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import { checkHub } from '../../src/doctor/checks/hub.ts';
import { checkService } from '../../src/doctor/checks/machine.ts';
import { createDoctorContext } from '../../src/doctor/context.ts';
import { runChecks } from '../../src/doctor/run-checks.ts';
import { readUnit } from '../../src/doctor/systemd-unit.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { jsonOn, startOn } from '../cli/command.ts';
import { HubProcess } from '../support/hub-process.ts';
import { httpResponse, startRawServer } from '../support/raw-server.ts';
import { setUpOnce } from '../support/set-up.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { finding } from './finding.ts';

let emulator: Emulator;
/** Runs, with a paired appliance. */
let running: HubProcess;
/** Its configuration before a test changes it. */
let intact: string;

setUpOnce(async (parts) => {
  emulator = parts.use(await startEmulator());
  running = parts.use(await HubProcess.start({ emulator, metrics: '127.0.0.1:0', here: true }));
  await running.addAppliance('wallbox');
  await running.pair('wallbox', emulator);
  intact = readFileSync(configurationOf(running), 'utf8');
});

afterEach(() => writeFileSync(configurationOf(running), intact));

const configurationOf = (hub: HubProcess) => join(hub.directory, 'latchkey.toml');

/** The doctor's findings for a hub that is prepared, and does not run. */
async function found(hub: HubProcess, env: NodeJS.ProcessEnv = {}): Promise<NamedCheckResult[]> {
  const examination = {
    file: configurationOf(hub),
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_STATE_HOME: hub.directory, ...env },
  };
  return runChecks(await createDoctorContext(examination));
}

/** Replaces text in a hub's configuration. */
function edit(hub: HubProcess, pattern: RegExp, replacement: string): void {
  const file = configurationOf(hub);
  const text = readFileSync(file, 'utf8');
  expect(text).toMatch(pattern);
  writeFileSync(file, text.replace(pattern, replacement));
}

/** Replaces one of the machine's programs. @returns the environment in which the replacement is found first */
function replaceProgram(hub: HubProcess, program: string, script: string): NodeJS.ProcessEnv {
  const bin = join(hub.directory, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { PATH: `${bin}:${process.env['PATH']}` };
}

const unchecked = (checks: readonly NamedCheckResult[]) =>
  checks.filter(({ detail }) => detail.includes('could not be checked: fix the configuration')).map(({ name }) => name);

/** A portal at this origin, whose secret is unknown. */
function portalAt(origin: string, clientSecret = 'a-secret'): Parameters<typeof HubProcess.prepare>[0] {
  return { emulator: { clientId: emulator.clientId, baseUrl: origin, frontendUrl: origin, clientSecret } };
}

it('the doctor says that the hub is stopped, and how to start it', async () => {
  await using hub = await HubProcess.prepare({ emulator });
  const { status, stdout } = await hub.cli('doctor', '--json');
  expect(status).toBe(1);
  const checks = (JSON.parse(stdout) as { checks: NamedCheckResult[] }).checks;
  expect(finding(checks, 'hub')).toMatch(/^fail: .*start it \(/);
  expect(finding(checks, 'store')).toMatch(/^ok: /);
  expect(checks.filter(({ result }) => result === 'fail').map(({ name }) => name)).toEqual(['hub']);
});

describe('the doctor and the configuration', () => {
  it('the doctor names an unknown key, and says that the running hub continues', async () => {
    edit(running, /$/, '\n[hubb]\nname = "x"\n');
    const checks = await found(running);
    expect(finding(checks, 'configuration')).toMatch(
      /^fail: .*hubb: unknown key \(did you mean hub\?\); the running hub still uses/,
    );
    for (const name of ['hub', 'portal.home.base_url']) expect(finding(checks, name)).toMatch(/^ok: /);
    expect(unchecked(checks)).toEqual([]);
  });

  it.for<[words: RegExp, others: string, unseen: string[]]>([
    [/state_dir = /, 'state_dri = ', ['state', 'store']],
    [/http_port = .*/, 'http_port = "web"', ['ports']],
    [/\[metrics]\nlisten = .*/, '[notify]\ncommand = "tell"\n[metrics]\nlisten = 9480', ['notify', 'metrics']],
    [/client_id = .*/, 'client_id = "wallbox"', ['portal.home']],
    [/\[hub]/, '[hub', ['state', 'store', 'ports', 'mdns', 'portal', 'notify', 'metrics']],
  ])('the doctor skips only the checks that need the wrong setting %s', async ([setting, replacement, names]) => {
    await using hub = await HubProcess.prepare({ emulator });
    edit(hub, setting, replacement);
    const checks = await found(hub);
    expect(finding(checks, 'configuration')).toMatch(/^fail: /);
    expect(unchecked(checks)).toEqual(names);
  });

  it("the doctor uses the running hub's information about a portal if the configuration of the portal is wrong", async () => {
    edit(running, /base_url = .*/, 'base_url = "portal"');
    edit(running, /http_port = .*/, 'http_port = "web"');
    edit(running, /listen = "127\.0\.0\.1:0"/, 'listen = 0');
    const checks = await found(running);
    expect(finding(checks, 'portal.home')).toMatch(/; the running hub reports no problem with it$/);
    expect(finding(checks, 'ports.http_port')).toMatch(/^ok: /);
    expect(finding(checks, 'metrics')).toMatch(/ serves metrics and health$/);
    expect(finding(checks, 'appliance.wallbox')).toMatch(/^ok: /);
    expect(unchecked(checks)).toEqual(['portal.home']);
  });

  it.for<[words: RegExp, others: string]>([
    [/state_dir = /, 'state_dri = '],
    [/\[hub]/, '[hub'],
  ])('the doctor finds the running hub also if %s in the configuration is wrong', async ([setting, replacement]) => {
    await using stopped = await HubProcess.prepare({ emulator });
    edit(running, setting, replacement);
    edit(stopped, setting, replacement);
    const checks = await found(running);
    expect(new Set(checks.filter(({ result }) => result === 'fail').map(({ name }) => name))).toEqual(
      new Set(['configuration']),
    );
    expect(finding(checks, 'hub')).toMatch(/^ok: Test hub \(.*\) is running, /);
    expect(finding(checks, 'ports.http_port')).toMatch(/^ok: /);
    expect(finding(await found(stopped), 'hub')).toMatch(/^fail: no hub is running here/);
  });

  it('the doctor reports a secret file that others can read, without the secret', async () => {
    await using hub = await HubProcess.prepare({ emulator });
    chmodSync(join(hub.directory, 'portal.secret'), 0o644);
    const checks = await found(hub);
    expect(finding(checks, 'configuration')).toMatch(/^fail: .*client_secret_file: .*mode 0644.*chmod 600/);
    expect(JSON.stringify(checks)).not.toContain(emulator.clientSecret);
  });
});

describe('the doctor and the state directory', () => {
  it('the doctor reports that the store in the state directory is open to others', async () => {
    await using hub = await HubProcess.prepare({ emulator });
    writeFileSync(join(hub.directory, 'state/latchkey.db'), '');
    chmodSync(join(hub.directory, 'state/latchkey.db'), 0o644);
    expect(finding(await found(hub), 'state')).toMatch(
      /^fail: .*other users can access .*latchkey\.db \(mode 0644\): sudo chmod go= /,
    );
  });

  it('the doctor reports files that a start as root has left behind', async (ctx) => {
    if (process.getuid?.() !== 0) ctx.skip('giving files away needs root');
    await using hub = await HubProcess.prepare({ emulator });
    writeFileSync(join(hub.directory, 'state/store.key'), '', { mode: 0o600 });
    chownSync(join(hub.directory, 'state'), 4711, 4711);
    expect(finding(await found(hub), 'state')).toMatch(
      /^fail: .*store\.key has another owner.*sudo chown --reference=/,
    );
  });

  it('the doctor reports, as root, files of the configuration that the user of the service may not read', async (ctx) => {
    if (process.getuid?.() !== 0) ctx.skip('giving files away needs root');
    await using hub = await HubProcess.prepare({ emulator, toml: '[appliances.oven]\njwks_file = "oven.jwks"' });
    chmodSync(hub.directory, 0o755);
    chownSync(join(hub.directory, 'state'), 4711, 4711);
    const [ca, jwks] = [join(hub.directory, 'ca.pem'), join(hub.directory, 'oven.jwks')];
    writeFileSync(ca, '-----BEGIN CERTIFICATE-----', { mode: 0o600 });
    writeFileSync(jwks, JSON.stringify({ keys: [generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })] }));
    edit(hub, /^client_id = /m, 'ca_file = "ca.pem"\nclient_id = ');
    const files = async () => {
      const configuration = (await found(hub)).filter(({ name }) => name === 'configuration');
      return configuration.map(({ result, detail }) => `${result}: ${detail}`).toSorted();
    };
    const unreadableSecret = `fail: portals.home.client_secret_file: ${join(hub.directory, 'portal.secret')} can't be read by the service: put the file into /etc/latchkey/credentials`;
    chmodSync(configurationOf(hub), 0o600);
    expect(await files()).toEqual([
      `fail: ${configurationOf(hub)} can't be read by the service: sudo chmod 644 ${configurationOf(hub)}`,
      `fail: portals.home.ca_file: ${ca} can't be read by the service: sudo chmod 644 ${ca}`,
      expect.stringContaining(unreadableSecret),
    ]);
    for (const file of [configurationOf(hub), ca]) chmodSync(file, 0o644);
    expect(await files()).toEqual([expect.stringContaining(unreadableSecret)]);
  });

  it('a hub whose state is in memory says so when it starts, in its status and to the doctor', async (ctx) => {
    using folder = memoryStateFolder();
    if (!folder.path.startsWith('/dev/shm')) ctx.skip('there is no file system in memory');
    chmodSync(folder.path, 0o700);
    await using hub = await HubProcess.prepare({ emulator, here: true });
    edit(hub, /^state_dir = .*$/m, `state_dir = "${folder.path}"`);
    edit(hub, /^\[hub\]$/m, `[hub]\ncontrol_socket = "${hub.directory}/state/control.sock"`);
    expect(finding(await found(hub), 'disk.state')).toMatch(/^warn: .* is in memory \(tmpfs\): nothing in it outlives/);
    await hub.launch();
    expect(hub.events('store_volatile')).toHaveLength(1);
    expect((await hub.status()).hub.problems).toMatchObject([
      { code: 'store_volatile', message: expect.stringContaining(`${folder.path} (hub.state_dir)`) },
    ]);
  });

  it('the doctor names a pasted value around which the hub has removed white space', async () => {
    await using hub = await HubProcess.prepare({ emulator });
    edit(hub, /^client_id = "/m, 'client_id = "\u00a0');
    expect(finding(await found(hub), 'configuration')).toMatch(
      /^warn: .*: portals\.\w+\.client_id: there is white space/,
    );
  });

  it('the doctor says whether the store is intact or how it is damaged, and changes nothing', async () => {
    await using hub = await HubProcess.start({ emulator, here: true });
    await hub.kill('SIGTERM');
    expect(finding(await found(hub), 'store')).toMatch(/^ok: .*intact/);
    truncateSync(join(hub.directory, 'state/latchkey.db'), 5000);
    expect(finding(await found(hub), 'store')).toMatch(/^fail: the store is damaged \(.+\): start the hub/);
  });
});

describe('the doctor and the portal', () => {
  it.each([
    ['http://127.0.0.1:9', /^fail: http:\/\/127\.0\.0\.1:9 is unreachable: no connection \(.*ECONNREFUSED/],
    ['https://portal.invalid', /^fail: .*the name portal\.invalid could not be looked up .*resolv\.conf/],
  ])('the doctor says why it cannot reach the portal %s', async (origin, detail) => {
    await using hub = await HubProcess.prepare(portalAt(origin));
    const checks = await found(hub);
    expect(finding(checks, 'portal.home.base_url')).toMatch(detail);
    expect(finding(checks, 'clock')).toMatch(/^warn: /);
  });

  it('the doctor stops waiting for a portal that does not respond', async () => {
    await using silent = await startRawServer(() => undefined);
    await using hub = await HubProcess.prepare(portalAt(silent.origin));
    expect(finding(await found(hub), 'portal.home.base_url')).toMatch(
      /^fail: .*no HTTP response \(no response in time\)/,
    );
  });

  it('the doctor recognises a captive portal', async () => {
    const location = 'http://login.hotel.example/';
    await using captivePortal = await startRawServer((socket) => socket.end(httpResponse(302, '', { location })));
    await using hub = await HubProcess.prepare(portalAt(captivePortal.origin));
    expect(finding(await found(hub), 'portal.home.base_url')).toMatch(
      /^warn: .*redirects to http:\/\/login\.hotel\.example .*captive portal/,
    );
  });

  it('the doctor reports a portal certificate of an untrusted CA', async () => {
    await using secure = await startEmulator({ tls: true });
    await using hub = await HubProcess.prepare({ emulator: secure });
    expect(finding(await found(hub), 'portal.home.base_url')).toMatch(/^fail: .*not trusted: .*portals\.home\.ca_file/);
  });

  it.each([
    ['has NTP turned off', 'echo CanNTP=yes; echo NTP=no', /turn NTP on \("sudo timedatectl set-ntp true"\)$/],
    ['has no systemd', 'exit 1', /timedatectl shows no service$/],
  ])(
    "the doctor compares the clock with the portal's time, and advises a machine that %s",
    async (_, timedatectl, advice) => {
      const date = new Date(Date.now() - 7_200_000).toUTCString();
      await using late = await startRawServer((socket) => socket.end(httpResponse(200, '', { date })));
      await using hub = await HubProcess.prepare(portalAt(late.origin));
      const clock = finding(await found(hub, replaceProgram(hub, 'timedatectl', timedatectl)), 'clock');
      expect(clock).toMatch(/^fail: .*(119 min|2 h) ahead of http/);
      expect(clock).toMatch(advice);
    },
  );
});

describe('the doctor and the machine', () => {
  it('the doctor believes NTP, or the portal whose clock is nearest, if a portal has a wrong clock', async () => {
    const date = new Date(Date.now() - 7_200_000).toUTCString();
    await using late = await startRawServer((socket) => socket.end(httpResponse(200, '', { date })));
    await using hub = await HubProcess.prepare(portalAt(late.origin));
    const { PATH } = replaceProgram(hub, 'timedatectl', 'case "$*" in *NTPSynchronized*) echo yes;; esac');
    vi.stubEnv('PATH', PATH);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(finding(await found(hub), 'clock')).toMatch(
      /^warn: NTP has set the clock, so that of the portal is wrong: this one is (119 min|2 h) ahead of http/,
    );
    replaceProgram(hub, 'timedatectl', 'exit 1');
    const [own = ''] = intact.match(/^\[portals\.[^[]*/m) ?? [];
    edit(hub, /$/, `\n${own.replace(/portals\.\w+/, 'portals.other')}`);
    expect(finding(await found(hub), 'clock')).toMatch(/^ok: the clock agrees with /);
  });

  it('the doctor names another program that has a port of the hub', async () => {
    await using hub = await HubProcess.prepare({ emulator });
    const otherProgram = createServer().listen(hub.httpsPort, '127.0.0.1');
    const checks = await found(hub);
    const who = new RegExp(`^fail: .*in use by .*process ${process.pid}, which is not the hub`);
    expect(finding(checks, 'ports.https_port')).toMatch(who);
    expect(finding(checks, 'ports.http_port')).toMatch(/^ok: /);
    otherProgram.close();
  });

  it('the doctor reports a configured address that the machine does not have', async () => {
    await using hub = await HubProcess.prepare({ emulator });
    const checks = await found(hub, { LATCHKEY_LAN_ADDRESS: '192.0.2.77' });
    expect(finding(checks, 'network')).toMatch(
      /^warn: lan\.address is 192\.0\.2\.77, but this machine does not have that address \(interfaces: lo /,
    );
    expect(finding(await found(hub, { LATCHKEY_LAN_ADDRESS: 'eth77' }), 'network')).toMatch(/^fail: /);
  });

  it.each([
    ['/nowhere/notify', 'does not exist: put it there, or correct notify.command'],
    ['/etc/passwd', "of notify.command can't be run: sudo chmod 755 /etc/passwd"],
  ])('the doctor reports that the notice command %s can not be run', async (path, message) => {
    await using hub = await HubProcess.prepare({ emulator, toml: `[notify]\ncommand = ["${path}", "secret-word"]` });
    const checks = await found(hub);
    expect(finding(checks, 'notify.command')).toBe(`fail: the program ${path} ${message}`);
    expect(JSON.stringify(checks)).not.toContain('secret-word');
  });

  it("the doctor reports a failed, disabled or restarted service from systemd's data", async () => {
    await using hub = await HubProcess.prepare({ emulator });
    const check = async (active: string, enabled: string, result: string, status = 0, restarts = 0) => {
      const unit = `ActiveState=${active} UnitFileState=${enabled} Result=${result}`;
      const counts = `ExecMainStatus=${status} NRestarts=${restarts}`;
      const env = replaceProgram(hub, 'systemctl', `printf '%s\\n' LoadState=loaded ${unit} ${counts}`);
      const [found] = [await checkService({ env: {}, unit: await readUnit(AbortSignal.timeout(5000), env) })].flat();
      return `${found?.result}: ${found?.detail}`;
    };
    expect(await check('failed', 'enabled', 'exit-code', 78)).toMatch(/^fail: .*exit status 78\).*journalctl/);
    for (const status of [217, 226])
      expect(await check('failed', 'enabled', 'exit-code', status)).toMatch(
        /^fail: .*nesting=1.*without-namespaces\.conf/,
      );
    expect(await check('failed', 'enabled', 'exit-code', 217)).toContain('or has no user for it');
    expect(await check('active', 'disabled', 'success')).toMatch(/^warn: .*systemctl enable/);
    expect(await check('active', 'enabled', 'watchdog', 0, 3)).toMatch(/^warn: .*3 times.*watchdog/);
    expect(await check('active', 'enabled', 'success', 0, 1)).toMatch(/^warn: .*was restarted once: /);
    expect(await check('active', 'enabled', 'success')).toMatch(/^ok: /);
  });
});

it('the doctor advises to restart an unresponsive hub in the way in which it was started', async () => {
  const silent = { kind: 'silent', detail: 'no answer' } as const;
  const state = { activeState: 'active', unitFileState: 'enabled', result: 'success', exitStatus: 0, restarts: 0 };
  for (const [unit, advice] of [
    [{ ...state, credentials: [], mainPid: 7 }, 'restart the hub ("sudo systemctl restart latchkey")'],
    [{ ...state, credentials: [], mainPid: 0 }, 'stop the hub and start it again'],
  ] as const) {
    const detail = `the hub does not respond on its control socket (no answer): ${advice}`;
    expect(await checkHub({ hub: silent, unit })).toEqual({ result: 'fail', detail });
  }
});

it('the doctor recognises a hub in test mode, and does not check what that hub does not use', async () => {
  await using hub = await HubProcess.start({ serve: ['--test-mode'] });
  const { checks } = await jsonOn<{ checks: NamedCheckResult[] }>(hub, 'doctor');
  expect(checks.filter(({ result }) => result === 'fail')).toEqual([]);
  expect(finding(checks, 'hub')).toMatch(
    / is running, version .*; it is in test mode, with an emulated portal, and stores nothing$/,
  );
  expect((await startOn(hub, 'status').ended).stdout).toMatch(
    /^mode +test mode: with an emulated portal, and nothing is stored$/m,
  );
  expect(await startOn(hub, 'reload').ended).toMatchObject({ status: 1 });
  edit(hub, /address = .*/, 'address = 7');
  expect(finding(await found(hub), 'configuration')).toMatch(/^warn: /);
});

it('the doctor says for each appliance what to do', async () => {
  await running.addAppliance('boiler');
  for (const { id } of emulator.grants()) emulator.revoke(id);
  expect(await running.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
    state: 'needs_pairing',
  });
  const checks = await found(running);
  expect(finding(checks, 'appliance.wallbox')).toMatch(
    /^fail: .*Log in again to connect wallbox: .*"latchkey pair wallbox"$/,
  );
  expect(finding(checks, 'appliance.boiler')).toMatch(/^ok: boiler is not paired yet\. .*"latchkey pair boiler"$/);
});
