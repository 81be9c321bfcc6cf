import { Command } from 'commander';
import type { InviteAnswer } from '../control/messages.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { connectHub } from './hub-connection.ts';
import { print, printable, printJson } from './output.ts';

interface Options {
  readonly for?: string;
  readonly scope?: string;
  readonly portal?: string;
  readonly ttl: number;
  readonly json?: boolean;
}

/** Seconds. */
const DEFAULT_TTL = 3600;

/** `latchkey invite` */
export function inviteCommand(): Command {
  return new Command('invite')
    .description('make an initial access token, with which one appliance may register itself once; shown this once')
    .option('--for <name>', 'what the appliance is to be called (default: what it calls itself)')
    .option('--scope <scope>', 'the scope that its grant is asked for, as "A B" (default: what it asks for)')
    .option('--portal <name>', 'the portal that grants it (default: the first one of the configuration)')
    .option('--ttl <duration>', 'how long it is good: 10m, 1h (the default), up to 30d', parseDuration, DEFAULT_TTL)
    .option('--json', 'print JSON')
    .action(async (options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const { for: name = null, scope = null, portal = null } = options;
      const invite = await hub.invite({ name, scope, portal, ttl: Math.ceil(options.ttl) });
      if (options.json === true) printJson(invite);
      else print(explained(invite));
    });
}

function explained({ token, name, scope, expires_in, registration_endpoint, ca_fingerprint }: InviteAnswer): string {
  const whose = name === null ? 'One appliance' : printable(name);
  const fixed =
    scope === null ? '' : `\n  scope                  ${printable(scope)}   (whatever the appliance asks for)`;
  return `${whose} may register within ${formatDuration(expires_in)}, and needs no approval then.

  token                  ${token}   (shown this once)
  registration_endpoint  ${registration_endpoint}
  ca_fingerprint         ${ca_fingerprint}${fixed}

An appliance that registers by RFC 7591 takes the token as its initial access token. By hand:

  latchkey ca > latchkey-ca.pem
  curl --cacert latchkey-ca.pem --header 'Authorization: Bearer ${token}' \\
    --header 'Content-Type: application/json' --data '{"client_name":"${name ?? 'My appliance'}"}' \\
    '${registration_endpoint}'`;
}
