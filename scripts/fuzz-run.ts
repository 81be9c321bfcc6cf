// Sends the requests of the fuzz and watches what becomes of the emulator.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { type Facts, type FuzzRequest, requestOf } from './fuzz-requests.ts';

/** A running emulator with two clients and two users; the second of each is the victim, and nothing of it is ever sent. */
export interface Target {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clients: readonly [Credentials, Credentials];
  readonly users: readonly [Credentials, Credentials];
  readonly pid: number;
}

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** What came of it. */
export interface Outcome {
  readonly sent: number;
  /** How often each status came. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Resident memory in MB, after each part of the run. */
  readonly memory: readonly number[];
  /** The first things that went wrong, each with its request. */
  readonly problems: readonly string[];
}

interface Numbered {
  readonly number: number;
  readonly request: FuzzRequest;
}

const LANES = 8;
/** Requests between two good flows. */
const PART = 5_000;
/** Requests on their way at once on one connection. */
const PIPELINED = 48;

/** Sends that many requests; between its parts a good flow must succeed. It ends early once ten problems are known. */
export async function fuzz(
  target: Target,
  requests: number,
  seed: number,
  said: (line: string) => void = () => {},
): Promise<Outcome> {
  const statuses = new Map<number, number>();
  const memory: number[] = [];
  const problems: string[] = [];
  let sent = 0;
  const settings = await good(await fetch(`${target.baseUrl}/_emulator/settings`));
  for (let from = 0; from < requests && problems.length < 10; from += PART) {
    const part = await begin(target, settings);
    const problem = (request: FuzzRequest, number: number, what: string) =>
      problems.push(`seed ${seed}, request ${number}: ${what}\n${JSON.stringify(request.bytes.slice(0, 2000))}`);
    const judge = (request: FuzzRequest, number: number, status: number, answer: string) => {
      sent += 1;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status >= 500) problem(request, number, `answered ${status}: ${answer.slice(0, 300)}`);
      const leaked = part.secrets.find((secret) => answer.includes(secret));
      if (leaked !== undefined) problem(request, number, `tells a secret of the victim: ${answer.slice(0, 500)}`);
    };
    const end = Math.min(requests, from + PART);
    let next = from;
    const send = async (batch: readonly Numbered[]) => {
      const [first] = batch;
      if (first === undefined) return;
      const origin = first.request.origin === 'base' ? target.baseUrl : target.frontendUrl;
      const answers = await exchange(
        origin,
        batch.map(({ request }) => request),
      );
      for (const [index, { status, text }] of answers.got.entries()) {
        const { number, request } = batch[index] ?? first;
        judge(request, number, status, text);
        // Else one limit of the rate would answer all that follows.
        if (status === 200 && request.method === 'PATCH') await part.restoreSettings();
      }
      const missing = batch[answers.got.length];
      if (missing?.request.sound === true && !answers.closed) {
        problem(missing.request, missing.number, `has no answer: ${answers.how}`);
      }
    };
    const lane = async () => {
      while (next < end && problems.length < 10) {
        const batch: Numbered[] = [];
        for (; next < end && batch.length < PIPELINED; next += 1) {
          batch.push({ number: next, request: requestOf(seed, next, part.facts) });
        }
        const together = batch.filter(({ request }) => request.sound && request.pieces === 1);
        for (const origin of ['base', 'frontend']) {
          await send(together.filter(({ request }) => request.origin === origin));
        }
        for (const alone of batch) if (!together.includes(alone)) await send([alone]);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    try {
      await part.stillGood();
    } catch (error) {
      problems.push(`seed ${seed}, after request ${end - 1}: the good flow failed: ${String(error)}`);
    }
    memory.push(residentMemory(target.pid));
    if (memory.length % 20 === 0) said(`${end} requests, ${memory.at(-1)?.toFixed(0)} MB`);
  }
  return { sent, statuses, memory, problems };
}

/** How much the memory grows in 100,000 requests, in MB: the slope of a line through the second half. */
export function growth(memory: readonly number[]): number {
  const half = memory.slice(Math.floor(memory.length / 2));
  const middle = (half.length - 1) / 2;
  const mean = half.reduce((sum, value) => sum + value, 0) / half.length;
  const above = half.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0);
  const below = half.reduce((sum, _, index) => sum + (index - middle) ** 2, 0);
  return below === 0 ? 0 : ((above / below) * 100_000) / PART;
}

interface Exchanged {
  readonly got: readonly { readonly status: number; readonly text: string }[];
  /** The emulator said that it would close. */
  readonly closed: boolean;
  readonly how: string;
}

/** Sends requests on one connection and takes their answers; those that are not sound end their connection. */
function exchange(origin: string, requests: readonly FuzzRequest[]): Promise<Exchanged> {
  const { hostname, port } = new URL(origin);
  const sound = requests[0]?.sound === true;
  return new Promise((resolve) => {
    const got: { status: number; text: string }[] = [];
    let received = '';
    let closed = false;
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const limit = setTimeout(() => done('it took too long'), sound ? 10_000 : 300);
    const done = (how: string) => {
      clearTimeout(limit);
      socket.destroy();
      resolve({ got, closed, how });
    };
    socket.setEncoding('latin1');
    socket.on('connect', async () => {
      await write(socket, requests);
      // So that the emulator does not wait for the rest of a request that has none.
      if (!sound) socket.end();
    });
    socket.on('data', (chunk) => {
      received += chunk;
      for (;;) {
        const answer = takeAnswer(received, requests[got.length]?.method ?? 'GET');
        if (answer === null) break;
        received = received.slice(answer.length);
        if (answer.status < 200) continue;
        closed ||= answer.closes;
        got.push({ status: answer.status, text: answer.text });
        if (got.length === requests.length || answer.closes) return done('answered');
      }
    });
    socket.on('error', (error) => done(String(error)));
    socket.on('close', () => done('the connection was closed'));
  });
}

async function write(socket: Socket, requests: readonly FuzzRequest[]): Promise<void> {
  const [first] = requests;
  if (first === undefined) return;
  if (first.pieces === 1) {
    socket.write(requests.map(({ bytes }) => bytes).join(''), 'latin1');
  } else {
    const size = Math.ceil(first.bytes.length / first.pieces);
    for (let at = 0; at < first.bytes.length && socket.writable; at += size) {
      socket.write(first.bytes.slice(at, at + size), 'latin1');
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** The first answer in what was received, or null where it is not whole. */
function takeAnswer(received: string, method: string) {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const head = received.slice(0, end);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 599);
  const bodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304;
  const length = end + 4 + (bodiless ? 0 : Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0));
  if (received.length < length) return null;
  return { status, length, text: received.slice(0, length), closes: /^connection: close/im.test(head) };
}

/** Begins a part of the run: the attacker's own flow, and a victim whose secrets must stay its own. */
async function begin(target: Target, settings: unknown) {
  const restoreSettings = async () => {
    await call(`${target.baseUrl}/_emulator/settings`, settings, 'PATCH');
  };
  const restore = async () => {
    await restoreSettings();
    await call(`${target.baseUrl}/_emulator/reset`, {});
  };
  await restore();
  const [own, victim] = target.clients;
  const [user, person] = target.users;
  const first = await flow(target, own, user.id);
  const refreshed = await refresh(target, own, first.refresh_token);
  const waiting = await login(target, own, user.id);
  const begun = await config(target, own);
  const held = await flow(target, victim, person.id);
  const arrived = await login(target, victim, person.id);
  const facts: Facts = {
    clientId: own.id,
    clientSecret: own.secret,
    victimId: victim.id,
    user: user.id,
    password: user.secret,
    states: [first.state, waiting.state, begun.state],
    codes: [first.code, waiting.code],
    accessTokens: [first.access_token, refreshed.access_token],
    refreshTokens: [first.refresh_token, refreshed.refresh_token],
    victimPayload: arrived.state.split('.')[1] ?? '',
  };
  return {
    facts,
    restoreSettings,
    secrets: [victim.secret, person.secret, held.access_token, held.refresh_token, arrived.code, arrived.state],
    async stillGood() {
      await restore();
      const again = await flow(target, own, user.id);
      const { access_token } = await refresh(target, own, again.refresh_token);
      const answer = await fetch(`${target.baseUrl}/api/whoami`, {
        headers: { authorization: `Bearer ${access_token}` },
      });
      if (answer.status !== 200) throw new Error(`whoami answered ${answer.status}`);
    },
  };
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

async function config(target: Target, client: Credentials): Promise<{ state: string; codeUrl: string }> {
  const answer = await fetch(`${target.baseUrl}/external/oauth2helper/config/${client.id}`, { method: 'POST' });
  const { code_url } = (await good(answer)) as { code_url: string };
  return { codeUrl: code_url, state: new URL(code_url).searchParams.get('state') ?? '' };
}

async function login(target: Target, client: Credentials, user: string): Promise<{ state: string; code: string }> {
  const { state, codeUrl } = await config(target, client);
  await good(await call(`${target.baseUrl}/_emulator/login`, { state, user }));
  const { code } = (await good(await fetch(codeUrl))) as { code: string };
  return { state, code };
}

async function flow(
  target: Target,
  client: Credentials,
  user: string,
): Promise<Tokens & { state: string; code: string }> {
  const { state, code } = await login(target, client, user);
  return { state, code, ...(await tokens(target, client, { grant_type: 'authorization_code', code })) };
}

function refresh(target: Target, client: Credentials, refresh_token: string): Promise<Tokens> {
  return tokens(target, client, { grant_type: 'refresh_token', refresh_token });
}

async function tokens(target: Target, client: Credentials, form: Record<string, string>): Promise<Tokens> {
  const body = new URLSearchParams({ ...form, client_id: client.id, client_secret: client.secret });
  return (await good(await fetch(`${target.frontendUrl}/sso/token`, { method: 'POST', body }))) as Tokens;
}

function call(url: string, body: unknown, method = 'POST'): Promise<Response> {
  return fetch(url, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

async function good(answer: Response): Promise<unknown> {
  if (answer.status !== 200) throw new Error(`${answer.url.split('?')[0]} answered ${answer.status}`);
  return await answer.json();
}

function residentMemory(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
