// What honest ones do while the hub is fuzzed: appliances ask for their tokens, and somebody logs in so that device flows end.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { FuzzProblem } from '../batch.ts';
import type { KnownValues } from '../known-values.ts';
import { postForm, tokenUser } from './client.ts';
import type { FuzzCredentials, LearnedKind } from './facts.ts';
import { type FuzzedHub, USERS } from './fuzzed-hub.ts';

/** Milliseconds between two requests of an appliance's, and between two logins. */
const TOKEN_REQUEST_INTERVAL_MS = 100;
const LOGIN_INTERVAL_MS = 300;
/** Milliseconds that the hub takes at most for any answer, and as many again for a busy machine. */
const RESPONSE_TIMEOUT_MS = 20_000;
/** User codes may have ended, and who brings too many of those is slowed down: nobody else shares this address. */
const ADDRESS = '127.0.0.2';

/** An honest appliance. */
export interface HonestAppliance {
  readonly client: FuzzCredentials;
  /** Its own so far: who asks for one that lasts has it refreshed. */
  token: string;
  /** Whose tokens are right for it. */
  readonly owner: string;
}

/**
 * Asks for tokens again and again, all the time until it is over.
 * @throws Problem where one is not served, or not rightly
 */
export async function requestTokensContinuously(
  home: FuzzedHub,
  served: readonly HonestAppliance[],
  over: () => boolean,
): Promise<void> {
  let times = 0;
  while (!over()) {
    for (const one of served) {
      await ask(home, one);
      times += 1;
    }
    await sleep(TOKEN_REQUEST_INTERVAL_MS);
  }
  if (times === 0) throw new FuzzProblem('no honest appliance was served', '');
}

async function ask(home: FuzzedHub, one: HonestAppliance): Promise<void> {
  const { client, owner } = one;
  const began = performance.now();
  const form = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret };
  const { status, body } = await postForm(home, '/oauth/token', form).catch((error: unknown) => {
    throw new FuzzProblem('an honest appliance was not answered', String(error));
  });
  const took = performance.now() - began;
  if (status !== 200) throw new FuzzProblem(`an honest appliance was answered ${status}`, JSON.stringify(body));
  if (body['access_token'] !== one.token) {
    const user = await tokenUser(home, body['access_token']);
    if (user !== owner) throw new FuzzProblem(`an honest appliance got a token of ${user}`, '');
    one.token = String(body['access_token']);
  }
  if (took > RESPONSE_TIMEOUT_MS) throw new FuzzProblem('an honest appliance waited too long', `${took.toFixed(0)} ms`);
}

/** Logs in through the newest user codes until it is over. @throws Problem where there is no answer */
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
    throw new FuzzProblem('a person was not answered', String(error));
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
  // A pairing that another one has replaced is over, and its link with it.
  const login = await emulator.login({ state, user: USERS.attacker }).catch(() => null);
  if (login !== null) await (await request(login.location, { dispatcher })).body.dump();
}
