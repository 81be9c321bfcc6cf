import { Command } from 'commander';
import type { ControlClient } from '../../control/client.ts';
import type { CredentialsResponse, HubResponse } from '../../control/messages.ts';
import { Failure } from '../../core/failure.ts';
import { connectHub } from '../hub-connection.ts';
import { appliancesText } from '../status/text.ts';
import { print, printable, printJson, printStderr, reportFailure } from '../terminal/output.ts';
import { confirm, isInteractive } from '../terminal/prompt.ts';

/** `latchkey appliance …` */
export function applianceCommand(): Command {
  return new Command('appliance')
    .description('register, approve, list and remove appliances')
    .addCommand(applianceAddCommand())
    .addCommand(applianceApproveCommand())
    .addCommand(applianceListCommand())
    .addCommand(applianceRemoveCommand())
    .addCommand(applianceRotateSecretCommand());
}

interface Options {
  readonly scope?: string;
  readonly portal?: string;
  readonly json?: boolean;
}

/** `latchkey appliance add NAME` */
function applianceAddCommand(): Command {
  return new Command('add')
    .description('register an appliance; its secret is shown this once')
    .argument('<name>', 'what to call it: 1 to 63 of a-z, 0-9 and "-"')
    .option('--scope <scope>', 'the scope that its grant is asked for, as "A B"')
    .option('--portal <name>', 'the portal that grants it (default: the first one of the configuration)')
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: itself } = await hub.status();
      const issued = await hub.addAppliance(name, options.scope ?? null, options.portal ?? null);
      const done = `${name} is registered. Pair it next: latchkey pair ${name}`;
      showCredentials(issued, itself, done, options.json === true);
    });
}

/** `latchkey appliance approve NAME` */
function applianceApproveCommand(): Command {
  return new Command('approve')
    .description('approve an appliance that registered itself; "appliance remove" refuses it')
    .argument('<name>', "the appliance's name, as the list shows it")
    .option('--code <code>', 'the code that the appliance shows; one with another code is not approved')
    .option('--json', "print the appliance's status as JSON")
    .action(async (name: string, options: { code?: string; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: itself, appliances } = await hub.status();
      const waiting = appliances.find((appliance) => appliance.name === name)?.waiting_for_approval;
      const asked = itself.registration_asked ?? 0;
      const from = waiting?.address == null ? '' : `, which asked from ${printable(waiting.address)}`;
      if (waiting !== undefined && options.code === undefined && asked > 1) {
        const question = `${asked} appliances asked to join. Does yours show the code ${waiting.comparison_code}, as ${name}${from}?`;
        if (!(await confirm(question))) {
          reportFailure(`${name} was not approved`);
          return;
        }
      }
      // The one that was looked at: another may have come by its name since.
      const appliance = await hub.approveAppliance(name, options.code ?? waiting?.comparison_code ?? null);
      if (options.json === true) printJson(appliance);
      else {
        const code = waiting === undefined ? '' : ` (code ${waiting.comparison_code}${from})`;
        print(`${name}${code} is approved. Unless it pairs itself, pair it next: latchkey pair ${name}`);
      }
    });
}

/** `latchkey appliance list` */
function applianceListCommand(): Command {
  return new Command('list')
    .description('list the appliances and how they stand')
    .option('--names', 'print their names alone, one a line')
    .option('--json', 'print JSON')
    .action(async (options: { names?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const status = await hub.status();
      if (options.json === true) printJson(status.appliances);
      else if (options.names === true) for (const { name } of status.appliances) print(name);
      else print(appliancesText(status));
    });
}

/** `latchkey appliance remove NAME` */
function applianceRemoveCommand(): Command {
  return new Command('remove')
    .description('remove an appliance and its grant, or refuse one that waits for approval')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back (without a terminal nothing is asked)')
    .action(async (name: string, options: { yes?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { appliances } = await hub.status();
      // One that is not there is the hub's to refuse, and nothing to ask back about.
      const found = appliances.find((appliance) => appliance.name === name);
      const question =
        found?.waiting_for_approval === undefined
          ? `Remove ${name}, with its grant and its secret?`
          : `Refuse ${name}, which waits for approval?`;
      if (options.yes !== true && found !== undefined && !(await confirm(question))) {
        reportFailure(`${name} was not removed`);
        return;
      }
      await hub.removeAppliance(name);
      printStderr(`${name} is removed.`);
    });
}

/** `latchkey appliance rotate-secret NAME` */
function applianceRotateSecretCommand(): Command {
  return new Command('rotate-secret')
    .description('give an appliance a new secret, shown this once; the old one stops working')
    .argument('<name>', "the appliance's name")
    .option('--yes', 'do not ask back where the secret takes the place of a key; needed there without a terminal')
    .option('--json', 'print JSON')
    .action(async (name: string, options: { yes?: boolean; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { hub: itself } = await hub.status();
      const issued = await rotateSecret(hub, name, options.yes === true);
      const done = `${name} has a new secret; what it had before no longer works.`;
      if (issued === null) reportFailure(`${name} keeps its key`);
      else showCredentials(issued, itself, done, options.json === true);
    });
}

/** A key is replaced only where somebody has said so: its appliance has no place for a secret. Null where a person says no. */
async function rotateSecret(
  hub: ControlClient,
  name: string,
  replaceKeys: boolean,
): Promise<CredentialsResponse | null> {
  try {
    return await hub.rotateSecret(name, replaceKeys);
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'appliance_has_keys') || !isInteractive()) throw error;
    const sure = await confirm(`${name} proves itself by a key; a secret takes the key's place. Give it one?`);
    return sure ? await hub.rotateSecret(name, true) : null;
  }
}

/**
 * Shows an appliance's credentials, which the hub gives out once.
 * @param done what was done, for people
 */
function showCredentials(
  issued: CredentialsResponse,
  { http_port }: Pick<HubResponse, 'http_port'>,
  done: string,
  json: boolean,
): void {
  if (json) {
    const { name, client_id, client_secret, token_endpoint, ca_fingerprint } = issued;
    printJson({ name, client_id, client_secret, token_endpoint, ca_fingerprint });
    return;
  }
  const { origin, hostname } = new URL(issued.token_endpoint);
  const variables = [
    `HUB=${origin}`,
    `HUB_HTTP=http://${hostname}:${http_port}`,
    `PIN=${issued.ca_fingerprint}`,
    `CLIENT_ID=${issued.client_id}`,
    `CLIENT_SECRET=${issued.client_secret}`,
  ];
  print(`${done}

  client_id       ${issued.client_id}
  client_secret   ${issued.client_secret}   (shown this once)
  token_endpoint  ${issued.token_endpoint}
  ca_fingerprint  ${issued.ca_fingerprint}

The same for the examples of docs/appliances.md:

  export ${variables.join(' ')}

Once it is paired, it gets a token with:

  latchkey ca > latchkey-ca.pem
  curl --cacert latchkey-ca.pem --config - --data grant_type=client_credentials \\
    '${issued.token_endpoint}' <<'EOF'
user = "${issued.client_id}:${issued.client_secret}"
EOF`);
}
