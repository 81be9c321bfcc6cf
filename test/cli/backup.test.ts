import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rememberSecrets } from '../support/logs.ts';
import { serveFakeAdministration } from './command.ts';

const PASSPHRASE = 'four words at random';
rememberSecrets([PASSPHRASE]);

/** A folder with a passphrase file, and a hub. */
async function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'lk-'));
  const passphraseFile = join(folder, 'passphrase');
  writeFileSync(passphraseFile, `${PASSPHRASE}\n`, { mode: 0o600 });
  return { folder, file: join(folder, 'hub.copy'), passphraseArgs: ['--passphrase-file', passphraseFile] };
}

describe('latchkey backup', () => {
  it('backup writes a private file, and does not print the passphrase', async () => {
    await using hub = await serveFakeAdministration();
    const { file, folder, passphraseArgs } = await setUp();
    const { status, stdout, stderr } = await hub.latchkey('backup', file, ...passphraseArgs);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/contains the hub's state of 2031-05-05T06:00:00Z \(appliances: 0, grants: 1\)/);
    expect(readFileSync(file, 'utf8')).toBe('a.sealed.copy\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).sort()).toEqual(['hub.copy', 'passphrase']);
    expect(hub.administration.passphrases).toEqual([PASSPHRASE]);
  });

  it('backup replaces an existing file only with --force', async () => {
    await using hub = await serveFakeAdministration();
    const { file, passphraseArgs } = await setUp();
    writeFileSync(file, 'something dear');
    const refused = await hub.latchkey('backup', file, ...passphraseArgs);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringMatching(/hub\.copy already exists.*--force/) });
    expect(readFileSync(file, 'utf8')).toBe('something dear');
    expect(hub.administration.passphrases).toEqual([]);
    const { stdout } = await hub.latchkey('backup', file, ...passphraseArgs, '--force', '--json');
    expect(JSON.parse(stdout)).toEqual({ file, made: '2031-05-05T06:00:00Z', appliances: 0, grants: 1 });
    expect(readFileSync(file, 'utf8')).toBe('a.sealed.copy\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('backup without a usable passphrase leaves no file behind', async () => {
    await using hub = await serveFakeAdministration();
    const { file, folder } = await setUp();
    const unasked = await hub.latchkey('backup', file);
    expect(unasked).toMatchObject({ status: 1, stderr: expect.stringMatching(/no terminal.*--passphrase-file/) });
    const open = join(folder, 'open');
    writeFileSync(open, PASSPHRASE, { mode: 0o644 });
    const exposed = await hub.latchkey('backup', file, '--passphrase-file', open);
    expect(exposed).toMatchObject({ status: 1, stderr: expect.stringContaining('open to other users') });
    expect(existsSync(file)).toBe(false);
  });

  it('backup asks for the passphrase twice on a terminal, and does not show it', async () => {
    await using hub = await serveFakeAdministration();
    const { file } = await setUp();
    const terminal = hub.onTerminal('backup', file);
    await terminal.stdout(/New passphrase \(at least 12 characters, 5 of them different\): /);
    terminal.process.stdin?.write(`${PASSPHRASE}\r`);
    const { status, stdout } = await terminal.reply(/Repeat the passphrase: /, `${PASSPHRASE}\r`);
    expect(status).toBe(0);
    expect(stdout).not.toContain(PASSPHRASE);
    expect(hub.administration.passphrases).toEqual([PASSPHRASE]);

    const mistyped = hub.onTerminal('backup', file, '--force');
    await mistyped.stdout(/New passphrase/);
    mistyped.process.stdin?.write(`${PASSPHRASE}\r`);
    expect(await mistyped.reply(/Repeat the passphrase: /, 'something else\r')).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('not the same'),
    });
  });
});

describe('latchkey restore', () => {
  it('restore reports what happened to each grant, and restarts the hub', async () => {
    await using hub = await serveFakeAdministration();
    const { file, passphraseArgs } = await setUp();
    writeFileSync(file, 'a.sealed.copy\n');
    const { status, stdout, stderr } = await hub.latchkey('restore', file, '--yes', ...passphraseArgs);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/The setup code of its page is that of the backup, too; ".*latchkey setup-code" shows it\./);
    expect(stdout).toMatch(/runs again as latchkey-1a2b3c, with its state of 2031-05-05/);
    expect(stdout).toMatch(/Grants from the backup \(.*\): wallbox/);
    expect(stdout).toMatch(/kept, .*: heater/);
    expect(hub.administration).toMatchObject({ passphrases: [PASSPHRASE], restarts: 1 });
    const json = await hub.latchkey('restore', file, '--yes', '--json', ...passphraseArgs);
    expect(JSON.parse(json.stdout)).toMatchObject({
      hub_id: 'latchkey-1a2b3c',
      restored: ['wallbox'],
      kept: ['heater'],
    });
  });

  it('restore warns of two hubs with the same tokens, and needs a confirmation', async () => {
    await using hub = await serveFakeAdministration();
    const { file, passphraseArgs } = await setUp();
    writeFileSync(file, 'a.sealed.copy\n');
    const unsure = await hub.latchkey('restore', file, ...passphraseArgs);
    expect(unsure).toMatchObject({ status: 1, stderr: expect.stringMatching(/Never run two hubs.*--yes/) });
    expect(
      await hub
        .onTerminal('restore', file, ...passphraseArgs)
        .reply(/Never run two hubs[\s\S]*Continue\? \[y\/N\]/, 'n\r'),
    ).toMatchObject({ status: 1, stdout: expect.stringContaining('nothing was changed') });
    expect(hub.administration).toMatchObject({ passphrases: [], restarts: 0 });
  });

  it('restore fails in one line and restarts nothing if the hub refuses the file', async () => {
    await using hub = await serveFakeAdministration();
    const { file, passphraseArgs } = await setUp();
    writeFileSync(file, 'something else');
    const refused = await hub.latchkey('restore', file, '--yes', ...passphraseArgs);
    expect(refused).toMatchObject({ status: 1, stderr: 'latchkey: the copy is none\n' });
    expect(hub.administration.restarts).toBe(0);
  });
});
