// Regular clients while the hub is fuzzed: appliances request their tokens, and somebody logs in so that device flows
// complete.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { FuzzProblem } from '../batch.ts';
import type { KnownValues } from '../known-values.ts';
import { postForm, tokenUser } from './client.ts';
import type { FuzzCredentials, LearnedKind } from './facts.ts';
import { type FuzzedHub, USERS } from './fuzzed-hub.ts';

/** The interval of an appliance's token requests, and of logins, in ms. */
const TOKEN_REQUEST_INTERVAL_MS = 100;
const LOGIN_INTERVAL_MS = 300;
/** The hub's maximum response time of 10 s, and as much again for a busy machine, in ms. */
const RESPONSE_TIMEOUT_MS = 20_000;
/** An address of its own, because the hub throttles an address that sends too many expired user codes. */
const ADDRESS = '127.0.0.2';

/** A regular appliance. */
export interface HonestAppliance {
  readonly client: FuzzCredentials;
  /** Its current token, which changes if another request with `min_ttl` causes a refresh. */
  token: string;
  /** The user whose tokens it must get. */
  readonly owner: string;
}

/**
 * Requests tokens repeatedly until `over`.
 * @throws FuzzProblem if a response is missing, late or wrong
 */
export async function requestTokensContinuously(
  home: FuzzedHub,
  appliances: readonly HonestAppliance[],
  over: () => boolean,
): Promise<void> {
  let times = 0;
  while (!over()) {
    for (const appliance of appliances) {
      await requestToken(home, appliance);
      times += 1;
    }
    await sleep(TOKEN_REQUEST_INTERVAL_MS);
  }
  if (times === 0) throw new FuzzProblem('no regular appliance got a token', '');
}

async function requestToken(home: FuzzedHub, one: HonestAppliance): Promise<void> {
  const { client, owner } = one;
  const began = performance.now();
  const form = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret };
  const { status, body } = await postForm(home, '/oauth/token', form).catch((error: unknown) => {
    throw new FuzzProblem('a regular appliance got no response', String(error));
  });
  const took = performance.now() - began;
  if (status !== 200) throw new FuzzProblem(`a regular appliance got the status ${status}`, JSON.stringify(body));
  if (body['access_token'] !== one.token) {
    const user = await tokenUser(home, body['access_token']);
    if (user !== owner) throw new FuzzProblem(`a regular appliance got a token of ${user}`, '');
    one.token = String(body['access_token']);
  }
  if (took > RESPONSE_TIMEOUT_MS) throw new FuzzProblem('a regular appliance waited too long', `${took.toFixed(0)} ms`);
}

/** Logs in through the newest user codes until `over`. @throws FuzzProblem if there is no response */
export async function logInContinuously(
  home: FuzzedHub,
  known: KnownValues<LearnedKind>,
  over: () => boolean,
): Promise<void> {
  const dispatcher = new Agent({ localAddress: ADDRESS, connect: { ca: home.ports.ca } });
  try {
    for (let turn = 0; !over(); turn += 1) {
      const codes = known.all('userCodes');
      await logInBy(home, codes[turn % codes.length] ?? '', dispatcher);
      await sleep(LOGIN_INTERVAL_MS);
    }
  } catch (error) {
    throw new FuzzProblem('a login got no response', String(error));
  } finally {
    await dispatcher.close();
  }
}

async function logInBy({ ports, emulator }: FuzzedHub, userCode: string, dispatcher: Agent): Promise<void> {
  const { headers, body } = await request(`https://127.0.0.1:${ports.httpsPort}/pair`, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `user_code=${encodeURIComponent(userCode)}`,
  });
  await body.dump();
  const link = headers['location'];
  const state = typeof link === 'string' && URL.canParse(link) ? new URL(link).searchParams.get('state') : null;
  if (state === null) return;
  // The login fails if another pairing has replaced this one, because its link is then invalid.
  const login = await emulator.login({ state, user: USERS.attacker }).catch(() => null);
  if (login !== null) await (await request(login.location, { dispatcher })).body.dump();
}
