import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, createWriteStream, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect as connectSecure } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfiguration, requirePortal } from '../../src/configuration/configuration.ts';
import { Failure, messageOf } from '../../src/core/failure.ts';
import { startHub } from '../../src/hub/hub.ts';
import { createLog } from '../../src/system/log.ts';
import { type Ended, eventually, HubProcess, type HubProcessOptions } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { patient } from '../support/patience.ts';
import { startPortal } from '../support/portal.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';

/** Runs `serve` with what was prepared for a hub, and stops it where it does not end by itself. */
function serve(hub: HubProcess, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const args = [MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')];
  const options = {
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE, ...env },
    timeout: patient(60_000),
  };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, options, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
  });
}

/** Why the hub does not start with what was prepared for it; the same without a process. */
async function whyNot(hub: HubProcess, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const failure: unknown = await loadConfiguration(join(hub.directory, 'latchkey.toml'), {
    HOME: hub.directory,
    ...env,
  })
    .then((configuration) => startHub(requirePortal(configuration), createLog('silent')))
    .then(
      (started) => started[Symbol.asyncDispose](),
      (error: unknown) => error,
    );
  expect(failure).toBeInstanceOf(Failure);
  return messageOf(failure);
}

/** It ended with status 1, and said why in one line. */
function expectOneLine({ status, stdout, stderr }: Ended, ...says: string[]): void {
  expect({ status, stdout, lines: stderr.trimEnd().split('\n') }).toEqual({
    status: 1,
    stdout: '',
    lines: [expect.stringMatching(/^latchkey: \S/)],
  });
  for (const words of says) expect(stderr).toContain(words);
}

/** A portal that nobody speaks to. */
const PORTAL = {
  baseUrl: 'https://api.portal.example',
  frontendUrl: 'https://portal.example',
  clientId: '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90',
  clientSecret: 'nobody-asks-for-it',
};

async function withPortal(options: HubProcessOptions = {}): Promise<HubProcess> {
  await using emulator = await startPortal({ clients: [{ id: PORTAL.clientId, secret: PORTAL.clientSecret }] });
  return HubProcess.prepare({ emulator, ...options });
}

describe('serve does not start, and says why in one line', () => {
  it('a secret inline, which it does not say', async () => {
    await using hub = await withPortal({ portal: 'client_secret = "inline-secret-4711"' });
    const ended = await serve(hub);
    expectOneLine(ended, 'portals.home.client_secret', 'allowed are');
    expect(ended.stderr).not.toContain('inline-secret-4711');
  });

  it('no configuration', async () => {
    await using hub = await HubProcess.prepare();
    await rm(join(hub.directory, 'latchkey.toml'));
    expectOneLine(await serve(hub), `${hub.directory}/latchkey.toml`, "can't be read");
  });

  it('a taken port', async () => {
    await using hub = await withPortal();
    await using other = createServer().listen(hub.httpPort, '127.0.0.1');
    await once(other, 'listening');
    expectOneLine(await serve(hub), 'lan.http_port', String(hub.httpPort), 'another program has it');
  });
});

describe('a hub is not started, and says why, with', () => {
  it.for<[what: string, options: HubProcessOptions, message: RegExp]>([
    ['an unknown key', { lan: 'port = 80' }, /lan\.port.*http_port/],
    ['a wrong type', { lan: 'mdns = "yes"' }, /lan\.mdns.*true or false/],
    ['a bad duration', { toml: '[pairing]\nlifetime = "soon"' }, /pairing\.lifetime.*"1m" to "24h"/],
    ['an appliance without a secret', { toml: '[appliances.wallbox]' }, /appliances\.wallbox: has neither secret_file/],
    ['no TOML', { toml: 'this is no TOML' }, /latchkey\.toml, line/],
  ])('%s', async ([, options, message]) => {
    await using hub = await withPortal(options);
    expect(await whyNot(hub)).toMatch(message);
  });

  it('no portal', async () => {
    await using hub = await HubProcess.prepare();
    expect(await whyNot(hub)).toMatch(/portals: there is none.*\[portals\.home\]/);
  });

  it('a wrong override in the environment', async () => {
    await using hub = await withPortal();
    expect(await whyNot(hub, { LATCHKEY_LAN_HTTP_PORT: 'eighty' })).toMatch(/LATCHKEY_LAN_HTTP_PORT.*found "eighty"/);
  });

  it('a secret that others can read', async () => {
    await using hub = await withPortal();
    chmodSync(join(hub.directory, 'portal.secret'), 0o644);
    expect(await whyNot(hub)).toMatch(/portals\.home\.client_secret_file.*mode 0644.*chmod 600/);
  });

  it('a taken port for HTTPS', async () => {
    await using hub = await withPortal();
    await using other = createServer().listen(hub.httpsPort, '127.0.0.1');
    await once(other, 'listening');
    expect(await whyNot(hub)).toMatch(new RegExp(`lan\\.https_port.*${hub.httpsPort}.*another program has it`));
  });

  it('a state directory that is none, can not be made, or is open to others', async () => {
    await using hub = await withPortal();
    expect(await whyNot(hub, { LATCHKEY_HUB_STATE_DIR: 'portal.secret' })).toMatch(/hub\.state_dir.*is no directory/);
    expect(await whyNot(hub, { LATCHKEY_HUB_STATE_DIR: 'portal.secret/state' })).toMatch(
      /hub\.state_dir.*can't be made/,
    );
    chmodSync(join(hub.directory, 'state'), 0o755);
    expect(await whyNot(hub)).toMatch(/hub\.state_dir.*mode 0755.*chmod 700/);
  });

  it('a control socket where no socket can be', async () => {
    await using hub = await withPortal();
    const at = (path: string) => whyNot(hub, { LATCHKEY_HUB_CONTROL_SOCKET: path });
    expect(await at('portal.secret/socket')).toContain('hub.control_socket');
    expect(await at('portal.secret')).toMatch(/control socket.*it is no socket/);
    expect(await at('s'.repeat(110))).toMatch(/hub\.control_socket.*107/);
  });
});

describe('two daemons', () => {
  it('on one state directory, on one socket, on one port: the second is refused, and the first works on', async () => {
    await using first = await running();
    await using second = await withPortal();
    const stateDirectory = join(first.directory, 'state');
    const socket = join(stateDirectory, 'control.sock');
    const cases: [NodeJS.ProcessEnv, string][] = [
      [{ LATCHKEY_HUB_STATE_DIR: stateDirectory, LATCHKEY_HUB_CONTROL_SOCKET: 'own.sock' }, stateDirectory],
      [{ LATCHKEY_HUB_CONTROL_SOCKET: socket }, socket],
      [{ LATCHKEY_LAN_HTTP_PORT: String(first.httpPort) }, 'lan.http_port'],
    ];
    for (const [env, says] of cases) {
      expect(await whyNot(second, env)).toContain(says);
      expect(existsSync(socket)).toBe(true);
      expect((await first.status()).hub.http_port).toBe(first.httpPort);
    }
    expectOneLine(await serve(first), stateDirectory);
    await first.addAppliance('still-there');
  });

  it('one after the other: the socket of one that was killed is taken over', async () => {
    await using hub = await running();
    await hub.addAppliance('fan');
    await hub.kill('SIGKILL');
    expect(existsSync(join(hub.directory, 'state/control.sock'))).toBe(true);
    expectOneLine(await hub.cli('status'), 'no hub is running here', 'latchkey serve');
    await hub.launch();
    expect(await hub.appliance('fan')).toMatchObject({ state: 'unpaired' });
  });
});

describe('the command line', () => {
  let hub: HubProcess;
  beforeAll(async () => {
    hub = await withPortal({ here: true });
    await hub.launch();
  });
  afterAll(() => hub[Symbol.asyncDispose]());

  it('knows no appliance that is not there', async () => {
    expectOneLine(await hub.cli('pair', 'nobody'), 'there is no appliance nobody');
    await hub.ask(async (control) => {
      const asked: ((name: string) => Promise<unknown>)[] = [
        control.unpair,
        control.token,
        control.refresh,
        (name) => control.rotateSecret(name, false),
        control.removeAppliance,
      ];
      for (const ask of asked) await expect(ask('nobody')).rejects.toThrow('there is no appliance nobody');
    });
  });

  it('refuses a name, and writes none of its control characters to the terminal', async () => {
    const ended = await hub.cli('appliance', 'add', '\x1b[31mred');
    expectOneLine(ended, "can't be an appliance's name");
    expect(ended.stderr).not.toContain('\x1b');
    expect((await hub.status()).appliances).toEqual([]);
  });

  it.for(['Wall Box', 'wall_box', '../state', 'wallbox\n', 'é', '', 'a'.repeat(64), '$(reboot)'])(
    'is told of the name %j that it is none',
    async (name) => {
      await expect(hub.addAppliance(name)).rejects.toThrow("can't be an appliance's name");
      expect((await hub.status()).appliances).toEqual([]);
    },
  );

  it.for(['Monitoring "RemoteControl"', 'back\\slash', 'Überwachung', 'a\x07b'])(
    'is told of the scope %j that it is none',
    async (scope) => {
      await expect(hub.addAppliance('wallbox', scope)).rejects.toThrow('a character that scopes can');
      expect((await hub.status()).appliances).toEqual([]);
    },
  );

  it('refuses a portal that is not configured, and a name that is taken', async () => {
    await hub.ask(async (control) => {
      const added = control.addAppliance('wallbox', null, 'away');
      await expect(added).rejects.toThrow(/there is no portal away.*home/);
    });
    await hub.addAppliance('wallbox');
    await expect(hub.addAppliance('wallbox')).rejects.toThrow('there is an appliance wallbox already');
    expect((await hub.status()).appliances).toHaveLength(1);
  });
});

describe.concurrent('a portal that is down', () => {
  it('while pairing: says so, goes on, and connects when the portal is back', async () => {
    const before = await startPortal();
    await using hub = await HubProcess.start({ emulator: before, here: true });
    await before.close();
    await hub.addAppliance('wallbox');
    const { status, stdout, stderr } = await hub.cli('pair', 'wallbox', '--no-wait');
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/\nlatchkey: the portal can't be reached .+; the pairing goes on: .+\n$/),
    });
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'pairing' });

    await using emulator = await startPortal({
      port: Number(new URL(before.baseUrl).port),
      frontendPort: Number(new URL(before.frontendUrl).port),
      clients: [{ id: before.clientId, secret: before.clientSecret }],
    });
    const url = await eventually(async () => (await hub.appliance('wallbox')).authorize_url, 45);
    const { location } = await emulator.login({ state: new URL(url).searchParams.get('state') ?? '', user: 'demo' });
    expect(await (await fetch(location)).text()).toContain('wallbox is connected');
  });
});

describe.concurrent('the end', () => {
  it('comes by SIGINT in order: status 0, and no socket left', async () => {
    await using hub = await withPortal();
    const child = await daemon(hub);
    const socket = join(hub.directory, 'state/control.sock');
    expect(existsSync(socket)).toBe(true);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(existsSync(socket)).toBe(false);
  });

  it('comes by SIGTERM as well, and is not held up by connections that say nothing', async () => {
    await using hub = await withPortal();
    const child = await daemon(hub);
    await using silent = new AsyncDisposableStack();
    const answers: string[] = [];
    for (const [port, secure] of [
      [hub.httpPort, false],
      [hub.httpsPort, true],
    ] as const) {
      const opened = secure
        ? connectSecure({ host: '127.0.0.1', port, rejectUnauthorized: false })
        : connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      const socket = silent.adopt(opened, (open) => void open.destroy());
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => answers.push(String(bytes)));
      await once(socket, secure ? 'secureConnect' : 'connect');
    }
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(existsSync(join(hub.directory, 'state/control.sock'))).toBe(false);
    // Who waits for them is rid of them in the end too, when their time is over, and then they are told so.
    expect(answers).toEqual([]);
  });
});

async function running(): Promise<HubProcess> {
  const hub = await withPortal();
  await hub.launch();
  return hub;
}

/** Starts a prepared hub and waits until it says that it is up. */
async function daemon(hub: HubProcess): Promise<ChildProcess> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')], {
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr.pipe(createWriteStream(logFile('hub'), { mode: 0o600 }));
  for await (const line of createInterface({ input: child.stderr })) if (line.includes('"hub started"')) return child;
  throw new Error(`the hub ended: ${child.exitCode}`);
}
