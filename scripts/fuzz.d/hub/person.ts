// Somebody who opens the links of device flows and logs in while the hub is fuzzed, so that flows come to their end.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { HubFacts } from './facts.ts';
import { type FuzzedHome, USERS } from './home.ts';

/** Milliseconds between two logins. */
const EVERY = 300;
/** Codes may have ended, and who brings too many of those is slowed down: nobody else shares this address. */
const ADDRESS = '127.0.0.2';

/** Logs in through the newest user codes until told to stop. @returns how often the portal had a code for the hub then */
export async function person(
  { ports, emulator }: FuzzedHome,
  facts: Pick<HubFacts, 'userCodes'>,
  stopped: () => boolean,
): Promise<number> {
  const dispatcher = new Agent({ localAddress: ADDRESS, connect: { ca: ports.ca } });
  let times = 0;
  for (let turn = 0; !stopped(); turn += 1) {
    const { headers, body } = await request(`https://127.0.0.1:${ports.httpsPort}/pair`, {
      method: 'POST',
      dispatcher,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `user_code=${encodeURIComponent(facts.userCodes[turn % facts.userCodes.length] ?? '')}`,
    });
    await body.dump();
    const link = headers['location'];
    const state = typeof link === 'string' && URL.canParse(link) ? new URL(link).searchParams.get('state') : null;
    if (state !== null) {
      // A pairing that another one has replaced is over, and its link with it.
      const login = await emulator.login({ state, user: USERS.attacker }).catch(() => null);
      if (login !== null) {
        await (await request(login.location, { dispatcher })).body.dump();
        times += 1;
      }
    }
    await sleep(EVERY);
  }
  await dispatcher.close();
  return times;
}
