import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import type { EmulatorProcess } from '../support/emulator-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { patient } from '../support/patience.ts';

/** An appliance that asks, and whose tokens must be of this user and scope. */
export interface Customer {
  readonly credentials: CredentialsAnswer;
  readonly user: string;
  readonly scope: string;
}

/** How an appliance asks: times in ms. */
interface Rate {
  readonly every: number;
  readonly offset: number;
  readonly most: number;
}

/** A connection serves so many requests, then another takes its place: handshakes belong to the load. */
const REQUESTS_A_CONNECTION = 50;
/** The hub makes nobody wait for longer than 10 s, in ms. */
const MAX_WAIT_MS = patient(10_000);

/** Appliances that ask for their tokens at a steady rate, however long the answers take, and try each one out at once. */
export class Customers implements AsyncDisposable {
  asked = 0;
  /** How often each status came. */
  readonly statuses = new Map<number, number>();
  /** Requests that were sent three times without an answer. */
  unanswered = 0;
  /** Tokens that were tried out, and that were not because the portal was out of reach. */
  tried = 0;
  untried = 0;
  /** What should never be, in one sentence each; the first ones. */
  readonly wrong: string[] = [];
  wrongs = 0;
  slowest = 0;
  readonly #endpoint: string;
  readonly #ca: string;
  readonly #portal: EmulatorProcess;
  readonly #stop = new AbortController();
  readonly #known = new Set<string>();
  readonly #underWay = new Set<Promise<void>>();
  #loops: Promise<void>[] = [];

  constructor(endpoint: string, ca: string, portal: EmulatorProcess) {
    this.#endpoint = endpoint;
    this.#ca = ca;
    this.#portal = portal;
  }

  /**
   * @param every ms between two requests of one of them
   * @param most requests of one of them at a time; beyond them none is made, so that a busy machine catches up
   */
  start(customers: readonly Customer[], every: number, most: number): void {
    this.#loops = customers.map((one, index) =>
      this.#run(one, `127.0.1.${index + 1}`, { every, offset: (index * every) / customers.length, most }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    await Promise.all(this.#underWay);
    rememberSecrets(this.#known);
  }

  async #run(customer: Customer, address: string, { every, offset, most }: Rate): Promise<void> {
    const { signal } = this.#stop;
    const started = performance.now() + offset;
    let underWay = 0;
    let agent = this.#connection(address);
    for (let round = 0; !signal.aborted; round++) {
      await sleep(Math.max(0, started + round * every - performance.now()), undefined, { signal }).catch(
        () => undefined,
      );
      if (signal.aborted) break;
      if (underWay >= most) continue;
      if (round % REQUESTS_A_CONNECTION === REQUESTS_A_CONNECTION - 1) {
        this.#await(agent.close());
        agent = this.#connection(address);
      }
      underWay += 1;
      this.#await(
        // On a machine that is too busy a handshake may take too long: any client tries again then.
        this.#ask(customer, agent)
          .catch(() => this.#ask(customer, agent))
          .catch(() => this.#ask(customer, agent))
          .catch(() => {
            this.unanswered += 1;
          })
          .finally(() => {
            underWay -= 1;
          }),
      );
    }
    await agent.close();
  }

  #await(work: Promise<void>): void {
    const noted: Promise<void> = work.finally(() => this.#underWay.delete(noted));
    this.#underWay.add(noted);
  }

  /** Many at once: a request that waits for a refresh does not hold up the next one. */
  #connection(localAddress: string): Agent {
    return new Agent({ connections: 100, connect: { ca: this.#ca, localAddress }, headersTimeout: MAX_WAIT_MS });
  }

  async #ask({ credentials: { name, client_id, client_secret }, user, scope }: Customer, agent: Agent): Promise<void> {
    const asked = Date.now();
    this.asked += 1;
    const { statusCode, headers, body } = await request(this.#endpoint, {
      method: 'POST',
      dispatcher: agent,
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    });
    const answer = (await body.json()) as Record<string, unknown>;
    this.slowest = Math.max(this.slowest, Date.now() - asked);
    this.statuses.set(statusCode, (this.statuses.get(statusCode) ?? 0) + 1);
    if (statusCode === 503 && Number(headers['retry-after']) >= 1) return;
    if (statusCode !== 200) return this.#complain(`${name} was answered ${statusCode} ${answer['error']}`);
    const token = String(answer['access_token']);
    this.#known.add(token);
    if (answer['scope'] !== scope) this.#complain(`${name} was told scope ${answer['scope']}`);
    const said = await this.#portal
      .ask('GET', '/api/whoami', { headers: { authorization: `Bearer ${token}` } })
      .catch(() => null);
    if (said === null) {
      this.untried += 1;
      return;
    }
    this.tried += 1;
    const whose = (said.answer ?? {}) as { user?: unknown; scope?: unknown };
    if (said.status === 200) {
      if (whose.user !== user) this.#complain(`${name} was given a token of ${whose.user}`);
      if (whose.scope !== scope) this.#complain(`${name} was given a token for scope ${whose.scope}`);
    } else if (Date.now() < asked + Number(answer['expires_in']) * 1000) {
      this.#complain(
        `${name} was given a token that the portal does not take (${said.status}), with ${answer['expires_in']} s left`,
      );
    }
  }

  #complain(what: string): void {
    this.wrongs += 1;
    if (this.wrong.length < 5) this.wrong.push(what);
  }
}
