import { request } from 'undici';
import { expect, test } from 'vitest';
import { runLatchkey, startLatchkey } from './command.ts';

test('emulator --fault adds faults that are in force from the start, with the probability of their seed', async () => {
  const run = async () => {
    const half = '{"kind":"status","endpoint":"whoami","status":503,"times":null,"probability":0.5}';
    const emulator = startLatchkey([
      'emulator',
      '--json',
      '--seed',
      '3',
      '--fault',
      half,
      '--fault',
      '{"kind":"hang","endpoint":"token"}',
    ]);
    const { base_url } = JSON.parse((await emulator.stdout(/\n/)).split('\n')[0] ?? '') as { base_url: string };
    const statuses: number[] = [];
    for (let i = 0; i < 30; i += 1) {
      const { statusCode, body } = await request(`${base_url}/api/whoami`);
      await body.dump();
      statuses.push(statusCode);
    }
    const { body } = await request(`${base_url}/_emulator/faults`);
    expect(await body.json()).toMatchObject({ faults: [{ kind: 'status' }, { kind: 'hang', hits: 0, left: 1 }] });
    emulator.process.kill('SIGINT');
    expect((await emulator.ended).status).toBe(0);
    return statuses;
  };
  const first = await run();
  expect(new Set(first)).toEqual(new Set([401, 503]));
  expect(await run()).toEqual(first);
});

test.each([
  ['--fault', '{"kind":"hang","endpoint":"tokens"}', /--fault: endpoint: must be .*\(found "tokens"\)/],
  ['--fault', 'hang', /--fault: body: must be valid JSON/],
  ['--fault', '{"kind":"tls_failure","origin":"base"}', /--fault: kind: tls_failure needs .* plain HTTP/],
  ['--seed', 'luck', /--seed/],
])('emulator %s %s is wrong usage', async (flag, value, message) => {
  const wrong = await runLatchkey(['emulator', flag, value]);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(message);
});
