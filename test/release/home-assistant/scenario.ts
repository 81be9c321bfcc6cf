// A house with a hub, a cloud and a Home Assistant, in a network of its own: `node scenario.ts OPTIONS`. It prints what was
// seen as one JSON object, and fails at the first thing that is not as it should be.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { ApplianceResponse } from '../../../src/control/messages.ts';
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { logFile, rememberSecrets } from '../../support/logs.ts';
import { type FlowStep, HomeAssistant, writeConfiguration } from './home-assistant.ts';

export interface ScenarioOptions {
  /** The command that runs Home Assistant with the folder of its configuration, which is appended. */
  readonly hass: readonly string[];
  /** The folder that HACS would download. */
  readonly integration: string;
  /** An empty folder for the configuration. */
  readonly config: string;
  /** How many refreshes to wait for. */
  readonly refreshes: number;
  /** How often each side is started again. */
  readonly restarts: number;
  /** How long the hub is away, in seconds: longer than a token lives. */
  readonly away: number;
}

/** What a scenario has seen. */
export interface ScenarioResult {
  readonly refreshes: number;
  readonly restarts: number;
  /** How often an integration asked a person to log in again. */
  readonly logins: number;
  /** The lines of Home Assistant's log, from a warning on, that name the hub. */
  readonly lines: readonly string[];
}

const CONNECTION = 'demo-cloud';
/** In seconds. Home Assistant asks for another token when 20 s are left. */
const TOKEN_LIFETIME = 30;
const PORT = 8123;

const options: ScenarioOptions = JSON.parse(process.argv[2] ?? '');
const address = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
if (address === undefined) throw new Error('there is no network here');

const log = logFile('home-assistant');
let program: ChildProcess | null = null;
const frontend = new HomeAssistant(`http://127.0.0.1:${PORT}`);

async function startHomeAssistant(cloud: string): Promise<void> {
  const [command = '', ...args] = options.hass;
  program = spawn(command, [...args, options.config], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEMO_CLOUD: cloud },
  });
  for (const output of [program.stdout, program.stderr])
    output?.pipe(createWriteStream(log, { flags: 'a', mode: 0o600 }));
}

async function stopHomeAssistant(signal: NodeJS.Signals): Promise<void> {
  const running = program;
  program = null;
  if (running === null || running.exitCode !== null) return;
  running.kill(signal);
  await once(running, 'exit');
}

const say = (text: string) => process.stderr.write(`${text}\n`);

/** The state of an entity; null if there is none. */
async function stateOf(entity: string): Promise<string | null> {
  return (await frontend.states()).find(({ entity_id }) => entity_id === entity)?.state ?? null;
}

/** Waits until the cloud has accepted another call of Home Assistant. */
async function callsGoOn(): Promise<void> {
  const last = emulator.requests.at(-1)?.number ?? 0;
  const isAccepted = ({ number, endpoint, status }: (typeof emulator.requests)[number]) =>
    number > last && endpoint === 'whoami' && status === 200;
  await eventually(async () => emulator.requests.some(isAccepted), 60);
}

/** The repair issues of the integration. */
const issues = async () => (await frontend.issues()).filter(({ domain }) => domain === 'latchkey');

/** Makes the integration ask the hub now. */
const update = () => frontend.updateEntity(sensor);
let sensor = '';

await using emulator: Emulator = await startEmulator({ tokenLifetime: TOKEN_LIFETIME });
await using hub = await HubProcess.start({
  emulator,
  env: { LATCHKEY_LAN_ADDRESS: address, LATCHKEY_LAN_LISTEN: '0.0.0.0' },
});
await using stopping = new AsyncDisposableStack();
stopping.defer(() => stopHomeAssistant('SIGKILL'));

await writeConfiguration(options.config, options.integration, ['api', 'config', 'http', 'onboarding', 'repairs']);
const running = () => eventually(() => frontend.isRunning(), 60, 500);
await startHomeAssistant(emulator.baseUrl);
await eventually(() => frontend.visit(`http://127.0.0.1:${PORT}/manifest.json`).catch(() => null), 60, 500);
await frontend.onboard();
await running();
say('Home Assistant runs');

// Found, and approved by the code that both sides show.
await hub.addConnection(CONNECTION, 'Monitoring');
const found = await eventually(async () => {
  const flows = await frontend.flows();
  return flows.find(({ handler, context }) => handler === 'latchkey' && context.source === 'zeroconf');
}, 30);
const flow = found.flow_id;
expectStep(await frontend.flow(flow), 'join_menu');
const closed = await frontend.step(flow, { next_step_id: 'join' });
if (closed.errors?.['base'] !== 'registration_closed') throw new Error(`not closed: ${JSON.stringify(closed)}`);
await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
const waiting = await frontend.step(flow);
const code = String(waiting.description_placeholders?.['code']);
await hub.json<ApplianceResponse>('appliance', 'approve', 'home-assistant', '--code', code);
await hub.json<ApplianceResponse>('appliance', 'move', 'home-assistant', '--connection', CONNECTION);
await finish(flow);
const entry = await eventually(async () => {
  const entries = await frontend.entries();
  return entries.find(({ domain, state }) => domain === 'latchkey' && state === 'loaded');
}, 30);
say(`approved with ${code}`);
sensor = await eventually(async () => {
  const sensors = (await frontend.states()).map(({ entity_id }) => entity_id);
  return sensors.find((id) => id.startsWith('sensor.') && id.endsWith('demo_cloud'));
});
await eventually(async () => (await issues()).some(({ translation_key }) => translation_key === 'login'));
say('a repair issue asks for the login');

// The integration of the cloud logs in through the hub.
const begun = await frontend.startFlow('demo_cloud');
await logIn(String(begun.url));
await finish(begun.flow_id);
await callsGoOn();
await update();
await eventually(async () => (await issues()).length === 0 && (await stateOf(sensor)) === 'active');
say('the integration has a token, and the repair issue is gone');

// The hub refreshes; nothing else does.
const refreshes = () => emulator.grants().reduce((sum, { generation }) => sum + generation, 0);
await eventually(async () => refreshes() >= options.refreshes, options.refreshes * TOKEN_LIFETIME);
await callsGoOn();
const counted = refreshes();
say(`${counted} refreshes`);

for (let round = 1; round <= options.restarts; round++) {
  await hub.kill(round % 2 === 0 ? 'SIGTERM' : 'SIGKILL');
  await hub.launch();
  await callsGoOn();
  await stopHomeAssistant(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
  await startHomeAssistant(emulator.baseUrl);
  await running();
  await callsGoOn();
  say(`restart ${round} of each side`);
}

// Home Assistant starts while the hub is away, longer than the token lives.
await stopHomeAssistant('SIGTERM');
await hub.kill('SIGTERM');
await startHomeAssistant(emulator.baseUrl);
await running();
await new Promise((resolve) => setTimeout(resolve, options.away * 1000));
await hub.launch();
await eventually(async () => (await stateOf(sensor)) === 'active', 120, 1000);
await callsGoOn();
say(`the hub was away for ${options.away} s`);

await hub.kill('SIGKILL');
await update();
await update();
await eventually(async () => (await stateOf(sensor)) === 'unavailable');
await hub.launch();
await update();
await eventually(async () => (await stateOf(sensor)) === 'active');
await callsGoOn();
say('the hub was away once more');

// The hub has another address: its announcement is enough.
const file = join(hub.directory, 'latchkey.toml');
const toml = await readFile(file, 'utf8');
const port = hub.httpsPort - 1000;
await hub.kill('SIGTERM');
await writeFile(file, toml.replace(/https_port = \d+/, `https_port = ${port}`));
await hub.launch();
await eventually(async () => (await storedHub()).port === port, 60);
await eventually(async () => (await stateOf(sensor)) === 'active');
await callsGoOn();
say('the hub has another port');

// A planned rotation of the CA: the integration takes over the new one, and does not need the old one any more.
await hub.ask((control) => control.request('rotateAuthority', { keep: 86_400 }));
await frontend.reload(entry.entry_id);
await callsGoOn();
const { certificate } = await hub.authority();
await eventually(async () => (await storedHub()).ca.trim() === certificate.trim(), 30);
await hub.ask((control) => control.request('keepOldAuthority', { keep: 0 }));
await update();
await eventually(async () => (await stateOf(sensor)) === 'active');
say('the CA was rotated, and the old one has ended');

// The cloud refuses an access token that should still be valid: no person is asked.
for (const { id, revoked } of emulator.grants()) if (!revoked) emulator.revoke(id, 'access_tokens');
await eventually(async () => (await reauthentications()).length > 0, 30);
await update();
await eventually(async () => (await reauthentications()).length === 0, 90);
await callsGoOn();
say('a refused token was replaced');

// A backup is restored.
const backup = join(options.config, 'backup');
const passphrase = join(hub.directory, 'passphrase');
await writeFile(passphrase, 'a passphrase of the test', { mode: 0o600 });
await hub.json('backup', backup, '--passphrase-file', passphrase);
await hub.json('restore', backup, '--passphrase-file', passphrase, '--yes');
await callsGoOn();
await update();
await eventually(async () => (await stateOf(sensor)) === 'active');
say('a backup was restored');

// The cloud ends the login: a repair issue comes, and goes when somebody has logged in at the hub.
for (const { id, revoked } of emulator.grants()) if (!revoked) emulator.revoke(id);
await eventually(async () => (await hub.connection(CONNECTION)).state === 'needs_pairing', 60);
await update();
await eventually(async () => (await issues()).some(({ translation_key }) => translation_key === 'login'));
await hub.pair(CONNECTION, emulator);
await update();
await eventually(async () => (await issues()).length === 0);
await eventually(async () => (await stateOf(sensor)) === 'active' && (await reauthentications()).length === 0, 90);
await callsGoOn();
say('the repair issue came and went');

const logins = (await reauthentications()).length;
await stopHomeAssistant('SIGTERM');
rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
const lines = readFileSync(log, 'utf8')
  .split('\n')
  .filter((line) => /WARNING|ERROR|CRITICAL/.test(line) && /latchkey|demo_cloud/i.test(line));
const result: ScenarioResult = { refreshes: counted, restarts: options.restarts, logins, lines };
process.stdout.write(`${JSON.stringify(result)}\n`);
await rm(backup, { force: true });

/** The integrations that ask a person to log in again. */
async function reauthentications() {
  return (await frontend.flows()).filter(({ context }) => context.source === 'reauth');
}

/** What Home Assistant has stored of the hub. */
async function storedHub(): Promise<{ readonly port: number; readonly ca: string }> {
  const text = await readFile(join(options.config, '.storage/core.config_entries'), 'utf8');
  const { data }: { data: { entries: { domain: string; data: { port: number; ca: string } }[] } } = JSON.parse(text);
  const found = data.entries.find(({ domain }) => domain === 'latchkey');
  if (found === undefined) throw new Error('the hub is not stored');
  return found.data;
}

/** Waits for the end of a flow, as the frontend does: it asks for the next step again and again. */
async function finish(id: string): Promise<void> {
  const { type, reason } = await eventually(
    async () => {
      const step = await frontend.flow(id);
      return ['create_entry', 'abort'].includes(step.type) && step;
    },
    60,
    1000,
  );
  if (type !== 'create_entry') throw new Error(`not set up: ${reason}`);
}

function expectStep(step: FlowStep, id: string): void {
  if (step.step_id !== id) throw new Error(`expected ${id}: ${JSON.stringify(step)}`);
}

/** Opens the hub's page for a login, as a browser would, and logs in at the cloud. */
async function logIn(url: string): Promise<void> {
  const agent = new Agent({ connect: { ca: (await hub.authority()).certificate } });
  const { origin, searchParams } = new URL(url);
  const opened = await request(`${origin}/pair`, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ user_code: searchParams.get('user_code') ?? '' }).toString(),
  });
  await opened.body.dump();
  const state = new URL(String(opened.headers['location'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  await frontend.visit(location);
  await agent.destroy();
}
