import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { root } from '../project/checkout.ts';
import { stateFolder } from '../support/state-folder.ts';

const run = promisify(execFile);
const units = readdirSync(join(root, 'systemd')).filter((name) => /\.(service|socket|timer)$/.test(name));
const SYSTEM = '/usr/lib/systemd/system';
const skipReason =
  existsSync('/usr/bin/systemd-analyze') && existsSync(SYSTEM) ? undefined : 'there is no systemd-analyze';

/** The programs that the units run, at the paths where the packages install them. */
const PROGRAMS = ['usr/bin/env', 'usr/bin/latchkey', 'usr/lib/latchkey/bin/node', 'bin/sh'];

/** The settings that need no namespace (systemd.exec(5)); any other one of a sandbox is taken for one that does. */
const WITHOUT_NAMESPACES = /^(RestrictAddressFamilies|RestrictNamespaces|RestrictRealtime|RestrictSUIDSGID|RemoveIPC)$/;
const SANDBOX =
  /^(Private|Protect|Proc|Dynamic|LoadCredential|ReadOnly|ReadWrite|Inaccessible|Bind|TemporaryFile|Restrict|Remove)/;

function directives(unit: string, name: string): string[] {
  const text = readFileSync(join(root, 'systemd', unit), 'utf8');
  return text.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));
}

/** A machine's folders, as far as systemd-analyze reads them: systemd's own targets, these units and their programs. */
function machine(folder: string, change: (unit: string, text: string) => string = (_, text) => text): string {
  const system = join(folder, SYSTEM);
  mkdirSync(system, { recursive: true });
  for (const name of readdirSync(SYSTEM).filter((name) => /\.(target|slice)$/.test(name))) {
    cpSync(join(SYSTEM, name), join(system, name), { verbatimSymlinks: true });
  }
  for (const unit of units) {
    writeFileSync(join(system, unit), change(unit, readFileSync(join(root, 'systemd', unit), 'utf8')));
  }
  for (const program of PROGRAMS) {
    mkdirSync(dirname(join(folder, program)), { recursive: true });
    writeFileSync(join(folder, program), '#!/bin/sh\n', { mode: 0o755 });
  }
  return folder;
}

/** All problems that systemd reports. */
async function verify(folder: string): Promise<string> {
  // The manual pages are installed by the package, whose own test finds them.
  const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', `--root=${folder}`, ...units]).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return stdout + stderr;
}

describe.skipIf(skipReason)('the systemd units', () => {
  test('systemd accepts the units, and would report a mistake', async () => {
    using sound = stateFolder();
    expect(await verify(machine(sound.path))).toBe('');
    using wrong = stateFolder();
    const invalid = (unit: string, text: string) =>
      unit === 'latchkey.service' ? text.replace('ProtectClock=', 'ProtectClocks=') : text;
    expect(await verify(machine(wrong.path, invalid))).toContain("Unknown key 'ProtectClocks'");
  });

  test.each(units.filter((unit) => unit.endsWith('.service')))(
    'systemd rates the exposure of %s at 1.3 or less',
    async (unit) => {
      // The threshold is in tenths; above it the program fails.
      const { stdout } = await run('systemd-analyze', [
        ...['security', '--offline=true', '--no-pager', '--threshold=13'],
        join(root, 'systemd', unit),
      ]);
      const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout) ?? [];
      expect(Number(exposure)).toBeGreaterThan(0);
      expect(Number(exposure)).toBeLessThanOrEqual(1.3);
    },
  );
});

test('the drop-in for containers that forbid mounts turns off each setting of the service that needs a namespace', () => {
  const settingsOf = (file: string) =>
    new Map(
      readFileSync(join(root, 'systemd', file), 'utf8')
        .split('\n')
        .flatMap((line): [string, string][] => {
          const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
          return name === undefined || value === undefined || !SANDBOX.test(name) || WITHOUT_NAMESPACES.test(name)
            ? []
            : [[name, value]];
        }),
    );
  const off = settingsOf('without-namespaces.conf');
  expect([...off.keys()].toSorted()).toEqual([...settingsOf('latchkey.service').keys()].toSorted());
  expect(new Set(off.values())).toEqual(new Set(['no', '', 'all', 'default']));
});

test('the default ports of the hub are those of its socket unit, for IPv4 and IPv6', () => {
  const schema = readFileSync(join(root, 'docs/configuration.md'), 'utf8');
  const ports = ['http_port', 'https_port'].map((key) => new RegExp(`lan\\.${key}\` \\| (\\d+)`).exec(schema)?.[1]);
  expect(directives('latchkey.socket', 'ListenStream')).toEqual(
    ports.flatMap((port) => [`0.0.0.0:${port}`, `[::]:${port}`]),
  );
});

test.each(units.filter((unit) => unit.endsWith('.service')))(
  'the unit %s is ready when its program reports that',
  (unit) => {
    expect([directives(unit, 'Type'), directives(unit, 'NotifyAccess')]).toEqual([['notify'], ['all']]);
  },
);

test('the daemon can stop in order before the timeouts of its unit', () => {
  expect(Number(directives('latchkey.service', 'TimeoutStopSec')[0])).toBeGreaterThan(120);
  expect(Number(directives('latchkey.service', 'TimeoutStartSec')[0])).toBeGreaterThan(120);
});
