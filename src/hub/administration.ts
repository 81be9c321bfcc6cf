import { assertNotStopping, createBrokerAdministration } from '../broker/administration.ts';
import type { Broker } from '../broker/open-broker.ts';
import type { NoticeInput } from '../broker/reports/notices.ts';
import { collectNoticeInput } from '../broker/status/notice-input.ts';
import type { CaRotation } from '../certificates/ca-rotation.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { Administration } from '../core/administration.ts';
import { connectionIds } from '../core/appliances/appliance.ts';
import { checkPassphrase, normalizePassphrase } from '../core/backup-contents.ts';
import { elapsed, type Instant, rfc3339 } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { HookTestResult, NoticeReport } from '../core/health/notice.ts';
import { testReport } from '../core/health/notice-policy.ts';
import type { ReloadControl } from '../core/reload.ts';
import type { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import { mapInSlices } from '../system/slices.ts';
import type { HubEndpoints } from './hub-endpoints.ts';
import { openHubProblems } from './hub-problems.ts';
import type { HubStore, LocalStore } from './open-state.ts';
import { createPortalAdministration, type PortalAdministrationContext } from './portals/portal-administration.ts';
import { findHubToRemove, siteStatus } from './site/site-status.ts';

/** What {@link openHubAdministration} needs. */
export interface HubAdministrationContext {
  /** What only the operations on portals need. */
  readonly portalContext: Omit<PortalAdministrationContext, 'connections' | 'reached' | 'reloads' | 'clock' | 'log'>;
  readonly broker: Broker;
  /** When the daemon was started. */
  readonly startedAt: Instant;
  readonly endpoints: HubEndpoints;
  /** The path of the configuration file. */
  readonly configFile: string;
  readonly testMode: boolean;
  readonly caRotation: CaRotation;
  /** Delivers a report through every hook. */
  tryHooks(report: NoticeReport): Promise<HookTestResult[]>;
  readonly store: HubStore;
  /** Null on a site, which has neither snapshots nor a key that one hub can replace. */
  readonly local: (LocalStore & { takeSnapshot(): Promise<void> }) | null;
  /** The problem of the hub's certificate. */
  readonly leaf: Pick<HubLeaf, 'expiryProblem'>;
  /** The problems of the hub's advertisement. */
  readonly advertiser: Pick<MdnsAdvertiser, 'idConflict' | 'nameConflict' | 'announcementProblem'>;
  /** Requests that the hub is disposed of and started again. */
  restart(): void;
  /** Absent if the hub can't be replaced by one with a changed configuration. */
  readonly reloads: ReloadControl | undefined;
}

/** The administration, and what only the hub itself uses. */
export interface HubAdministration extends Administration {
  /** What notices are derived from. */
  noticeFacts(): Promise<NoticeInput>;
}

const SNAPSHOT_ADVICE = 'use "latchkey backup FILE", or the tools of the database ("pg_dump")';
const NEW_KEY_ADVICE =
  'make a backup ("latchkey backup FILE"), stop all hubs, give them a new store.key and an empty database, start one and restore the backup there, then start the others';

function notOnSite(why: string, advice: string): Failure {
  return new Failure('not_allowed', why, { advice });
}

/** The operations that the control socket and the installer's page offer. */
export function openHubAdministration(context: HubAdministrationContext): HubAdministration {
  const { broker, endpoints, portalContext, store, local, caRotation: rotation, leaf, advertiser } = context;
  const { connections, appliances, grants, registrations, notices } = broker;
  const { clock, log } = broker.environment;

  const { site } = store;
  const findProblems = openHubProblems({
    clock,
    store,
    local,
    leaf,
    advertiser,
    portals: portalContext.portals,
    portalClients: portalContext.portalClients,
    startedAt: rfc3339(context.startedAt.wall),
    nameOf: (appliance) => appliances.byId(appliance)?.name ?? appliance,
    isUnsaved: (connection) => grants.get(connection)?.isUnsaved === true,
  });
  const administration = createBrokerAdministration(broker, endpoints);
  const { portalsReached: reached } = broker;
  const portalAdministration = (user?: string) =>
    createPortalAdministration({ ...portalContext, connections, reached, reloads: context.reloads, clock, log }, user);

  /**
   * The current status of the hub, its connections and its appliances. What is added or removed meanwhile may be
   * missing.
   */
  async function collectStatus() {
    const found = await mapInSlices(
      connections.list(),
      (each) => [each, administration.connectionStatusOf(each)] as const,
    );
    const logins = found.filter(([{ id }]) => connections.byId(id) !== undefined);
    const statusById = new Map(logins.map(([{ id }, status]) => [id, status]));
    const statuses = (
      await mapInSlices(appliances.list(), (appliance) => {
        const used = connectionIds(appliance).flatMap((id) => statusById.get(id) ?? []);
        return used.length === 0 ? [] : [administration.applianceStatusOf(appliance, used)];
      })
    ).flat();
    const problems = findProblems(logins);
    const facts = await collectNoticeInput(logins, statuses, problems, broker, endpoints.endpoint('/'));
    return { connections: logins.map(([, status]) => status), appliances: statuses, problems, facts };
  }

  // A reload would lose a grant that could not be written yet.
  context.reloads?.setReloadGuard(async () => {
    const codes = (await collectStatus()).problems.map(({ code }) => code);
    if (codes.includes('database_unavailable')) {
      return "the hub can't use the database of its site, and what is only in memory would be lost: reload when it can";
    }
    if (!codes.includes('store_unwritable')) return null;
    return 'the hub can\'t write its store, and what is only in memory would be lost: check the disk ("latchkey status"), and then reload';
  });

  const hubAdministration: HubAdministration = {
    ...administration,
    ...portalAdministration(),
    asUser: (user) => ({
      ...hubAdministration,
      ...createBrokerAdministration(broker, endpoints, user),
      ...portalAdministration(user),
    }),
    async status() {
      const { fingerprint, old } = rotation.report();
      const { problems, facts, ...statuses } = await collectStatus();
      const openFor = Math.ceil(registrations.remainingOpenMs / 1000);
      // Those that wait may have asked when registration was opened before.
      const waiting = statuses.appliances.filter(({ waitingForApproval }) => waitingForApproval !== undefined);
      const asked = Math.max(registrations.registeredCount, waiting.length);
      const showsRegistration = openFor > 0 || waiting.length > 0;
      return {
        hub: {
          ...endpoints.statusFields(),
          caFingerprint: fingerprint,
          ...(old && { caRotation: { oldFingerprint: old.fingerprint, until: old.until } }),
          configFile: context.configFile,
          ...(context.testMode && { testMode: true }),
          uptime: Math.floor((elapsed(context.startedAt, clock.now()) ?? 0) / 1000),
          ...(openFor > 0 && { registrationOpenFor: openFor }),
          ...(showsRegistration && asked > 0 && { registrationAsked: asked }),
          ...(problems.length > 0 && { problems }),
        },
        ...(site !== null && { site: siteStatus(site) }),
        ...statuses,
        conditions: facts.conditions,
        notices: notices.activeNotices(facts),
      };
    },
    async removeHub(name) {
      if (site === null)
        throw new Failure(
          'not_allowed',
          'this hub belongs to no site (store.postgres_file is not set), so it has no list of hubs',
        );
      const { id } = findHubToRemove(site, name);
      await site.removeHub(id);
      log.info('hub_removed', { hub: id });
    },
    noticeFacts: async () => (await collectStatus()).facts,
    testNotices: () => context.tryHooks(testReport(rfc3339(clock.now().wall))),
    caStatus: () => rotation.report(),
    rotateCa: (keep) => rotation.rotate(keep),
    setOldCaLifetime: (keep) => rotation.setOldServingTime(keep),
    label: (name) => endpoints.labelText(appliances.get(name)),
    async rotateStoreKey() {
      if (local === null)
        throw notOnSite('the hubs of a site share their store key, which no hub alone can replace', NEW_KEY_ADVICE);
      await broker.ready;
      assertNotStopping(broker);
      const { leftovers, snapshotProblem, isCredential } = await local.keyRotation.rotate(() => local.takeSnapshot());
      log.warn('store_key_rotated', {
        ...(isCredential ? { what_to_do: 'replace the credential store.key with store.key.next' } : {}),
        ...(snapshotProblem === null ? {} : { snapshot_error: snapshotProblem }),
      });
      return { leftovers, snapshotProblem: snapshotProblem, isCredential };
    },
    async takeSnapshot() {
      if (local === null) throw notOnSite("a site's store has no snapshot: it is in PostgreSQL", SNAPSHOT_ADVICE);
      assertNotStopping(broker);
      const made = rfc3339(clock.now().wall);
      await local.takeSnapshot();
      const { snapshot: file } = local.store.files;
      log.info('snapshot_written', { file });
      return { file, made };
    },
    async backUp(passphrase) {
      const { createBackup } = await import('../store/backup/backup.ts');
      const backup = await createBackup(store, checkPassphrase(passphrase), clock.now().wall);
      log.info('backup_made', { appliances: backup.appliances, grants: backup.grants });
      return backup;
    },
    async restore(backup, passphrase) {
      const { restoreBackup } = await import('../store/backup/backup.ts');
      const report = await restoreBackup(store, backup, normalizePassphrase(passphrase));
      const { made, restored, kept } = report;
      log.warn('backup_restored', { made, restored: restored.join(', '), kept: kept.join(', ') });
      return { report, restart: context.restart };
    },
    async reload() {
      if (context.reloads !== undefined) return context.reloads.prepare();
      throw new Failure('not_allowed', "this hub can't read its configuration again: restart it");
    },
    reloadOutcome: (reload) => context.reloads?.outcome(reload) ?? { state: 'unknown' },
  };
  return hubAdministration;
}
