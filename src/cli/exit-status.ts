import { Failure, type FailureCode } from '../core/failure.ts';

const FAILED = 1;
/** `EX_CONFIG` of sysexits(3); the unit's `RestartPreventExitStatus` names it. */
const NOT_TO_BE_RESTARTED = 78;

/** What a start with everything as it is would come upon again. */
const LASTING: ReadonlySet<FailureCode> = new Set([
  'config_invalid',
  'control_socket_taken',
  'port_unavailable',
  'state_dir_unusable',
  'store_key_wrong',
  'store_locked',
  'store_newer',
  'store_unreadable',
]);

/**
 * The exit status of a daemon that could not start.
 * @param supervised whether a service manager would start it again, for ever where nothing is said
 */
export function exitStatusOf(error: unknown, supervised: boolean): number {
  return supervised && error instanceof Failure && LASTING.has(error.code) && !mayPass(error)
    ? NOT_TO_BE_RESTARTED
    : FAILED;
}

/** An address that this machine does not have may come with its network; a disk may have room again. */
function mayPass({ cause }: Failure): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EROFS', 'ENOSPC', 'EDQUOT', 'EIO'].includes(code);
}
