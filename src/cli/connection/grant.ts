import { Command } from 'commander';
import { findNamed } from '../../core/name.ts';
import { connectHub } from '../hub-connection.ts';
import { conditionLine } from '../status/lines.ts';
import { durationParser, formatTimeUntil } from '../terminal/duration.ts';
import { PORTAL_ANSWER, print, printJson, printStderr, reportFailure, reportIfSlow } from '../terminal/output.ts';
import { confirm } from '../terminal/prompt.ts';
import { readToken } from '../terminal/secret-input.ts';

/** Describes the argument of a command for one connection. */
export const CONNECTION_NAME =
  "the connection's name, or what it is called; an appliance's own connection is called like the appliance";

/** `latchkey refresh NAME` */
export function refreshCommand(): Command {
  return new Command('refresh')
    .description(
      'refresh the tokens of a connection now instead of waiting until it is due, even after a lost answer of the portal',
    )
    .argument('<name>', CONNECTION_NAME)
    .option('--json', 'print the status as JSON: of the appliance, or of a connection that has another name')
    .action(async (name: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const connection = await reportIfSlow(PORTAL_ANSWER, hub.request('refresh', { name }));
      if (options.json === true) {
        const { appliances } = await hub.request('status');
        // An appliance's own connection has its name, and then its status says all of this and more.
        printJson(appliances.find((appliance) => appliance.name === connection.name) ?? connection);
      }
      if (connection.problem !== null) {
        const { code, message } = connection.problem;
        const { conditions } = await hub.request('status');
        const condition = conditions.find((one) => one.connection === connection.name && one.code === code);
        reportFailure(condition === undefined ? `${name}: ${message}` : conditionLine(condition));
      } else if (options.json !== true) {
        print(`${name} is refreshed; its access token expires ${formatTimeUntil(connection.expires_in)}.`);
      }
    });
}

interface TokenOptions {
  /** Seconds. */
  readonly minTtl?: number;
  readonly rejected?: true;
  readonly credentials?: string;
  readonly json?: boolean;
}

/** `latchkey token NAME` */
export function tokenCommand(): Command {
  return new Command('token')
    .description('print the current access token of a connection')
    .argument('<name>', CONNECTION_NAME)
    .option('--min-ttl <duration>', 'refresh first if it expires sooner, such as 10m', durationParser('1s', '1d'))
    .option('--rejected', 'the portal has refused the token on standard input: print another one')
    .option(
      '--credentials <file>',
      'ask as the appliance whose credentials "appliance add --json" wrote into this file: any user who may read it can',
    )
    .option('--json', 'print the whole token response')
    .action(async (name: string, options: TokenOptions, command: Command) => {
      const rejected = options.rejected
        ? await readToken('The token that the portal has refused: ', 'latchkey token NAME --rejected')
        : null;
      const wanted = { name, min_ttl: options.minTtl ?? 0, rejected: rejected?.reveal() ?? null };
      const ask = async () => {
        await using hub = await connectHub(command);
        return await hub.request('token', wanted);
      };
      const askAsAppliance = async (file: string) => (await import('./token-request.ts')).requestToken(file, wanted);
      const { credentials } = options;
      const token = await reportIfSlow(PORTAL_ANSWER, credentials === undefined ? ask() : askAsAppliance(credentials));
      if (options.json === true) printJson(token);
      else print(token.access_token);
    });
}

/** `latchkey unpair NAME` */
export function unpairCommand(): Command {
  return new Command('unpair')
    .description('disconnect a connection: delete its grant; its appliances stay registered')
    .argument('<name>', CONNECTION_NAME)
    .option('--yes', 'do not ask for confirmation (without a terminal it never asks)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { connections } = await hub.request('status');
      const found = findNamed(connections, name);
      const isOwn = found === undefined || found.own === true;
      const users = isOwn ? 'The appliance gets' : 'The appliances that use it get';
      const question = `Delete the grant of ${name}? ${users} no tokens until somebody logs in at the portal again.`;
      if (options.yes !== true && !(await confirm(question))) {
        reportFailure(`nothing was changed: ${name} keeps its grant`);
        return;
      }
      const ended = await hub.request('unpair', { name });
      printStderr(`${name} is unpaired.${portalNotNotified(ended)}`);
    });
}

/** What to do if the portal could not be told that a login has ended; empty if it was, or if there was none. */
export function portalNotNotified({ portal_told: isPortalTold }: { readonly portal_told: boolean | null }): string {
  if (isPortalTold !== false) return '';
  return '\nThe portal was not told, so the login may go on there: it has no endpoint for that, or could not be reached. To end it, log in at the portal and remove the access.';
}
