import { expect, it } from 'vitest';
import { startTestModeHub } from '../../netns/hub-on-host.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { createLan, type Host, lanSkipReason } from '../../support/netns.ts';

interface Attempt {
  /** An address of the host. */
  readonly from: string;
  readonly url: string;
}

/** Registers as a battery, once per attempt. @returns the responses, each with its status */
async function register(host: Host, attempts: readonly Attempt[]): Promise<Record<string, unknown>[]> {
  const metadata = JSON.stringify({ client_name: 'Battery' });
  const request = ['--insecure', '--header', 'Content-Type: application/json', '--data', metadata];
  const responses = attempts.flatMap(({ from, url }) => [
    ...['--next', '--silent', '--show-error', '--max-time', '5', '--noproxy', '*', ...request],
    ...['--interface', from, '--write-out', '\n%{http_code}\n', url],
  ]);
  const lines = (await host.run('/usr/bin/curl', responses.slice(1))).trim().split('\n');
  return attempts.map((_, index) => {
    const response: Record<string, unknown> = JSON.parse(lines[2 * index] ?? '');
    if (response['client_secret'] !== undefined) rememberSecrets([String(response['client_secret'])]);
    return { status: Number(lines[2 * index + 1]), ...response };
  });
}

it('a device with many addresses neither blocks nor displaces the registration of other appliances', async (ctx) => {
  const why = await lanSkipReason(['/usr/bin/curl']);
  if (why !== null) return ctx.skip(why);
  await using lan = await createLan(['hub', 'early', 'late', 'attacker']);
  const { hub: machine, early, late, attacker } = lan.hosts;
  await using hub = await startTestModeHub(machine);
  await hub.ask((control) => control.openRegistration(3600));
  const { https_port } = (await hub.status()).hub;
  const url = `https://[${machine.address6}]:${https_port}/oauth/register`;
  const url4 = `https://${machine.address}:${https_port}/oauth/register`;

  let addresses = 0;
  const registerAll = async () => {
    const attempts = Array.from({ length: 25 }, () => {
      addresses += 1;
      return [
        { from: `fd77::bad:${addresses}`, url },
        { from: `10.77.0.${100 + addresses}`, url: url4 },
      ];
    }).flat();
    const commands = attempts.map(({ from }) =>
      from.includes(':') ? `addr add ${from}/64 dev eth0 nodad` : `addr add ${from}/24 dev eth0`,
    );
    await attacker.run('/bin/sh', ['-c', 'echo "$1" | ip -batch -', 'sh', commands.join('\n')]);
    return (await register(attacker, attempts)).map(({ status }) => status);
  };
  const [first] = await register(early, [{ from: early.address6, url }]);
  expect(first).toMatchObject({ status: 201, client_name: 'battery' });
  const statuses = await registerAll();
  expect(statuses.filter((_, index) => index % 2 === 0)).toContain(429);
  const [last] = await register(late, [{ from: late.address6, url }]);
  expect(last).toMatchObject({ status: 201, client_name: expect.stringMatching(/^battery-\d+$/) });
  await registerAll();

  const { appliances } = await hub.status();
  const waiting = appliances.map(({ waiting_for_approval }) => waiting_for_approval);
  for (const [response, { address6 }] of [
    [first, early],
    [last, late],
  ] as const) {
    const comparison_code = response?.['comparison_code'];
    expect(waiting).toContainEqual(expect.objectContaining({ comparison_code, address: address6 }));
  }
});
