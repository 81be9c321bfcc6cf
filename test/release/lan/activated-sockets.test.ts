// More of systemd's sockets; the first case: test/lan/activated-sockets.test.ts.
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ACTIVATE, activationSkipReason, fetchCa, knock, prepareActivated } from '../../lan/activated-hub.ts';
import { eventually } from '../../support/hub-process.ts';
import { MAIN } from '../../support/program.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(activationSkipReason);

it("the names of systemd's sockets decide which serves HTTP and which HTTPS, also over a reload, and others are rejected", async () => {
  await using activated = await prepareActivated();
  const { hub, activate } = activated;
  // Swapped: the names win over the ports of the configuration.
  const { httpPort: https, httpsPort: http } = hub;
  activate.push('-l', `127.0.0.1:${http}`, '-l', `127.0.0.1:${https}`, '--fdname=http:https');
  await activated.launch();
  const ca = await fetchCa(`http://127.0.0.1:${http}`);
  expect(await fetchCa(`https://127.0.0.1:${https}`, ca)).toBe(ca);
  expect((await hub.status()).hub).toMatchObject({ http_port: http, https_port: https });

  const file = join(hub.directory, 'latchkey.toml');
  const toml = await readFile(file, 'utf8');
  await writeFile(file, toml.replace('Test hub', 'Renamed hub'));
  await hub.reload();
  const renamed = { name: 'Renamed hub', http_port: http, https_port: https };
  expect((await hub.status()).hub).toMatchObject(renamed);
  expect(await fetchCa(`https://127.0.0.1:${https}`)).toBe(ca);
  await writeFile(file, toml.replace('"::1"]', '"::1", "127.0.0.2"]').replace('"127.0.0.1", ', ''));
  await expect(hub.reload()).rejects.toThrow('which is not in the list');
  expect((await hub.status()).hub).toMatchObject(renamed);
  expect(await fetchCa(`http://127.0.0.1:${http}`)).toBe(ca);
});

it.for([
  ['only one of two', ['-l', 'HTTP'], 'lan.https_port: systemd listens for the hub, but not on port'],
  ['one for datagrams', ['--datagram', '-l', 'HTTP'], 'socket number 1 is not a listening TCP socket'],
] as const)(
  '%s: a daemon started by systemd with such sockets reports the error and exits',
  async ([, sockets, message]) => {
    await using activated = await prepareActivated();
    const { hub, activate } = activated;
    activate.push(...sockets.map((name) => (name === 'HTTP' ? `127.0.0.1:${hub.httpPort}` : name)));
    const daemon = [process.execPath, MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')];
    const child = spawn(ACTIVATE, [...activate.slice(1), ...daemon], { stdio: ['ignore', 'ignore', 'pipe'] });
    const stderr = text(child.stderr);
    const ended = once(child, 'exit');
    const packets = createSocket('udp4');
    await eventually(async () => {
      if (child.exitCode !== null) return true;
      packets.send('knock', hub.httpPort, '127.0.0.1');
      await knock(hub.httpPort).catch(() => null);
      return null;
    });
    packets.close();
    expect((await ended)[0]).toBe(1);
    const lines = (await stderr).split('\n').filter((line) => line.startsWith('latchkey: '));
    expect(lines).toEqual([expect.stringContaining(message)]);
  },
);

it('a client that keeps its connection and asks every second loses no request when a hub of systemd stops', async () => {
  await using activated = await prepareActivated('["127.0.0.1"]');
  const { hub, activate } = activated;
  for (const port of [hub.httpPort, hub.httpsPort]) activate.push('-l', `127.0.0.1:${port}`);
  await activated.launch();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async () => {
    const [response] = await once(
      request({ host: '127.0.0.1', port: hub.httpPort, path: '/ca.pem', agent }).end(),
      'response',
    );
    const { localPort: port } = response.socket;
    await text(response);
    return { port, ...response.headers };
  };
  const { port } = await ask();
  const ended = hub.kill('SIGTERM');
  await sleep(1000);
  expect(await ask()).toMatchObject({ port, connection: 'close' });
  agent.destroy();
  await ended;
});
