import { Command } from 'commander';
import type { ControlClient } from '../../control/client.ts';
import type {
  ApplianceResponse,
  ConnectionResponse,
  CredentialsResponse,
  HubResponse,
} from '../../control/messages.ts';
import { joinNames } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import { findNamed } from '../../core/name.ts';
import { portalNotNotified } from '../connection/grant.ts';
import { connectHub } from '../hub-connection.ts';
import { appliancesText } from '../status/text.ts';
import { collectText } from '../terminal/collect-text.ts';
import { print, printable, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { confirm, isInteractive } from '../terminal/prompt.ts';
import { exampleVariables } from './example-variables.ts';

/** `latchkey appliance …` */
export function applianceCommand(): Command {
  return new Command('appliance')
    .description('register, approve, list, rename and remove appliances')
    .addCommand(applianceAddCommand())
    .addCommand(applianceApproveCommand())
    .addCommand(applianceListCommand())
    .addCommand(applianceMoveCommand())
    .addCommand(applianceRemoveCommand())
    .addCommand(applianceRenameCommand())
    .addCommand(applianceRotateSecretCommand());
}

/** Describes the argument of a command for one appliance. */
const NAME = "the appliance's name, or what it is called";

interface Options {
  readonly connection?: readonly string[];
  readonly scope?: string;
  readonly portal?: string;
  readonly ignoreScopes?: true;
  readonly json?: boolean;
}

/** `latchkey appliance add NAME` */
function applianceAddCommand(): Command {
  return new Command('add')
    .description('register an appliance; its secret is shown only once')
    .argument(
      '<name>',
      'what it is called, such as "Heat pump cellar"; other commands take that, or the name that is made from it',
    )
    .option(
      '--scope <scope>',
      'the permissions (scope) that it needs at the portal, such as "Monitoring RemoteControl"',
    )
    .option('--portal <name>', 'the portal to log in to (default: the first one in the configuration)')
    .option(
      '--connection <name>',
      'use this connection instead of one of its own; may be repeated: a token request then names one in resource',
      collectText,
    )
    .option('--ignore-scopes', 'give it tokens whatever scope its requests name, such as a fixed ".default"')
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: hubStatus, connections } = await hub.request('status');
      const { scope = null, portal = null, connection: chosen = [] } = options;
      const issued = await hub.request('addAppliance', {
        name,
        scope,
        portal,
        connections: [...chosen],
        ignore_scope: options.ignoreScopes === true,
      });
      const used = [...new Set(chosen.flatMap((connection) => findNamed(connections, connection) ?? []))];
      const unpaired = used.length === 0 ? [issued] : used.filter((connection) => !hasTokens(connection));
      const titles = joinNames(used.map(({ title }) => printable(title)));
      const next =
        unpaired.length === 0
          ? `It uses the connection${used.length > 1 ? 's' : ''} ${titles}, and gets tokens at once.`
          : `Pair it next: ${joinNames(unpaired.map((one) => `latchkey pair ${one.name}`))}`;
      const as = issued.title === issued.name ? '' : `; commands call it ${issued.name}`;
      const summary = `${printable(issued.title)} is registered${as}. ${next}`;
      const names = used.map((connection) => connection.name);
      showCredentials(issued, hubStatus, names, summary, options.json === true);
    });
}

/** Whether a connection, or that of an appliance, is paired. */
function hasTokens({ state }: Pick<ConnectionResponse, 'state'>): boolean {
  return state === 'active' || state === 'retrying';
}

interface ApproveOptions extends Pick<Options, 'portal' | 'json'> {
  readonly code?: string;
  readonly connection?: string;
}

/** `latchkey appliance approve NAME` */
function applianceApproveCommand(): Command {
  return new Command('approve')
    .description('approve an appliance that registered itself; "appliance remove" refuses it')
    .argument('<name>', NAME)
    .option('--code <code>', 'the code that the appliance shows; if it differs, the appliance is not approved')
    .option('--connection <name>', 'use this connection instead of one of its own')
    .option('--portal <name>', 'the portal to log in to (default: the first one in the configuration)')
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: ApproveOptions, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: hubStatus, appliances } = await hub.request('status');
      const waiting = findNamed(appliances, name)?.waiting_for_approval;
      const requestCount = hubStatus.registration_asked ?? 0;
      const from = waiting === undefined ? '' : `, which asked from ${printable(waiting.address)}`;
      if (waiting !== undefined && options.code === undefined && requestCount > 1) {
        if (!isInteractive()) {
          reportFailure(
            `${requestCount} appliances asked to join, and ${name} was not approved: add --code with the code that your appliance shows`,
          );
          return;
        }
        const question = `${requestCount} appliances asked to join. Does your appliance show the code ${waiting.comparison_code}? It is the code of ${name}${from}.`;
        if (!(await confirm(question))) {
          reportFailure(`${name} was not approved`);
          return;
        }
      }
      // With the code that was shown: another appliance may have registered under this name since.
      const code = options.code ?? waiting?.comparison_code ?? null;
      const { connection: chosen = null, portal = null } = options;
      const appliance = await hub.request('approveAppliance', { name, code, connection: chosen, portal });
      if (options.json === true) printJson(appliance);
      else {
        const which = waiting === undefined ? '' : ` (code ${waiting.comparison_code}${from})`;
        const { connection } = appliance;
        const next = hasTokens(appliance)
          ? `It uses the connection ${connection}, and gets tokens at once.`
          : `Its login is at the portal ${appliance.portal}. If it does not start its own pairing, run: latchkey pair ${connection}`;
        print(`${name}${which} is approved. ${next}`);
      }
    });
}

/** `latchkey appliance list` */
function applianceListCommand(): Command {
  return new Command('list')
    .description('list the appliances and their states')
    .option('--names', 'print only their names, one per line')
    .option('--json', 'print JSON')
    .action(async (options: { names?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const status = await hub.request('status');
      if (options.json === true) printJson(status.appliances);
      else if (options.names === true) for (const { name } of status.appliances) print(name);
      else print(appliancesText(status));
    });
}

/** `latchkey appliance move NAME --connection C` */
function applianceMoveCommand(): Command {
  return new Command('move')
    .description('let an appliance use another connection, or several')
    .argument('<name>', NAME)
    .requiredOption(
      '--connection <name>',
      'the connection that it uses from now on; may be repeated: it then uses exactly these',
      collectText,
    )
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { connection: readonly string[]; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const before = findNamed((await hub.request('status')).appliances, name);
      const appliance = await hub.request('moveAppliance', { name, connections: [...options.connection] });
      const { connection, connections: used = [connection] } = appliance;
      if (options.json === true) printJson(appliance);
      else {
        const next = appliance.state === 'unpaired' ? ` Pair it next: latchkey pair ${connection}` : '';
        print(`${name} uses the connection${used.length > 1 ? 's' : ''} ${joinNames(used)} now.${next}`);
      }
      const { connections } = await hub.request('status');
      const former = before?.connections ?? [before?.connection];
      for (const unused of connections.filter((one) => former.includes(one.name) && one.appliances.length === 0)) {
        printStderr(
          `no appliance uses the connection ${unused.name} any more; to remove it: latchkey connection remove ${unused.name}`,
        );
      }
    });
}

/** `latchkey appliance remove NAME` */
function applianceRemoveCommand(): Command {
  return new Command('remove')
    .description('remove an appliance, and its own connection with the grant, or refuse one that waits for approval')
    .argument('<name>', NAME)
    .option('--yes', 'do not ask for confirmation (without a terminal it never asks)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { appliances, connections } = await hub.request('status');
      // An unknown name needs no confirmation: the hub rejects it.
      const found = findNamed(appliances, name);
      const shared = connections.find((one) => one.name === found?.connection && one.own !== true);
      if (options.yes !== true && found !== undefined && !(await confirm(removalQuestion(found, shared?.title)))) {
        reportFailure(`${name} was not removed`);
        return;
      }
      const ended = await hub.request('removeAppliance', { name });
      printStderr(`${name} is removed.${portalNotNotified(ended)}`);
    });
}

/** `latchkey appliance rename NAME TITLE` */
function applianceRenameCommand(): Command {
  return new Command('rename')
    .description('change what an appliance is called; its name in commands, client_id, secret, login and label stay')
    .argument('<name>', NAME)
    .argument('<title>', 'what it is called from now on, such as "Heat pump cellar"')
    .option('--json', "print the appliance's status as JSON")
    .action(async (typed: string, title: string, options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const appliance = await hub.request('renameAppliance', { name: typed, title });
      const { name } = appliance;
      if (options.json === true) printJson(appliance);
      else
        print(`${name} is called ${printable(appliance.title)} now.
Its name in commands stays ${name}. Its client_id, secret, login and the link of its label stay valid.`);
    });
}

/** @param shared the title of its connection, if that is not its own */
function removalQuestion({ title, waiting_for_approval: waiting }: ApplianceResponse, shared?: string): string {
  const name = printable(title);
  if (waiting !== undefined) return `Refuse ${name}, which is waiting for approval?`;
  return shared === undefined
    ? `Remove ${name}, its grant and its secret?`
    : `Remove ${name} and its secret? The connection ${printable(shared)} stays.`;
}

/** `latchkey appliance rotate-secret NAME` */
function applianceRotateSecretCommand(): Command {
  return new Command('rotate-secret')
    .description('give an appliance a new secret, which is shown only once; the old one stops working')
    .argument('<name>', NAME)
    .option(
      '--yes',
      "do not ask for confirmation if the secret replaces the appliance's key; without a terminal, that replacement requires it",
    )
    .option('--json', 'print JSON')
    .action(async (name: string, options: { yes?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: hubStatus, appliances } = await hub.request('status');
      const issued = await rotateSecret(hub, name, options.yes === true);
      const summary = `${name} has a new secret; its old secret or key no longer works.`;
      if (issued === null) reportFailure(`nothing was changed: ${name} keeps its key`);
      else {
        const { connections = [] } = findNamed(appliances, name) ?? {};
        showCredentials(issued, hubStatus, connections, summary, options.json === true);
      }
    });
}

/**
 * Replaces a key only after confirmation: an appliance that uses a key may not support a secret. Null if the user
 * declines.
 */
async function rotateSecret(
  hub: ControlClient,
  name: string,
  replaceKeys: boolean,
): Promise<CredentialsResponse | null> {
  try {
    return await hub.request('rotateSecret', { name, replace_keys: replaceKeys });
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'appliance_has_keys') || !isInteractive()) throw error;
    const confirmed = await confirm(`${name} authenticates with its own key; a secret will replace the key. Continue?`);
    return confirmed ? await hub.request('rotateSecret', { name, replace_keys: true }) : null;
  }
}

/**
 * Shows an appliance's credentials, which the hub returns only once.
 * @param connections the names of those that the appliance uses: each of several has a token endpoint of its own
 * @param summary what was done, for people
 */
function showCredentials(
  issued: CredentialsResponse,
  hub: Pick<HubResponse, 'id' | 'http_port'>,
  connections: readonly string[],
  summary: string,
  json: boolean,
): void {
  if (json) {
    const { name, title, client_id, client_secret, token_endpoint, ca_fingerprint } = issued;
    printJson({ name, title, client_id, client_secret, token_endpoint, ca_fingerprint });
    return;
  }
  const { origin } = new URL(issued.token_endpoint);
  const own = [`CLIENT_ID=${issued.client_id}`, `CLIENT_SECRET=${issued.client_secret}`];
  const hasSeveral = connections.length > 1;
  const endpoints = hasSeveral
    ? connections.map((name) => `${origin}/connections/${name}/oauth/token`)
    : [issued.token_endpoint];
  const commands = endpoints.map(
    (endpoint) => `  curl --cacert latchkey-ca.pem --config - --data grant_type=client_credentials \\
    '${endpoint}' <<'EOF'
user = "${issued.client_id}:${issued.client_secret}"
EOF`,
  );
  print(`${summary}

  client_id       ${issued.client_id}
  client_secret   ${issued.client_secret}   (shown only once)
  token_endpoint  ${endpoints.join(`\n${' '.repeat(18)}`)}
  ca_fingerprint  ${issued.ca_fingerprint}

${exampleVariables(hub, issued.token_endpoint, issued.ca_fingerprint, own)}

${hasSeveral ? 'These commands get an access token of each connection that is paired' : 'This command gets an access token for it, if it is paired'}:

  latchkey ca > latchkey-ca.pem
${commands.join('\n')}`);
}
