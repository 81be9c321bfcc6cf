/** How the person who reads a text types this program's commands. */
export interface CommandInvocation {
  /** The program, as a shell takes it. */
  readonly program: string;
  /** Whether the hub's control socket takes root. */
  readonly usesSudo: boolean;
}

/**
 * How the readers of what this process prints type its commands. `LATCHKEY_PROGRAM` names the program if it is not on the
 * `BROWSERS_PATH`; scripts/latchkey sets it. A user who came by sudo needs sudo again, and so do the readers of a service of the machine:
 * systemd gives that a directory in `/run`, and a user's own service one in `/run/user`.
 */
export function detectInvocation(
  env: NodeJS.ProcessEnv = process.env,
  isRoot = process.geteuid?.() === 0,
): CommandInvocation {
  const isService = /^\/run\/(?!user\/)/.test(env['RUNTIME_DIRECTORY'] ?? '');
  return {
    program: env['LATCHKEY_PROGRAM'] || 'latchkey',
    usesSudo: isService || (isRoot && env['SUDO_UID'] !== undefined),
  };
}

/** The commands that look at a hub or change it, and those that need none. */
const HUB_COMMANDS =
  'appliance|backup|ca|doctor|history|invite|notify|pair|refresh|registration|reload|restore|setup-code|status|store-key|token|unpair';
const OTHER_COMMANDS = 'completion|demo|emulator|help|man|serve';

/** A command in a text, and not the end of a path or of another name. */
const COMMAND_PATTERN = new RegExp(
  `(?<![\\w./-])(sudo )?latchkey (?=(?:(${HUB_COMMANDS})|${OTHER_COMMANDS}|--help)\\b)`,
  'g',
);

/**
 * A text for people, with its commands as its reader types them. Every text names them `latchkey COMMAND`: a message of the hub
 * is read in a terminal, in the journal and on the page, and only the place where it is shown knows who reads it there. Only
 * `sudo latchkey doctor` keeps its sudo anywhere: it sees more as root.
 */
export function rewriteCommands(
  text: string,
  { program, usesSudo: bySudo }: CommandInvocation = detectInvocation(),
): string {
  return text.replaceAll(COMMAND_PATTERN, (_, sudo: string | undefined, ofHub: string | undefined) => {
    const isByRoot = ofHub !== undefined && (bySudo || (sudo !== undefined && ofHub === 'doctor'));
    return isByRoot ? `sudo ${program} ` : `${program} `;
  });
}
