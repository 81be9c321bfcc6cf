import { readFileSync } from 'node:fs';
import type { ExperimentResult } from '../experiment.ts';
import type { ChaosSite } from './chaos-site.ts';
import type { LoadCounts } from './load-messages.ts';
import type { LostGrants } from './lost-grants.ts';
import { auditSends, type Resend } from './send-audit.ts';
import type { SiteFaults } from './site-faults.ts';

/** What a run has left behind. */
interface SiteRun {
  readonly site: ChaosSite;
  readonly faults: SiteFaults;
  readonly lost: LostGrants;
  readonly counts: LoadCounts;
  /** How long faults were injected. */
  readonly seconds: number;
}

/** Judges a run by the portal's log of what it has received, and counts what happened. */
export async function summarize({ site, faults, lost, counts, seconds }: SiteRun): Promise<ExperimentResult> {
  const { portalLog, faults: log, appliances } = site;
  const grants = await portalLog.grants();
  const resends = auditSends(portalLog.sends, log.faults, appliances.handOuts);
  const revoked = new Set(grants.flatMap(({ id, revoked }) => (revoked ? [id] : [])));
  const paced = new Set(grants.flatMap(({ id, user }) => (user.startsWith('paced-') ? [id] : [])));
  const revokedByHubs = [...revoked].filter((id) => portalLog.wasRevoked(id)).length;
  const unexplainedTokens = appliances.rejected.filter(({ grant }) => !revoked.has(grant));
  const gaps = appliances.withoutToken.filter(({ appliance, from, to }) => !lost.wasLost(appliance, from, to));
  const longest = gaps.toSorted((one, other) => other.to - other.from - (one.to - one.from))[0];
  const events = countEvents(site.hubs.flatMap(({ logs }) => logs));
  const broken = [
    ...resends.filter(({ reason }) => reason === null).map(describeResend),
    ...lost.findUnexplained(grants, resends),
    ...unexplainedTokens.map(
      ({ appliance, hub, generation, at, status }) =>
        `${hub} issued a token (${generation}) to ${appliance} at ${time(at)} that the portal rejected with ${status}`,
    ),
    ...['refresh_crashed', 'crashed'].flatMap((event) =>
      (events.get(event) ?? 0) > 0 ? [`${event} was logged ${events.get(event)} times`] : [],
    ),
  ];
  const because = (reason: Resend['reason']) => resends.filter((resend) => resend.reason === reason).length;
  const { databaseFaults } = faults;
  return {
    figures: {
      'refreshes, each with a compressed answer': portalLog.refreshes,
      'refreshes a second': round(portalLog.refreshes / seconds),
      kills: log.count('killed'),
      pauses: log.count('paused'),
      'longest pause, s': round(Math.max(0, ...log.seconds('paused'))),
      'pauses longer than a lease': log.seconds('paused').filter((pause) => pause > 180).length,
      'partitions from the database': log.count('cut_from_database'),
      'partitions from the portal': log.count('cut_from_portal'),
      'partitions from appliances and hubs': log.count('cut_from_lan'),
      'database restarts': `${databaseFaults.fast} fast, ${databaseFaults.immediate} immediate, ${databaseFaults.kill} killed`,
      promotions: databaseFaults.promotion,
      'hubs added and removed': faults.guests,
      'attempts interrupted': events.get('refresh_interrupted') ?? 0,
      'answers lost': events.get('answer_lost') ?? 0,
      'tokens sent twice': resends.length,
      'of them that a hub could know of': because(null),
      'of them by a hub that was paused before the send': because('paused_before_send'),
      'after a kill': because('hub_killed'),
      'after a pause beyond the lease': because('hub_paused'),
      'after the answer was cut': because('answer_cut'),
      'grants revoked by the portal': revoked.size - revokedByHubs,
      'imports over a grant, each before a kill': site.imported.size,
      'unpairings during a refresh of another hub': faults.unpairings,
      'refreshes at a paced portal': portalLog.sends.filter(({ grant }) => paced.has(grant)).length,
      'refreshes refused by a firewall': faults.refusedByFirewall,
      'grants lost': lost.count,
      'tokens issued': counts.tokens,
      'of them tried': counts.tried,
      'could not be tried, the portal did not respond': counts.untried,
      'rejected, of revoked grants': appliances.rejected.length - unexplainedTokens.length,
      'rejected, of others': unexplainedTokens.length,
      'ended before they could be used': counts.ended,
      'longest time without a token, s': longest === undefined ? 0 : round((longest.to - longest.from) / 1000),
    },
    broken,
  };
}

function describeResend({ first, second }: Resend): string {
  const { grant, generation } = first;
  return `token ${generation} of grant ${grant} was sent by ${first.hub} at ${time(first.at)} (HTTP ${first.status}) and by ${second.hub} at ${time(second.at)} (HTTP ${second.status})`;
}

/** How often each event is in these logs. */
function countEvents(logs: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const log of logs) {
    for (const [, event = ''] of readFileSync(log, 'utf8').matchAll(/"event":"(\w+)"/g)) {
      counts.set(event, (counts.get(event) ?? 0) + 1);
    }
  }
  return counts;
}

function time(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
