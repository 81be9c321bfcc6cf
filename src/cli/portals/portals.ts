import { Command } from 'commander';
import type { PortalsResponse } from '../../control/messages.ts';
import { NO_PORTAL } from '../../core/portals/portal-status.ts';
import { connectHub } from '../hub-connection.ts';
import { checksTable } from '../terminal/checks-table.ts';
import { PORTAL_ANSWER, print, printable, printJson, reportIfSlow } from '../terminal/output.ts';
import { alignColumns, DEFAULT_COLUMNS } from '../terminal/table.ts';

interface Options {
  readonly catalogue?: boolean;
  readonly json?: boolean;
}

/** `latchkey portals …`; without a subcommand it is `latchkey portals list` */
export function portalsCommand(): Command {
  return new Command('portals')
    .description(
      'the portals of the hub: "latchkey portals" alone lists them, and with --catalogue the presets for known ones',
    )
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(checkCommand());
}

/** `latchkey portals [list]` and `latchkey portals --catalogue` */
function listCommand(): Command {
  return new Command('list')
    .description('list the portals: how one logs in, and the redirect URI to register there')
    .option(
      '--catalogue',
      'list the presets for known portals instead: what to register where, and what is known of them',
    )
    .option('--json', 'print JSON')
    .action(listPortals);
}

async function listPortals({ catalogue, json }: Options, command: Command): Promise<void> {
  if (catalogue === true) {
    const { presetCatalogue, catalogueText } = await import('./catalogue.ts');
    const found = presetCatalogue();
    if (json === true) printJson(found);
    else
      print(
        catalogueText(
          found,
          process.stdout.isTTY ? process.stdout.columns || DEFAULT_COLUMNS : Number.POSITIVE_INFINITY,
        ),
      );
    return;
  }
  await using hub = await connectHub(command);
  const response = await hub.request('portals');
  if (json === true) printJson(response);
  else print(portalsText(response.portals));
}

/** How one logs in at a portal; null while that is not known. */
const LOGINS: Readonly<Record<NonNullable<PortalsResponse['portals'][number]['login']>, string>> = {
  device: 'by a code (device login)',
  redirect: 'by redirect',
  paste: 'by pasting the address on which the browser ends',
  poll: 'by a link, without a redirect',
};

/** The portals, as text. */
export function portalsText(portals: PortalsResponse['portals']): string {
  if (portals.length === 0)
    return `${NO_PORTAL.message}. ${NO_PORTAL.advice}; "latchkey portals --catalogue" lists the presets of known portals`;
  return portals
    .map(({ name, title, type, preset, added, login, redirect_uri: redirectUri, reached }) =>
      alignColumns([
        [name, preset === undefined ? type : `${type}, preset ${preset}`],
        ...(title === name ? [] : [['  title', printable(title)]]),
        ['  declared', added === true ? 'no: added by a person' : 'by the configuration'],
        ['  login', login === null ? 'not known until the portal is reached' : LOGINS[login]],
        ['  redirect URI', redirectUri === null ? 'none' : printable(redirectUri)],
        ['  reached', reached ?? 'not since the start'],
      ]),
    )
    .join('\n');
}

/** `latchkey portals check [NAME]` */
function checkCommand(): Command {
  return new Command('check')
    .description(
      'check a portal, or all of them, without a login: discovery, endpoints, TLS and clock, and whether it accepts the hub as its client',
    )
    .argument('[name]', "the portal's name; all portals if it is left out")
    .option('--json', 'print JSON')
    .action(async (name: string | undefined, { json }: Options, command: Command) => {
      await using hub = await connectHub(command);
      const checkAll = async () => {
        const names = name === undefined ? (await hub.request('portals')).portals.map((portal) => portal.name) : [name];
        const found = names.map(async (portal) => {
          const { checks } = await hub.request('checkPortal', { name: portal });
          return name === undefined ? checks.map((one) => ({ ...one, name: `${portal}.${one.name}` })) : checks;
        });
        return (await Promise.all(found)).flat();
      };
      const checks = await reportIfSlow(PORTAL_ANSWER, checkAll());
      if (json === true) printJson({ checks });
      else print(checksTable(checks, process.stdout.isTTY ? process.stdout.columns : undefined));
      if (checks.some(({ result }) => result === 'fail')) process.exitCode = 1;
    });
}
