import { type Command, Option } from 'commander';
import type { SwitchOptions } from '../emulator/index.ts';
import { parseDuration } from './duration.ts';
import { parseWhole } from './whole.ts';

/** The flags for what the specification leaves open at the portal; what they give is {@link SwitchOptions}. */
export function addSwitches(command: Command): Command {
  const choice = (flags: string, description: string, ...choices: string[]) =>
    command.addOption(new Option(flags, description).choices(choices));
  command
    .option('--auto-login', 'opening the authorize URL logs the first user in')
    .option('--forget-logins', 'a browser that has logged in is asked for the password again')
    .option('--state-lifetime <duration>', 'of the links that config hands out (default: 30m)', parseDuration)
    .option('--code-lifetime <duration>', 'of authorization codes (default: 45s)', parseDuration)
    .option('--token-lifetime <duration>', 'of access tokens (default: 3600s)', parseDuration)
    .option('--refresh-lifetime <duration>', 'of unused refresh tokens (default: for ever)', parseDuration)
    .option('--grant-lifetime <duration>', 'how long a login can be refreshed (default: for ever)', parseDuration)
    .option(
      '--refresh-grace <n>',
      'for how many more generations a used refresh token is good (default: 0)',
      parseWhole,
    )
    .option(
      '--refresh-grace-time <duration>',
      'how long a used refresh token is answered with the same tokens again (default: 0)',
      (text) => (text === '0' ? 0 : parseDuration(text)),
    )
    .option('--id-token', 'token responses have an id_token that tells who has logged in')
    .option('--no-relay-refusal', 'a refused login does not come to the redirect_url as error=access_denied')
    .option('--refuse-redirect-urls <regexp>', 'config answers 400 to a redirect_url that matches (default: none)')
    .option(
      '--rate-limit <n>',
      'requests of one kind a client may send in a window (default: 0, any number)',
      parseWhole,
    )
    .option('--rate-limit-window <duration>', 'the window of --rate-limit (default: 60s)', parseDuration);
  choice('--on-reuse <what>', 'when a used refresh token comes again (default: refuse)', 'refuse', 'revoke-family');
  choice('--basic <what>', 'HTTP Basic at the token endpoint (default: accept)', 'accept', 'refuse');
  choice('--code-url-after-exchange <what>', 'whether it still serves the code (default: gone)', 'gone', 'served');
  choice('--error-body <what>', "what the portal's errors hold (default: json)", 'json', 'html', 'empty');
  return command;
}
