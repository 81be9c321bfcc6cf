import { root } from '../project/checkout.ts';

const SCRIPT = `
  checkout=$1
  shift
  mount --bind "$checkout" /mnt
  for argument; do
    shift
    case $argument in "$checkout"/*) argument=/mnt\${argument#"$checkout"} ;; esac
    set -- "$@" "$argument"
  done
  exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"`;

/**
 * Before a command: root runs it as the user nobody. The checkout may be in root's home folder, which is closed to other
 * users. So its paths in the command become those of a mount that only this command sees.
 */
export const AS_NOBODY = ['/usr/bin/unshare', '--mount', '/bin/sh', '-ec', SCRIPT, 'sh', root] as const;
