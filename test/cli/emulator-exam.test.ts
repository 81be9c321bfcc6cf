import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clientWith } from '../emulator/exam/run-exam.ts';
import { isRunning } from '../support/processes.ts';
import { runLatchkey, spawnLatchkey } from './command.ts';

const exam = (...args: string[]) => ['emulator', 'exam', ...args];
/** A situation that takes little time. */
const QUICK = ['--only', 'one-method'];

test.each<[what: string, args: string[], message: RegExp]>([
  ['no command', exam(), /missing required argument 'command'/],
  [
    'an unknown situation',
    exam('--only', 'rotaton', '--', 'true'),
    /--only rotaton: unknown group or situation.*rotation/,
  ],
  ['an unknown format', exam('--format', 'yaml', '--', 'true'), /--format.*table, json, junit/],
  ['a redirect URI of another machine', exam('--redirect', 'http://192.0.2.1/callback', '--', 'true'), /allowed is an/],
  ['an option of the emulator', exam('--json', '--', 'true'), /unknown option '--json'/],
  ['a command that does not exist', exam(...QUICK, '--', 'no-such-command'), /no-such-command.*not found/],
])('emulator exam with %s is wrong usage', async (_, args, message) => {
  const { status, stdout, stderr } = await runLatchkey(args);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(message);
});

test('emulator exam says in one line how a program ended that did not call the API', async () => {
  const { status, stdout, stderr } = await runLatchkey(exam(...QUICK, '--', 'sh', '-c', 'echo no key; exit 3'));
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toBe('latchkey: the program ended with status 3 (its last line: no key) before a call of API_URL\n');
});

test('emulator exam quotes the error of a program that crashed, and not the lines around it', async () => {
  const crash = [process.execPath, '-e', 'setTimeout(() => { throw new TypeError("no key") }, 50)'];
  const { stderr } = await runLatchkey(exam(...QUICK, '--', ...crash));
  expect(stderr).toBe(
    'latchkey: the program ended with status 1 (its error: TypeError: no key) before a call of API_URL\n',
  );
});

test('emulator exam --log writes what the program printed and sent in each situation', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'lk-')), 'log');
  const program = ['sh', '-c', 'echo hello; exec "$@"', 'sh', ...clientWith()];
  await runLatchkey(exam(...QUICK, '--log', folder, '--', ...program));
  expect(readFileSync(join(folder, 'one-method.output.txt'), 'utf8')).toMatch(/^hello\n/);
  const [first = ''] = readFileSync(join(folder, 'one-method.requests.jsonl'), 'utf8').split('\n');
  expect(JSON.parse(first)).toMatchObject({ number: 1, method: expect.any(String) });
});

test('emulator exam prints its report in three formats, and has status 0 without a failure', async () => {
  const [table, json, junit] = await Promise.all(
    ['table', 'json', 'junit'].map((format) => runLatchkey(exam(...QUICK, '--format', format, '--', ...clientWith()))),
  );
  expect([table?.status, json?.status, junit?.status]).toEqual([0, 0, 0]);
  expect(table?.stdout).toMatch(
    /^passed {2}client-authentication {2}one-method\n[\s\S]*1 passed, 0 failed, 0 not applicable\n$/,
  );
  const report: unknown = JSON.parse(json?.stdout ?? '');
  expect(report).toMatchObject({ client: clientWith().join(' '), passed: 1, failed: 0, not_applicable: 0 });
  expect(report).toHaveProperty('results.0.verdict', 'passed');
  expect(junit?.stdout).toMatch(
    /<testsuite name="[^"]+" tests="1" failures="0" skipped="0">\n {2}<testcase classname="client-authentication" name="one-method"><\/testcase>/,
  );
});

test('emulator exam explains a failure with what was seen, what is right and who says so, and has status 1', async () => {
  const only = [...QUICK, '--only', 'special-characters'];
  const command = clientWith('basic-without-encoding');
  const [table, junit] = await Promise.all(
    ['table', 'junit'].map((format) => runLatchkey(exam(...only, '--format', format, '--', ...command))),
  );
  expect([table?.status, junit?.status]).toEqual([1, 1]);
  expect(table?.stdout).toMatch(
    /^FAILED .*special-characters\n[\s\S]*seen {2}with client_secret_basic[\s\S]*right [\s\S]*says {2}RFC 6749, 2\.3\.1/,
  );
  expect(junit?.stdout).toContain('<failure message="with client_secret_basic, an ID with &#34;:&#34;');
});

test.each<[signals: string, isSecond: boolean, end: object]>([
  ['SIGINT', false, { status: 1, stderr: 'latchkey: the exam was ended by SIGINT; nothing of it runs any more\n' }],
  ['a second SIGINT', true, { status: 130, stderr: '' }],
])('%s ends an exam, and leaves neither a program nor a folder behind', async (_, isSecond, end) => {
  const own = mkdtempSync(join(tmpdir(), 'lk-'));
  const folders = () => readdirSync(own).filter((name) => name.startsWith('latchkey-exam-'));
  const running = spawnLatchkey(exam('--', 'sh', '-c', `trap '' TERM; echo $$ > ${own}/pid; sleep 1000`), {
    TMPDIR: own,
  });
  await expect.poll(() => existsSync(join(own, 'pid'))).toBe(true);
  const pid = Number(readFileSync(join(own, 'pid'), 'utf8'));
  running.process.kill('SIGINT');
  if (isSecond) await expect.poll(() => running.process.kill('SIGINT')).toBe(false);
  const { status, stdout, stderr } = await running.ended;
  expect({ status, stdout, stderr }).toEqual({ stdout: '', ...end });
  expect(folders()).toEqual([]);
  await expect.poll(() => isRunning(pid)).toBe(false);
});
