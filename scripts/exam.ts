// Runs the exam for other people's OAuth clients, and writes docs/exam.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExamReport } from '../src/emulator/exam/exam.ts';
import { GROUPS, type Group } from '../src/emulator/exam/situation.ts';
import { CLIENTS, type ExaminedClient } from './exam.d/clients.ts';

const root = join(import.meta.dirname, '..');
const clientsFolder = join(root, 'scripts/exam.d/clients');
const cache = join(root, '.cache/exam');

/** What is kept of an exam until the next one. */
interface Examined {
  readonly version: string;
  /** The day, in UTC. */
  readonly day: string;
  readonly report: ExamReport;
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !CLIENTS.some((client) => client.name === name));
if (unknown.length > 0) {
  console.error(
    `scripts/exam: no client is called ${unknown.join(', ')}; there are ${CLIENTS.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}
mkdirSync(cache, { recursive: true });
for (const client of CLIENTS) if (names.length === 0 || names.includes(client.name)) examine(client);
writeFileSync(join(root, 'docs/exam.md'), page());

function examine({ name, version, build, command, options = [] }: ExaminedClient): void {
  using scratch = mkdtempDisposableSync(join(tmpdir(), 'latchkey-clients-'));
  const words = { node: process.execPath, adapters: clientsFolder, scratch: scratch.path };
  let found: string;
  try {
    found = version(clientsFolder);
    if (build !== undefined)
      execFileSync('/bin/sh', ['-euc', build], { env: { ...process.env, ...words }, stdio: 'inherit' });
  } catch {
    console.error(`scripts/exam: ${name} is not installed on this machine, and keeps its last result`);
    return;
  }
  const filled = command.map((word) => word.replace(/\{(\w+)\}/, (_all, key: keyof typeof words) => words[key]));
  const exam = [join(root, 'dist/main.js'), 'emulator', 'exam', ...options, '--format', 'json', '--', ...filled];
  const { stdout } = spawnSync(process.execPath, exam, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  // The exam has said why not.
  if (stdout === '') process.exit(1);
  const report = JSON.parse(stdout) as ExamReport;
  const examined: Examined = { version: found, day: new Date().toISOString().slice(0, 10), report };
  writeFileSync(join(cache, `${name.replaceAll('/', '-')}.json`), JSON.stringify(examined));
  console.error(
    `${name} ${found}: ${report.passed} passed, ${report.failed} failed, ${report.not_applicable} not applicable`,
  );
}

function page(): string {
  const all = CLIENTS.flatMap((client) => {
    const file = join(cache, `${client.name.replaceAll('/', '-')}.json`);
    return existsSync(file) ? [{ client, ...(JSON.parse(readFileSync(file, 'utf8')) as Examined) }] : [];
  });
  const rows = all.map(({ client, version, report }) => {
    const cells = [client.name, version, ...GROUPS.map((group) => countOf(report, group))];
    return `| ${cells.join(' | ')} |`;
  });
  const sections = all.map(({ client, version, day, report }) => {
    const failures = report.results
      .filter(({ verdict }) => verdict === 'failed')
      .map(({ name, seen }) => `- \`${name}\`: ${seen}`);
    const lines = failures.length === 0 ? ['No failure.'] : failures;
    const source = `[its adapter](../scripts/exam.d/clients/${client.adapter})`;
    return [
      `## ${client.name}`,
      `${version}, examined on ${day} through ${source}: \`./scripts/exam ${client.name}\``,
      lines.join('\n'),
    ].join('\n\n');
  });
  return `# OAuth clients in the exam

What [the exam](exam-your-client.md) says of some OAuth clients. \`./scripts/exam\` writes this page; [exam-situations.md](exam-situations.md) says what each
situation is about.

A result is that of a program which uses the client as its documentation shows, in a loop: it calls an API once a second, asks for new tokens after a 401, tries
again a second after an error, and stores what it gets. So some failures are matters that the client leaves to its user: \`two-processes\` where it stores nothing,
\`retry-after-seconds\`, \`retry-after-date\` and \`too-many-requests\` where it neither waits nor retries by itself, \`no-answer\` where it has no default
timeout, \`only-basic\` and \`only-post\` where its user chooses the method, \`revoked\` where its error
has no code to act on. A client that does not do what a group is about, such as a login by device code, has "–" there.
@auth/core leaves refreshes to its user, and @okta/okta-auth-js refreshes only for public clients. @azure/msal-node is examined over HTTPS, and always begins with
a login. Latchkey is the hub of this project: the program is one of its appliances, and the hub begins with an imported refresh token, or with a login of its own.

Passed situations, of those that apply:

| client | version | ${GROUPS.join(' | ')} |
|---|---|${GROUPS.map(() => '---|').join('')}
${rows.join('\n')}

${sections.join('\n\n')}
`;
}

/** Such as 6/7: passed situations of a group, of those that apply. */
function countOf({ results }: ExamReport, group: Group): string {
  const applicable = results.filter((result) => result.group === group && result.verdict !== 'not_applicable');
  return applicable.length === 0
    ? '–'
    : `${applicable.filter(({ verdict }) => verdict === 'passed').length}/${applicable.length}`;
}
