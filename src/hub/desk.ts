import { type Appliances, type Credentials, refuseDeclared } from '../broker/appliances.ts';
import type { Grants } from '../broker/grants.ts';
import type { HandOuts } from '../broker/hand-outs.ts';
import type { HistoryBook } from '../broker/history-book.ts';
import type { HouseFacts, Notices } from '../broker/notices.ts';
import type { Pairings } from '../broker/pairings.ts';
import type { Registrations } from '../broker/registrations.ts';
import type { Rounds } from '../broker/rounds.ts';
import type { Sessions } from '../broker/sessions.ts';
import type { SetupAccessBook } from '../broker/setup-access.ts';
import type { Surroundings } from '../broker/surroundings.ts';
import type {
  Administration,
  ApplianceStatus,
  HubStatus,
  IssuedCredentials,
  RegistrationPlace,
} from '../core/administration.ts';
import type { Appliance } from '../core/appliance.ts';
import { elapsed, type Instant } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { HookTrial, NoticeReport, TellingHub } from '../core/notice.ts';
import { testReport } from '../core/notices.ts';
import type { LabelText } from '../core/pairing-desk.ts';
import { checkPassphrase, readPassphrase } from '../core/passphrase.ts';
import { rfc3339 } from '../core/rfc3339.ts';
import type { KeyRotation } from '../store/key-rotation.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { backUp, restore } from './backups.ts';
import type { CaRotation } from './ca-rotation.ts';
import { openHistoryDesk } from './history-desk.ts';
import type { Identity } from './identity.ts';
import { noticeFacts } from './notice-facts.ts';
import { openPairingDesk } from './pairing-desk.ts';
import { followPairing } from './pairing-reports.ts';
import type { Reloads } from './reloads.ts';
import { setupDesk } from './setup-desk.ts';
import { shortLink } from './short-link.ts';
import type { Anchor } from './shown-leaf.ts';
import { applianceStatus } from './status.ts';
import { hubProblems, withStoreProblem } from './store-problems.ts';

/** What the desk serves from. */
export interface DeskContext {
  readonly surroundings: Surroundings;
  readonly started: Instant;
  readonly identity: Identity;
  /** The certificate that appliances pin, as it is now. */
  anchor(): Anchor;
  readonly rotation: CaRotation;
  /** What the hub is called by in a URL, at this LAN address. */
  host(address: string | null): string;
  readonly appliances: Appliances;
  readonly grants: Grants;
  readonly pairings: Pairings;
  readonly rounds: Rounds;
  readonly handOuts: HandOuts;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly notices: Notices;
  /** Carries a report through every hook. */
  tryHooks(report: NoticeReport): Promise<HookTrial[]>;
  readonly access: SetupAccessBook;
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
  /** Makes the daily copy of the store anew. */
  copyStore(): Promise<void>;
  readonly histories: HistoryBook;
  /** In words, that another hub on the network has this one's id and key; null where none has. */
  idTaken(): string | null;
  /** In words, that another device claims the hub's host name; null where none does. */
  nameClaimed(): string | null;
  /** In words, what else keeps the hub from being announced; null where nothing does. */
  unannounced(): string | null;
  /** Has the hub disposed of and started again. */
  restart(): void;
  /** Where the hub was started by somebody who can start another with a changed configuration. */
  readonly reloads: Reloads | undefined;
  /** Resolves when the pairings of the last run are taken up. */
  readonly ready: Promise<void>;
  /** Whether another hub is about to take this one's place, so that no refresh is started any more. */
  isLeaving(): boolean;
  /** The hub's name, version, address and ports, as they are now. */
  whereabouts(): Pick<HubStatus, 'name' | 'version' | 'address' | 'http_port' | 'https_port' | 'metrics_port'>;
}

/** Registration is held open for so long at most, in seconds. */
const LONGEST_OPEN = 86_400;
/** An invite is good for so long at most, in seconds. */
const LONGEST_INVITE = 30 * 86_400;

/** What the hub itself asks of the desk. */
export interface Desk extends Administration {
  /** What notices go by. */
  facts(): HouseFacts;
  /** The hub as notices name it. */
  tellingHub(): TellingHub;
}

/** Serves people at the hub: what the control socket and the installer's page offer. */
export function openDesk(context: DeskContext): Desk {
  const { appliances, grants, pairings, handOuts, identity, registrations, surroundings } = context;
  const { clock, log } = surroundings;

  const began = rfc3339(context.started.wall);
  const unannounced = timed(() => context.unannounced());
  const nameClaimed = timed(() => context.nameClaimed());

  function statusOf(appliance: Appliance, now = clock.now()): ApplianceStatus {
    const status = applianceStatus(appliance, grants, pairings, now, (userCode) =>
      endpoint(`/pair?user_code=${userCode}`),
    );
    return withStoreProblem(status, appliance.id, context.store, began);
  }

  /** An endpoint's address on the home network. */
  function endpoint(path: string): string {
    const { address, https_port } = context.whereabouts();
    return `https://${context.host(address)}:${https_port}${path}`;
  }

  function issued({ appliance, secret }: Credentials): IssuedCredentials {
    return {
      name: appliance.name,
      clientId: appliance.clientId,
      clientSecret: secret,
      tokenEndpoint: endpoint('/oauth/token'),
      caFingerprint: context.anchor().fingerprint,
    };
  }

  function registrationPlace(): RegistrationPlace {
    return { registrationEndpoint: endpoint('/oauth/register'), caFingerprint: context.anchor().fingerprint };
  }

  /** What is wrong, and since when it was seen. */
  function timed(look: () => string | null): () => { message: string; since: string } | null {
    let first: string | null = null;
    return () => {
      const message = look();
      first = message === null ? null : (first ?? rfc3339(clock.now().wall));
      return message === null || first === null ? null : { message, since: first };
    };
  }

  const nameOf = (id: string) => appliances.byId(id)?.name ?? id;

  /** How all stands at this moment. */
  function look() {
    const now = clock.now();
    const listed = appliances.list().map((appliance) => [appliance, statusOf(appliance, now)] as const);
    const problems = hubProblems(context.store, nameOf, context.idTaken(), began, unannounced(), nameClaimed());
    return {
      statuses: listed.map(([, status]) => status),
      problems,
      facts: noticeFacts(listed, problems, context.access.wrongCodes(), grants, endpoint('/'), now),
    };
  }

  function label(name: string): LabelText {
    const { address, https_port, name: hubName } = context.whereabouts();
    const at = (host: string) => `https://${host}:${https_port}/p/${encodeURIComponent(name)}`;
    const byAddress = address === null ? null : at(address.includes(':') ? `[${address}]` : address);
    return { name, hubName, link: at(context.host(null)), byAddress };
  }

  /** @throws Failure `hub_stopping` */
  function refuseWhileLeaving(): void {
    if (!context.isLeaving()) return;
    throw new Failure('hub_stopping', 'the hub is taking a changed configuration over: try again in a moment');
  }

  /** @throws Failure `not_allowed` where it waits to be approved */
  function approved(appliance: Appliance): Appliance {
    if (appliance.waitingSince === null) return appliance;
    const { name } = appliance;
    throw new Failure('not_allowed', `${name} is not approved yet: run "latchkey appliance approve ${name}" first`);
  }

  // A grant that could not be written yet would be lost with the hub.
  context.reloads?.heed(() => {
    const isInMemory = appliances.list().some((appliance) => statusOf(appliance).problem?.code === 'store_unwritable');
    if (!isInMemory && context.store.unwritable === null) return null;
    return 'the hub can\'t write its store, and what it has in memory alone would be lost: see to the disk ("latchkey status"), and then reload';
  });

  return {
    ...setupDesk(context.access, endpoint),
    ...openHistoryDesk(appliances, context.histories),
    async status() {
      const { fingerprint, old } = context.rotation.report();
      const rotation = old === undefined ? {} : { ca_rotation: { old_fingerprint: old.fingerprint, until: old.until } };
      const uptime = Math.floor((elapsed(context.started, clock.now()) ?? 0) / 1000);
      const { statuses, problems, facts } = look();
      const wrong = problems.length === 0 ? {} : { problems };
      const openFor = Math.ceil(registrations.openFor / 1000);
      const open = openFor === 0 ? {} : { registration_open_for: openFor };
      const matters = openFor > 0 || statuses.some(({ waiting_for_approval }) => waiting_for_approval !== undefined);
      const asked = matters && registrations.asked > 0 ? { registration_asked: registrations.asked } : {};
      return {
        hub: {
          id: identity.id,
          ...context.whereabouts(),
          ca_fingerprint: fingerprint,
          ...rotation,
          uptime,
          ...open,
          ...asked,
          ...wrong,
        },
        appliances: statuses,
        notices: context.notices.standing(facts),
      };
    },
    facts: () => look().facts,
    tellingHub: () => ({ id: identity.id, name: context.whereabouts().name, page: endpoint('/') }),
    testNotices: () => context.tryHooks(testReport(rfc3339(clock.now().wall))),
    portals: () => appliances.portals,
    authority: () => context.rotation.report(),
    rotateAuthority: (keep) => context.rotation.rotate(keep),
    keepOldAuthority: (keep) => context.rotation.keepOld(keep),
    async addAppliance(name, scope, portal) {
      const credentials = await appliances.add(name, scope, portal);
      log.info('appliance added', { appliance: name, portal: credentials.appliance.portal });
      return issued(credentials);
    },
    async removeAppliance(name) {
      const appliance = appliances.named(name);
      refuseDeclared(appliance);
      await pairings.drop(appliance.id);
      await appliances.remove(appliance);
      grants.drop(appliance.id);
      await context.sessions.endAll(appliance.id);
      context.notices.changed();
      log.info('appliance removed', { appliance: name });
    },
    async rotateSecret(name, replaceKeys) {
      const credentials = await appliances.rotateSecret(appliances.named(name), replaceKeys);
      log.info('secret rotated', { appliance: name });
      return issued(credentials);
    },
    async approveAppliance(name, code) {
      const appliance = await registrations.approve(appliances.named(name), code);
      context.notices.changed();
      log.info('appliance approved', { appliance: name });
      return statusOf(appliance);
    },
    async invite(request) {
      checkSeconds(request.ttl, 1, LONGEST_INVITE);
      const { invite, token } = await registrations.invite(request);
      log.info('invite made', { appliance: invite.name ?? undefined, expires_in: request.ttl });
      return {
        token,
        name: invite.name,
        scope: invite.scope,
        expiresIn: request.ttl,
        ...registrationPlace(),
      };
    },
    async openRegistration(seconds) {
      checkSeconds(seconds, 0, LONGEST_OPEN);
      registrations.hold(seconds * 1000);
      if (seconds > 0) log.warn('registration is open', { expires_in: seconds });
      else log.info('registration is closed');
      return registrationPlace();
    },
    async pair(name) {
      await context.ready;
      const run = await pairings.begin(approved(appliances.named(name)));
      log.info('pairing begun', { appliance: name });
      return run.pairing.id;
    },
    async *followPairing(id, signal) {
      // Who has followed it over a restart would be told that it is not known.
      await context.ready;
      const run = pairings.get(id);
      yield* followPairing(run, signal, () => shortLink(run, context.whereabouts()));
    },
    ...openPairingDesk({ ...context, log, approved, label }),
    async unpair(name) {
      const { id } = appliances.named(name);
      const { store } = context;
      const isPaired = grants.get(id) !== undefined || grants.resting(id) !== undefined || store.damagedGrants.has(id);
      await pairings.end(id, 'cancelled');
      await grants.forget(id);
      await context.sessions.endAll(id);
      if (store.damagedGrants.has(id)) await store.forgetGrant(id, await store.generation(id));
      if (isPaired) surroundings.tell({ kind: 'unpaired', appliance: id, at: clock.now() });
      log.info('unpaired', { appliance: name });
    },
    async token(name) {
      const handOut = await handOuts.handOut(approved(appliances.named(name)).id, null);
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
      refuseWhileLeaving();
      await grants.refresh(appliance.id);
      return statusOf(appliance);
    },
    async rotateStoreKey() {
      await context.ready;
      refuseWhileLeaving();
      const { leftovers, uncopied, isCredential } = await context.keyRotation.rotate(() => context.copyStore());
      log.warn('store key rotated', {
        ...(isCredential ? { what_to_do: 'put the credential store.key.next in the place of store.key' } : {}),
        ...(uncopied === null ? {} : { no_copy: uncopied }),
      });
      return { leftovers, copy_problem: uncopied, is_credential: isCredential };
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
    async reload() {
      if (context.reloads !== undefined) return context.reloads.prepare();
      throw new Failure('not_allowed', 'this hub has no configuration that it could read again: restart it');
    },
    reloadOutcome: (id) => context.reloads?.outcome(id) ?? { state: 'unknown' },
  };
}

/** @throws Failure `not_allowed` */
function checkSeconds(seconds: number, least: number, most: number): void {
  if (seconds >= least && seconds <= most) return;
  throw new Failure(
    'not_allowed',
    `${seconds} s is not allowed: give ${least} to ${most} seconds (${most / 86_400} d)`,
  );
}
