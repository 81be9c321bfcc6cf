import { Command } from 'commander';
import type { ConnectionResponse } from '../../control/messages.ts';
import { joinNames } from '../../core/connections/connection.ts';
import { findNamed } from '../../core/name.ts';
import { connectHub } from '../hub-connection.ts';
import { connectionsText } from '../status/connections-text.ts';
import {
  PORTAL_ANSWER,
  print,
  printable,
  printJson,
  printStderr,
  reportFailure,
  reportIfSlow,
} from '../terminal/output.ts';
import { confirm, confirmWarning } from '../terminal/prompt.ts';
import { readToken } from '../terminal/secret-input.ts';
import { portalNotNotified } from './grant.ts';

/** `latchkey connection …` */
export function connectionCommand(): Command {
  return new Command('connection')
    .description('logins that several appliances share: add, list, import, rename and remove them')
    .addCommand(addCommand())
    .addCommand(importCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addCommand(renameCommand());
}

interface AddOptions {
  readonly scope?: string;
  readonly portal?: string;
  readonly json?: boolean;
}

/** Describes the argument of a command for one connection. */
const NAME = "the connection's name, or what it is called";
const SCOPE_HELP = 'the permissions (scope) that its appliances need at the portal, such as "Monitoring RemoteControl"';
const PORTAL_HELP = 'the portal to log in to (default: the first one in the configuration)';

/** `latchkey connection add NAME` */
function addCommand(): Command {
  return new Command('add')
    .description('add a connection: one login at a portal that several appliances use')
    .argument('<name>', 'what it is called; other commands take that, or the name that is made from it')
    .option('--scope <scope>', SCOPE_HELP)
    .option('--portal <name>', PORTAL_HELP)
    .option('--json', 'print JSON')
    .action(async (typed: string, options: AddOptions, command: Command) => {
      await using hub = await connectHub(command);
      const connection = await hub.request('addConnection', {
        name: typed,
        scope: options.scope ?? null,
        portal: options.portal ?? null,
      });
      const { name, title, portal, scope, state } = connection;
      if (options.json === true) {
        printJson({ name, portal, scope, state });
        return;
      }
      print(`${printable(title)} is added. Connect it next: latchkey pair ${name}
To let an appliance use it: latchkey appliance add APPLIANCE --connection ${name}`);
    });
}

/** `latchkey connection list` */
function listCommand(): Command {
  return new Command('list')
    .description('list the connections, their states and the appliances that use them')
    .option('--names', 'print only their names, one per line')
    .option('--json', 'print JSON')
    .action(async (options: { names?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const status = await hub.request('status');
      if (options.json === true) printJson(status.connections);
      else if (options.names === true) for (const { name } of status.connections) print(name);
      else print(connectionsText(status.connections, status.conditions));
    });
}

/** `latchkey connection remove NAME` */
function removeCommand(): Command {
  return new Command('remove')
    .description('remove a connection and its grant')
    .argument('<name>', NAME)
    .option('--yes', 'remove it even if appliances use it: each then needs a login of its own')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { connections } = await hub.request('status');
      const found = findNamed(connections, name);
      const isUsed = found !== undefined && found.appliances.length > 0;
      // The hub rejects the removal of a connection that is in use, and of an unknown one.
      if (found !== undefined && !isUsed && options.yes !== true && !(await confirm(`Remove ${name} and its grant?`))) {
        reportFailure(`${name} was not removed`);
        return;
      }
      const ended = await hub.request('removeConnection', { name, even_if_used: options.yes === true });
      printStderr(`${name} is removed.${isUsed ? ` ${loginsNeeded(found)}` : ''}${portalNotNotified(ended)}`);
    });
}

/** `latchkey connection rename NAME TITLE` */
function renameCommand(): Command {
  return new Command('rename')
    .description('change what a connection is called; its name in commands and its login stay')
    .argument('<name>', NAME)
    .argument('<title>', 'what it is called from now on')
    .option('--json', "print the connection's status as JSON")
    .action(async (typed: string, title: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const connection = await hub.request('renameConnection', { name: typed, title });
      const { name } = connection;
      if (options.json === true) printJson(connection);
      else
        print(`${name} is called ${printable(connection.title)} now.
Its name in commands stays ${name}. Its login, and the secrets of its appliances, stay valid.`);
    });
}

function loginsNeeded({ appliances }: ConnectionResponse): string {
  const each = appliances.length === 1 ? 'needs a login of its own' : 'each need a login of their own';
  return `${joinNames(appliances)} ${each}: latchkey pair --all`;
}

interface ImportOptions extends AddOptions {
  readonly yes?: boolean;
}

/** `latchkey connection import NAME` */
function importCommand(): Command {
  return new Command('import')
    .description("take over another program's login: read its refresh token from standard input, and use it at once")
    .argument('<name>', 'the connection that gets the login; it is added if there is none of this name')
    .option('--scope <scope>', SCOPE_HELP)
    .option('--portal <name>', PORTAL_HELP)
    .option('--yes', 'replace a grant that the connection has')
    .option('--json', 'print JSON')
    .action(async (name: string, options: ImportOptions, command: Command) => {
      await using hub = await connectHub(command);
      const { connections } = await hub.request('status');
      const state = findNamed(connections, name)?.state ?? 'unpaired';
      const hasGrant = state !== 'unpaired' && state !== 'pairing';
      const warning = `${name} has a grant already, and the imported one would replace it.`;
      if (hasGrant && options.yes !== true && !(await confirmWarning(warning))) return;
      const refreshToken = await readToken("The other program's refresh token: ", 'latchkey connection import NAME');
      const { scope, portal } = options;
      const grant = {
        name,
        scope,
        portal,
        refresh_token: refreshToken.reveal(),
        replace: options.yes === true || hasGrant,
      };
      const imported = await reportIfSlow(PORTAL_ANSWER, hub.request('importGrant', grant));
      if (options.json === true) {
        printJson({ name: imported.name, state: imported.state, scope: imported.scope });
        printStderr(STOP_OTHER_PROGRAM);
      } else print(importedText(imported));
    });
}

/** The other program can't know that its refresh token was used. */
const STOP_OTHER_PROGRAM =
  'Stop the other program now, or remove this login from it: its refresh token no longer works, or using it would log the hub out.';

function importedText({ name, title }: ConnectionResponse): string {
  return `${printable(title)} is connected: the hub has taken the login over.
${STOP_OTHER_PROGRAM}
To let an appliance use it: latchkey appliance add APPLIANCE --connection ${name}`;
}
