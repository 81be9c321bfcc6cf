import { InvalidKeyFailure } from '../../configuration/validation.ts';
import { describeProbe, type PortalProbe } from '../../portal/probe.ts';
import { type CheckResult, configurationInvalid, fail, ok, warn } from '../check-result.ts';
import { type DoctorContext, isTestMode } from '../context.ts';

/** Checks whether each portal is reachable, and which stage of the connection fails. */
export async function checkPortals(context: DoctorContext): Promise<CheckResult[]> {
  const { probes, configuration, configurationFailures, hub, env, wall } = context;
  if (isTestMode(hub)) return [ok("in test mode the portal is an emulator in the hub's own process")];
  const skipped = [...unprobedPortals(context), ...addedPortals(context)];
  if (configuration.portals.length + skipped.length === 0) {
    if (configurationFailures.length > 0) return [configurationInvalid('the portals')];
    if (hub.kind !== 'running' || hub.portals === null)
      return [ok('the configuration has none; those that a person has added are known only to the running hub')];
    return [warn('no cloud is chosen yet: choose one on the hub\'s page, or with "latchkey portal add"')];
  }
  const proxy = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].find((name) => env[name]);
  const note = proxy === undefined ? '' : ` (${proxy} is set, but the hub uses no proxy)`;
  return [...(await probes).map((probe) => probeResult(probe, note, wall())), ...skipped];
}

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

/** Names the portals that people have added: their data is in the store, so only the hub can check them. */
function addedPortals({ hub }: DoctorContext): CheckResult[] {
  const added = hub.kind === 'running' ? (hub.portals?.filter((portal) => portal.added) ?? []) : [];
  return added.map(({ name }) => {
    return {
      ...ok(`was added on the hub's page or with a command: "latchkey portals check ${name}" checks it`),
      name: `.${name}`,
    };
  });
}

function probeResult(probe: PortalProbe, note: string, now: number): CheckResult {
  const { result, detail } = describeProbe(probe, now);
  const text = probe.outcome.kind === 'stuck' ? `${detail}${note}` : detail;
  return { ok, warn, fail }[result](text, `.${probe.key.replace(/^portals\./, '')}`);
}
