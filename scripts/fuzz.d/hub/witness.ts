// Honest appliances that ask for their tokens while the hub is fuzzed: they are served all the time, and rightly.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Findings } from '../findings.ts';
import { postForm, userOf } from './client.ts';
import type { Credentials } from './facts.ts';
import type { FuzzedHome } from './home.ts';

/** Milliseconds between two requests of an appliance's. */
const EVERY = 100;
/** Milliseconds that the hub takes at most for any answer, and as many again for a busy machine. */
const SLOWEST = 20_000;

/** Who asks. */
export interface Served {
  readonly client: Credentials;
  /** Its own so far: who asks for one that lasts has it refreshed. */
  token: string;
  /** Whose tokens are right for it. */
  readonly owner: string;
}

/** Asks again and again until it is told to stop. @returns how often it was served */
export async function witness(
  home: FuzzedHome,
  served: readonly Served[],
  stopped: () => boolean,
  findings: Findings,
  where: string,
): Promise<number> {
  let times = 0;
  while (!stopped()) {
    for (const one of served) {
      const { client, owner } = one;
      const began = performance.now();
      const form = { grant_type: 'client_credentials', client_id: client.id, client_secret: client.secret };
      try {
        const { status, body } = await postForm(home, '/oauth/token', form);
        const took = performance.now() - began;
        if (status !== 200)
          findings.problem(`an honest appliance was answered ${status}`, `${where}: ${JSON.stringify(body)}`);
        else if (body['access_token'] !== one.token) {
          const user = await userOf(home, body['access_token']);
          if (user !== owner) findings.problem(`an honest appliance got a token of ${user}`, where);
          one.token = String(body['access_token']);
        }
        if (took > SLOWEST) findings.problem('an honest appliance waited too long', `${where}: ${took.toFixed(0)} ms`);
        times += 1;
      } catch (error) {
        findings.problem('an honest appliance was not answered', `${where}: ${String(error)}`);
      }
    }
    await sleep(EVERY);
  }
  return times;
}
