import { expect, it } from 'vitest';
import { curl, startTestModeHub } from '../netns/hub-on-host.ts';
import { rememberSecrets } from '../support/logs.ts';
import { createLan, type Host, whyNoLan } from '../support/netns.ts';

const JSON_TYPE = ['--header', 'Content-Type: application/json'];

/** Registers from an address of a host's. @returns the response, with its status */
async function register(host: Host, url: string, clientName: string, from: string): Promise<Record<string, unknown>> {
  const metadata = JSON.stringify({ client_name: clientName });
  const status = ['--write-out', '\n%{http_code}'];
  const args = ['--insecure', '--interface', from, ...JSON_TYPE, '--data', metadata, ...status, url];
  const [body = '', code] = (await curl(host, args)).split('\n');
  const response: Record<string, unknown> = JSON.parse(body);
  if (response['client_secret'] !== undefined) rememberSecrets([String(response['client_secret'])]);
  return { status: Number(code), ...response };
}

it('a neighbour with many addresses keeps no other out, and pushes no other out', {
  timeout: 120_000,
}, async (ctx) => {
  const why = await whyNoLan(['/usr/bin/curl']);
  if (why !== null) return ctx.skip(why);
  await using lan = await createLan(['hub', 'early', 'late', 'attacker']);
  const { hub: machine, early, late, attacker } = lan.hosts;
  await using hub = await startTestModeHub(machine);
  await hub.cli('registration', 'open', '--for', '1h');
  const { https_port } = (await hub.status()).hub;
  const url = `https://[${machine.address6}]:${https_port}/oauth/register`;
  const url4 = `https://${machine.address}:${https_port}/oauth/register`;

  let addresses = 0;
  const squat = async () => {
    const statuses: unknown[] = [];
    for (let count = 0; count < 25; count++) {
      addresses += 1;
      const [address, address4] = [`fd77::bad:${addresses}`, `10.77.0.${100 + addresses}`];
      await attacker.run('ip', ['addr', 'add', `${address}/64`, 'dev', 'eth0', 'nodad']);
      await attacker.run('ip', ['addr', 'add', `${address4}/24`, 'dev', 'eth0']);
      statuses.push((await register(attacker, url, 'Battery', address))['status']);
      await register(attacker, url4, 'Battery', address4);
    }
    return statuses;
  };
  const first = await register(early, url, 'Battery', early.address6);
  expect(first).toMatchObject({ status: 201, client_name: 'battery' });
  expect(await squat()).toContain(429);
  const last = await register(late, url, 'Battery', late.address6);
  expect(last).toMatchObject({ status: 201, client_name: expect.stringMatching(/^battery-\d+$/) });
  await squat();

  const { appliances } = await hub.status();
  const waiting = appliances.map(({ waiting_for_approval }) => waiting_for_approval);
  for (const [response, { address6 }] of [
    [first, early],
    [last, late],
  ] as const) {
    const { comparison_code } = response;
    expect(waiting).toContainEqual(expect.objectContaining({ comparison_code, address: address6 }));
  }
});
