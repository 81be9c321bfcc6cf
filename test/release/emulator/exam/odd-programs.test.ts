import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clientWith, examine, namesOf } from '../../../emulator/exam/run-exam.ts';
import { isRunning } from '../../../support/processes.ts';

/** A program in Node, as a command. */
const program = (text: string, ...args: string[]) => [process.execPath, '--input-type=module', '-e', text, ...args];

test('a program that never calls the API is named as such', async () => {
  await expect(examine(['sleep', '1000'], 'one-method')).rejects.toThrow(
    /the exam waited \d+ s for a call of API_URL in vain/,
  );
});

test('a program that calls the API without a pause is named as such', async () => {
  const flood = program(`
    const { API_URL, OAUTH_TOKEN_ENDPOINT, OAUTH_REFRESH_TOKEN, OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET } = process.env;
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: OAUTH_REFRESH_TOKEN, client_id: OAUTH_CLIENT_ID, client_secret: OAUTH_CLIENT_SECRET });
    const { access_token } = await (await fetch(OAUTH_TOKEN_ENDPOINT, { method: 'POST', body })).json();
    for (;;) await fetch(API_URL, { headers: { authorization: 'Bearer ' + access_token } });`);
  await expect(examine(flood, 'one-method')).rejects.toThrow(
    'the program called API_URL 7 times in a row: it must wait about a second between two calls',
  );
});

test('a program that ignores SIGTERM is ended with everything that it has started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lk-'));
  const [, client = ''] = clientWith();
  const stubborn = `
    import { spawn } from 'node:child_process';
    import { appendFileSync } from 'node:fs';
    process.on('SIGTERM', () => undefined);
    appendFileSync('${folder}/pids', process.pid + '\\n' + spawn('sleep', ['1000']).pid + '\\n');
    await import('${client}');`;
  const report = await examine(program(stubborn), 'one-method');
  expect(namesOf(report, 'passed')).toEqual(['one-method']);
  const pids = readFileSync(join(folder, 'pids'), 'utf8').trim().split('\n').map(Number);
  expect(pids.length).toBeGreaterThanOrEqual(4);
  await expect.poll(() => pids.filter(isRunning)).toEqual([]);
});

test('a report does not repeat the secrets that a program prints at its end', async () => {
  const talkative = program(`console.log('I know', process.env.OAUTH_REFRESH_TOKEN, process.env.OAUTH_CLIENT_SECRET)`);
  await expect(examine(talkative, 'one-method')).rejects.toThrow(
    'the program ended with status 0 (its last line: I know … …) before a call of API_URL',
  );
});

test('two exams at once come to the same verdicts as one alone', async () => {
  const command = clientWith('follows-redirects');
  const reports = await Promise.all(
    [1, 2].map(() => examine(command, 'redirect-307', 'exact-redirect', 'login-refused')),
  );
  for (const report of reports) {
    expect(namesOf(report, 'failed')).toEqual(['redirect-307']);
    expect(namesOf(report, 'passed')).toEqual(['exact-redirect', 'login-refused']);
  }
});
