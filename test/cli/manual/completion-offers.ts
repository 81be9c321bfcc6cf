import { chmodSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { MAIN } from '../../support/program.ts';
import { runLatchkey, shareFakeAdministration } from '../command.ts';
import { allHelpTexts, type CommandHelp } from './help-texts.ts';

/** A folder with the completions of all shells, and with `latchkey` as the program. */
export const folder = mkdtempSync(join(tmpdir(), 'lk-completion-'));

/** Returns the completions for the beginning of each line. */
type Offers = (lines: readonly string[], env: NodeJS.ProcessEnv) => Promise<string[][]>;

/** Describes the completion of a shell. @param offers gets its environment, in which `latchkey` is the program */
export function describeShell(name: string, offers: Offers): void {
  const hub = shareFakeAdministration();
  let helps: CommandHelp[];
  const offersOf = (lines: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    offers(lines, { ...hub.env, PATH: `${folder}:${process.env['PATH']}`, HOME: folder, ...env });

  beforeAll(async () => {
    for (const name of ['wallbox', 'washer', 'heatpump']) hub.administration.set({ name });
    hub.administration.setConnection({ name: 'heating' });
    writeFileSync(join(folder, 'latchkey'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
    chmodSync(join(folder, 'latchkey'), 0o755);
    writeFileSync(join(folder, 'a copy.latchkey'), '');
    helps = allHelpTexts();
    const printed = await runLatchkey(['completion', name], { LATCHKEY_CONFIG: '/nowhere.toml' });
    expect(printed).toMatchObject({ status: 0, stderr: '' });
    writeFileSync(join(folder, name), printed.stdout);
  });

  describe.skipIf(!existsSync(`/usr/bin/${name}`))(`the completion of ${name}`, () => {
    test('the completion knows every command and option that the help shows', async () => {
      const groups = helps.filter(({ commands }) => commands.length > 0);
      const line = ({ path }: CommandHelp) => ['latchkey', ...path, ''].join(' ');
      const offered = await offersOf([...groups.map(line), ...helps.map((help) => `${line(help)}--`)]);
      for (const help of groups)
        expect(offered.shift(), line(help)).toEqual(expect.arrayContaining([...help.commands]));
      for (const help of helps) expect(offered.shift()?.toSorted(), line(help)).toEqual(help.options.toSorted());
    });

    test('the completion offers commands, subcommands, choices, files, and names of appliances and connections', async () => {
      const expected: Record<string, string[]> = {
        'latchkey appliance r': ['remove', 'rename', 'rotate-secret'],
        'latchkey emulator --basic ': ['accept', 'refuse'],
        'latchkey pair wa': ['wallbox', 'washer'],
        'latchkey --config /dev/null pair --timeout 3 hea': ['heating', 'heatpump'],
        'latchkey appliance remove h': ['heatpump'],
        'latchkey appliance add lamp --connection h': ['heating', 'heatpump'],
        'latchkey connection remove hea': ['heating', 'heatpump'],
        'latchkey connection add h': [],
        'latchkey pair --timeout w': [],
        'latchkey restore a': ['a copy.latchkey'],
      };
      const offered = await offersOf(Object.keys(expected));
      const found = offered.map((words) => words.map((word) => word.replaceAll('\\', '')).toSorted());
      expect(Object.fromEntries(Object.keys(expected).map((line, index) => [line, found[index]]))).toEqual(expected);
    });

    test('the completion offers no names if there is no hub', async () => {
      const nowhere = { LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere.sock' };
      expect(await offersOf(['latchkey pair '], nowhere)).toEqual([[]]);
    });
  });
}

/** The completions of each line, in the output of a shell that writes `===` after those of a line. */
export function splitOffers(stdout: string): string[][] {
  return stdout
    .split('===\n')
    .slice(0, -1)
    .map((part) => part.split('\n').filter((line) => line !== ''));
}
