import type { Appliances, Credentials } from '../broker/appliances.ts';
import type { Grants } from '../broker/grants.ts';
import type { HandOuts } from '../broker/hand-outs.ts';
import type { Pairings } from '../broker/pairings.ts';
import type { Registrations } from '../broker/registrations.ts';
import type { Sessions } from '../broker/sessions.ts';
import type { Surroundings } from '../broker/surroundings.ts';
import type { Administration, ApplianceStatus, HubStatus, IssuedCredentials } from '../core/administration.ts';
import type { Appliance } from '../core/appliance.ts';
import { elapsed, type Instant } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import { checkPassphrase, readPassphrase } from '../core/passphrase.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { backUp, restore } from './backups.ts';
import type { Identity } from './identity.ts';
import { followPairing } from './pairing-reports.ts';
import { applianceStatus } from './status.ts';
import { hubProblems, withStoreProblem } from './store-problems.ts';

/** What the desk serves from. */
export interface DeskContext {
  readonly surroundings: Surroundings;
  readonly started: Instant;
  readonly identity: Identity;
  readonly appliances: Appliances;
  readonly grants: Grants;
  readonly pairings: Pairings;
  readonly handOuts: HandOuts;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly store: SqliteStore;
  /** In words, that another hub on the network has this one's id; null where none has. */
  idTaken(): string | null;
  /** Has the hub disposed of and started again. */
  restart(): void;
  /** The hub's name, version, address and ports, as they are now. */
  whereabouts(): Pick<HubStatus, 'name' | 'version' | 'address' | 'http_port' | 'https_port'>;
}

/** Serves people at the hub: what the control socket and the installer's page offer. */
export function openDesk(context: DeskContext): Administration {
  const { appliances, grants, pairings, handOuts, identity, surroundings } = context;
  const { clock, log } = surroundings;

  const began = new Date(context.started.wall).toISOString().replace(/\.\d+Z$/, 'Z');

  function statusOf(appliance: Appliance): ApplianceStatus {
    const status = applianceStatus(appliance, grants, pairings, clock.now());
    return withStoreProblem(status, context.store, began);
  }

  function issued({ appliance, secret }: Credentials): IssuedCredentials {
    const { address, https_port } = context.whereabouts();
    const host = address === null ? `${identity.id}.local` : address.includes(':') ? `[${address}]` : address;
    return {
      name: appliance.name,
      clientId: appliance.clientId,
      clientSecret: secret,
      tokenEndpoint: `https://${host}:${https_port}/oauth/token`,
      caFingerprint: identity.fingerprint,
    };
  }

  return {
    async status() {
      const { id, fingerprint } = identity;
      const uptime = Math.floor((elapsed(context.started, clock.now()) ?? 0) / 1000);
      const problems = hubProblems(context.store, context.idTaken(), began);
      const wrong = problems.length === 0 ? {} : { problems };
      return {
        hub: { id, ...context.whereabouts(), ca_fingerprint: fingerprint, uptime, ...wrong },
        appliances: appliances.list().map(statusOf),
      };
    },
    authority: () => ({ certificate: identity.authority.certificate, fingerprint: identity.fingerprint }),
    async addAppliance(name, scope, portal) {
      const credentials = await appliances.add(name, scope, portal);
      log.info('appliance added', { appliance: name, portal: credentials.appliance.portal });
      return issued(credentials);
    },
    async removeAppliance(name) {
      const appliance = appliances.named(name);
      await pairings.drop(appliance.id);
      await appliances.remove(appliance);
      grants.drop(appliance.id);
      log.info('appliance removed', { appliance: name });
    },
    async rotateSecret(name) {
      const credentials = await appliances.rotateSecret(appliances.named(name));
      log.info('secret rotated', { appliance: name });
      return issued(credentials);
    },
    async approveAppliance() {
      throw new Failure('not_allowed', 'not yet');
    },
    async invite() {
      throw new Failure('not_allowed', 'not yet');
    },
    async openRegistration(seconds) {
      context.registrations.hold(seconds * 1000);
    },
    async pair(name) {
      const run = await pairings.begin(appliances.named(name));
      log.info('pairing begun', { appliance: name });
      return run.pairing.id;
    },
    followPairing: (id, signal) => followPairing(pairings.get(id), signal),
    async unpair(name) {
      const { id } = appliances.named(name);
      await pairings.end(id, 'cancelled');
      await grants.forget(id);
      await context.sessions.endAll(id);
      const { store } = context;
      if (store.damagedGrants.has(id)) await store.forgetGrant(id, await store.generation(id));
      log.info('unpaired', { appliance: name });
    },
    async token(name) {
      const handOut = await handOuts.handOut(appliances.named(name).id, null);
      if (handOut.kind === 'token') return handOut;
      const why = {
        unavailable: 'has no token for now: "latchkey status" says why',
        needs_pairing: `must be paired again: run "latchkey pair ${name}"`,
        not_paired: `is not paired: run "latchkey pair ${name}"`,
        other_scope: 'has another scope',
      };
      throw new Failure('token_unavailable', `${name} ${why[handOut.kind]}`);
    },
    async refresh(name) {
      const appliance = appliances.named(name);
      if (grants.get(appliance.id) === undefined) {
        throw new Failure('token_unavailable', `${name} is not paired: run "latchkey pair ${name}"`);
      }
      await grants.refresh(appliance.id);
      return statusOf(appliance);
    },
    async backUp(passphrase) {
      const backup = await backUp(context.store, checkPassphrase(passphrase), clock.now().wall);
      log.info('backup made', { appliances: backup.appliances, grants: backup.grants });
      return backup;
    },
    async restore(copy, passphrase) {
      const report = await restore(context.store, copy, readPassphrase(passphrase));
      const { made, restored, kept } = report;
      log.warn('backup restored', { made, restored: restored.join(', '), kept: kept.join(', ') });
      return { report, restart: context.restart };
    },
  };
}
