import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { CredentialsAnswer } from '../../src/control/messages.ts';
import { addAppliance, until } from '../reliability/fleet.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { slowStoreEnv } from '../support/slow-store.ts';
import type { Experiment, Finding, Scale } from './experiment.ts';

/** The shortest that can be configured, in seconds. */
const LIFETIME = 60;
/** How long each write of the store takes at the most, in ms: one hub for each. */
const LONG_WRITES = [0, 20, 100, 300];
const SHORT_WRITES = [100];
/** How often the hub is asked for something, in ms. */
const ASK_INTERVAL = 200;
/** A hub that does not answer within this hangs, in ms. */
const HANGS = 20_000;

export const experiment: Experiment = {
  name: 'Pairings that run out',
  promise:
    'Pairings that nobody completes run out, however many at once and however slow the card, and the hub answers all the while.',
  async run(scale) {
    const [writes, goes, each] = scale.long ? [LONG_WRITES, 2, 20] : [SHORT_WRITES, 1, 2];
    const findings = await Promise.all(writes.map((slowest) => runOut(scale, slowest, goes, each)));
    return {
      figures: Object.assign({}, ...findings.map(({ figures }) => figures)),
      broken: findings.flatMap(({ broken }) => broken),
    };
  },
};

/** @param each how many pairings of each of five kinds run out at a time */
async function runOut(scale: Scale, slowest: number, goes: number, each: number): Promise<Finding> {
  await using emulator = await startPortal();
  const absent = `client_id = "${emulator.clientId}"\nclient_secret_file = "portal.secret"`;
  await using hub = await HubProcess.start({
    emulator,
    toml: `[portals.absent]\nbase_url = "http://127.0.0.1:9"\nfrontend_url = "http://127.0.0.1:9"\n${absent}\n[pairing]\nlifetime = "${LIFETIME}s"`,
    env: slowStoreEnv('', slowest),
  });
  const names = (kind: string) => Array.from({ length: each }, (_, index) => `${kind}-${index}`);
  const waiting = names('waiting');
  const asking = names('asking');
  const flows: CredentialsAnswer[] = [];
  for (const name of waiting) await addAppliance(hub, name, 'home');
  for (const name of asking) await addAppliance(hub, name, 'absent');
  for (const name of [...names('unopened'), ...names('opened'), ...names('shared')])
    flows.push(await addAppliance(hub, name, 'home'));

  const { certificate } = await hub.ask((control) => control.authority());
  await using parts = new AsyncDisposableStack();
  const agent = new Agent({ connect: { ca: certificate } });
  parts.defer(() => agent.destroy());
  await using answers = watchAnswers(hub, agent);
  let ranOut = 0;
  for (let go = 0; go < goes && !scale.signal.aborted; go++) {
    for (const name of [...waiting, ...asking]) await hub.ask((control) => control.pair(name));
    for (const by of flows) {
      const userCode = await beginFlow(hub, agent, by);
      if (by.name.startsWith('unopened')) continue;
      await openFlow(hub, agent, userCode);
      // The link that was opened is an older one from now on.
      if (by.name.startsWith('shared')) await hub.ask((control) => control.pair(by.name));
    }
    const all = [...waiting, ...asking, ...flows.map(({ name }) => name)];
    for (const name of all) await until(hub, name, ({ state }) => state === 'unpaired', 3 * LIFETIME);
    ranOut += all.length;
    scale.progress(
      `writes of up to ${slowest} ms: ${ranOut} pairings have run out, the slowest answer took ${answers.slowest} ms`,
    );
  }
  const what = `writes of up to ${slowest} ms`;
  return {
    figures: {
      [`${what}: pairings that ran out`]: ranOut,
      [`${what}: questions answered meanwhile`]: answers.answered,
      [`${what}: slowest answer, ms`]: answers.slowest,
    },
    broken: answers.missed === 0 ? [] : [`${what}: ${answers.missed} questions were not answered within ${HANGS} ms`],
  };
}

/** Asks both listeners for something all the while. */
function watchAnswers(hub: HubProcess, agent: Agent) {
  const stopped = new AbortController();
  const seen = { answered: 0, missed: 0, slowest: 0 };
  const asking = (async () => {
    while (!stopped.signal.aborted) {
      const begun = performance.now();
      const ended = await Promise.all([
        request(`http://127.0.0.1:${hub.httpPort}/ca.pem`, { signal: AbortSignal.timeout(HANGS) }).then(({ body }) =>
          body.dump(),
        ),
        request(`https://127.0.0.1:${hub.httpsPort}/.well-known/oauth-authorization-server`, {
          dispatcher: agent,
          signal: AbortSignal.timeout(HANGS),
        }).then(({ body }) => body.dump()),
      ]).catch(() => null);
      if (ended === null) seen.missed += 1;
      else seen.answered += 1;
      seen.slowest = Math.max(seen.slowest, Math.round(performance.now() - begun));
      await sleep(ASK_INTERVAL, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return {
    get answered() {
      return seen.answered;
    },
    get missed() {
      return seen.missed;
    },
    get slowest() {
      return seen.slowest;
    },
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await asking;
    },
  };
}

async function beginFlow(hub: HubProcess, agent: Agent, by: CredentialsAnswer): Promise<string> {
  const answer = await eventually(async () => {
    const { statusCode, body } = await request(`https://127.0.0.1:${hub.httpsPort}/oauth/device_authorization`, {
      method: 'POST',
      dispatcher: agent,
      headers: {
        authorization: `Basic ${Buffer.from(`${by.client_id}:${by.client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: '',
    });
    const said = (await body.json()) as { readonly user_code: string };
    return statusCode === 200 && said;
  });
  return answer.user_code;
}

/** A person goes on to the portal. */
async function openFlow(hub: HubProcess, agent: Agent, userCode: string): Promise<void> {
  const { body } = await request(`https://127.0.0.1:${hub.httpsPort}/pair`, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ user_code: userCode, action: 'continue' }).toString(),
  });
  await body.dump();
}
