import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import type { HubProcess } from '../support/hub-process.ts';

/** Where tokens are tried out. */
interface Portal {
  readonly baseUrl: string;
}

/** A token that an appliance was given, and what the portal said of it right afterwards. */
export interface HandOut {
  readonly appliance: string;
  /** By the emulator's own word in the token: its grant, the how-manieth of it, and when it was issued (ms since 1970). */
  readonly grant: string;
  readonly generation: number;
  readonly issuedAt: number;
  /** When the appliance asked and when it was answered, in ms since 1970. */
  readonly asked: number;
  readonly answered: number;
  /** As the hub says, in seconds. */
  readonly expiresIn: number;
  /** Whether the portal took the token; one that was looked at after its announced end counts as taken. */
  readonly accepted: boolean;
}

/** An answer of the hub that is no token. */
export interface Refusal {
  readonly appliance: string;
  /** When it was answered, in ms since 1970. */
  readonly at: number;
  readonly status: number;
  readonly error: unknown;
  readonly retryAfter: unknown;
}

/** Appliances that ask for their tokens again and again, each on a connection of its own, and use them at once. */
export class Load implements AsyncDisposable {
  readonly handOuts: HandOut[] = [];
  readonly refusals: Refusal[] = [];
  /** Requests that the hub did not answer, because it was not there. */
  unanswered = 0;
  readonly #hub: HubProcess;
  readonly #portal: Portal;
  readonly #agents: Agent[] = [];
  readonly #stop = new AbortController();
  #loops: Promise<void>[] = [];

  private constructor(hub: HubProcess, portal: Portal) {
    this.#hub = hub;
    this.#portal = portal;
  }

  /** @param every ms between two requests of one appliance */
  static async start(
    hub: HubProcess,
    portal: Portal,
    fleet: readonly CredentialsAnswer[],
    every: number,
  ): Promise<Load> {
    const load = new Load(hub, portal);
    const { certificate } = await hub.ask((control) => control.authority());
    load.#loops = fleet.map((appliance, index) =>
      load.#run(appliance, certificate, every, (index * every) / fleet.length),
    );
    return load;
  }

  /** The hand-outs that the portal refused although their time had not run out. */
  get refused(): HandOut[] {
    return this.handOuts.filter(({ accepted }) => !accepted);
  }

  /** The refusals of appliances whose last token, by the hub's own word, had more than a second to live. */
  get unfounded(): Refusal[] {
    return this.refusals.filter(({ appliance, at }) => {
      const last = this.handOuts.findLast((one) => one.appliance === appliance && one.answered <= at);
      return last !== undefined && at < livesUntil(last) - 1000;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    await Promise.all(this.#agents.map((agent) => agent.destroy()));
  }

  async #run(appliance: CredentialsAnswer, ca: string, every: number, offset: number): Promise<void> {
    const agent = new Agent({ connections: 1, connect: { ca } });
    this.#agents.push(agent);
    const started = Date.now() + offset;
    for (let round = 0; !this.#stop.signal.aborted; round++) {
      const wait = started + round * every - Date.now();
      if (wait > 0) await sleep(wait, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      if (this.#stop.signal.aborted) return;
      await this.#ask(appliance, agent).catch(() => {
        this.unanswered += 1;
      });
    }
  }

  async #ask({ name, client_id, client_secret }: CredentialsAnswer, dispatcher: Agent): Promise<void> {
    const asked = Date.now();
    const { statusCode, headers, body } = await request(`https://127.0.0.1:${this.#hub.httpsPort}/oauth/token`, {
      method: 'POST',
      dispatcher,
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    });
    const answer = (await body.json()) as Record<string, unknown>;
    const answered = Date.now();
    const token = answer['access_token'];
    if (statusCode !== 200 || typeof token !== 'string') {
      const retryAfter = headers['retry-after'];
      this.refusals.push({ appliance: name, at: answered, status: statusCode, error: answer['error'], retryAfter });
      return;
    }
    const expiresIn = Number(answer['expires_in']);
    const taken = (await whoami(this.#portal, token)) === 200;
    const accepted = taken || Date.now() > asked + expiresIn * 1000;
    this.handOuts.push({ appliance: name, ...claimsOf(token), asked, answered, expiresIn, accepted });
  }
}

/** The hub's clock counts in steps of 10 ms. */
const CLOCK_STEP = 10;

/** Until when, by the hub's own word, a token that was handed out lives, in ms since 1970. */
export function livesUntil({ asked, expiresIn }: HandOut): number {
  return asked + 1000 * expiresIn - CLOCK_STEP;
}

/** What the portal answers to who brings this token. */
export async function whoami(portal: Portal, token: unknown): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const { statusCode, body } = await request(`${portal.baseUrl}/api/whoami`, { headers });
  await body.dump();
  return statusCode;
}

/** The emulator's tokens say in the clear what grant they belong to, which one of it they are and when they were issued. */
function claimsOf(token: string): Pick<HandOut, 'grant' | 'generation' | 'issuedAt'> {
  const [grant = '', generation, issuedAt] = token.split('.');
  return { grant, generation: Number(generation), issuedAt: Number(issuedAt) };
}
