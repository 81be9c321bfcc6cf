import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { basic, FORM } from './wire.ts';

const ATTACKER = '127.0.0.2';
const APPLIANCE = '127.0.0.3';
const BODY = 'grant_type=client_credentials';

const parts = new AsyncDisposableStack();
let emulator: Emulator;
let hub: HubProcess;
let ca: string;
let heater: CredentialsAnswer;
let pump: CredentialsAnswer;
/** How often the portal was asked. */
let asked = 0;

beforeAll(async () => {
  emulator = parts.use(await startEmulator({ intercept: { answering: () => void asked++ } }));
  hub = parts.use(await HubProcess.start({ emulator }));
  ca = (await hub.authority()).certificate;
  heater = await hub.addAppliance('heater');
  pump = await hub.addAppliance('pump');
  await hub.pair('heater', emulator);
  await hub.pair('pump', emulator);
});

afterAll(async () => {
  rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
  await parts.disposeAsync();
});

interface Reply {
  readonly status: number;
  readonly retryAfter: number;
  readonly error: string | undefined;
  /** Of a device authorization (RFC 8628, 3.2). */
  readonly userCode: string | undefined;
}

/** A device with an address of its own. */
class Device implements AsyncDisposable {
  readonly #agent: Agent;

  constructor(localAddress: string) {
    this.#agent = new Agent({ connect: { ca }, localAddress, connections: 8 });
  }

  async ask(credentials: Pick<CredentialsAnswer, 'client_id' | 'client_secret'>): Promise<Reply> {
    return this.post('/oauth/token', BODY, { authorization: basic(credentials) });
  }

  async post(path: string, body: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.#send(path, { method: 'POST', headers: { 'content-type': FORM, ...headers }, body });
  }

  async get(path: string): Promise<Reply> {
    return this.#send(path, { method: 'GET' });
  }

  async #send(path: string, question: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>): Promise<Reply> {
    const url = `https://127.0.0.1:${hub.httpsPort}${path}`;
    const answer = await request(url, { ...question, dispatcher: this.#agent });
    const text = await answer.body.text();
    const json = text.startsWith('{') ? (JSON.parse(text) as { error?: string; user_code?: string }) : {};
    return {
      status: answer.statusCode,
      retryAfter: Number(answer.headers['retry-after']),
      error: json.error,
      userCode: json.user_code,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

/** So many tries a second, for so many seconds; none waits for the one before it. */
async function hammer(seconds: number, perSecond: number, once: (index: number) => Promise<Reply>): Promise<Reply[]> {
  const tries: Promise<Reply>[] = [];
  const begun = performance.now();
  for (let index = 0; index < seconds * perSecond; index++) {
    const due = begun + (index * 1000) / perSecond;
    await sleep(Math.max(0, due - performance.now()));
    tries.push(once(index));
  }
  return Promise.all(tries);
}

function linesOf(event: string): Record<string, unknown>[] {
  const lines = readFileSync(hub.log, 'utf8').split('\n');
  return lines.filter((line) => line.includes(`"${event}"`)).map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('secrets that are guessed at 200 a second', () => {
  it('come to nothing, and nobody else notices', async () => {
    await using attacker = new Device(ATTACKER);
    await using appliance = new Device(APPLIANCE);
    const before = asked;
    const begun = performance.now();
    const tries = hammer(4, 200, (index) => attacker.ask({ ...heater, client_secret: `guess-${index}` }));
    const served = hammer(4, 10, (index) => appliance.ask(index % 2 === 0 ? heater : pump));
    const beside = hammer(4, 5, () => attacker.ask(heater));
    const [replies, ofAppliance, ofAttacker] = await Promise.all([tries, served, beside]);
    const refilled = (performance.now() - begun) / 6000;
    const [letIn, slowed] = [401, 429].map((status) => replies.filter((reply) => reply.status === status));
    expect(replies).toHaveLength(800);
    expect((letIn?.length ?? 0) + (slowed?.length ?? 0)).toBe(800);
    expect(letIn?.length).toBeLessThanOrEqual(11 + refilled);
    expect(slowed?.[0]).toMatchObject({ error: 'invalid_client' });
    for (const { retryAfter } of slowed ?? []) expect(retryAfter).toSatisfy((s: number) => s >= 1 && s <= 6);
    // The right secret passes from every address, also from the one that everybody is angry with.
    for (const reply of [...ofAppliance, ...ofAttacker]) expect(reply.status).toBe(200);
    expect(asked).toBe(before);
    await expect
      .poll(() => linesOf('too many failed authentications'))
      .toEqual([expect.objectContaining({ level: 'warn', address: ATTACKER, count: 11 })]);
  });

  it('from elsewhere have an allowance of their own', async () => {
    await using other = new Device('127.0.0.4');
    let count = 0;
    while (count < 30 && (await other.ask({ ...heater, client_secret: 'wrong' })).status === 401) count++;
    expect(count).toSatisfy((tries: number) => tries >= 10 && tries < 30);
    expect((await other.ask(heater)).status).toBe(200);
  });

  it('at one endpoint count at every other', async () => {
    await using other = new Device('127.0.0.4');
    const wrong = { authorization: basic({ ...heater, client_secret: 'wrong' }) };
    for (const path of ['/oauth/device_authorization', '/oauth/revoke']) {
      expect((await other.post(path, 'token=x', wrong)).status, path).toBe(429);
    }
  });

  it('never get into the log, and neither do the right ones', () => {
    const log = readFileSync(hub.log, 'utf8');
    for (const secret of ['guess-', heater.client_secret, pump.client_secret]) expect(log).not.toContain(secret);
  });
});

describe('user codes that are guessed at 200 a second', () => {
  it('come to nothing, and others see their pages', async () => {
    await using attacker = new Device(ATTACKER);
    await using person = new Device(APPLIANCE);
    const { userCode } = await person.post('/oauth/device_authorization', '', { authorization: basic(heater) });
    const before = asked;
    const [replies, pages] = await Promise.all([
      hammer(3, 200, (index) =>
        index % 2 === 0
          ? attacker.get(`/pair?user_code=${guess(index)}`)
          : attacker.post('/pair', `user_code=${guess(index)}`),
      ),
      hammer(3, 5, () => person.get(`/pair?user_code=${userCode}`)),
    ]);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([404, 429]));
    expect(replies.filter(({ status }) => status === 404).length).toBeLessThan(30);
    for (const { status } of pages) expect(status).toBe(200);
    expect(asked).toBe(before);
    await expect.poll(() => linesOf('too many unknown user codes')).toHaveLength(1);
  });

  /** A code of the hub's form, which it has hardly given to anybody. */
  function guess(index: number): string {
    const letters = 'BCDFGHJKLMNPQRSTVWXZ';
    const code = Array.from({ length: 8 }, (_, place) => letters[(index * 7 + place * index) % letters.length]).join(
      '',
    );
    return `${code.slice(0, 4)}-${code.slice(4)}`;
  }
});

describe('an unknown client_id', () => {
  it('is answered as a wrong secret is, word by word', async () => {
    await using device = new Device('127.0.0.5');
    const wrong = await device.ask({ ...heater, client_secret: 'wrong' });
    const unknown = await device.ask({ client_id: crypto.randomUUID(), client_secret: 'wrong' });
    expect(wrong).toEqual(unknown);
  });
});
