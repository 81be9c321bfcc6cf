// What honest ones do while the hub is fuzzed: appliances ask for their tokens, and somebody logs in so that device flows end.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { Problem } from '../batch.ts';
import type { Known } from '../known.ts';
import { postForm, userOf } from './client.ts';
import type { Credentials, Learned } from './facts.ts';
import { type FuzzedHome, USERS } from './home.ts';

/** Milliseconds between two requests of an appliance's, and between two logins. */
const ASKED_EVERY = 100;
const LOGIN_EVERY = 300;
/** Milliseconds that the hub takes at most for any answer, and as many again for a busy machine. */
const SLOWEST = 20_000;
/** User codes may have ended, and who brings too many of those is slowed down: nobody else shares this address. */
const ADDRESS = '127.0.0.2';

/** An honest appliance. */
export interface Served {
  readonly client: Credentials;
  /** Its own so far: who asks for one that lasts has it refreshed. */
  token: string;
  /** Whose tokens are right for it. */
  readonly owner: string;
}

/**
 * Asks for tokens again and again, all the time until it is over.
 * @throws Problem where one is not served, or not rightly
 */
export async function witness(home: FuzzedHome, served: readonly Served[], over: () => boolean): Promise<void> {
  let times = 0;
  while (!over()) {
    for (const one of served) {
      await ask(home, one);
      times += 1;
    }
    await sleep(ASKED_EVERY);
  }
  if (times === 0) throw new Problem('no honest appliance was served', '');
}

async function ask(home: FuzzedHome, one: Served): Promise<void> {
  const { client, owner } = one;
  const began = performance.now();
  const form = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret };
  const { status, body } = await postForm(home, '/oauth/token', form).catch((error: unknown) => {
    throw new Problem('an honest appliance was not answered', String(error));
  });
  const took = performance.now() - began;
  if (status !== 200) throw new Problem(`an honest appliance was answered ${status}`, JSON.stringify(body));
  if (body['access_token'] !== one.token) {
    const user = await userOf(home, body['access_token']);
    if (user !== owner) throw new Problem(`an honest appliance got a token of ${user}`, '');
    one.token = String(body['access_token']);
  }
  if (took > SLOWEST) throw new Problem('an honest appliance waited too long', `${took.toFixed(0)} ms`);
}

/** Logs in through the newest user codes until it is over. @throws Problem where there is no answer */
export async function person(home: FuzzedHome, known: Known<Learned>, over: () => boolean): Promise<void> {
  const dispatcher = new Agent({ localAddress: ADDRESS, connect: { ca: home.ports.ca } });
  try {
    for (let turn = 0; !over(); turn += 1) {
      const codes = known.all('userCodes');
      await logInBy(home, codes[turn % codes.length] ?? '', dispatcher);
      await sleep(LOGIN_EVERY);
    }
  } catch (error) {
    throw new Problem('a person was not answered', String(error));
  } finally {
    await dispatcher.close();
  }
}

async function logInBy({ ports, emulator }: FuzzedHome, userCode: string, dispatcher: Agent): Promise<void> {
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
