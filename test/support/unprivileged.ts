import { root } from '../project/checkout.ts';

const SCRIPT = `
  checkout=$1
  user=$2
  shift 2
  mount --bind "$checkout" /mnt
  for argument; do
    shift
    case $argument in "$checkout"/*) argument=/mnt\${argument#"$checkout"} ;; esac
    set -- "$@" "$argument"
  done
  exec setpriv --reuid=$user --regid=$user --clear-groups "$@"`;

/**
 * Before a command: root runs it as a user. The checkout may be in root's home folder, which is closed to other
 * users. So its paths in the command become those of a mount that only this command sees.
 */
function asUser(uid: number): readonly string[] {
  return ['/usr/bin/unshare', '--mount', '/bin/sh', '-ec', SCRIPT, 'sh', root, String(uid)];
}

export const AS_NOBODY = asUser(65_534);

/** A user whom the machine does not know by name. */
export const AS_STRANGER = asUser(54_321);
