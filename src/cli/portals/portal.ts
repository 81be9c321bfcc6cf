import { Command } from 'commander';
import { Failure } from '../../core/failure.ts';
import { connectHub, LOST_RELOAD, waitForReload } from '../hub-connection.ts';
import { checksTable } from '../terminal/checks-table.ts';
import { collectText } from '../terminal/collect-text.ts';
import { PORTAL_ANSWER, print, printJson, printStderr, reportFailure, reportIfSlow } from '../terminal/output.ts';
import { confirm } from '../terminal/prompt.ts';
import { readClientSecret } from '../terminal/secret-input.ts';
import { portalsText } from './portals.ts';

/** `latchkey portal …` */
export function portalCommand(): Command {
  return new Command('portal')
    .description('add a portal without editing the configuration, and remove it')
    .addCommand(addCommand())
    .addCommand(removeCommand());
}

/** The options that are keys of a table `[portals.NAME]`. */
interface PortalOptions {
  readonly preset?: string;
  readonly issuer?: string;
  readonly baseUrl?: string;
  readonly frontendUrl?: string;
  readonly clientId?: string;
  readonly login?: string;
  readonly redirectUri?: string;
  readonly variable: readonly string[];
}

interface AddOptions extends PortalOptions {
  readonly replace?: boolean;
  readonly json?: boolean;
}

/** `latchkey portal add NAME` */
function addCommand(): Command {
  return new Command('add')
    .description(
      'add a portal: check it, and keep it with the other data of the hub; the client secret is read from standard input',
    )
    .argument('<name>', 'a name for it: 1 to 63 of a-z, 0-9 and "-"')
    .option('--preset <preset>', 'the preset of a known portal ("latchkey portals --catalogue" lists them)')
    .option('--issuer <url>', 'the issuer of another OAuth 2.0 server')
    .option('--base-url <url>', 'of a helper portal, the origin of its helper endpoints')
    .option('--frontend-url <url>', 'of a helper portal, the origin of its login')
    .option('--client-id <id>', 'the client ID that the portal gave you')
    .option('--login <way>', 'how one logs in: auto, device, redirect or paste')
    .option('--redirect-uri <uri>', "the redirect URI as registered there, if it is not the hub's own")
    .option('--variable <name=value>', 'a variable of the preset; may be repeated', collectText, [])
    .option('--replace', 'enter the data of an added portal again, such as a new secret')
    .option('--json', 'print JSON')
    .action(addPortal);
}

async function addPortal(name: string, { replace, json, ...options }: AddOptions, command: Command): Promise<void> {
  const keys = keysOf(options);
  await using hub = await connectHub(command);
  const secret = (await mayHaveSecret(options.preset)) ? await readClientSecret('Client secret: ') : null;
  const portal = { name, keys, client_secret: secret?.reveal() ?? null, replace: replace === true };
  const { reload, checks } = await reportIfSlow(PORTAL_ANSWER, hub.request('addPortal', portal));
  if (!(await isReloaded(reload, command))) return;
  await using next = await connectHub(command);
  const portals = (await next.request('portals')).portals.filter((one) => one.name === name);
  if (json === true) {
    for (const one of portals) printJson(one);
    return;
  }
  print(`${checksTable(checks, process.stdout.isTTY ? process.stdout.columns : undefined)}

${portalsText(portals)}

${name} is added. Add an appliance next: latchkey appliance add APPLIANCE`);
}

/** The keys of a table `[portals.NAME]`. @throws Failure `request_invalid` */
function keysOf({ variable, ...options }: PortalOptions): Record<string, unknown> {
  const given = Object.entries(options).map(([option, value]) => [
    option.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  const variables = variable.map((text) => {
    const [, name, value] = /^(\w+)=(.*)$/.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw new Failure('request_invalid', `--variable ${text}: must have the form NAME=VALUE`);
    return [name, value];
  });
  return { ...Object.fromEntries(given), ...(variables.length > 0 && { variables: Object.fromEntries(variables) }) };
}

/** Whether the client may have a secret; so may that of a portal without a preset. */
async function mayHaveSecret(preset: string | undefined): Promise<boolean> {
  if (preset === undefined) return true;
  const { findCloud } = await import('../../clouds/catalogue.ts');
  return findCloud(preset)?.client_secret !== 'none';
}

/** Waits until the hub runs with the changed portals. Otherwise it reports why not. */
async function isReloaded(reload: string, command: Command): Promise<boolean> {
  const outcome = await waitForReload(reload, command);
  if (outcome.state !== 'done') reportFailure(outcome.state === 'failed' ? outcome.message : LOST_RELOAD);
  return outcome.state === 'done';
}

/** `latchkey portal remove NAME` */
function removeCommand(): Command {
  return new Command('remove')
    .description('remove a portal that was added, and that no connection uses')
    .argument('<name>', "the portal's name")
    .option('--yes', 'do not ask for confirmation (without a terminal it never asks)')
    .action(async (name: string, { yes }: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      if (yes !== true && !(await confirm(`Remove ${name} and its client secret?`))) {
        reportFailure(`${name} was not removed`);
        return;
      }
      const { reload } = await hub.request('removePortal', { name });
      if (await isReloaded(reload, command)) printStderr(`${name} is removed.`);
    });
}
