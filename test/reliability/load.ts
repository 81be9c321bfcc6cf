import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { messageOf } from '../../src/core/failure.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import type { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** The portal at which tokens are used. `ca` is its CA certificate, PEM, if it uses TLS. */
interface Portal {
  readonly baseUrl: string;
  readonly ca?: string | null;
}

/** The portal's response to a token: the status 200 or 401, and the token's user and scope. */
interface Verdict {
  readonly status: number;
  readonly user?: string;
  readonly scope?: string;
}

/** A token that an appliance received, and the portal's response to it right afterwards. */
export interface ReceivedToken {
  readonly appliance: string;
  /**
   * From the emulator's token: the id of its grant, its number in the grant, and when it was issued (ms since 1970).
   */
  readonly grant: string;
  readonly generation: number;
  readonly issuedAt: number;
  /** The times of the request and the response, in ms since 1970. */
  readonly asked: number;
  readonly answered: number;
  /** From the hub's response, in seconds. */
  readonly expiresIn: number;
  /** From the hub's response. */
  readonly scope: unknown;
  /** Null if the portal was unreachable. */
  readonly verdict: Verdict | null;
  /** Whether the portal accepted the token; true also if it was not used, or only after its announced end. */
  readonly accepted: boolean;
}

/** A response of the hub without a token. */
export interface RejectedTokenRequest {
  readonly appliance: string;
  /** The times of the request and the response, in ms since 1970. */
  readonly asked: number;
  readonly answered: number;
  readonly status: number;
  readonly error: unknown;
  readonly retryAfter: unknown;
}

/** The options of a load. */
interface LoadOptions {
  /** The maximum of concurrent requests per appliance, so that a busy machine catches up; default: 1. */
  readonly atOnce?: number;
  /** How often a request is sent if it gets no response; default: 1. */
  readonly tries?: number;
  /**
   * The requests after which an appliance opens another connection, so that the load has handshakes. Default: no limit.
   */
  readonly perConnection?: number;
}

/** Appliances that request tokens repeatedly, each on its own connection, and use them at once. */
export class TokenLoad implements AsyncDisposable {
  readonly handOuts: ReceivedToken[] = [];
  readonly refusals: RejectedTokenRequest[] = [];
  /** The number of requests. */
  asked = 0;
  /** Why requests got no response: the error of the last try of each. */
  readonly unanswered: string[] = [];
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

  /** Starts the load. @param every the interval of an appliance's requests, in ms */
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
      const connect = () =>
        new Agent({ connect: { ca, localAddress, timeout: MAX_WAIT_MS }, headersTimeout: MAX_WAIT_MS });
      return load.#run(appliance, connect, every, (index * every) / fleet.length);
    });
    return load;
  }

  /** The issued tokens that the portal rejected although they had not expired. */
  get refused(): ReceivedToken[] {
    return this.handOuts.filter(({ accepted }) => !accepted);
  }

  /** The issued tokens that could not be used, because the portal was unreachable. */
  get untried(): ReceivedToken[] {
    return this.handOuts.filter(({ verdict }) => verdict === null);
  }

  /** The responses without a token although the last token had more than a second left, according to the hub. */
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
      const work: Promise<void> = this.#request(appliance, () => agent).finally(() => underWay.delete(work));
      underWay.add(work);
    }
    await Promise.all(underWay);
    await agent.close();
  }

  /** @param agentNow with the connection of the moment: that of the first try may be closed before the next one */
  async #request(appliance: CredentialsResponse, agentNow: () => Agent): Promise<void> {
    let failure: string | null = null;
    for (let left = this.#options.tries; left > 0; left--) {
      failure = await this.#requestOnce(appliance, agentNow()).then(() => null, messageOf);
      if (failure === null) return;
    }
    if (failure !== null) this.unanswered.push(failure);
  }

  async #requestOnce(credentials: CredentialsResponse, agent: Agent): Promise<void> {
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
    const verdict = await useToken(this.#portal, token, this.#portalAgent).catch(() => null);
    const accepted = verdict === null || verdict.status === 200 || Date.now() > asked + expiresIn * 1000;
    this.handOuts.push({ appliance, ...claimsOf(token), asked, answered, expiresIn, scope, verdict, accepted });
  }
}

/** The resolution of the hub's clock, in ms. */
const CLOCK_STEP = 10;
/** The hub responds within 10 s, in ms. */
const MAX_WAIT_MS = scaleDeadline(10_000);

/** The expiry of an issued token according to the hub, in ms since 1970. */
export function tokenExpiry({ asked, expiresIn }: ReceivedToken): number {
  return asked + 1000 * expiresIn - CLOCK_STEP;
}

/** Uses a token at the portal. @returns the HTTP status */
export async function whoami(portal: Portal, token: unknown): Promise<number> {
  const agent = agentOf(portal);
  try {
    return (await useToken(portal, token, agent)).status;
  } finally {
    await agent.close();
  }
}

function agentOf({ ca = null }: Portal): Agent {
  return new Agent({ connections: 16, connect: { ca: ca ?? [] } });
}

async function useToken({ baseUrl }: Portal, token: unknown, dispatcher: Agent): Promise<Verdict> {
  const headers = { authorization: `Bearer ${token}` };
  // It decodes answers that the portal compresses.
  const response = await fetch(`${baseUrl}/api/whoami`, { headers, dispatcher });
  const text = await response.text();
  return { ...(text === '' ? {} : JSON.parse(text)), status: response.status };
}

/** The parts of an emulator's token, which are in clear text. */
function claimsOf(token: string): Pick<ReceivedToken, 'grant' | 'generation' | 'issuedAt'> {
  const [grant = '', generation, issuedAt] = token.split('.');
  return { grant, generation: Number(generation), issuedAt: Number(issuedAt) };
}
