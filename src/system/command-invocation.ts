/** How the reader of a text types this program's commands. */
export interface CommandInvocation {
  /** The program, quoted for a shell. */
  readonly program: string;
  /** Whether the hub's control socket is accessible to root only. */
  readonly usesSudo: boolean;
}

/**
 * How readers of this process's output type its commands. `LATCHKEY_PROGRAM` names the program if it is not on the
 * `PATH`; scripts/latchkey sets it. A user who used sudo needs sudo again. So do the readers of a system service's log:
 * systemd gives a system service a directory in `/run`, and a user service one in `/run/user`.
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

/** Whether a developer runs this program from a checkout, by scripts/latchkey. */
export function isInCheckout({ program }: CommandInvocation = detectInvocation()): boolean {
  return /(^|\/)scripts\/latchkey$/.test(program);
}

/** The commands that use a running hub or its files, and below those that do not. */
const HUB_COMMANDS =
  'appliance|backup|ca|connection|doctor|history|invite|notify|pair|portals?|refresh|registration|reload|restore|setup-code|site|snapshot|status|store-key|token|unpair';
const OTHER_COMMANDS = 'completion|demo|emulator|help|man|serve';

/**
 * Matches a command in a text, but not the end of a path or of another name. It also matches a command that already
 * names the program, because that name can end with ` latchkey` itself: `podman exec -it latchkey latchkey`.
 */
function commandPattern(program: string): RegExp {
  const literal = program.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return new RegExp(
    `(?<![\\w./-])(sudo )?(?:${literal}|latchkey) (?=(?:(${HUB_COMMANDS})|${OTHER_COMMANDS}|--help)\\b)`,
    'g',
  );
}

/**
 * Rewrites the commands in a text to the form that its reader types. Every text writes `latchkey COMMAND`, because the
 * same message appears in a terminal, in the journal and on the page, and only the surface knows its reader. `sudo
 * latchkey doctor` always keeps its sudo, because the doctor sees more as root.
 */
export function rewriteCommands(text: string, { program, usesSudo }: CommandInvocation = detectInvocation()): string {
  return text.replaceAll(commandPattern(program), (_, sudo: string | undefined, hubCommand: string | undefined) => {
    const needsSudo = hubCommand !== undefined && (usesSudo || (sudo !== undefined && hubCommand === 'doctor'));
    return needsSudo && !program.startsWith('sudo ') ? `sudo ${program} ` : `${program} `;
  });
}
