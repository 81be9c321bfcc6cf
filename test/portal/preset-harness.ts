import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import type { Cloud } from '../../src/clouds/cloud.ts';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import type { OAuth2PortalConfiguration } from '../../src/configuration/portals.ts';
import { parseStatefulResponse, type StatefulResponse } from '../../src/core/pairings/authorization-response.ts';
import type { Emulator, LoggedRequest } from '../../src/emulator/index.ts';
import { findProfile } from '../../src/emulator/settings/profiles.ts';
import { BrokerHarness, pairingResult, UNKNOWN_BROWSER } from '../broker/broker-harness.ts';
import { administrationOf } from '../broker/broker-services.ts';
import { stateFolder } from '../support/state-folder.ts';

const CLIENT_ID = 'the-client-of-this-house';
const CLIENT_SECRET = 'the-secret-of-this-house';

/** The redirect URI that a person registers at a cloud; null: the hub's own. */
const REDIRECT_URIS = {
  lan: null,
  fixed: null,
  localhost: 'http://localhost:8765/back',
  https: 'https://hub.example/callback',
};

/** The paths of the emulator for the keys of a preset. */
const ENDPOINTS = {
  authorization_endpoint: '/oauth2/authorize',
  token_endpoint: '/oauth2/token',
  device_authorization_endpoint: '/oauth2/device_authorization',
  revocation_endpoint: '/oauth2/revoke',
} as const;

/** A hub that is configured with a preset, and the double of its cloud: the emulator with the profile of that name. */
export class PresetHub implements AsyncDisposable {
  readonly harness: BrokerHarness;
  readonly #apiHeaders: Readonly<Record<string, string>>;
  readonly #pastes: boolean;

  private constructor(harness: BrokerHarness, preset: Cloud) {
    this.harness = harness;
    const headers = Object.entries(preset.api?.headers ?? {});
    const { clientId } = harness.emulator;
    this.#apiHeaders = Object.fromEntries(
      headers.map(([name, value]) => [name, value.replace('{client_id}', clientId)]),
    );
    this.#pastes = preset.redirect === 'localhost';
  }

  static async start(preset: Cloud): Promise<PresetHub> {
    const id = preset.settings.client_id ?? CLIENT_ID;
    const secret = findProfile(preset.name)?.isPublic === true ? {} : { secret: CLIENT_SECRET };
    const harness = await BrokerHarness.start({
      emulator: { profile: preset.name, clients: [{ id, ...secret }], showSecrets: true },
      portals: async (double) => [await configure(preset, double)],
    });
    return new PresetHub(harness, preset);
  }

  get emulator(): Emulator {
    return this.harness.emulator;
  }

  get lifetime(): number {
    return 1000 * this.emulator.settings.tokenLifetime;
  }

  /** The refreshes that reached the double. */
  get refreshes(): LoggedRequest[] {
    return this.emulator.requests.filter(
      ({ form, query }) => (form['grant_type'] ?? query['grant_type']) === 'refresh_token',
    );
  }

  get connection(): string {
    return this.harness.connection('house').id;
  }

  get status() {
    return this.harness.statusOf('house');
  }

  /** Logs in in the way of the preset. @returns how the pairing ended */
  async logIn(): Promise<string> {
    const { harness, emulator } = this;
    await harness.addAppliance('house', null);
    const run = await harness.beginPairing('house');
    const { step } = run.pairing;
    if (step.kind !== 'waiting') return pairingResult(step);
    const { link } = step;
    if (link.kind === 'device') {
      await emulator.approveDevice({ userCode: link.userCode, user: 'demo' });
      await harness.time.pass(20_000);
    } else {
      const response = await browse(link.authorizeUrl);
      if (response === null) return 'refused by the page of the cloud';
      await harness.run.pairings.receive(response, this.#pastes ? null : UNKNOWN_BROWSER);
      await harness.time.settle();
    }
    return run.pairing.lastFailure ?? pairingResult(run.pairing.step);
  }

  /** The status of a call of the API of the cloud with this token. */
  async call(token: string): Promise<number> {
    const headers = { ...this.#apiHeaders, authorization: `Bearer ${token}` };
    const { statusCode, body } = await request(`${this.emulator.baseUrl}/api/whoami`, { headers });
    await body.dump();
    return statusCode;
  }

  /** The hub's current token. */
  token(): Promise<string> {
    return this.harness.token(this.connection);
  }

  /** Lets the token age until it has been refreshed. */
  async untilRefreshed(): Promise<void> {
    const before = this.refreshes.length;
    this.harness.time.suspend(0.7 * this.lifetime);
    await this.passUntil(() => this.refreshes.length > before, 0.4 * this.lifetime);
  }

  /** Lets time pass, at most `longest` ms, until `isTrue`. */
  async passUntil(isTrue: () => boolean, longest: number): Promise<void> {
    for (let passed = 0; !isTrue() && passed < longest; passed += this.lifetime / 100)
      await this.harness.time.pass(this.lifetime / 100);
  }

  unpair(): Promise<boolean | null> {
    return administrationOf(this.harness).unpair('house');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.harness[Symbol.asyncDispose]();
  }
}

/** Loads the configuration that a person of this cloud writes, with the endpoints of the double. */
async function configure(preset: Cloud, emulator: Emulator): Promise<OAuth2PortalConfiguration> {
  using folder = stateFolder();
  writeFileSync(join(folder.path, 'home.secret'), `${CLIENT_SECRET}\n`, { mode: 0o600 });
  const { settings, register, client_secret: secret, redirect } = preset;
  const redirectUri = settings.login === 'device' || redirect === null ? null : REDIRECT_URIS[redirect];
  const hasSecret = secret === 'required' || (secret === 'optional' && settings.login !== 'device');
  const variables = Object.entries(variablesOf(preset)).map(([name, value]) => `${name} = "${value}"`);
  const endpoints = Object.entries(ENDPOINTS).filter(([key]) => Object.hasOwn(settings, key));
  const keys = {
    preset: `"${preset.name}"`,
    ...(register !== null && { client_id: `"${CLIENT_ID}"` }),
    ...(hasSecret && { client_secret_file: '"home.secret"' }),
    ...(redirectUri !== null && { redirect_uri: `"${redirectUri}"` }),
    ...(variables.length > 0 && { variables: `{ ${variables.join(', ')} }` }),
    ...Object.fromEntries(endpoints.map(([key, path]) => [key, `"${emulator.frontendUrl}${path}"`])),
  };
  const lines = Object.entries(keys).map(([key, value]) => `${key} = ${value}`);
  const file = join(folder.path, 'latchkey.toml');
  writeFileSync(file, ['[portals.home]', ...lines, ''].join('\n'));
  const { portals } = await loadConfiguration(file, { HOME: folder.path });
  const [portal] = portals;
  if (portal?.type !== 'oauth2') throw new Error(`no oauth2 portal: ${portal?.type}`);
  return portal;
}

function variablesOf({ variables = {} }: Cloud): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).map(([name, variable]) => [name, variable.default ?? 'a1']));
}

/** A person opens the link and logs in. @returns what the browser brings to the hub; null if the cloud shows an error */
async function browse(link: string): Promise<StatefulResponse | null> {
  const page = await request(link);
  await page.body.dump();
  const landed = page.statusCode === 200 ? await submit(link) : page;
  const { location } = landed.headers;
  return location === undefined ? null : parseStatefulResponse(new URL(String(location)).searchParams);
}

async function submit(link: string) {
  const landed = await request(link, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username: 'demo', password: 'demo' }).toString(),
  });
  await landed.body.dump();
  return landed;
}
