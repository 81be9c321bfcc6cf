import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { expect, it } from 'vitest';
import { pairFleet } from '../../reliability/fleet.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { stateFolder } from '../../support/state-folder.ts';

/** In s. A busy machine does not cause more wake-ups. */
const SETTLING = 5;
const WATCHED = 20;

/** The wake-ups of the thread that runs the event loop. */
function wakeUps(pid: number): number {
  const status = readFileSync(`/proc/${pid}/task/${pid}/status`, 'utf8');
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]);
}

/** A module that records what is loaded, and writes it to a file when the process ends. */
const NOTING = `
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
const files = [];
registerHooks({ load(url, context, next) { files.push(url); return next(url, context); } });
process.on('exit', () => writeFileSync(process.env.TEST_LOADED, JSON.stringify({ files, own: process.moduleLoadList })));
`;

it('an idle hub wakes up less than 1.5 times a second and has not loaded modules that few requests need', async () => {
  await using emulator = await startPortal();
  using folder = stateFolder();
  const list = join(folder.path, 'loaded.json');
  await using hub = await HubProcess.prepare({
    emulator,
    metrics: '127.0.0.1:0',
    env: { TEST_LOADED: list, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(NOTING)}` },
  });
  // The first start creates a CA and a certificate.
  await hub.launch();
  await pairFleet(hub, emulator, ['wallbox', 'inverter']);
  await hub.kill('SIGTERM');
  await hub.launch();
  for (const origin of [`http://127.0.0.1:${hub.httpPort}`, `https://127.0.0.1:${hub.httpsPort}`]) {
    const visitor = new Client(origin, { connect: { rejectUnauthorized: false } });
    await (await visitor.request({ method: 'GET', path: '/ca.pem' })).body.dump();
    await visitor.close();
  }
  await sleep(SETTLING * 1000);
  const before = wakeUps(hub.pid);
  await sleep(WATCHED * 1000);
  expect((wakeUps(hub.pid) - before) / WATCHED).toBeLessThan(1.5);

  await hub.kill('SIGTERM');
  const { files, own } = JSON.parse(readFileSync(list, 'utf8')) as { files: string[]; own: string[] };
  const packages = new Set(files.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []));
  expect([...packages]).toEqual(expect.arrayContaining(['fastify', 'undici', 'better-sqlite3']));
  const absent = ['tar-stream', '@peculiar/x509', 'ajv', 'light-my-request', 'oauth4webapi'];
  expect(absent.filter((name) => packages.has(name))).toEqual([]);
  const ours = files.flatMap((url) => /\/(?:src|dist)\/(.+)\.[jt]s$/.exec(url)?.[1] ?? []);
  expect(ours).toContain('hub/hub');
  // The options of `latchkey emulator` come from lists, the only parts of the emulator that are loaded.
  expect(
    ours.filter((file) =>
      /^emulator\/(?!settings\/(?:[a-z0-9]+-)?settings$|settings\/definitions$)|^portal\/oauth2\/oauth2|^clouds\/|^doctor\/|^lan\/openapi\/document/.test(
        file,
      ),
    ),
  ).toEqual([]);
  // Node's own fetch.
  expect(own).not.toContain('NativeModule internal/deps/undici/undici');
});
