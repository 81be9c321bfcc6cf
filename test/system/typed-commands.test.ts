import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { type CommandInvocation, detectInvocation, rewriteCommands } from '../../src/system/command-invocation.ts';
import { root, runCommand } from '../project/checkout.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';

const CHECKOUT: CommandInvocation = { program: './scripts/latchkey', usesSudo: false };
const BY_SUDO: CommandInvocation = { program: 'latchkey', usesSudo: true };

test('commands are shown as the program was started, with sudo for a hub of root or a system service', () => {
  expect(detectInvocation({}, true)).toEqual({ program: 'latchkey', usesSudo: false });
  expect(detectInvocation({ LATCHKEY_PROGRAM: './scripts/latchkey' }, false)).toEqual(CHECKOUT);
  expect(detectInvocation({ SUDO_UID: '1000' }, true)).toEqual(BY_SUDO);
  expect(detectInvocation({ SUDO_UID: '1000' }, false).usesSudo).toBe(false);
  expect(detectInvocation({ RUNTIME_DIRECTORY: '/run/latchkey' }, false)).toEqual(BY_SUDO);
  expect(detectInvocation({ RUNTIME_DIRECTORY: '/run/user/1000/latchkey' }, false).usesSudo).toBe(false);
});

describe('commands in text for people', () => {
  test("each command in a text is rewritten to the program's name as typed", async () => {
    const names = (await createProgram()).commands.map((command) => command.name());
    expect(names).toContain('serve');
    for (const name of names)
      expect(rewriteCommands(`run "latchkey ${name}"`, CHECKOUT)).toBe(`run "./scripts/latchkey ${name}"`);
  });

  test('sudo is added to commands that talk to a hub, and not to others', () => {
    const text = 'latchkey pair a: "latchkey status", else “latchkey serve --test-mode”, "latchkey --help"';
    const typed = 'sudo latchkey pair a: "sudo latchkey status", else “latchkey serve --test-mode”, "latchkey --help"';
    expect(rewriteCommands(text, BY_SUDO)).toBe(typed);
  });

  test("sudo is written once, and left out for a user's own hub except with doctor", () => {
    expect(rewriteCommands('"sudo latchkey reload"', BY_SUDO)).toBe('"sudo latchkey reload"');
    expect(rewriteCommands('"sudo latchkey reload"', CHECKOUT)).toBe('"./scripts/latchkey reload"');
    expect(rewriteCommands('"sudo latchkey doctor"', CHECKOUT)).toBe('"sudo ./scripts/latchkey doctor"');
    expect(rewriteCommands(rewriteCommands('latchkey pair a', BY_SUDO), BY_SUDO)).toBe('sudo latchkey pair a');
    expect(rewriteCommands(rewriteCommands('latchkey pair a', CHECKOUT), CHECKOUT)).toBe('./scripts/latchkey pair a');
  });

  test('a command in a container is rewritten once, however often the text is rewritten', () => {
    for (const program of ['podman exec -it latchkey latchkey', 'sudo podman exec -it latchkey latchkey']) {
      const reader = { program, usesSudo: false };
      const once = rewriteCommands('run "latchkey pair a" or "latchkey --help"', reader);
      expect(once).toBe(`run "${program} pair a" or "${program} --help"`);
      expect(rewriteCommands(once, reader)).toBe(once);
      const doctor = rewriteCommands('sudo latchkey doctor', reader);
      expect(doctor).toBe('sudo podman exec -it latchkey latchkey doctor');
      expect(rewriteCommands(doctor, reader)).toBe(doctor);
    }
  });

  test("other text that contains the program's name stays unchanged", () => {
    const text =
      'latchkey: /usr/bin/latchkey status, sudo systemctl start latchkey, my-latchkey pair, latchkey statuses';
    expect(rewriteCommands(text, { program: 'x', usesSudo: true })).toBe(text);
  });
});

test('a hub that was started from a checkout names that program in its log and on its page', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, env: { LATCHKEY_PROGRAM: 'a"<b>' } });
  const [event] = await eventually(async () => {
    const events = hub.events('page_never_opened');
    return events.length > 0 && events;
  });
  expect(event).toMatchObject({ what_to_do: expect.stringContaining('"a"<b> setup-code"') });
  await using visitor = await PageVisitor.open(hub);
  expect((await visitor.get('/')).text).toContain('<code>a&#34;&#60;b&#62; setup-code</code>');
});

test('./scripts/latchkey names itself in messages by the path that was typed', async () => {
  const env = { ...process.env, LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere/control.sock', LATCHKEY_CONFIG: '/dev/null' };
  const typed = await runCommand('../../scripts/latchkey', ['status'], { env, cwd: join(root, 'test/system') });
  expect(typed).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('"../../scripts/latchkey serve --test-mode" to try it out'),
  });
});

test('scripts/demo shows its commands as it was started', async () => {
  const mistyped = await runCommand('./scripts/demo', ['--atuo'], { cwd: root });
  expect(mistyped).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('(see "./scripts/latchkey demo --help")'),
  });
});
