import type { Appliance } from '../../core/appliances/appliance.ts';
import { linksOf } from '../../core/pairings/pairing.ts';
import type { PairingDesk, PairingView } from '../../core/pairings/pairing-desk.ts';
import { sha256 } from '../../system/compare.ts';
import type { Broker } from '../open-broker.ts';
import { reportOf } from './pairing-reports.ts';
import type { PairingRun } from './pairing-run.ts';

/**
 * Serves whoever looks at pairings and rounds of them.
 * @param approved throws a Failure `not_allowed` for an appliance that waits to be approved
 */
export function pairingAdministration(
  {
    appliances,
    pairings,
    rounds,
    environment: { log },
  }: Pick<Broker, 'appliances' | 'pairings' | 'rounds' | 'environment'>,
  approved: (appliance: Appliance) => Appliance,
): Omit<PairingDesk, 'label'> {
  const nameOf = (id: string) => appliances.byId(id)?.name ?? '?';

  function view(run: PairingRun): PairingView {
    const { id, appliance, scope, setback, round, step } = run.pairing;
    const newest = pairings.ofAppliance(appliance)?.pairing.id ?? id;
    const report = reportOf(run, null);
    return {
      id,
      appliance: nameOf(appliance),
      scope,
      report:
        step.kind === 'exchanging' && report.event === 'waiting'
          ? { event: 'exchanging', expiresIn: report.expiresIn }
          : report,
      setback,
      unconfirmed: run.unconfirmed,
      round: round === undefined ? null : rounds.view(round),
      newer: newest === id ? null : newest,
    };
  }

  return {
    async joinPairing(name) {
      const run = await pairings.begin(approved(appliances.named(name)), { joins: true });
      log.info('pairing begun', { appliance: name });
      return run.pairing.id;
    },
    pairing: (id) => view(pairings.get(id)),
    async retryPairing(id) {
      const { pairing } = pairings.get(id);
      const appliance = approved(appliances.named(nameOf(pairing.appliance)));
      const run = await rounds.again(appliance, pairing);
      log.info('pairing begun', { appliance: appliance.name });
      return run.pairing.id;
    },
    confirmLogin(id, login) {
      // Its exchange ends when the portal has answered; the page shows how.
      void pairings.get(id).confirm(login);
    },
    cancelPairing: (id) => pairings.get(id).fail('cancelled'),
    pairingsMark: () =>
      pairings
        .all(() => true)
        .slice(-MOST_MARKED)
        .map(({ pairing, trouble, unconfirmed }) => {
          const [link] = linksOf(pairing.step);
          const logins = unconfirmed.map((login) => login.id);
          const shown = [pairing.id, pairing.step.kind, trouble, pairing.setback, link && sha256(link.authorizeUrl)];
          return [...shown, ...logins].join(' ');
        })
        .join('\n'),
    pairAll: () => rounds.begin(),
    nextPairing: (round) => rounds.next(round),
    round: (id) => rounds.view(id),
  };
}

/** Of so many pairings somebody may be looking at the page. */
const MOST_MARKED = 100;
