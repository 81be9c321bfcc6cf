import { Command, Option } from 'commander';
import type { HubResponse, InviteResponse, OpenRegistrationResponse } from '../../control/messages.ts';
import { formatDuration } from '../../core/clock.ts';
import { connectHub } from '../hub-connection.ts';
import { durationParser } from '../terminal/duration.ts';
import { print, printable, printJson, printStderr } from '../terminal/output.ts';
import { exampleVariables } from './example-variables.ts';

/** Defaults in seconds: how long registration stays open, and how long an invite is valid. */
const DEFAULT_OPEN_SECONDS = 600;
const DEFAULT_TTL_SECONDS = 3600;

/** `latchkey registration …` */
export function registrationCommand(): Command {
  return new Command('registration')
    .description('let appliances register themselves, for a limited time')
    .addCommand(openCommand())
    .addCommand(closeCommand());
}

function openCommand(): Command {
  return new Command('open')
    .description('allow any appliance to register itself for a limited time; each one then waits for your approval')
    .addOption(
      new Option('--for <duration>', 'how long: 90s, 2h, up to 24h')
        .argParser(durationParser('1s', '24h'))
        .default(DEFAULT_OPEN_SECONDS, '10m'),
    )
    .option('--json', 'print JSON')
    .action(async (options: { for: number; json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const opened = await hub.request('openRegistration', { open_for: options.for });
      if (options.json === true) printJson({ open_for: opened.open_for });
      else print(registrationText(opened));
    });
}

function closeCommand(): Command {
  return new Command('close')
    .description('stop allowing appliances to register themselves; invites still work')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { open_for } = await hub.request('openRegistration', { open_for: 0 });
      if (options.json === true) printJson({ open_for });
      else printStderr('Registration is closed.');
    });
}

function registrationText({ open_for, registration_endpoint, ca_fingerprint }: OpenRegistrationResponse): string {
  return `Registration is open for ${formatDuration(open_for)}. If an appliance asks for these values, enter them:

  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}

To see which appliances have asked to join: latchkey appliance list`;
}

interface InviteOptions {
  readonly for?: string;
  readonly scope?: string;
  readonly portal?: string;
  readonly connection?: string;
  readonly ttl: number;
  readonly json?: boolean;
}

/** `latchkey invite` */
export function inviteCommand(): Command {
  return new Command('invite')
    .description(
      'create an invite: a token with which one appliance can register itself, without approval; it is shown only once',
    )
    .option('--for <name>', 'what the appliance is called (default: what it calls itself)')
    .option(
      '--scope <scope>',
      'the permissions (scope) that it gets, such as "Monitoring RemoteControl" (default: what it asks for)',
    )
    .option('--portal <name>', 'the portal to log in to (default: the first one in the configuration)')
    .option('--connection <name>', 'let it use this connection instead of one of its own')
    .addOption(
      new Option('--ttl <duration>', 'how long it is valid: 10m, 2h, up to 30d')
        .argParser(durationParser('1s', '30d'))
        .default(DEFAULT_TTL_SECONDS, '1h'),
    )
    .option('--json', 'print JSON')
    .action(async (options: InviteOptions, command: Command) => {
      await using hub = await connectHub(command);
      const { for: name = null, scope = null, portal = null, connection = null } = options;
      const invite = await hub.request('invite', { name, scope, portal, connection, ttl: options.ttl });
      if (options.json === true) printJson(invite);
      else await showInvite(invite, connection, (await hub.request('status')).hub);
    });
}

/** On a terminal also prints the token as a QR code, for an appliance with a camera or its app. */
async function showInvite(invite: InviteResponse, connection: string | null, hub: HubResponse): Promise<void> {
  print(inviteText(invite, connection, hub));
  if (!process.stdout.isTTY) return;
  const { renderQrCode } = await import('../terminal/qr-code.ts');
  const code = renderQrCode(invite.token, process.stdout);
  if (code !== null) print(`\nThe token as a QR code:\n\n${code}`);
}

function inviteText(
  { token, name, scope, expires_in, registration_endpoint, ca_fingerprint }: InviteResponse,
  connection: string | null,
  hub: HubResponse,
): string {
  const invited = name === null ? 'One appliance' : printable(name);
  const scopeRow =
    scope === null
      ? ''
      : `\n  scope                  ${printable(scope)}   (regardless of what the appliance asks for)`;
  const connectionRow = connection === null ? '' : `\n  connection             ${connection}`;
  return `${invited} can register within ${formatDuration(expires_in)}, without approval.

  token                  ${token}   (shown only once)
  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}${scopeRow}${connectionRow}

Enter the token in the appliance; it is the initial access token of RFC 7591.

${exampleVariables(hub, registration_endpoint, ca_fingerprint, [`INVITE=${token}`])}

By hand:

  latchkey ca > latchkey-ca.pem
  curl --cacert latchkey-ca.pem --config - --header 'Content-Type: application/json' \\
    --data '{"client_name":"My appliance"}' \\
    '${registration_endpoint}' <<'EOF'
header = "Authorization: Bearer ${token}"
EOF`;
}
