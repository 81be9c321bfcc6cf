import { InvalidKeyFailure } from '../../configuration/validation.ts';
import { messageOf } from '../../core/failure.ts';
import type { PortalCheck } from '../../core/portals/portal-status.ts';
import { describeProbe, type PortalProbe } from '../../portal/probe.ts';
import { type CheckResult, type CheckResults, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';

/** Checks whether each portal is reachable, and which stage of the connection fails. */
export async function checkPortals(context: DoctorContext): Promise<CheckResults> {
  const { probes, configuration, configurationFailures, hub, env, wall } = context;
  if (isTestMode(hub)) return ok("in test mode the portal is an emulator in the hub's own process");
  const skipped = unprobedPortals(context);
  const added = hub.kind === 'running' ? (hub.portals?.filter((portal) => portal.added) ?? []) : [];
  if (configuration.portals.length + skipped.length + added.length === 0) {
    if (configurationFailures.length > 0) return configurationInvalid('the portals');
    if (hub.kind !== 'running')
      return ok('the configuration has none; those that a person has added are known only to the running hub');
    if (hub.portals === null) return UNLISTED;
    // The check of the hub says that it has none.
    return [];
  }
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find((name) => env[name]);
  const note = proxy === undefined ? '' : ` (${proxy} is set, but the hub uses no proxy)`;
  const asked = [
    ...configuration.portals.map(({ name }) => askHub(name, PROBED, context)),
    ...added.map(({ name }) => askHub(name, ADVICE, context)),
  ];
  return [
    ...(await probes).map((probe) => probeResult(probe, note, wall())),
    ...(await Promise.all(asked)).flat(),
    ...(hub.kind === 'running' && hub.portals === null ? [UNLISTED] : []),
    ...skipped,
  ];
}

const UNLISTED = warn('the hub did not list its portals in time: run "latchkey portals"');

/** Parts of a check that are only advice, and those that the doctor probes itself. */
const ADVICE: readonly PortalCheck['name'][] = ['logins'];
const PROBED: readonly PortalCheck['name'][] = [...ADVICE, 'tls', 'clock'];

/**
 * Lets the running hub, which has the secrets, check whether a portal accepts it. What people have added is known only to
 * the hub.
 * @param without parts that are left out
 */
async function askHub(
  name: string,
  without: readonly PortalCheck['name'][],
  { hub, checkPortal }: DoctorContext,
): Promise<CheckResults> {
  if (hub.kind !== 'running') return [];
  try {
    return (await checkPortal(name)).flatMap(({ name: part, result, detail }) =>
      without.includes(part) ? [] : RESULTS[result](detail, `.${name}.${part}`),
    );
  } catch (error) {
    const detail = `the hub could not ask the portal whether it accepts the hub (${messageOf(error)}): run "latchkey portals check ${name}"`;
    return warn(detail, `.${name}.client`);
  }
}

const RESULTS = { ok, warn, fail } as const;

/**
 * Reports portals that can't be probed because their configuration is invalid, with what the running hub knows about
 * them.
 */
function unprobedPortals({ configuration, configurationFailures, hub }: DoctorContext): CheckResult[] {
  const connections = hub.kind === 'running' ? hub.connections : [];
  const invalid = configurationFailures.flatMap((failure) => {
    const concernsAll = !(failure instanceof InvalidKeyFailure) || failure.key === 'portals';
    if (concernsAll) return connections.map(({ portal }) => portal);
    return /^portals\.([^.]+)/.exec(failure.key)?.[1] ?? [];
  });
  const probed = configuration.portals.map(({ name }) => name);
  const names = [...new Set(invalid)].filter((name) => !probed.includes(name));
  return names.map((name) => {
    const states = connections.filter(({ portal }) => portal === name).map(({ state }) => state);
    const isHealthy = states.includes('active') && states.every((state) => state === 'active' || state === 'unpaired');
    const addition = isHealthy ? '; the running hub reports no problem with it' : '';
    return { ...configurationInvalid(`the connection to ${name}`, addition), name: `.${name}` };
  });
}

function probeResult(probe: PortalProbe, note: string, now: number): CheckResult {
  const { result, detail } = describeProbe(probe, now);
  const text = probe.outcome.kind === 'stuck' ? `${detail}${note}` : detail;
  return RESULTS[result](text, `.${probe.key.replace(/^portals\./, '')}`);
}
