import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import type { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** Where tokens are tried out; `ca` is its CA's certificate, PEM, where it speaks TLS. */
interface Portal {
  readonly baseUrl: string;
  readonly ca?: string | null;
}

/** What the portal answers to who brings a token: HTTP 200 or 401, and whose and what for it is. */
interface Verdict {
  readonly status: number;
  readonly user?: string;
  readonly scope?: string;
}

/** A token that an appliance was given, and what the portal said of it right afterwards. */
export interface ReceivedToken {
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
  /** As the hub says. */
  readonly scope: unknown;
  /** Null where the portal was out of reach. */
  readonly verdict: Verdict | null;
  /** Whether the portal took the token; one that was looked at after its announced end counts as taken, and one that was not. */
  readonly accepted: boolean;
}

/** An answer of the hub that is no token. */
export interface RejectedTokenRequest {
  readonly appliance: string;
  /** When it was asked for and answered, in ms since 1970. */
  readonly asked: number;
  readonly answered: number;
  readonly status: number;
  readonly error: unknown;
  readonly retryAfter: unknown;
}

/** How appliances ask. */
interface LoadOptions {
  /** Requests of one appliance at a time, beyond which none is made, so that a busy machine catches up; default: 1. */
  readonly atOnce?: number;
  /** How often a request that is not answered is sent; default: 1. */
  readonly tries?: number;
  /** The requests after which an appliance takes another connection: handshakes belong to the load. Default: none. */
  readonly perConnection?: number;
}

/** Appliances that ask for their tokens again and again, each on a connection of its own, and use them at once. */
export class TokenLoad implements AsyncDisposable {
  readonly handOuts: ReceivedToken[] = [];
  readonly refusals: RejectedTokenRequest[] = [];
  /** Requests that were sent. */
  asked = 0;
  /** Requests that the hub did not answer, because it was not there. */
  unanswered = 0;
  readonly #hub: HubProcess;
  readonly #portal: Portal;
  readonly #options: Required<LoadOptions>;
  readonly #portalAgent: Agent;
  readonly #tokens = new Set<string>();
  readonly #stop = new AbortController();
  #loops: Promise<void>[] = [];

  private constructor(hub: HubProcess, portal: Portal, options: LoadOptions) {
    this.#hub = hub;
    this.#portal = portal;
    this.#options = { atOnce: 1, tries: 1, perConnection: Number.POSITIVE_INFINITY, ...options };
    this.#portalAgent = agentOf(portal);
  }

  /** @param every ms between two requests of one appliance */
  static async start(
    hub: HubProcess,
    portal: Portal,
    fleet: readonly CredentialsResponse[],
    every: number,
    options: LoadOptions = {},
  ): Promise<TokenLoad> {
    const load = new TokenLoad(hub, portal, options);
    const { certificate: ca } = await hub.authority();
    load.#loops = fleet.map((appliance, index) => {
      const localAddress = `127.0.1.${(index % 250) + 1}`;
      const connect = () => new Agent({ connect: { ca, localAddress }, headersTimeout: MAX_WAIT_MS });
      return load.#run(appliance, connect, every, (index * every) / fleet.length);
    });
    return load;
  }

  /** The hand-outs that the portal refused although their time had not run out. */
  get refused(): ReceivedToken[] {
    return this.handOuts.filter(({ accepted }) => !accepted);
  }

  /** The hand-outs that the portal was not reached for. */
  get untried(): ReceivedToken[] {
    return this.handOuts.filter(({ verdict }) => verdict === null);
  }

  /** The refusals of appliances whose last token, by the hub's own word, had more than a second to live. */
  get unfounded(): RejectedTokenRequest[] {
    return this.refusals.filter(({ appliance, answered: at }) => {
      const last = this.handOuts.findLast((one) => one.appliance === appliance && one.answered <= at);
      return last !== undefined && at < tokenExpiry(last) - 1000;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    await this.#portalAgent.destroy();
    rememberSecrets(this.#tokens);
    this.#tokens.clear();
  }

  async #run(appliance: CredentialsResponse, connect: () => Agent, every: number, offset: number): Promise<void> {
    const { atOnce, perConnection } = this.#options;
    const { signal } = this.#stop;
    const underWay = new Set<Promise<void>>();
    const started = performance.now() + offset;
    let agent = connect();
    for (let round = 0, sent = 0; ; round++) {
      const wait = started + round * every - performance.now();
      if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      if (underWay.size >= atOnce) continue;
      sent += 1;
      if (sent % perConnection === 0) {
        void agent.close();
        agent = connect();
      }
      const asking: Promise<void> = this.#ask(appliance, agent).finally(() => underWay.delete(asking));
      underWay.add(asking);
    }
    await Promise.all(underWay);
    await agent.close();
  }

  async #ask(appliance: CredentialsResponse, agent: Agent): Promise<void> {
    let isAnswered = false;
    for (let left = this.#options.tries; !isAnswered && left > 0; left--) {
      isAnswered = await this.#askOnce(appliance, agent).then(
        () => true,
        () => false,
      );
    }
    if (!isAnswered) this.unanswered += 1;
  }

  async #askOnce(credentials: CredentialsResponse, agent: Agent): Promise<void> {
    const appliance = credentials.name;
    const asked = Date.now();
    this.asked += 1;
    const { status, headers, body } = await this.#hub.requestToken(credentials, {}, agent);
    const answered = Date.now();
    const { access_token: token, error, scope } = body;
    if (status !== 200 || typeof token !== 'string') {
      this.refusals.push({ appliance, asked, answered, status, error, retryAfter: headers['retry-after'] });
      return;
    }
    this.#tokens.add(token);
    const expiresIn = Number(body['expires_in']);
    const verdict = await tryOut(this.#portal, token, this.#portalAgent).catch(() => null);
    const accepted = verdict === null || verdict.status === 200 || Date.now() > asked + expiresIn * 1000;
    this.handOuts.push({ appliance, ...claimsOf(token), asked, answered, expiresIn, scope, verdict, accepted });
  }
}

/** The hub's clock counts in steps of 10 ms. */
const CLOCK_STEP = 10;
/** The hub makes nobody wait for longer than 10 s, in ms. */
const MAX_WAIT_MS = scaleDeadline(10_000);

/** Until when, by the hub's own word, a token that was handed out lives, in ms since 1970. */
export function tokenExpiry({ asked, expiresIn }: ReceivedToken): number {
  return asked + 1000 * expiresIn - CLOCK_STEP;
}

/** What the portal answers to who brings this token. @returns the HTTP status */
export async function whoami(portal: Portal, token: unknown): Promise<number> {
  const agent = agentOf(portal);
  try {
    return (await tryOut(portal, token, agent)).status;
  } finally {
    await agent.close();
  }
}

function agentOf({ ca = null }: Portal): Agent {
  return new Agent({ connections: 16, connect: { ca: ca ?? [] } });
}

async function tryOut({ baseUrl }: Portal, token: unknown, dispatcher: Agent): Promise<Verdict> {
  const headers = { authorization: `Bearer ${token}` };
  const { statusCode, body } = await request(`${baseUrl}/api/whoami`, { headers, dispatcher });
  const text = await body.text();
  return { ...(text === '' ? {} : JSON.parse(text)), status: statusCode };
}

/** The emulator's tokens say in the clear what grant they belong to, which one of it they are and when they were issued. */
function claimsOf(token: string): Pick<ReceivedToken, 'grant' | 'generation' | 'issuedAt'> {
  const [grant = '', generation, issuedAt] = token.split('.');
  return { grant, generation: Number(generation), issuedAt: Number(issuedAt) };
}
