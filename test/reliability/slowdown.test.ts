import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { expect, test } from 'vitest';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { HubProcess } from '../support/hub-process.ts';

/** Odd, so that there is a middle value. */
const ROUNDS = 21;
/** A token takes one to three times as long as the reference, on a busy machine as well as on an idle one. */
const MAX_RATIO = 8;

/** The median times of some requests, in ms. The requests alternate, so that other load affects all of them. */
async function mediansInTurns(
  requests: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<Record<string, number>> {
  const times = new Map<string, number[]>(Object.keys(requests).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, make] of Object.entries(requests)) {
      const begun = performance.now();
      await make();
      // The first round opens the connections.
      if (round >= 0) times.get(name)?.push(performance.now() - begun);
    }
  }
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2] ?? Number.NaN;
  return Object.fromEntries([...times].map(([name, values]) => [name, median(values)]));
}

test('requests to the hub take at most eight times as long as one to a comparable server', async () => {
  await using portal = await EmulatorProcess.start('--tls');
  await using hub = await HubProcess.start({ emulator: portal, portal: `ca_file = "${portal.caFile}"` });
  const wallbox = await hub.addAppliance('wallbox');
  const ca = [readFileSync(portal.caFile ?? '', 'utf8'), (await hub.authority()).certificate];
  const agent = new Agent({ connect: { ca } });
  await using _ = { [Symbol.asyncDispose]: () => agent.destroy() };
  const ask = async (url: string, options: Parameters<typeof request>[1] = {}) => {
    const { statusCode, body } = await request(url, { dispatcher: agent, ...options });
    await body.dump();
    expect(statusCode, url).toBe(200);
  };
  await hub.pair('wallbox', portal);
  const secure = `https://127.0.0.1:${hub.httpsPort}`;
  const { reference, ...hubs } = await mediansInTurns({
    // A Node server with TLS in its own process, like the hub.
    reference: () => ask(`${portal.baseUrl}/_emulator/clock`),
    token: async () => expect((await hub.requestToken(wallbox)).status).toBe(200),
    metadata: () => ask(`${secure}/.well-known/oauth-authorization-server`),
    certificate: () => ask(`http://127.0.0.1:${hub.httpPort}/ca.pem`),
    status: () => hub.status(),
  });
  const ratios = Object.entries(hubs).map(([name, median]) => ({ name, ratio: median / (reference ?? Number.NaN) }));
  expect(ratios.filter(({ ratio }) => !(ratio <= MAX_RATIO))).toEqual([]);
});
