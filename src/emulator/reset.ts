import type { Faults } from './faults/faults.ts';
import type { RequestLog } from './http/request-log.ts';
import type { Portal } from './portal.ts';

/**
 * As at the start: everything issued is forgotten (and so dead), the log and the findings are empty, the settings are
 * the start's. Ports, clients, users and the CA stay, and so does `secretsIssued`: what it names was still a secret.
 */
export async function reset(portal: Portal, log: RequestLog, faults: Faults): Promise<void> {
  await faults.reset();
  portal.together(() => {
    portal.states.renewKey();
    portal.runs.clear();
    portal.codes.clear();
    portal.grants.clear();
    portal.judge.clear();
    portal.clock.reset();
  });
  portal.browserLogins.clear();
  portal.rates.forget();
  portal.switches.reset();
  log.clear();
  for (const what of ['requests', 'logins', 'grants', 'clock'] as const) {
    portal.changes.changed(what);
  }
}
