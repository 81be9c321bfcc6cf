// A hub in a container, with its control socket on this machine, and its portal.
import { join } from 'node:path';
import { Agent, type Dispatcher, request } from 'undici';
import { type ControlClient, connectControlClient } from '../../../src/control/client.ts';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { eventually, startPairing } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import type { Containers } from './containers.ts';

/** What the emulator prints at its start. */
export interface EmulatorContainer {
  readonly base_url: string;
  readonly frontend_url: string;
  readonly client_id: string;
  readonly client_secret: string;
}

/** Starts the emulator's image, which logs everybody in. */
export async function startEmulatorContainer(
  containers: Containers,
  image: string,
  name = 'emulator',
): Promise<EmulatorContainer> {
  await containers.start(name, { image, command: ['--auto-login', '--json'] });
  const line = await eventually(async () =>
    (await containers.logs(name)).split('\n').find((one) => one.startsWith('{')),
  );
  const emulator = JSON.parse(line) as EmulatorContainer;
  rememberSecrets([emulator.client_secret]);
  return emulator;
}

/** The configuration of a hub by variables only, as options of `run`: on loopback, any free ports. */
export function hubVariables({ base_url, frontend_url, client_id }: EmulatorContainer): string[] {
  const variables = {
    HUB_NAME: 'Cellar hub',
    LAN_HTTP_PORT: 0,
    LAN_HTTPS_PORT: 0,
    LAN_ADDRESS: '127.0.0.1',
    LAN_LISTEN: '127.0.0.1',
    METRICS_LISTEN: '',
    PORTALS_HOME_BASE_URL: base_url,
    PORTALS_HOME_FRONTEND_URL: frontend_url,
    PORTALS_HOME_CLIENT_ID: client_id,
    PORTALS_HOME_CLIENT_SECRET_FILE: 'portal-home.secret',
  };
  return Object.entries(variables).flatMap(([key, value]) => ['--env', `LATCHKEY_${key}=${value}`]);
}

/** Asks a hub whose state is in a folder of this machine, as soon as it runs. */
export async function askHub<Result>(
  state: string,
  work: (control: ControlClient) => Promise<Result>,
): Promise<Result> {
  const client = await eventually(() => connectControlClient([join(state, 'control.sock')]).catch(() => null), 30);
  await using control = client;
  return await work(control);
}

/** Adds an appliance, and pairs it: the emulator redirects to the hub without asking. */
export async function addAndPair(state: string, name: string): Promise<CredentialsResponse> {
  const credentials = await askHub(state, (control) => control.request('addAppliance', { name }));
  rememberSecrets([credentials.client_secret]);
  const authorizeUrl = await askHub(state, (control) => startPairing(control, name));
  for (let next: string | undefined = authorizeUrl.href; next !== undefined; ) {
    const response: Dispatcher.ResponseData = await request(next);
    await response.body.dump();
    const { location } = response.headers;
    next = location === undefined ? undefined : new URL(String(location), next).href;
  }
  await eventually(async () => (await stateOf(state, name)) === 'active', 30);
  return credentials;
}

/** The `state` of an appliance. */
async function stateOf(state: string, name: string): Promise<string | undefined> {
  const { appliances } = await askHub(state, (control) => control.request('status'));
  return appliances.find((appliance) => appliance.name === name)?.state;
}

/** Requests a token as an appliance that trusts the hub's CA. @returns the status and the access token */
export async function requestToken(
  state: string,
  { client_id, client_secret }: CredentialsResponse,
): Promise<{ readonly status: number; readonly token: unknown }> {
  const [{ hub }, { certificate }] = await askHub(state, (control) =>
    Promise.all([control.request('status'), control.request('authority')]),
  );
  const agent = new Agent({ connect: { ca: certificate } });
  const { statusCode, body } = await request(`https://127.0.0.1:${hub.https_port}/oauth/token`, {
    method: 'POST',
    dispatcher: agent,
    headers: {
      authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials',
  });
  const { access_token } = (await body.json()) as { access_token?: unknown };
  await agent.close();
  return { status: statusCode, token: access_token };
}
