import { execFileSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { examine, namesOf } from '../../../emulator/exam/run-exam.ts';
import { readExamples } from '../../../emulator/examples/guide.ts';
import { root } from '../../../project/checkout.ts';
import { GO_CACHE } from '../../../support/program.ts';

/** The commands of the guide, with the programs of Debian's packages. */
const COMMANDS: Readonly<Record<string, readonly [file: string, command: readonly string[]]>> = {
  sh: ['client.sh', ['/bin/sh', 'client.sh']],
  js: ['client.mjs', [process.execPath, 'client.mjs']],
  python: ['client.py', ['/usr/bin/python3', 'client.py']],
  go: ['client.go', ['./client']],
};

test.each(Object.entries(COMMANDS))(
  'the adapter of the guide in %s sits the exam',
  async (language, [file, command]) => {
    const folder = mkdtempSync(join(tmpdir(), 'lk-'));
    const [text = ''] = readExamples('Adapters', language, 'docs/exam-your-client.md');
    writeFileSync(join(folder, file), text);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    if (language === 'go') {
      const env = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: GO_CACHE };
      execFileSync('/usr/bin/go', ['build', file], { cwd: folder, env });
    }
    const here = ['/usr/bin/env', '-C', folder, ...command];
    const report = await examine(here, 'rotation', 'storage', 'status-500', 'revoked');
    expect(namesOf(report, 'passed')).toEqual(
      expect.arrayContaining([
        'each-token-once',
        'kept-before-used',
        'no-new-token',
        'restart',
        'readable-by-others',
        'status-500',
      ]),
    );
    expect(namesOf(report, 'not_applicable')).toEqual(['ten-requests-at-once']);
    // Two processes with a token each, and an adapter that asks on: what the guide says of them.
    expect(namesOf(report, 'failed')).toEqual(expect.arrayContaining(['revoked']));
  },
);
