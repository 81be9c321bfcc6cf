import { fail, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

const JOURNAL = '"sudo journalctl -u latchkey -n 20 --no-pager" says why';

/** Whether systemd runs the hub, will do so at the next boot, and had to start it again. */
export async function checkService({ unit }: Pick<Subject, 'unit'>): Promise<Said[]> {
  if (unit === null) return [ok('no service of systemd: nothing to look at')];
  const { state, enabled, result, exitStatus, restarts } = unit;
  if (state === 'failed' || (state === 'activating' && result !== 'success')) {
    return [
      fail(
        `latchkey.service does not run (${result}, exit status ${exitStatus}): ${JOURNAL}; then "sudo systemctl restart latchkey"`,
      ),
    ];
  }
  if (state !== 'active' && state !== 'reloading') {
    return [fail(`latchkey.service is ${state}: "sudo systemctl start latchkey"`)];
  }
  if (enabled !== 'enabled') {
    return [warn(`latchkey.service is ${enabled}, and won't start with the machine: "sudo systemctl enable latchkey"`)];
  }
  if (restarts > 0) {
    const last = result === 'watchdog' ? ', because its watchdog ended it' : '';
    return [
      warn(`latchkey.service was started again ${restarts === 1 ? 'once' : `${restarts} times`}${last}: ${JOURNAL}`),
    ];
  }
  return [ok('latchkey.service is active, and starts with the machine')];
}
