/**
 * The appliances of a site, on a host of a test's network: a program that takes commands on stdin and reports on
 * stdout. Each appliance asks all hubs at once, and uses every token that it gets.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, fetch, request } from 'undici';
import { OtherClient } from '../../support/other-client.ts';
import type { AskedHub, LoadAppliance, LoadCommand, LoadCounts, LoadReport } from './load-messages.ts';

/** A hub must answer in this time, in ms: it waits up to ten seconds for a refresh. */
const ANSWER_TIMEOUT = 15_000;
/** How soon an appliance that got no token asks again, in ms and as a part of its interval. */
const MIN_RETRY_INTERVAL = 2000;
const RETRY_PART = 1 / 3;
/** How often a browser reloads the page of a login under way, and after how long, in ms. */
const MAX_RELOADS = 60;
const RELOAD_INTERVAL = 2000;

const [portal = '', portalCa = ''] = process.argv.slice(2);
const portalTls = { ca: Buffer.from(portalCa, 'base64').toString() };
const portalAgent = new Agent({ connections: 16, connect: portalTls });
/** For commands, which are not repeated: no connection is kept, because the portal may close it while one is on its way. */
const commandAgent = new Agent({ pipelining: 0, connect: portalTls });
const counts = {
  requests: 0,
  tokens: 0,
  tried: 0,
  rejected: 0,
  untried: 0,
  ended: 0,
  refusals: {} as Record<string, number>,
};
const seen = new Set<string>();
const stopped = new AbortController();
const agents = new Map<string, Agent>();
let hubs: readonly AskedHub[] = [];
let ca = '';
let loops: Promise<void>[] = [];

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, command } = JSON.parse(line) as { id: number; command: LoadCommand };
  execute(command).then(
    (result) => report({ event: 'reply', id, result, error: null }),
    (error: unknown) => report({ event: 'reply', id, result: null, error: String(error) }),
  );
});
report({ event: 'ready' });

async function execute(command: LoadCommand): Promise<unknown> {
  switch (command.do) {
    case 'start':
      ({ ca, hubs } = command);
      loops = command.appliances.map((appliance, index) =>
        run(appliance, command.every, (index * command.every) / command.appliances.length),
      );
      return null;
    case 'hubs':
      ({ hubs } = command);
      return null;
    case 'ask_portal':
      return askPortal(command.method, command.path, command.body);
    case 'log_in':
      return logIn(command);
    case 'log_in_elsewhere':
      return logInElsewhere(command);
    case 'stop':
      stopped.abort();
      await Promise.all(loops);
      return counts satisfies LoadCounts;
  }
}

async function askPortal(method: string, path: string, body: unknown): Promise<{ status: number; answer: unknown }> {
  const response = await request(`${portal}${path}`, {
    method: method as 'GET',
    dispatcher: commandAgent,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const text = await response.body.text();
  return { status: response.statusCode, answer: text === '' ? null : JSON.parse(text) };
}

async function logIn({ url, user, password }: Extract<LoadCommand, { do: 'log_in' }>): Promise<string> {
  const form = new URLSearchParams({ username: user, password });
  const limits = () => ({ dispatcher: commandAgent, signal: AbortSignal.timeout(ANSWER_TIMEOUT) });
  let page = await fetch(url, { method: 'POST', body: form, ...limits() });
  let text = await page.text();
  // On a busy machine the exchange of the code may take longer than the hub lets a browser wait; its page reloads then.
  for (let reloads = 0; / (is|are) being connected/.test(text) && reloads < MAX_RELOADS; reloads += 1) {
    await sleep(RELOAD_INTERVAL);
    page = await fetch(page.url, limits());
    text = await page.text();
  }
  return `HTTP ${page.status}: ${text}`;
}

async function logInElsewhere(command: Extract<LoadCommand, { do: 'log_in_elsewhere' }>): Promise<string> {
  const { user, ...client } = command;
  const login = async (body: object) => {
    const { answer } = await askPortal('POST', '/_emulator/login', body);
    return answer as { location: string };
  };
  return (await OtherClient.logIn({ ...client, baseUrl: portal, login, dispatcher: commandAgent }, user)).refreshToken;
}

/** One appliance, until the load is stopped. */
async function run(appliance: LoadAppliance, every: number, offset: number): Promise<void> {
  const { signal } = stopped;
  let withoutSince: number | null = null;
  const onToken = () => {
    if (withoutSince === null) return;
    report({ event: 'without_token', appliance: appliance.name, from: withoutSince, to: Date.now() });
    withoutSince = null;
  };
  await sleep(offset, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted) {
    const asked = Date.now();
    const results = await Promise.all(hubs.map((hub) => ask(appliance, hub, onToken)));
    if (!results.includes(true) && hubs.length > 0) withoutSince ??= asked;
    const pause =
      asked + (withoutSince === null ? every : Math.max(MIN_RETRY_INTERVAL, RETRY_PART * every)) - Date.now();
    if (pause > 0) await sleep(pause, undefined, { signal }).catch(() => undefined);
  }
  if (withoutSince !== null)
    report({ event: 'without_token', appliance: appliance.name, from: withoutSince, to: Date.now() });
}

/** Asks a hub for a token, and uses it. @returns whether the portal accepted it */
async function ask(appliance: LoadAppliance, hub: AskedHub, onToken: () => void): Promise<boolean> {
  counts.requests += 1;
  const asked = Date.now();
  let body: Record<string, unknown>;
  try {
    const response = await request(`${hub.origin}/oauth/token`, {
      method: 'POST',
      dispatcher: agentFor(hub),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT),
      headers: {
        authorization: `Basic ${Buffer.from(`${appliance.clientId}:${appliance.clientSecret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    });
    body = (await response.body.json()) as Record<string, unknown>;
    if (response.statusCode !== 200) return refuse(hub, `${response.statusCode} ${body['error']}`);
  } catch (error) {
    return refuse(hub, error instanceof Error && 'code' in error ? String(error.code) : String(error));
  }
  const token = String(body['access_token']);
  const [grant = '', generation = ''] = token.split('.');
  counts.tokens += 1;
  const claims = { hub: hub.name, grant, generation: Number(generation) };
  const key = `${hub.name} ${grant} ${generation}`;
  if (!seen.has(key)) {
    seen.add(key);
    report({ event: 'handed_out', ...claims, at: Date.now() });
  }
  const status = await tryToken(token).catch(() => null);
  if (status === null) {
    counts.untried += 1;
    return false;
  }
  counts.tried += 1;
  if (status === 200) {
    onToken();
    return true;
  }
  if (Date.now() > asked + Number(body['expires_in']) * 1000) {
    counts.ended += 1;
    return false;
  }
  counts.rejected += 1;
  report({ event: 'rejected', appliance: appliance.name, ...claims, at: Date.now(), status });
  return false;
}

/** Uses a token at the portal, and tries again if the portal closes the connection. @returns the status */
async function tryToken(token: string, tries = 3): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  try {
    const { statusCode, body } = await request(`${portal}/api/whoami`, { headers, dispatcher: portalAgent });
    await body.dump();
    return statusCode;
  } catch (error) {
    if (tries > 1) return tryToken(token, tries - 1);
    throw error;
  }
}

function refuse({ name }: AskedHub, why: string): false {
  const key = `${name}: ${why}`;
  counts.refusals[key] = (counts.refusals[key] ?? 0) + 1;
  return false;
}

function agentFor({ origin }: AskedHub): Agent {
  const found = agents.get(origin);
  if (found !== undefined) return found;
  const created = new Agent({ connections: 16, connect: { ca, timeout: 3000 }, headersTimeout: ANSWER_TIMEOUT });
  agents.set(origin, created);
  return created;
}

function report(line: LoadReport): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
